"""Copies of a few neighbouring elements as one vector, for a kernel that handles rows in small groups.

LLVM makes such a copy of a loop only where it can prove that nothing overlaps, and Numba does not let it try.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tracekit.jit.cache import CHECKS_ALL_BOUNDS
from tracekit.jit.kernel import Instruction, inlined
from tracekit.replay.kernels.layouts import GROUP


def _copy_group(typing: Any, into: Any, at: Any, values: Any, first: Any) -> Any:
    from llvmlite import ir
    from numba.core import types
    from numba.np import arrayobj

    arrays: Any = arrayobj  # Numba's own functions have no types

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        def place(which: int) -> Any:
            array = arrays.make_array(signature.args[which])(context, builder, arguments[which])
            index = context.cast(builder, arguments[which + 1], signature.args[which + 1], types.uintp)
            element = context.get_data_type(signature.args[which].dtype)
            vector = ir.VectorType(element, GROUP)
            return builder.bitcast(builder.gep(array.data, [index]), vector.as_pointer()), element, vector

        (source, narrow, _), (target, wide, whole) = place(2), place(0)
        copied = builder.load(source, align=narrow.width // 8)
        if narrow != wide:
            copied = builder.zext(copied, whole)
        builder.store(copied, target, align=wide.width // 8)
        return context.get_dummy_value()

    return types.void(into, at, values, first), generate


@inlined
def _copy_one_by_one(into: Any, at: Any, values: Any, first: Any) -> None:
    """``into[at : at + GROUP] = values[first : first + GROUP]``, each index checked."""
    for k in range(GROUP):
        into[at + k] = values[first + k]


if TYPE_CHECKING:

    def copy_group(into: Any, at: Any, values: Any, first: Any) -> None:
        """``into[at : at + GROUP] = values[first : first + GROUP]``, of unsigned numbers, not wider than `into`'s."""
else:
    copy_group = _copy_one_by_one if CHECKS_ALL_BOUNDS else Instruction(_copy_group)
