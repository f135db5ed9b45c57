"""From the events of recorded calls to calls with names and values."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tracekit.formats import prototypes
from tracekit.formats.errors import TracekitError
from tracekit.formats.events import CODE
from tracekit.formats.prototypes import SCALARS, Prototype, Type
from tracekit.formats.reader import TraceReader
from tracekit.program.program import Program
from tracekit.replay.engine import Replay

PROBE, BEGIN, END = CODE["call_probe"], CODE["call_begin"], CODE["call_end"]
VALUE, BYTES, DATA = CODE["call_value"], CODE["call_bytes"], CODE["call_data"]
TEXT, RESULT = 254, 255

Value = int | float | bool | str | bytes | list[Any] | None


@dataclass(eq=False)
class Call:
    """A call: ``arguments`` at its entry, ``outputs`` (out and inout parameters) and ``result`` at its return.

    ``number``: from 0, in the order in which calls began; ``depth``: recorded calls of the thread that are around it;
    ``returned``: False if the trace ends, or an exception passes, before it returns.
    """

    number: int
    thread: int
    function: str
    depth: int
    arguments: dict[str, Value] = field(default_factory=dict)
    outputs: dict[str, Value] = field(default_factory=dict)
    result: Value = None
    returned: bool = False

    def as_json(self) -> dict[str, Any]:
        """The call as JSON has it; bytes are text of hexadecimal digits."""
        return {
            "call": self.number,
            "thread": self.thread,
            "function": self.function,
            "depth": self.depth,
            "arguments": _plain(self.arguments),
            "outputs": _plain(self.outputs),
            "result": _plain(self.result),
            "returned": self.returned,
        }


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in value.items()}
    return [_plain(each) for each in value] if isinstance(value, list) else value


@dataclass(eq=False)
class _Item:
    """A value of which the trace tells: the argument or pointer, and what it leads to."""

    index: int
    content: int
    parts: list[bytearray] = field(default_factory=list)
    lengths: list[int] = field(default_factory=list)


class _Thread:
    """What a stream has told so far of the call at hand."""

    def __init__(self) -> None:
        self.open: list[tuple[Call, int]] = []  # calls under way, each with its function's number
        self.defines = 0  # the number of the function whose prototype comes
        self.items: list[_Item] = []
        self.entering: Call | None = None  # whose arguments come


class _Reader:
    def __init__(self) -> None:
        self.known: dict[int, Prototype] = {}
        self.calls: list[Call] = []
        self._threads: dict[int, _Thread] = {}

    def take(self, stream: int, kind: int, subject: int, address: int, size: int) -> None:
        thread = self._threads.setdefault(stream, _Thread())
        if kind == DATA:
            if thread.items and thread.items[-1].parts:
                item = thread.items[-1]
                item.parts[-1] += struct.pack("<QQ", address, size)[: item.lengths[-1] - len(item.parts[-1])]
            if thread.defines:
                self._define(thread)
        elif kind == BYTES:
            if subject == TEXT or not thread.items or thread.items[-1].index != subject:
                thread.items.append(_Item(subject, 0))
            thread.items[-1].parts.append(bytearray())
            thread.items[-1].lengths.append(address)
        elif kind == VALUE:
            thread.items.append(_Item(subject, address))
        elif kind == PROBE:
            self.settle(thread)
            thread.defines = subject
        elif kind == BEGIN:
            self.settle(thread)
            name = self.known[subject].name if subject in self.known else f"function {subject}"
            thread.entering = Call(len(self.calls), stream, name, len(thread.open))
            self.calls.append(thread.entering)
            thread.open.append((thread.entering, subject))
        else:
            self._leave(thread, subject)

    def _define(self, thread: _Thread) -> None:
        item = thread.items[-1]
        if item.index != TEXT or len(item.parts[-1]) < item.lengths[-1]:
            return
        try:
            self.known[thread.defines] = prototypes.parse(item.parts[-1].decode(errors="replace"))
        except TracekitError:
            pass  # of a later release: the function stays without a name
        thread.defines = 0
        thread.items = []

    def settle(self, thread: _Thread) -> None:
        """Its arguments are complete once the next event of a call comes."""
        call, thread.entering = thread.entering, None
        number = thread.open[-1][1] if thread.open else 0
        prototype = self.known.get(number)
        if call and prototype:
            for item in thread.items:
                if item.index < len(prototype.parameters):
                    name, type_ = prototype.parameters[item.index]
                    call.arguments[name] = _value(type_, item, type_.direction != "out")
        thread.items = []

    def _leave(self, thread: _Thread, number: int) -> None:
        """The values that stand before it are its outputs and its result; exceptions pass over calls inside it."""
        items = thread.items
        if thread.entering:  # nothing lay between: which are of the entry is told by their number
            prototype = self.known.get(number)
            count = len(prototype.parameters) if prototype else 0
            thread.items, items = items[:count], items[count:]
            self.settle(thread)
        while thread.open and thread.open[-1][1] != number:
            thread.open.pop()
        thread.items = []
        if not thread.open:
            return
        call, _ = thread.open.pop()
        call.returned = True
        prototype = self.known.get(number)
        for item in items if prototype else ():
            if item.index == RESULT and prototype.result:  # type: ignore[union-attr]
                call.result = _value(prototype.result, item, True)  # type: ignore[union-attr]
            elif item.index < len(prototype.parameters):  # type: ignore[union-attr]
                name, type_ = prototype.parameters[item.index]  # type: ignore[union-attr]
                call.outputs[name] = _value(type_, item, True)

    def end(self) -> None:
        for thread in self._threads.values():
            self.settle(thread)


def _value(type_: Type, item: _Item, is_told: bool) -> Value:
    """What the program would see; a pointer that cannot be read, or is not yet, stays a number, and NULL is None."""
    if not type_.is_pointer:
        return prototypes.scalar(type_, item.content)
    if item.content == 0:
        return None
    if not is_told or (not item.parts and not (type_.base == "string" and type_.count)):
        return item.content
    if type_.base == "string":
        texts: list[Value] = [part.decode(errors="backslashreplace") for part in item.parts]
        return texts if type_.count else texts[0]
    if type_.base == "bytes":
        return bytes(item.parts[0])
    letter = SCALARS[type_.base]
    data = item.parts[0]
    values = list(struct.unpack_from(f"<{len(data) // struct.calcsize(letter)}{letter}", data))
    if type_.count:
        return values
    return values[0] if values else item.content


def read_calls(trace: TraceReader, program: Program) -> Iterator[Call]:
    """All recorded calls of a trace, in the order in which they began."""
    reader = _Reader()
    kinds = np.array([PROBE, BEGIN, END, VALUE, BYTES, DATA])
    for batch in Replay(trace, program, columns=("subject", "address", "size")).batches():
        at = np.flatnonzero(np.isin(batch.kind, kinds))
        if not len(at):
            continue
        columns = (batch.kind[at], batch.subject[at], batch.address[at], batch.size[at])
        for row in zip(*(column.tolist() for column in columns)):
            reader.take(batch.stream, *row)
    reader.end()
    yield from reader.calls


def columns(calls: Iterator[Call]) -> dict[str, dict[str, np.ndarray]]:
    """By function: columns ``call``, ``thread``, ``depth``, ``returned``, each argument by its name, each output as
    ``NAME.out``, and ``return``.

    Columns of numbers without a gap are int64, uint64, float64 or bool; all others hold objects, None where there is
    nothing.
    """
    rows: dict[str, list[dict[str, Any]]] = {}
    for call in calls:
        row: dict[str, Any] = {name: getattr(call, attribute) for name, attribute in _OWN.items()}
        row |= call.arguments | {f"{name}.out": value for name, value in call.outputs.items()}
        if call.result is not None:
            row["return"] = call.result
        rows.setdefault(call.function, []).append(row)
    return {function: _as_columns(of) for function, of in rows.items()}


_OWN = {"call": "number", "thread": "thread", "depth": "depth", "returned": "returned"}


def _as_columns(rows: list[dict[str, Any]]) -> dict[str, np.ndarray]:
    names = list(dict.fromkeys(name for row in rows for name in row))
    return {name: _column([row.get(name) for row in rows]) for name in names}


def _column(values: list[Any]) -> np.ndarray:
    kinds = {type(value) for value in values}
    if kinds <= {bool}:
        return np.array(values, np.bool_)
    if kinds <= {int}:
        return np.array(values, np.uint64 if max(values) > np.iinfo(np.int64).max else np.int64)
    if kinds <= {int, float}:
        return np.array(values, np.float64)
    column = np.empty(len(values), object)
    column[:] = values
    return column
