"""The races that were found, as rows of a profile."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from tracekit.containers.hash_table import used_rows
from tracekit.contexts.names import ContextNames
from tracekit.dependence.rows import instruction_key
from tracekit.formats.events import NONE
from tracekit.races.kernels.state import ATOMIC_READ, ATOMIC_WRITE, FREE, READ, WRITE, State

if TYPE_CHECKING:
    from tracekit.modules.contract import Module

Json = dict[str, Any]

KINDS = {
    READ: "load",
    ATOMIC_READ: "atomic load",
    ATOMIC_WRITE: "atomic store",
    WRITE: "store",
    FREE: "free",
}


class RaceRows:
    """Names what the tables of a finished state say."""

    def __init__(self, module: Module, state: State) -> None:
        self.program, self.groups = module.program, module.groups
        self.state = state
        self.contexts = module.contexts
        self.names = ContextNames(module.program, module.contexts.nodes)
        self.threads = taken_threads(state)

    def rows(self) -> list[Json]:
        """One for each two places (kind, instruction, context) that race, in the order of instructions."""
        found: dict[Any, Json] = {}
        for race in used_rows(self.state.races)[1:]:
            key = int(race["key"])
            ends = sorted((self._end(key >> 32), self._end(key & 0xFFFF_FFFF)), key=end_key)
            name = tuple(map(end_key, ends))
            row = found.get(name)
            if row is None:
                found[name] = {
                    "first": ends[0],
                    "second": ends[1],
                    "count": int(race["count"]),
                    "object": self.groups.describe(int(race["group"])),
                    "number": int(race["object"]),
                    "offset": int(race["offset"]),
                }
                continue
            row["count"] += int(race["count"])
            for own, other in zip((row["first"], row["second"]), ends, strict=True):
                own["threads"] = sorted({*own["threads"], *other["threads"]})
                own["locks"] += [locks for locks in other["locks"] if locks not in own["locks"]]
        rows = [found[name] for name in sorted(found)]
        for row in rows:
            for end in (row["first"], row["second"]):
                end["locks"].sort(key=lambda locks: json.dumps(locks, sort_keys=True))
        return rows

    def _end(self, number: int) -> Json:
        site = self.state.sites.rows[number]
        instruction = int(site["instruction"])
        known = number != 0 and instruction < len(self.program.ops)
        return {
            "access": KINDS[int(site["kind"])],
            "instruction": self.names.instruction(instruction if known else NONE),
            "context": self._context(int(site["context"])),
            "threads": [int(self.threads["stream"][site["thread"]])],
            "locks": [self._locks(int(site["locks"]))],
        }

    def _context(self, number: int) -> Json:
        return self.contexts.describe(int(self.contexts.rows(np.array([number]))[0]))

    def _locks(self, row: int) -> list[Json]:
        """A set of locks, in the order in which they were taken: where each lies, and whether it is a reader's."""
        locks: list[Json] = []
        while row != 0:
            key = int(self.state.lock_sets.rows["key"][row])
            lock = self.state.objects.rows[(key & 0xFFFF_FFFF) >> 1]
            shown = self.groups.describe(int(lock["group"]))
            locks.append({"object": shown, "offset": int(lock["offset"]), "shared": bool(key & 1)})
            row = key >> 32
        return locks[::-1]

    def thread_rows(self, rows: list[Json]) -> list[Json]:
        """The threads that race: what they run, and who created them where."""
        racing = sorted({stream for row in rows for end in ("first", "second") for stream in row[end]["threads"]})
        roots: Mapping[int, str] = {
            stream: end["context"]["root"]
            for row in rows
            for end in (row["first"], row["second"])
            for stream in end["threads"]
        }
        number = {int(thread["stream"]): place for place, thread in enumerate(self.threads) if place}
        shown = []
        for stream in racing:
            thread = self.threads[number[stream]] if stream in number else self.threads[0]
            creator = int(thread["creator"])
            row: Json = {"thread": stream, "function": roots[stream]}
            if creator:
                row["creator"] = int(self.threads["stream"][creator])
                row["created_in"] = self._context(int(thread["context"]))
            shown.append(row)
        return shown


def taken_threads(state: State) -> Any:
    """The rows of threads, by number; row 0 is none."""
    return state.threads.rows[: state.threads.control[0]]


def end_key(end: Json) -> tuple[Any, ...]:
    """The order of ends: by instruction, kind, context."""
    context = end["context"]
    return (*instruction_key(end["instruction"]), end["access"], context["root"], *context["path"])
