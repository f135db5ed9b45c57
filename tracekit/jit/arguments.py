"""The arguments of a function for kernels: only those parts of a state that it uses are passed on to it.

A state is a tuple of tuples of arrays, an array seven values. Numba hands all of them to each function one by one, puts
them together into structures, and takes those apart again for each call: hundreds of instructions for a function that
uses three fields. Here a structure is put together where something needs it whole, and a part that a function does not
use is none of its arguments. What a function calls is compiled before it, so a part that none of them uses is passed
nowhere.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import Any

from llvmlite import ir
from numba.core.datamodel.models import BooleanModel, PrimitiveModel, RecordModel, StructModel, UniTupleModel

FIRST = 2
"""Arguments in front of those of Python: where the result goes, and where an exception does."""


class Layout:
    """Where the parts of a type of Numba's are among the arguments that it becomes."""

    def __init__(self, model: Any) -> None:
        self.model = model
        parts = [layout_of(each) for each in _models_of(model)]
        self.is_plain: bool = (bool(parts) and all(part.is_plain for part in parts)) or isinstance(model, _PLAIN)
        self.parts: Sequence[Layout] = parts if self.is_plain else ()
        """Those that can be told apart: tuples, arrays, and what is in them down to numbers and pointers."""
        self.types = list(_flat(model.get_argument_type()))
        self.begins = [0, *accumulate(len(part.types) for part in self.parts)]

    def part_at(self, position: int) -> int:
        """The number of the part that an argument belongs to."""
        return bisect_right(self.begins, position) - 1


_PLAIN = (PrimitiveModel, BooleanModel, RecordModel)
"""Models of what is one argument, and the argument its value, but for a truth value."""

_layouts: dict[int, Layout] = {}
"""By the identity of the model, which its layout keeps alive: a state's hash takes long."""


def layout_of(model: Any) -> Layout:
    """The layout of what Numba's data model describes."""
    layout = _layouts.get(id(model))
    if layout is None:
        layout = _layouts[id(model)] = Layout(model)
    return layout


def _models_of(model: Any) -> Sequence[Any]:
    if isinstance(model, StructModel):
        models: Sequence[Any] = model._models
        return models
    return [model._elem_model] * model._count if isinstance(model, UniTupleModel) else ()


class Given:
    """The arguments of the function that is compiled: each is one from when it is first asked for."""

    def __init__(self, function: Any, types: Sequence[Any]) -> None:
        self._function = function
        self._types = types
        self._asked: dict[int, Any] = {}

    def argument(self, position: int) -> Any:
        """LLVM's argument."""
        made = self._asked.get(position)
        if made is None:
            made = self._asked[position] = ir.Argument(self._function, self._types[position])
        return made

    def value(self, builder: Any, layout: Layout, first: int) -> Any:
        """What Numba's `model.from_argument` makes of the arguments from `first` on."""
        if layout.parts:
            return Whole(self, builder, layout, first)
        if isinstance(layout.model, BooleanModel):
            argument = self.argument(first)
            with builder.goto_entry_block():
                return builder.icmp_unsigned("!=", argument, ir.Constant(argument.type, 0))
        arguments = iter([self.argument(first + number) for number in range(len(layout.types))])
        return layout.model.from_argument(builder, _nested(layout.model.get_argument_type(), arguments))

    def keep(self, positions: Iterable[int] | None) -> tuple[int, ...]:
        """Give the function all arguments, or those of `positions` that something uses."""
        kept = range(len(self._types)) if positions is None else sorted(positions)
        function = self._function
        function.args = (*function.args[:FIRST], *(self.argument(position) for position in kept))
        function.ftype = ir.FunctionType(function.ftype.return_type, [argument.type for argument in function.args])
        function.type = function.ftype.as_pointer()
        return tuple(kept)

    def positions(self, used: set[int]) -> list[int]:
        """Of those arguments whose ids these are."""
        return [position for position, argument in self._asked.items() if id(argument) in used]


def _flat(nested: Any) -> Iterator[Any]:
    """What is in tuples of tuples, in order."""
    if isinstance(nested, (tuple, list)):
        for each in nested:
            yield from _flat(each)
    else:
        yield nested


def _nested(types: Any, arguments: Iterator[Any]) -> Any:
    """The next arguments, nested as their types are."""
    return tuple(_nested(each, arguments) for each in types) if isinstance(types, tuple) else next(arguments)


