"""SIMD loops in ``races``: random ones against threads for each iteration, and programs with and without a race."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.analyzers.test_access_modules import batches
from tests.naive import lanes as naive_lanes
from tests.naive import races as naive
from tests.naive.program_builder import ProgramBuilder
from tests.needs import needs
from tests.races.test_programs import FOLDER, compiled, lines_of, marked, races
from tests.races.test_random import LOCKS, MEMORY, RawRaces
from tracekit.analyzers.races import RaceOptions
from tracekit.formats.image import BlockFlag, LoopFlag
from tracekit.modules.callback_runner import CallbackRunner
from tracekit.modules.scheduler import run
from tracekit.program.program import Program
from tracekit.races.kernels.state import MOST_LANES

LENGTHS = (0, 2, 3, 1)
"""What the loops of the program say: any number of iterations at once, two, three, one. One more is no SIMD loop."""
LANES = {0: MOST_LANES, 1: 2, 2: 3}


def program() -> Program:
    """A function with loops beside one another."""
    b = ProgramBuilder()
    function = b.function("main")
    b.path(b.block(function, BlockFlag.ENTRY | BlockFlag.RETURNS))
    for length in LENGTHS:
        b.path(b.block(function, BlockFlag.LOOP_HEADER, loop=b.loop(function, flags=LoopFlag.SIMD | length << 16)))
    b.path(b.block(function, BlockFlag.LOOP_HEADER, loop=b.loop(function, flags=0)))
    return b.program()


def random_events(rng: random.Random, count: int, bytes_: int) -> list[naive.Event]:
    """Two threads that run loops, take locks and access a little memory."""
    events: list[naive.Event] = [(0, "program_start", 0, 0, 7), (0, "function_entry", 0, 0, 0)]
    events += [(0, "thread_create", 1, 0, 0), (1, "thread_start", 1, 0, 0), (1, "function_entry", 0, 0, 0)]
    streams = rng.choice(((0,), (0, 1)))
    loops: dict[int, list[int]] = {0: [], 1: []}
    held: dict[int, bool] = {0: False, 1: False}
    while len(events) < count:
        stream = rng.choice(streams)
        opened = loops[stream]
        what = rng.choices(("access", "iteration", "begin", "exit", "lock", "memory"), (12, 6, 1, 1, 1, 1))[0]
        if what == "access":
            name, size = rng.choice(("load", "load", "store")), rng.choice((1, 4, 8))
            events.append((stream, name, len(events), MEMORY + rng.randrange(bytes_), size))
        elif what == "iteration" and opened:
            if held[stream]:
                events.append((stream, "unlock", 0, LOCKS, 0))
            held[stream] = False
            events.append((stream, "loop_iteration", opened[-1], 0, 0))
        elif what == "begin" and len(opened) < 2 and not held[stream]:
            opened.append(rng.randrange(len(LENGTHS) + 1))
            events.append((stream, "loop_invocation", opened[-1], 0, 0))
        elif what == "exit" and opened and not held[stream]:
            events.append((stream, "loop_exit", opened.pop(), 0, 0))
        elif what == "lock" and (held[stream] or not any(held.values())):
            events.append((stream, "unlock" if held[stream] else "lock", 0, LOCKS, 0))
            held[stream] = not held[stream]
        elif what == "memory":
            events.append((stream, "stack_alloc", 0, MEMORY + 8 * rng.randrange(max(1, bytes_ // 8)), 8))
    return events


@settings(max_examples=200, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    count=st.sampled_from((10, 40, 150, 380)),
    bytes_=st.sampled_from((8, 24, 80)),
    length=st.sampled_from((1, 100)),
)
def test_iterations_are_as_threads(seed: int, count: int, bytes_: int, length: int) -> None:
    events = random_events(random.Random(seed), count, bytes_)
    threads, places = naive_lanes.as_threads(events, LANES)
    wanted = {(places[one], places[two]): common for (one, two), common in naive.races(naive.run(threads)).items()}
    runner = CallbackRunner(RawRaces(program(), RaceOptions()), "races", 1)
    run(batches([(*event, 0) for event in events], length), [runner], 1)
    reported = {(one, two) for one, two, _ in runner.result()[0]["pairs"]}
    assert reported <= wanted.keys()
    assert naive.has_first_races(reported, wanted)


CASES = re.findall(r'\{"(\w+)", \w+\}', (FOLDER / "simd.c").read_text())


PROMOTED = {"shared"}
"""What the optimiser keeps in a register in the loop does not race any more."""


@needs("libomp")
@pytest.mark.parametrize("level", ["-O0", "-O1"])
def test_programs(tmp_path: Path, level: str) -> None:
    path = compiled(tmp_path, "simd.c", "-fopenmp", level)
    for case in CASES:
        for variant in ("ok", "race"):
            (tmp_path / "trace.zst").unlink(missing_ok=True)
            result = races(tmp_path, path, case, variant)
            races_here = variant == "race" and not (level == "-O1" and case in PROMOTED)
            assert bool(result["races"]) == races_here, (case, variant, result["races"])
            assert {task["kind"] for task in result["tasks"]} <= {"lane", "implicit"}
            for race in result["races"]:
                for end in (race["first"], race["second"]):
                    assert lines_of(end, "simd.c") & marked("simd.c"), (case, end)
    assert len(CASES) >= 10
