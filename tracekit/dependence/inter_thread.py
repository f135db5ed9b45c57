"""Dependences between threads and tasks: the state that kernels/inter_thread.py works on, and rows of a profile."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tracekit.containers import arena, shadow
from tracekit.containers.hash_table import hash_table, used_rows
from tracekit.contexts.names import Json
from tracekit.contexts.roles import empty_roles, roles_of
from tracekit.dependence.kernels.agents import Agents
from tracekit.dependence.kernels.dependence_table import END_BITS
from tracekit.dependence.kernels.inter_thread import CELL, FOUND_FIELDS, RECENT, SET_FIELDS, InterThread
from tracekit.dependence.profile import DependenceKind
from tracekit.dependence.rows import KIND_RANK, context_key, instruction_key
from tracekit.formats.events import NONE
from tracekit.modules.merge_rows import add, as_key, greatest, join_rows
from tracekit.modules.options import option

if TYPE_CHECKING:
    from tracekit.contexts.table import ContextTable
    from tracekit.program.program import Program

WHOLE_BECAUSE = "with --threads what each byte was last used for goes on, whichever thread did so"

AGENT = [("agent", "<i8")]
MOST_ENDS = 1 << END_BITS
LARGEST_SET = 1 << 20

KEY = (
    "kind",
    "source",
    "destination",
    "source_context",
    "destination_context",
    "source_thread",
    "destination_thread",
)
"""The columns that tell rows apart."""
NUMBERS = {"pairs": greatest, "count": add}


def threads_option() -> Any:
    """The field `threads` of an Options dataclass. Profiles made without it are as they were before there was one."""
    return option(False, "Also dependences between threads, with what each thread is for.", unsaid=True)


def check_carried(carried_by: str, threads: bool) -> None:
    """Raise ValueError for options that exclude one another."""
    if carried_by and threads:
        raise ValueError("carried-by and threads exclude one another: no loop carries a dependence between threads.")


def empty_inter_thread(program: Program) -> InterThread:
    """Nothing was accessed."""
    return InterThread(
        memory=shadow.empty(CELL),
        places=hash_table([]),
        ends=hash_table([], rows=MOST_ENDS),
        recent=np.zeros(len(program.ops) + 1, RECENT),
        sets=hash_table(SET_FIELDS),
        above=arena.reserve("u4", LARGEST_SET),
        found=hash_table(FOUND_FIELDS),
        roles=empty_roles(program),
        agents=Agents(np.array([-1, 0, 0], np.int64), hash_table(AGENT, rows=MOST_ENDS), hash_table(AGENT)),
    )


class InterThreadRows:
    """Names the dependences that a finished state has. `contexts`: None if they are not told apart."""

    def __init__(self, program: Program, state: InterThread, contexts: ContextTable | None) -> None:
        self.program = program
        self._contexts = contexts
        self._roles = roles_of(program, state.roles, contexts)
        self._places = used_rows(state.places)["key"]
        self._ends = used_rows(state.ends)["key"]
        self._found = used_rows(state.found)[1:]
        self._shown: dict[int, Json] = {}

    def rows(self, kinds: Collection[str]) -> list[Json]:
        """One for each kind, two instructions (in their contexts) and what their threads are for.

        ``pairs``: how many pairs of threads or tasks have it; ``count``: executions of the destination.
        """
        found: dict[str, Json] = {}
        pairs: dict[str, set[tuple[int, int]]] = {}
        names = {kind.value: kind.name for kind in DependenceKind}
        mask = (1 << END_BITS) - 1
        for key, count in zip(self._found["key"].tolist(), self._found["count"].tolist()):
            kind, source, destination = names[key >> (2 * END_BITS)], key >> END_BITS & mask, key & mask
            if kind not in kinds:
                continue
            row: Json = {
                "kind": kind,
                **{f"source{name}": value for name, value in self._end(source).items()},
                **{f"destination{name}": value for name, value in self._end(destination).items()},
            }
            name = as_key(row, KEY)
            known = found.setdefault(name, {column: row[column] for column in KEY} | {"pairs": 0, "count": 0})
            known["count"] += count
            pairs.setdefault(name, set()).add((self._agent(source), self._agent(destination)))
        for name, row in found.items():
            row["pairs"] = len(pairs[name])
        return ordered(found.values())

    def _agent(self, end: int) -> int:
        return int(self._ends[end]) >> 32

    def _end(self, end: int) -> Json:
        """What one end shows, each part under the end of its column's name; made once."""
        if end not in self._shown:
            place = int(self._places[int(self._ends[end]) & NONE])
            self._shown[end] = {
                "": self._instruction(place >> 32),
                "_context": self._context(place & NONE),
                "_thread": self._roles.get(self._agent(end), {"function": "", "created": None}),
            }
        return self._shown[end]

    def _instruction(self, number: int) -> Json:
        if number < len(self.program.ops):
            return self.program.instruction(number)
        return {"id": None, "kind": "library", "function": "", "file": "", "line": 0, "column": 0, "inlined_at": []}

    def _context(self, number: int) -> Json | None:
        if self._contexts is None:
            return None
        return self._contexts.describe(int(self._contexts.rows(np.array([number]))[0]))


def ordered(rows: Iterable[Json]) -> list[Json]:
    """Rows as they stand in a profile: by kind, then source, destination, contexts, threads."""
    return sorted(rows, key=_order)


def _order(row: Mapping[str, Any]) -> tuple[Any, ...]:
    contexts = [row.get(f"{end}_context") for end in ("source", "destination")]
    threads = [row[f"{end}_thread"] for end in ("source", "destination")]
    return (
        KIND_RANK[row["kind"]],
        instruction_key(row["source"]),
        instruction_key(row["destination"]),
        [context_key(context) for context in contexts if context],
        [(thread["function"], context_key(thread["created"]) if thread["created"] else ()) for thread in threads],
    )


def joined(tables: Sequence[Sequence[Json]]) -> list[Json]:
    """The rows of several runs: counts add, and as many pairs of threads as in the run that had most."""
    return ordered(join_rows(tables, KEY, NUMBERS))


def reaching(loop: Mapping[str, Any], rows: Sequence[Json]) -> dict[str, int]:
    """How many dependences between threads of each kind have an end in a loop, by the contexts of the ends."""
    step = f"loop {loop['function']}:{loop['line']}"
    inside = [
        row["kind"]
        for row in rows
        if any(step in (row[f"{end}_context"] or {"path": ()})["path"] for end in ("source", "destination"))
    ]
    return {kind.lower(): inside.count(kind) for kind in KIND_RANK}
