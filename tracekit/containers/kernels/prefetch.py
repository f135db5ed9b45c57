"""The processor's prefetch instruction, for a kernel that knows which rows of a large array it will soon need.

Numba has no builtin for it. It does not wait for the row, and never faults.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tracekit.jit.kernel import Instruction


def _prefetch(typing: Any, array: Any, row: Any) -> Any:
    from llvmlite import ir
    from numba.core import cgutils, types
    from numba.np import arrayobj

    code: Any = cgutils  # Numba's own functions have no types
    arrays: Any = arrayobj

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        start = arrays.make_array(signature.args[0])(context, builder, arguments[0]).data
        place = builder.gep(start, [context.cast(builder, arguments[1], signature.args[1], types.uintp)])
        byte = ir.IntType(8).as_pointer()
        flag = ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [byte, flag, flag, flag])
        instruction = code.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
        read, keep, data = flag(0), flag(3), flag(1)
        builder.call(instruction, [builder.bitcast(place, byte), read, keep, data])
        return context.get_dummy_value()

    return types.void(array, row), generate


if TYPE_CHECKING:

    def prefetch(array: Any, row: Any) -> None:
        """Begin to bring ``array[row]`` into the caches; `row` may be any non-negative integer."""
else:
    prefetch = Instruction(_prefetch)
