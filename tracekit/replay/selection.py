"""What a replay is asked for, events and columns, and the batches that hold it (PROMPT, section 4: specialisation)."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from tracekit.formats.events import BY_CODE, CODE, FUNCTION_EVENTS, LOOP_EVENTS, STACK_EVENTS
from tracekit.replay.kernels.layouts import Columns, Wide

Column = TypeVar("Column")

COLUMNS = {"subject": np.dtype(np.uint32), "address": np.dtype(np.uint64), "size": np.dtype(np.uint64)}
"""The columns that may be asked for, beside ``kind``, which is always there, and ``value``."""

VALUE = "value"
"""What loads and stores moved: only traces of programs built with ``tracekit cc --values`` have it, so it is there only
where it is asked for by name."""

MOST_WORDS = 1 << 16
"""Words of one record (formats/SPEC.md, "Limits")."""

GROUPS = {"functions": FUNCTION_EVENTS, "loops": LOOP_EVENTS, "objects": STACK_EVENTS}
"""Events that a kernel is compiled with or without; of the others those not asked for are passed over."""


@dataclass(frozen=True)
class EventSelection:
    """The events and the columns that are delivered; ``keep`` (256) u1 is 1 for the code of a wanted event."""

    keep: NDArray[np.uint8]
    columns: frozenset[str]

    @classmethod
    def of(cls, events: Collection[str] | None = None, columns: Collection[str] | None = None) -> EventSelection:
        """Events and columns by name (formats/events.py), None for all, of the columns but ``value``.

        Raises ValueError for an unknown name.
        """
        if unknown := set(events or ()) - CODE.keys():
            raise ValueError(f"there is no event {', '.join(sorted(unknown))}; see tracekit modules --events")
        if unknown := set(columns or ()) - COLUMNS.keys() - {VALUE}:
            there_are = f"{', '.join((*COLUMNS, VALUE))}, and group, object, offset and physical of a trace's batches"
            first = "(subject is an event's first field)"
            raise ValueError(f"there is no column {', '.join(sorted(unknown))}; there are {there_are} {first}")
        keep = np.zeros(256, np.uint8)
        keep[[CODE[name] for name in (CODE if events is None else events)]] = 1
        return cls(keep, frozenset(COLUMNS if columns is None else columns))

    @property
    def has_all_groups(self) -> bool:
        """Whether the kernel is compiled with all groups of events."""
        return all(map(self._has, GROUPS.values()))

    def _has(self, group: Collection[str]) -> bool:
        return any(self.keep[CODE[name]] for name in group)

    def room(self, events: int) -> Columns:
        """Empty columns for so many events, as the derive kernel takes them."""
        arrays: dict[str, Any] = {
            name: np.empty(events, dtype) if name in self.columns else None for name, dtype in COLUMNS.items()
        }
        groups: dict[str, Any] = {group: self.keep if self._has(names) else None for group, names in GROUPS.items()}
        value = wide = None
        if VALUE in self.columns:
            words = events + MOST_WORDS
            value = np.empty(events, np.uint64)
            wide = Wide(np.empty(words, np.uint64), np.empty(words, np.uint32), np.zeros(1, np.int64))
        return Columns(kind=np.empty(events, np.uint8), value=value, wide=wide, keep=self.keep, **arrays, **groups)


@dataclass(frozen=True)
class Batch:
    """Consecutive events of one stream; the columns are views that the next batch overwrites.

    A column that was not asked for is None in ``columns``, and raises AttributeError as an attribute.
    """

    stream: int
    columns: Columns

    @property
    def kind(self) -> NDArray[np.uint8]:
        """Code of each event (formats/events.py)."""
        return self.columns.kind

    @property
    def subject(self) -> NDArray[np.uint32]:
        """Its instruction, function, loop or object."""
        return _present(self.columns.subject, "subject")

    @property
    def address(self) -> NDArray[np.uint64]:
        """Its address."""
        return _present(self.columns.address, "address")

    @property
    def size(self) -> NDArray[np.uint64]:
        """Its size, or what the event table says."""
        return _present(self.columns.size, "size")

    @property
    def value(self) -> NDArray[np.uint64]:
        """The first eight bytes that a load or store moved, zeros behind.

        0 where no value was recorded: ``program.valued`` says of which instructions there is one.
        """
        return _present(self.columns.value, VALUE)

    @property
    def wide(self) -> NDArray[np.uint64]:
        """The words of values of more than eight bytes, but for the first: those of one event after another's."""
        return _present(self.columns.wide, VALUE).words

    @property
    def wide_event(self) -> NDArray[np.uint32]:
        """Beside ``wide``: the row of the event whose value the word belongs to."""
        return _present(self.columns.wide, VALUE).events

    def values(self) -> list[int]:
        """All bytes that each event moved as a number, the first byte lowest; 0 where no value was recorded."""
        numbers: list[int] = self.value.tolist()
        bits: dict[int, int] = {}
        for event, word in zip(self.wide_event.tolist(), self.wide.tolist()):
            bits[event] = bits.get(event, 0) + 64
            numbers[event] |= word << bits[event]
        return numbers

    def __len__(self) -> int:
        return len(self.columns.kind)


@dataclass(frozen=True)
class MixedBatch(Batch):
    """Events of several streams that take turns, in one set of columns; ``stream`` is -1."""

    turns: NDArray[np.int64]
    """(n, 2) i8: the stream of each turn, and how many events of the batch there are up to its last one."""

    def parts(self) -> Iterator[Batch]:
        """A batch for each turn."""
        begin = 0
        for stream, end in self.turns.tolist():
            yield Batch(stream, _rows(self.columns, begin, end))
            begin = end


def parts_of(batch: Any) -> Iterator[Any]:
    """The parts of a batch that are each of one stream: of most batches the batch itself."""
    return batch.parts() if isinstance(batch, MixedBatch) else iter((batch,))


def _present(column: Column | None, name: str) -> Column:
    if column is None:
        raise AttributeError(f"the column {name} was not asked for")
    return column


def filled(columns: Columns, events: int) -> Columns:
    """The first `events` rows, as views; `columns` are empty then."""
    if (wide := columns.wide) is not None:
        words = int(wide.filled[0])
        wide.filled[0] = 0
        columns = columns._replace(wide=wide._replace(words=wide.words[:words], events=wide.events[:words]))
    return _rows(columns, 0, events)


def _rows(columns: Columns, begin: int, end: int) -> Columns:
    """Some rows, as views, with the values of more than eight bytes that are theirs."""
    rows: dict[str, Any] = {
        name: column[begin:end] for name in ("kind", VALUE, *COLUMNS) if (column := getattr(columns, name)) is not None
    }
    if (wide := columns.wide) is not None:
        first, last = np.searchsorted(wide.events, (begin, end)).tolist()
        events = wide.events[first:last]
        rows["wide"] = wide._replace(
            words=wide.words[first:last], events=events - np.uint32(begin) if begin else events
        )
    return columns._replace(**rows)


def by_name(counts: NDArray[np.int64]) -> dict[str, int]:
    """Counts by event code as counts by name; events that did not happen are left out."""
    return {BY_CODE[code].name: int(counts[code]) for code in np.flatnonzero(counts).tolist()}
