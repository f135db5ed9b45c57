"""Batches whose events have ``group``, ``object`` and ``offset`` beside their columns (tracekit/translation)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tracekit.contexts.kernels.streams import Stream
from tracekit.contexts.kernels.tree import DYNAMIC
from tracekit.contexts.state import empty_contexts, empty_stream, with_room
from tracekit.contexts.table import ContextTable
from tracekit.formats.events import BY_NAME, CODE, CONTEXT_EVENTS
from tracekit.program.program import Program
from tracekit.replay.kernels.layouts import Columns, Wide
from tracekit.replay.kernels.translated import GIVES, translate
from tracekit.replay.selection import Batch
from tracekit.translation.groups import GroupTable
from tracekit.translation.kernels.translation import CHANGING_AFTER, CHANGING_BEFORE, OF_STACK
from tracekit.translation.translation import no_objects

NAMES = frozenset({"group", "object", "offset"})
COLUMNS = frozenset({"subject", "address", "size"})
"""What translation needs of events."""


@dataclass(frozen=True)
class TranslatedBatch(Batch):
    """Consecutive events of one stream; 0 in the new columns where an event has no address.

    The end of an object is translated as what was there before it.
    """

    group: NDArray[np.int64]
    """What made the object at its address (GroupTable); 0: memory of no known object."""
    object: NDArray[np.int64]
    """Its number in the group, from 0, in the order of creation."""
    offset: NDArray[np.int64]
    """Bytes from its beginning; in unknown memory the address."""


class ObjectColumns:
    """The live objects of a replay, and the batches in which events name them.

    `stack`: local variables are objects, too. `by`: what groups are told apart by, as :attr:`Module.groups_by` says.
    """

    def __init__(self, program: Program, stack: bool, by: str = "site") -> None:
        self.program = program
        self._by = by
        self._translation = no_objects(program, by == "caller")
        self._contexts = None if by == "site" else empty_contexts(program, DYNAMIC)
        self._levels: dict[int, Stream] = {}
        self._actions = np.zeros(256, np.uint8)
        for name, code in CODE.items():
            known = name in CHANGING_BEFORE | CHANGING_AFTER and (stack or name not in OF_STACK)
            self._actions[code] = (code if known else GIVES) if BY_NAME[name].address or known else 0
        if self._contexts is not None:
            for name in CONTEXT_EVENTS:
                self._actions[CODE[name]] = CODE[name]

    @property
    def events(self) -> frozenset[str]:
        """Those that it has to see."""
        some = CHANGING_BEFORE | CHANGING_AFTER | frozenset(CONTEXT_EVENTS)
        return frozenset(name for name in some if self._actions[CODE[name]] == CODE[name])

    @property
    def groups(self) -> GroupTable:
        """The groups so far."""
        described = None
        if self._contexts is not None and self._by == "context":
            table = ContextTable(self.program, self._contexts, self._levels.values())
            described = table.of_number
        return GroupTable(self.program, self._translation, described)

    def batches(self, batches: Iterable[Batch], events: Collection[str]) -> Iterator[TranslatedBatch]:
        """The `events` of each batch, which may be none; the new columns are the batch's own, all others copies."""
        wanted = np.zeros(256, np.bool_)
        wanted[[CODE[name] for name in events]] = True
        for batch in batches:
            columns = batch.columns
            found = np.zeros((3, columns.kind.size), np.int64)
            rows = (columns.kind, batch.subject, batch.address, batch.size)
            levels = self._with_room(batch.stream, columns.kind.size)
            translate(self._translation, self._contexts, levels, self._by == "caller", self._actions, *rows, *found)
            chosen = wanted[columns.kind]
            yield TranslatedBatch(batch.stream, rows_of(columns, chosen), *found[:, chosen])

    def _with_room(self, stream: int, events: int) -> Stream | None:
        """The frames and levels of a stream, for so many more events; None if contexts are not followed."""
        if self._contexts is None:
            return None
        levels = self._levels.get(stream) or empty_stream(len(self._levels), len(self._contexts.tree.rows))
        self._levels[stream] = with_room(levels, events)
        return self._levels[stream]


def rows_of(columns: Columns, chosen: NDArray[np.bool_]) -> Columns:
    """The chosen rows of columns."""
    names = ("kind", "subject", "address", "size", "value")
    rows = {name: column[chosen] for name in names if (column := getattr(columns, name)) is not None}
    if columns.wide is not None:
        of_chosen = chosen[columns.wide.events]
        place = (np.cumsum(chosen) - 1).astype(np.uint32)
        words = columns.wide.words[of_chosen]
        rows["wide"] = Wide(words, place[columns.wide.events[of_chosen]], np.array([words.size]))
    return columns._replace(**rows)
