"""Makes functions that kernels can loop over: rows of a shadow, found word by word.

Numba does not inline generators (a loop over one takes three times as long), so this is an iterator of our own, like
Numba's range: its four numbers become registers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from llvmlite import ir
from numba.core import cgutils, imputils, types
from numba.extending import intrinsic, lower_builtin, models, register_model

_code: Any = cgutils  # Numba's own functions have no types
_imputils: Any = imputils
_models: Any = models

INT = types.int64
NUMBERS = types.UniTuple(INT, 4)
"""Next row, last row of the word, where the next word begins, where the access ends."""


class RowsType(types.SimpleIteratorType):  # type: ignore[misc]
    """An iterator over rows of a shadow of type `memory`; `step` finds those of a word."""

    def __init__(self, memory: Any, step: Any) -> None:
        self.memory = memory
        self.step = step
        super().__init__(f"shadow_rows({memory}, {step})", types.uint64)


@register_model(RowsType)
class RowsModel(_models.StructModel):  # type: ignore[misc]
    """A pointer to the four numbers, and the shadow."""

    def __init__(self, manager: Any, rows: RowsType) -> None:
        super().__init__(manager, rows, [("numbers", types.CPointer(NUMBERS)), ("memory", rows.memory)])


if TYPE_CHECKING:

    def rows_of(step: Callable[..., Any]) -> Any:
        """A function (memory, address, size) of kernels that gives the rows of an access, each once, in order.

        `step(memory, address, end)` gives the first and the last row of the first word of the bytes
        address .. end - 1, and the address behind those of them that lie in it.
        """
else:

    def rows_of(step):
        @intrinsic
        def rows(typing, memory, address, size):
            found = RowsType(memory, step)

            def generate(context, builder, signature, arguments):
                shadow, start, length = arguments
                one, none = context.get_constant(INT, 1), context.get_constant(INT, 0)
                numbers = [one, none, start, builder.add(start, length)]
                place = _code.alloca_once(builder, context.get_value_type(NUMBERS))
                builder.store(context.make_tuple(builder, NUMBERS, numbers), place)
                iterator = context.make_helper(builder, signature.return_type)
                iterator.numbers = place
                iterator.memory = shadow
                return iterator._getvalue()

            return found(memory, INT, INT), generate

        return rows


@lower_builtin("iternext", RowsType)
@_imputils.iternext_impl(_imputils.RefType.UNTRACKED)
def _next(context: Any, builder: Any, signature: Any, arguments: Any, result: Any) -> None:
    (kind,) = signature.args
    iterator = context.make_helper(builder, kind, value=arguments[0])
    row, last, address, end = _code.unpack_tuple(builder, builder.load(iterator.numbers), 4)
    asked = builder.block
    more, word, give, done = (builder.append_basic_block(name) for name in ("more", "word", "give", "done"))
    builder.cbranch(builder.icmp_signed("<=", row, last), give, more)
    builder.position_at_end(more)
    builder.cbranch(builder.icmp_signed("<", address, end), word, done)
    builder.position_at_end(word)
    found = _call_step(context, builder, kind, (iterator.memory, address, end))
    found_in = builder.block
    builder.branch(give)
    builder.position_at_end(give)
    present = [_either(builder, old, asked, new, found_in) for old, new in zip((row, last, address), found)]
    following = [builder.add(present[0], context.get_constant(INT, 1)), *present[1:], end]
    builder.store(context.make_tuple(builder, NUMBERS, following), iterator.numbers)
    builder.branch(done)
    builder.position_at_end(done)
    valid = _either(builder, ir.Constant(ir.IntType(1), 1), give, ir.Constant(ir.IntType(1), 0), more)
    value = _either(builder, present[0], give, row, more)
    result.set_valid(valid)
    result.yield_(value)


def _call_step(context: Any, builder: Any, kind: RowsType, arguments: tuple[Any, ...]) -> Any:
    dispatcher = types.Dispatcher(kind.step)
    signature = dispatcher.get_call_type(context.typing_context, (kind.memory, INT, INT), {})
    step = context.get_function(dispatcher, signature)
    context.add_linking_libs(getattr(step, "libs", ()))
    return _code.unpack_tuple(builder, step(builder, arguments), 3)


def _either(builder: Any, one: Any, from_one: Any, other: Any, from_other: Any) -> Any:
    value = builder.phi(one.type)
    value.add_incoming(one, from_one)
    value.add_incoming(other, from_other)
    return value
