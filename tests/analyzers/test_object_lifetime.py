"""The module ``object_lifetime`` against its reference on random programs, and on fixtures/lifetimes.c."""

from __future__ import annotations

import re
from itertools import groupby
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.naive.dependence import Event
from tests.naive.dependence_machine import RandomProgram, interleaved
from tests.naive.dependence_programs import EventLog
from tests.naive.object_machine import ObjectMachine
from tests.naive.object_rows import ObjectRows
from tests.naive.objects import NaiveObjects
from tests.naive.program_builder import ProgramBuilder
from tests.programs.running import FIXTURES, compile_program, profiles, record
from tracekit.analyzers.object_lifetime import ObjectLifetime
from tracekit.formats.events import CODE, NONE
from tracekit.formats.image import BlockFlag
from tracekit.module import Module
from tracekit.modules.callback_runner import CallbackRunner
from tracekit.modules.options import NoOptions


def fed(module: Module, name: str, events: list[Event], length: int) -> CallbackRunner:
    """The module's runner after the events, in batches of at most `length`."""
    runner = CallbackRunner(module, name, 1)
    wanted = np.array([CODE[event] for event in runner.columns])
    for stream, rows in groupby(events, key=lambda event: event[0]):
        part = list(rows)
        for first in range(0, len(part), length):
            kind, subject, address, size = (
                np.array(column, dtype)
                for column, dtype in zip(list(zip(*part[first : first + length]))[1:], ("u1", "u4", "u8", "u8"))
            )
            kept = np.isin(kind, wanted)
            runner.feed(
                SimpleNamespace(
                    stream=stream,
                    kind=kind[kept],
                    subject=subject[kept],
                    address=address[kept],
                    size=size[kept],
                    value=np.zeros(int(kept.sum()), np.uint64),
                ),
                0,
            )
    return runner


def random_runs(seed: int, streams: int, runs: int) -> tuple[RandomProgram, list[list[Event]]]:
    """A program and the events of some runs of it, each on so many threads, which share their heap."""
    random, builder = Random(seed), ProgramBuilder()
    for number in range(2):
        builder.variable(f"v{number}", 8, 0x1000 * number)
    made = RandomProgram(random, builder)
    return made, [_events(made, random, streams) for _ in range(runs)]


def _events(made: RandomProgram, random: Random, streams: int) -> list[Event]:
    live: dict[int, int] = {}
    machines = [ObjectMachine(made, random, stream, 300) for stream in range(streams)]
    for machine in machines:
        machine.live = live
    return interleaved(random, [machine.run() for machine in machines])


def fresh(module: Module, state: Any) -> frozenset[int]:
    """The calls that never let an object grow."""
    return frozenset(np.flatnonzero(state.live.fresh).tolist())


@settings(deadline=None, max_examples=80)
@given(seed=st.integers(0, 2**32), streams=st.integers(1, 3))
def test_it_is_its_reference(seed: int, streams: int) -> None:
    made, (events,) = random_runs(seed, streams, 1)
    module = ObjectLifetime(made.program, NoOptions())
    runner = fed(module, "object_lifetime", events, 1 + seed % 60)
    result, _ = runner.result()
    naive = NaiveObjects(made.program, fresh(module, runner._workers[0].state))
    naive.feed(events)
    assert ObjectRows(made.program, module.profile).lifetimes() == naive.lifetimes()
    assert len(result["sites"]) == len(naive.lifetimes())


def test_a_call_that_no_instruction_made_is_no_caller() -> None:
    builder = ProgramBuilder()
    builder.function("walk")
    block = builder.block(0, BlockFlag.ENTRY)
    made = [builder.call(block, "walk"), builder.call(builder.block(0), "malloc")]
    again, malloc = (builder.layout().op[handle] for handle in made)
    log = EventLog()
    for place, call in enumerate([NONE, again, again, NONE, again, again, NONE]):  # signal handlers in a recursion
        log.enter(0, call)
        log.add("heap_alloc", malloc, 0x1000 * (place + 1), 8)
    module = ObjectLifetime(builder.program(), NoOptions())
    fed(module, "object_lifetime", log.events, 50).result()
    rows = ObjectRows(module.program, module.profile).lifetimes()
    assert {site[3]: row[0] for site, row in rows.items() if site[2][-1][0] == "recursion"} == {
        (): 1,
        (again,): 2,
        (again,) * 2: 2,
        (again,) * 3: 1,
    }


# -- known answers ---------------------------------------------------------------------------------

SOURCE = FIXTURES / "lifetimes.c"
LINES = list(enumerate(SOURCE.read_text().splitlines(), 1))
LOOPS = {number: match.group(1) for number, line in LINES if (match := re.search(r"// loop (\w)", line))}
LIVES = {
    number: match.groups()
    for number, line in LINES
    if (match := re.search(r"LIVES (\w+) (\w+) (\d+)", line)) and number > 1
}


