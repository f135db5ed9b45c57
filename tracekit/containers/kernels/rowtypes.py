"""The iterator of rows.py as Numba sees it; imported when a kernel that loops over rows is compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba.core import cgutils, imputils
from numba.core import types as numba_types
from numba.extending import lower_builtin, models, register_model

from tracekit.jit.callee import CalleeType

types: Any = numba_types  # Numba's own functions have no types
code: Any = cgutils
lowering: Any = imputils
structures: Any = models

INT = types.int64
NUMBERS = types.UniTuple(INT, 4)
"""Next row, last row of the word, where the next word begins, bytes that are left from there."""


class RowsType(types.SimpleIteratorType):  # type: ignore[misc]
    """An iterator over rows of a shadow of type `memory`; `step` finds those of a word."""

    def __init__(self, memory: Any, step: Any) -> None:
        self.memory = memory
        self.step = step
        super().__init__(f"shadow_rows({memory}, {step.__name__})", types.uint64)


def _members(rows: RowsType) -> list[tuple[str, Any]]:
    return [("numbers", types.CPointer(NUMBERS)), ("memory", rows.memory)]


class RowsModel(structures.StructModel):  # type: ignore[misc]
    """A pointer to the four numbers, and the shadow."""

    def __init__(self, manager: Any, rows: RowsType) -> None:
        super().__init__(manager, rows, _members(rows))


_register: Any = register_model
_register(RowsType)(RowsModel)


def generator(rows: RowsType) -> tuple[Any, Callable[..., Any]]:
    """Signature and code of a function (memory, address, size) that makes the iterator."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        shadow, start, length = arguments
        one, none = context.get_constant(INT, 1), context.get_constant(INT, 0)
        numbers = [one, none, start, length]
        place = code.alloca_once(builder, context.get_value_type(NUMBERS))
        builder.store(context.make_tuple(builder, NUMBERS, numbers), place)
        iterator = context.make_helper(builder, signature.return_type)
        iterator.numbers = place
        iterator.memory = shadow
        return iterator._getvalue()

    return rows(rows.memory, INT, INT), generate


def _next(context: Any, builder: Any, signature: Any, arguments: Any, result: Any) -> None:
    (rows,) = signature.args
    iterator = context.make_helper(builder, rows, value=arguments[0])
    row, last, address, left = code.unpack_tuple(builder, builder.load(iterator.numbers), 4)
    asked = builder.block
    more, word, give, done = (builder.append_basic_block(name) for name in ("more", "word", "give", "done"))
    builder.cbranch(builder.icmp_signed("<=", row, last), give, more)
    builder.position_at_end(more)
    builder.cbranch(builder.icmp_signed(">", left, context.get_constant(INT, 0)), word, done)
    builder.position_at_end(word)
    new_row, new_last, taken = _call_step(context, builder, rows, (iterator.memory, address, left))
    stepped = (new_row, new_last, builder.add(address, taken), builder.sub(left, taken))
    stepped_in = builder.block
    builder.branch(give)
    builder.position_at_end(give)
    present = [_either(builder, old, asked, new, stepped_in) for old, new in zip((row, last, address, left), stepped)]
    following = [builder.add(present[0], context.get_constant(INT, 1)), *present[1:]]
    builder.store(context.make_tuple(builder, NUMBERS, following), iterator.numbers)
    builder.branch(done)
    builder.position_at_end(done)
    valid = _either(builder, ir.Constant(ir.IntType(1), 1), give, ir.Constant(ir.IntType(1), 0), more)
    value = _either(builder, present[0], give, row, more)
    result.set_valid(valid)
    result.yield_(value)


_lower: Any = lower_builtin
_lower("iternext", RowsType)(lowering.iternext_impl(lowering.RefType.UNTRACKED)(_next))


def _call_step(context: Any, builder: Any, rows: RowsType, arguments: tuple[Any, ...]) -> Any:
    callee = CalleeType(rows.step.callee)
    signature = callee.get_call_type(context.typing_context, (rows.memory, INT, INT), {})
    step = context.get_function(callee, signature)
    context.add_linking_libs(getattr(step, "libs", ()))
    return code.unpack_tuple(builder, step(builder, arguments), 3)


def _either(builder: Any, one: Any, from_one: Any, other: Any, from_other: Any) -> Any:
    value = builder.phi(one.type)
    value.add_incoming(one, from_one)
    value.add_incoming(other, from_other)
    return value
