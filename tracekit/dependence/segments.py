"""The dependence family in segments of a trace: how one begins, and how the next goes on top of those before.

A segment has all that the whole trace would have at its beginning but the loads since the last stores (pilot.py), so
what it finds is exact but for its open stores; :class:`Seams` finds what these depend on.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tracekit.containers import arena, initial_pages
from tracekit.containers.hash_table import copied_table, used_rows
from tracekit.containers.kernels.arena import USED
from tracekit.containers.kernels.hash_table import HashTable
from tracekit.containers.kernels.initial_pages import MOST_STREAMS
from tracekit.containers.kernels.shadow import Shadow
from tracekit.containers.spilling import Stack
from tracekit.contexts.kernels.streams import CLOCK, Stream
from tracekit.contexts.rules import is_static
from tracekit.contexts.state import empty_stream
from tracekit.dependence.final_stores import nothing_known
from tracekit.dependence.kernels import executions, front, load_history, seams
from tracekit.dependence.kernels.dependence import Detail, State
from tracekit.dependence.kernels.final_stores import FinalStores
from tracekit.dependence.kernels.load_history import LoadHistory
from tracekit.dependence.kernels.open_stores import KEPT_LEVEL, OPEN_STORE, STAND, OpenStores
from tracekit.dependence.pilot import Pilot, PilotState
from tracekit.dependence.reduce import Findings, join_parts, kept_part, part_of, settled
from tracekit.dependence.state import MOST_ACCESSES, empty_state
from tracekit.modules.contract import Module
from tracekit.program.program import Program
from tracekit.translation.identities import copied_objects
from tracekit.translation.kernels.identities import Objects

Numbers = NDArray[np.int64]


class Mark(NamedTuple):
    """What the pass ahead knows where a segment begins; nothing of it changes any more."""

    pages: initial_pages.Pages
    accesses: HashTable
    access: NDArray[np.int64]
    objects: Objects
    identities: HashTable


class Left(NamedTuple):
    """What a segment leaves behind: the history of each byte, and the numbers of its accesses among those of all."""

    memory: Shadow
    readers: LoadHistory
    accesses: Numbers


class DependenceSegments:
    """See above. `detail`, `context`: what the module finds out; `reduce` makes its reduced state of all findings.

    inside: whether the module's state has the State in it, as ``history``. `final`: what a first pass found.
    """

    memory: int | None = None
    needs_pass = True

    def __init__(
        self,
        program: Program,
        options: Any,
        detail: Detail,
        context: bool,
        reduce: Callable[[Findings], Any],
        inside: bool = False,
        final: FinalStores | None = None,
    ) -> None:
        self._inside = inside
        flags = {"context": context, "static": is_static(options), "loops": detail.loops, "objects": detail.profile}
        flags["final"] = final is not None
        self.beginnings: str | None = " ".join(name for name, is_so in flags.items() if is_so)
        self._seams = Seams(program, detail)
        self._reduce = reduce
        self.pilot: Module = Pilot(
            program, options, context, bool(detail.loops), bool(detail.profile), final or nothing_known()
        )
        self._blocks = initial_pages.empty_blocks()
        self._last: initial_pages.Pages | None = None

    def mark(self, state: PilotState, streams: Sequence[int]) -> Mark:
        """What a segment that begins now has to know; `streams`: those that have begun."""
        known = np.array(streams, np.int64)
        self._last = initial_pages.keep_pages(state.memory, state.dirty, self._blocks, self._last, known)
        return Mark(
            self._last,
            copied_table(state.relations.accesses, MOST_ACCESSES, load_history.SEEN.itemsize),
            state.access.copy(),
            copied_objects(state.objects),
            copied_table(state.identities),
        )

    def begin(self, state: Any, mark: Mark, streams: Mapping[int, Stream]) -> Any:
        """A new state of the module as that of a segment, which takes over what the mark holds.

        streams: the levels of each when the segment begins.
        """
        opened = OpenStores(
            arena.arena(OPEN_STORE, spare=1),
            arena.arena(STAND, spare=1),
            arena.arena(KEPT_LEVEL, spare=1),
            np.zeros(MOST_STREAMS, np.int64),
            np.zeros(MOST_STREAMS, np.int64),
        )
        for number, stream in streams.items():
            opened.began[number] = stream.control[CLOCK]
        own: State = state.history if self._inside else state
        begun = own._replace(
            memory=initial_pages.with_initial_pages(own.memory, mark.pages),
            relations=own.relations._replace(accesses=mark.accesses),
            access=mark.access,
            objects=mark.objects,
            identities=mark.identities,
            open=opened,
        )
        return state._replace(history=begun) if self._inside else begun

    def add(self, state: Any, began: Mapping[int, Stream], ended: Mapping[int, Stream]) -> None:
        """See :class:`tracekit.modules.segments.Segments`."""
        self._seams.parts.memory = self.memory
        self._seams.add(state.history if self._inside else state, began, ended)

    def reduce(self) -> Any:
        """See :class:`tracekit.modules.segments.Segments`."""
        return self._reduce(self._seams.findings())


class Seams:
    """Takes in segments in their order, and finds the dependences across their beginnings."""

    def __init__(self, program: Program, detail: Detail) -> None:
        self.detail = detail
        self._program = program
        self._idle = empty_stream(0, 1)
        self.parts = Stack(join_parts)
        self._count = 0
        self._marks = 0
        self._left: Left | None = None

    @cached_property
    def _state(self) -> State:
        """What lies between segments, made with the first of them."""
        return empty_state(self._program)

    def add(self, state: State, began: Mapping[int, Stream], ended: Mapping[int, Stream]) -> None:
        """Take in the next segment when it is over; `began`, `ended`: its streams' levels then."""
        stream = int(state.runs.control[executions.STREAM])
        executions.finish(state, ended.get(stream, self._idle), stream)
        rows = used_rows(state.relations.accesses)
        accesses, identities = np.zeros(len(rows), np.int64), np.zeros(len(used_rows(state.identities)), np.int64)
        seams.number_accesses(self._state.relations, rows, accesses)
        seams.number_rows(self._state.identities, used_rows(state.identities), identities)
        if self._left is not None:
            self._lay_over(*self._left)
        self._find(state.open, began, accesses, identities)
        self.parts.push(kept_part(state))
        self._count += 1
        # Nothing needs the loads of the last segment, so they are laid over the others' when there is a next one.
        self._left = Left(state.memory, state.readers, accesses) if self.detail.war else None

    def _lay_over(self, memory: Shadow, readers: LoadHistory, accesses: Numbers) -> None:
        """Take in the loads that a segment leaves behind."""
        if self._count == 1 and np.array_equal(accesses, np.arange(len(accesses))):  # there are no others
            self._state = self._state._replace(memory=memory, readers=readers)
            return
        if memory.initial is not None:
            front.empty_again(self._state.memory, memory.initial)
        seams.lay_over(self._state, memory, readers, accesses, self._idle)
        arena.check(self._state.memory, self._state.readers)

    def _find(
        self, opened: OpenStores | None, began: Mapping[int, Stream], accesses: Numbers, identities: Numbers
    ) -> None:
        """What the open stores of a segment depend on."""
        if opened is None:
            return
        for number in np.unique(opened.stores.rows["stream"][1 : opened.stores.control[USED]]).tolist():
            self._marks += 1
            levels = began.get(number, self._idle)
            seams.depend(self._state, self.detail, opened, levels, number, accesses, identities, self._marks)

    def findings(self) -> Findings:
        """What all segments come to."""
        return settled(functools.reduce(join_parts, [*self.parts.all(), part_of(self._state)]))