@pytest.fixture(scope="module", params=["-O0", "-O1", "-O2"])
def sites(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> list[Any]:
    folder: Path = tmp_path_factory.mktemp("lifetimes")
    program = compile_program([SOURCE], folder / "app", [request.param], instrumented=True)
    rows: list[Any] = profiles(record(program).trace, "object_lifetime")["object_lifetime"]["sites"]
    return rows


def place(scope: Any) -> tuple[str, str]:
    """The kind of a scope, and its loop's letter or its function."""
    if "loop" in scope:
        return scope["kind"], LOOPS[scope["loop"]["line"]]
    return scope["kind"], scope.get("function", "")


def heap_at(sites: list[Any], line: int) -> list[Any]:
    return [row for row in sites if row["object"]["kind"] == "heap" and row["object"]["site"]["line"] == line]


@pytest.mark.parametrize("line", LIVES)
def test_the_scope_of_each_site(sites: list[Any], line: int) -> None:
    kind, where, objects = LIVES[line]
    (row,) = heap_at(sites, line)
    assert place(row["scope"]) == (kind, where)
    assert (row["objects"], row["never_freed"]) == (int(objects), 0)


def lives(row: Any) -> dict[tuple[str, str], int]:
    return {place(each["scope"]): each["objects"] for each in row["lives"]}


def test_sixteen_iterations_later_is_no_iteration(sites: list[Any]) -> None:
    (line,) = [number for number, (_, where, _) in LIVES.items() if where == "ring"]
    (row,) = heap_at(sites, line)
    assert lives(row) == {("call", "ring"): 16, ("invocation", "D"): 32}


def test_short_and_long_lives_of_one_site(sites: list[Any]) -> None:
    (line,) = [number for number, (_, where, _) in LIVES.items() if where == "short_and_long"]
    (row,) = heap_at(sites, line)
    assert lives(row) == {("iteration", "E"): 16, ("call", "short_and_long"): 32}


def test_a_wrapper_is_told_apart_by_its_callers_and_what_is_never_freed_lives_to_the_end(sites: list[Any]) -> None:
    line = next(number for number, line in LINES if "wrapper" in line)
    found = [(row["objects"], row["bytes"], row["never_freed"], place(row["scope"])) for row in heap_at(sites, line)]
    assert sorted(found) == [(1, 7, 1, ("run", "")), (4, 160, 0, ("iteration", "H"))]


def test_realloc_in_place_is_the_same_object_and_moving_makes_another(sites: list[Any]) -> None:
    line = next(number for number, line in LINES if "in place" in line)
    assert heap_at(sites, line) == []
    assert heap_at(sites, line - 1)[0]["bytes"] == 3 * 198
    assert heap_at(sites, line + 3)[0]["bytes"] == 3 * 5000


def test_a_frame_that_a_jump_leaves_ends_its_variables(sites: list[Any]) -> None:
    rows = [row for row in sites if row["object"]["kind"] == "stack" and row["object"]["site"]["function"] == "jump"]
    (local,) = [row for row in rows if row["bytes"] == 5 * 32]
    assert (local["objects"], local["never_freed"], place(local["scope"])) == (5, 0, ("call", "jump"))


WALK = """
#include <stdlib.h>
#define NOINLINE __attribute__((noinline))
static void *volatile kept;
NOINLINE static void *get(int size) { void *p = malloc(size); kept = p; return p; }
NOINLINE static void *string(void) { void *p = get(8); kept = p; return p; }
NOINLINE static void *table(void) { void *p = get(24); kept = p; return p; }
NOINLINE static int walk(int depth)
{
    if (depth == 0) return 0;
    free(string());
    if (depth & 1) free(table());
    return walk(depth - 1) + 1;
}
int main(void) { return walk(10) != 10; }
"""


def test_blocks_of_one_allocator_in_a_recursion_are_told_apart_by_their_callers(tmp_path: Path) -> None:
    source = tmp_path / "walk.c"
    source.write_text(WALK)
    program = compile_program([source], tmp_path / "walk", ["-O1"], instrumented=True)
    rows = profiles(record(program).trace, "object_lifetime")["object_lifetime"]["sites"]
    heap = [row["object"] for row in rows if row["object"]["kind"] == "heap"]
    assert {len(shown["context"]["path"]) for shown in heap} == {1}
    found = {
        tuple(call.rpartition(":")[0] for call in row["object"]["callers"]): row["objects"]
        for row in rows
        if row["object"]["kind"] == "heap"
    }
    assert sum(count for calls, count in found.items() if calls[-1] == "string:6") == 10
    assert sum(count for calls, count in found.items() if calls[-1] == "table:7") == 5
    assert max(map(len, found)) == 4 and found["walk:13", "walk:13", "walk:11", "string:6"] == 8
