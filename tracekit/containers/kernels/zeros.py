"""Zeros in rows of an array: for a kernel that clears metadata of any dtype, whose rows it cannot name the fields of.

Where the number of rows is a constant the machine code is a few stores, else a call of the C library's memset.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tracekit.jit.kernel import Instruction


def _place(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    """Pointer to the first byte of a row, and how many bytes a row has."""
    from llvmlite import ir
    from numba.core import types
    from numba.np import arrayobj

    arrays: Any = arrayobj  # Numba's own functions have no types
    array = arrays.make_array(signature.args[0])(context, builder, arguments[0])
    row = context.get_abi_sizeof(context.get_data_type(signature.args[0].dtype))
    place = builder.gep(array.data, [context.cast(builder, arguments[1], signature.args[1], types.uintp)])
    return builder.bitcast(place, ir.IntType(8).as_pointer()), row


def _make_zero(typing: Any, array: Any, row: Any, count: Any) -> Any:
    from llvmlite import ir
    from numba.core import cgutils, types

    code: Any = cgutils

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        place, size = _place(context, builder, signature, arguments)
        number = context.cast(builder, arguments[2], signature.args[2], types.uintp)
        kind = ir.FunctionType(ir.VoidType(), [place.type, ir.IntType(8), number.type, ir.IntType(1)])
        instruction = code.get_or_insert_function(builder.module, kind, "llvm.memset.p0.i64")
        flag = ir.IntType(1)(0)
        builder.call(instruction, [place, ir.IntType(8)(0), builder.mul(number, number.type(size)), flag])
        return context.get_dummy_value()

    return types.void(array, row, count), generate


def _is_zero(typing: Any, array: Any, row: Any) -> Any:
    from llvmlite import ir
    from numba.core import types

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        place, size = _place(context, builder, signature, arguments)
        whole = ir.IntType(8 * size)
        value = builder.load(builder.bitcast(place, whole.as_pointer()), align=1)
        return builder.icmp_unsigned("==", value, whole(0))

    return types.boolean(array, row), generate


if TYPE_CHECKING:

    def make_zero(array: Any, row: Any, count: Any) -> None:
        """Make ``array[row : row + count]`` zero; both may be any non-negative integers."""

    def is_zero(array: Any, row: Any) -> bool:
        """Whether all bytes of ``array[row]`` are zero."""
else:
    make_zero = Instruction(_make_zero)
    is_zero = Instruction(_is_zero)
