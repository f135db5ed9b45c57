"""The races that were found, as rows of a profile."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from tracekit.containers.hash_table import used_rows
from tracekit.dependence.rows import instruction_key
from tracekit.formats.events import NONE
from tracekit.races.contexts import TaskContexts
from tracekit.races.kernels.resources import is_descriptor
from tracekit.races.kernels.state import (
    ATOMIC_READ,
    ATOMIC_WRITE,
    BEGIN,
    END,
    FREE,
    LANE_ROLE,
    READ,
    SINGLE,
    TASK_ROLE,
    THREAD_ROLE,
    USE,
    WRITE,
    State,
)

if TYPE_CHECKING:
    from tracekit.modules.contract import Module

Json = dict[str, Any]

KINDS = {
    READ: "load",
    ATOMIC_READ: "atomic load",
    ATOMIC_WRITE: "atomic store",
    WRITE: "store",
    FREE: "free",
    USE: "use",
    BEGIN: "initialise",
    END: "destroy",
}
OF_DESCRIPTORS = {USE: "use", BEGIN: "open", END: "close"}


class RaceRows:
    """Names what the tables of a finished state say."""

    def __init__(self, module: Module, state: State) -> None:
        self.program, self.groups = module.program, module.groups
        self.state = state
        self.contexts = TaskContexts(module, state)
        self.names = self.contexts.names
        self.threads = {int(role["stream"]): role for role in used_rows(state.roles)[1:] if role["kind"] == THREAD_ROLE}
        self.places: dict[str, int] = {}
        self.roots: dict[int, str] = {}
        """Stream -> the function that it runs, of those that race."""

    def rows(self) -> list[Json]:
        """One for each two places (kind, instruction, context) that race, in the order of instructions."""
        found: dict[Any, Json] = {}
        seen = [(race, None) for race in used_rows(self.state.races)[1:]]
        for race, lock in [*seen, *((race, self._lock(race)) for race in used_rows(self.state.reordered)[1:])]:
            key = int(race["key"])
            kinds = OF_DESCRIPTORS if is_descriptor(race["address"]) else KINDS
            ends = sorted((self._end(key >> 32, kinds), self._end(key & 0xFFFF_FFFF, kinds)), key=end_key)
            ends_key = tuple(map(end_key, ends))
            row = found.get(ends_key)
            if row is not None and row["other_lock_order"] is None and lock is not None:
                continue
            if row is None:
                found[ends_key] = {
                    "first": ends[0],
                    "second": ends[1],
                    "count": int(race["count"]),
                    **self._bytes(race),
                    "one_thread": self._one_thread(race),
                    "other_lock_order": lock,
                }
                continue
            if row["one_thread"] != self._one_thread(race):
                row["one_thread"] = None
            row["count"] += int(race["count"])
            for own, other in zip((row["first"], row["second"]), ends, strict=True):
                if own["context"]["id"] is None:
                    own["context"] = other["context"]
                for name in ("threads", "tasks"):
                    own[name] = sorted({*own[name], *other[name]})
                own["locks"] += [locks for locks in other["locks"] if locks not in own["locks"]]
        rows = [found[key] for key in sorted(found)]
        for row in rows:
            for end in (row["first"], row["second"]):
                end["locks"].sort(key=lambda locks: json.dumps(locks, sort_keys=True))
        return rows

    def _lock(self, race: np.void) -> Json:
        """The lock that another order has, of a race that did not happen in this one."""
        lock = self.state.objects.rows[int(race["lock"])]
        return {"object": self.groups.describe(int(lock["group"])), "offset": int(lock["offset"])}

    def _one_thread(self, race: np.void) -> Json | None:
        """Of a race whose ends one thread ran: the shared loop of the first, and the region that the second lies in."""
        if race["loop"] == 0:
            return None
        loop = None if race["loop"] == SINGLE else self.program.source_loop(int(race["loop"]) - 1)
        return {"loop": loop, "region": "single" if race["single"] else "loop"}

    def _bytes(self, race: np.void) -> Json:
        """What the bytes are of, or which descriptor it is."""
        if is_descriptor(race["address"]):
            return {"object": {"kind": "descriptor"}, "number": int(race["address"]) & 0xFFFF_FFFF, "offset": 0}
        shown = self.groups.describe(int(race["group"]))
        return {"object": shown, "number": int(race["object"]), "offset": int(race["offset"])}

    def _end(self, number: int, kinds: Mapping[int, str]) -> Json:
        site = self.state.sites.rows[number]
        instruction = int(site["instruction"])
        known = number != 0 and instruction < len(self.program.ops)
        context, role = int(site["context"]), int(site["role"])
        self.roots[int(site["stream"])] = self.contexts.of_thread(context)["root"]
        return {
            "access": kinds[int(site["kind"])],
            "instruction": self.names.instruction(instruction if known else NONE),
            "context": self.contexts.of_task(context, int(site["base"]), role),
            "threads": [int(site["stream"])],
            "tasks": [] if self.state.roles.rows["kind"][role] == THREAD_ROLE else [self._same_place(role)],
            "locks": [self._locks(int(site["locks"]))],
        }

    def _same_place(self, role: int) -> int:
        """The first of the roles that are made at the same place in the same context."""
        key = json.dumps(self._task(role), sort_keys=True)
        return self.places.setdefault(key, role)

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
        shown = []
        for stream in racing:
            row: Json = {"thread": stream, "function": self.roots[stream]}
            thread = self.threads.get(stream)
            if thread is not None and thread["creator"]:
                row["creator"] = int(thread["creator"]) - 1
                row["created_in"] = self.contexts.of_thread(int(thread["context"]))
            shown.append(row)
        return shown

    def task_rows(self, rows: list[Json]) -> list[Json]:
        """The kinds of tasks that race, by the numbers in ends: where they are made."""
        racing = sorted({task for row in rows for end in ("first", "second") for task in row[end]["tasks"]})
        return [{"task": number, **self._task(number)} for number in racing]

    def _task(self, number: int) -> Json:
        """What a task is, and what makes it: an instruction, or a SIMD loop whose lanes they are; and where."""
        role = self.state.roles.rows[number]
        created_in = self.contexts.of_task(int(role["context"]), int(role["base"]), int(role["of"]))
        if role["kind"] == LANE_ROLE:
            loop = self.program.source_loop(int(role["instruction"]))
            return {"kind": "lane", "loop": loop, "created_in": created_in}
        kind = "explicit" if role["kind"] == TASK_ROLE else "implicit"
        instruction = self.names.instruction(int(role["instruction"]))
        return {"kind": kind, "instruction": instruction, "created_in": created_in}


def end_key(end: Json) -> tuple[Any, ...]:
    """The order of ends: by instruction, kind, context."""
    context = end["context"]
    return (*instruction_key(end["instruction"]), end["access"], context["root"], *context["path"])