class Whole:
    """A tuple or an array among the arguments: no value of LLVM's until something needs it as one."""

    def __init__(self, given: Given, builder: Any, layout: Layout, first: int) -> None:
        self.given, self.first = given, first
        self.type = layout.model.get_value_type()
        self._builder, self._layout = builder, layout
        self._parts: dict[int, Any] = {}

    def part(self, index: int) -> Any:
        """One of the values that it consists of."""
        made = self._parts.get(index)
        if made is None:
            layout = self._layout
            first = self.first + layout.begins[index]
            made = self._parts[index] = self.given.value(self._builder, layout.parts[index], first)
        return made

    @property
    def parts(self) -> Sequence[Any]:
        """All of them."""
        return [self.part(index) for index in range(len(self._layout.parts))]


class Handed:
    """Values for a call, of which a function is given the arguments that it has."""

    def __init__(self, builder: Any, layouts: Sequence[Layout], values: Sequence[Any]) -> None:
        self._builder, self._layouts, self._values = builder, layouts, values
        self._begins = [0, *accumulate(len(layout.types) for layout in layouts)]

    def argument(self, position: int) -> Any:
        """What Numba's `model.as_argument` makes of a value, or of the part of it that is wanted here."""
        number = bisect_right(self._begins, position) - 1
        layout, value, position = self._layouts[number], self._values[number], position - self._begins[number]
        while layout.parts:
            if isinstance(value, Whole):
                return value.given.argument(value.first + position)
            index = layout.part_at(position)
            value = self._builder.extract_value(value, index)
            layout, position = layout.parts[index], position - layout.begins[index]
        return list(_flat(layout.model.as_argument(self._builder, value)))[position]


class PartsBuilder(ir.IRBuilder):  # type: ignore[misc]
    """llvmlite's builder, which finds a part of a structure among the values that it was made of."""

    def extract_value(self, aggregate: Any, indices: Any, name: str = "") -> Any:
        """See llvmlite's."""
        path = list(indices) if isinstance(indices, (tuple, list)) else [indices]
        while path:
            part = _part(aggregate, path[0])
            if part is None:
                return super().extract_value(aggregate, path, name)
            aggregate, path = part, path[1:]
        return aggregate


def _part(aggregate: Any, index: int) -> Any:
    """The value that was put there; None if that is not known."""
    while isinstance(aggregate, ir.instructions.InsertValue) and len(aggregate.indices) == 1:
        if aggregate.indices[0] == index:
            return aggregate.value
        aggregate = aggregate.aggregate
    return aggregate.part(index) if isinstance(aggregate, Whole) else None


_PURE = (ir.instructions.InsertValue, ir.instructions.ExtractValue, Whole)


def keep_used(function: Any, given: Given, removes: bool) -> tuple[int, ...]:
    """Put together what is needed as one value, drop what takes apart and puts together for nothing.

    Return which arguments the function has: with `removes` those that are then used, else all.
    """
    values: dict[int, Any] = {}
    made: list[Any] = []
    needed, arguments = _needed(function)
    for block in function.blocks:
        block.instructions = [each for each in block.instructions if not isinstance(each, _PURE) or id(each) in needed]
        for instruction in block.instructions:
            for operand in _operands(instruction):
                if isinstance(operand, Whole):
                    instruction.replace_usage(operand, _put_together(function.blocks[0], operand, values, made))
    function.blocks[0].instructions[-1:-1] = made  # behind what makes truth values of arguments
    return given.keep(given.positions(arguments) if removes else None)


def _needed(function: Any) -> tuple[set[int], set[int]]:
    """What has to be put together or taken apart for the other instructions, and the arguments that are used: ids."""
    needed: set[int] = set()
    arguments: set[int] = set()
    waiting = [each for block in function.blocks for each in block.instructions if not isinstance(each, _PURE)]
    while waiting:
        for operand in _operands(waiting.pop()):
            if isinstance(operand, ir.Argument):
                arguments.add(id(operand))
            elif isinstance(operand, _PURE) and id(operand) not in needed:
                needed.add(id(operand))
                waiting.append(operand)
    return needed, arguments


def _operands(instruction: Any) -> Iterator[Any]:
    if isinstance(instruction, Whole):
        yield from instruction.parts
    elif isinstance(instruction, ir.instructions.PhiInstr):
        yield from (value for value, _ in instruction.incomings)
    else:
        yield from instruction.operands


def _put_together(block: Any, whole: Whole, values: dict[int, Any], made: list[Any]) -> Any:
    """One value for it, by instructions for the beginning of the function, which are added to `made`."""
    value = values.get(id(whole))
    if value is None:
        value = ir.Constant(whole.type, ir.Undefined)
        for index, part in enumerate(whole.parts):
            element = _put_together(block, part, values, made) if isinstance(part, Whole) else part
            value = ir.instructions.InsertValue(block, value, element, [index])
            made.append(value)
        values[id(whole)] = value
    return value
