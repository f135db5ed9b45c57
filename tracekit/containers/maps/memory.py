"""Memory that a kernel may ask for and give back by itself, so that a map grows while it is filled.

A kernel borrows its arrays and cannot replace one in the tuple that it was given. What has to grow therefore lies in
the C library's heap, and a `Block`, three words of an array that stays where it is, says where.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tracekit.jit.kernel import Foreign, Instruction, Late

ir: Any = Late("llvmlite.ir")
types: Any = Late("numba.core.types")
_arrays: Any = Late("numba.np.arrayobj")

allocate_zeroed: Any = Foreign("calloc", "uintp", "uintp", "uintp")
give_back: Any = Foreign("free", "void", "uintp")


def _words_at(typing: Any, address: Any, size: Any) -> Any:
    kind = types.Array(types.uint64, 1, "C")

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array = _arrays.make_array(kind)(context, builder)
        data = builder.inttoptr(arguments[0], array.data.type)
        length = context.cast(builder, arguments[1], signature.args[1], types.intp)
        item = ir.Constant(ir.IntType(64), 8)
        _arrays.populate_array(array, data, [length], [item], item, None)
        return array._getvalue()

    return kind(types.uintp, size), generate


if TYPE_CHECKING:

    def words_at(address: Any, size: Any) -> Any:
        """The `size` words (uint64) at `address` as an array, which owns nothing."""
else:
    words_at = Instruction(_words_at)
