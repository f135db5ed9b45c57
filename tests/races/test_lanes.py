"""SIMD loops in ``races``: random ones against threads for each iteration, and programs with and without a race."""

from __future__ import annotations

import random
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from tests.analyzers.test_access_modules import batches
from tests.naive import lanes as naive_lanes
from tests.naive import races as naive
from tests.naive.program_builder import ProgramBuilder
from tests.needs import needs
from tests.races.test_programs import FOLDER, compiled, lines_of, marked, races
from tests.races.test_random import LOCKS, MEMORY, MOST_EVENTS, RawRaces
from tracekit.analyzers.races import RaceOptions
from tracekit.formats.image import BlockFlag, LoopFlag
from tracekit.modules.callback_runner import CallbackRunner
from tracekit.modules.scheduler import run
from tracekit.program.program import Program
from tracekit.races.kernels.state import LEXICAL, MOST_LANES, State

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
    b.path(b.block(b.function("called"), BlockFlag.ENTRY | BlockFlag.RETURNS))
    return b.program()


class Text:
    """Where the accesses of lanes stand in the texts of loops: ever further on in an iteration."""

    def __init__(self, rng: random.Random) -> None:
        self.rng, self.known = rng, rng.random() < 0.7
        self.ranks: dict[int, int] = {}
        self.lexical = np.zeros(MOST_EVENTS + 1, LEXICAL)
        self.at = {0: 2, 1: 2}

    def turn(self, stream: int, opened: list[int]) -> None:
        """An iteration of the innermost loop begins; is it one of the outermost SIMD loop, so does its text."""
        if opened[-1] in LANES and not any(each in LANES for each in opened[:-1]):
            self.at[stream] = 2

    def place(self, events: list[naive.Event], stream: int, opened: list[int]) -> int:
        """Of the next access, 0 if there are no lanes or it is not known; negative if a call that is added makes it."""
        loop = next((each for each in opened if each in LANES), None)
        if not self.known or loop is None:
            return 0
        self.at[stream] += self.rng.choice((0, 0, 2, 4))
        rank = self.at[stream] + (self.at[stream] % 8 == 0)
        self.lexical[len(events)] = loop + 1, rank
        if self.rng.random() < 0.2:
            events.append((stream, "function_entry", 1, 0, len(events)))
            return -rank
        return rank


def random_events(rng: random.Random, count: int, bytes_: int) -> tuple[list[naive.Event], Text]:
    """Two threads that run loops, take locks and access a little memory; locks in loops if their text is not known."""
    events: list[naive.Event] = [(0, "program_start", 0, 0, 7), (0, "function_entry", 0, 0, 0)]
    events += [(0, "thread_create", 1, 0, 0), (1, "thread_start", 1, 0, 0), (1, "function_entry", 0, 0, 0)]
    text = Text(rng)
    streams = rng.choice(((0,), (0, 1)))
    loops: dict[int, list[int]] = {0: [], 1: []}
    held: dict[int, bool] = {0: False, 1: False}
    while len(events) < min(count, MOST_EVENTS - 3):
        stream = rng.choice(streams)
        opened = loops[stream]
        what = rng.choices(("access", "iteration", "begin", "exit", "lock", "memory"), (12, 6, 1, 1, 1, 1))[0]
        if what == "access":
            name, size = rng.choice(("load", "load", "store")), rng.choice((1, 4, 8))
            rank = text.place(events, stream, opened)
            text.ranks[len(events)] = abs(rank)
            events.append((stream, name, len(events), MEMORY + rng.randrange(bytes_), size))
            if rank < 0:
                events.append((stream, "function_exit", 1, 0, 0))
        elif what == "iteration" and opened:
            text.turn(stream, opened)
            if held[stream]:
                events.append((stream, "unlock", 0, LOCKS, 0))
            held[stream] = False
            events.append((stream, "loop_iteration", opened[-1], 0, 0))
        elif what == "begin" and len(opened) < 2 and not held[stream]:
            opened.append(rng.randrange(len(LENGTHS) + 1))
            text.turn(stream, opened)
            events.append((stream, "loop_invocation", opened[-1], 0, 0))
        elif what == "exit" and opened and not held[stream]:
            events.append((stream, "loop_exit", opened.pop(), 0, 0))
        elif what == "lock" and text.known and opened and not held[stream]:
            continue
        elif what == "lock" and (held[stream] or not any(held.values())):
            events.append((stream, "unlock" if held[stream] else "lock", 0, LOCKS, 0))
            held[stream] = not held[stream]
        elif what == "memory":
            events.append((stream, "stack_alloc", 0, MEMORY + 8 * rng.randrange(max(1, bytes_ // 8)), 8))
    return events, text


class RankedRaces(RawRaces):
    """Knows where instructions stand in loops."""

    lexical: NDArray[np.void]

    def state(self) -> State:
        return super().state()._replace(lexical=self.lexical)


@settings(max_examples=300, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    count=st.sampled_from((10, 40, 150, 380)),
    bytes_=st.sampled_from((8, 24, 80)),
    length=st.sampled_from((1, 100)),
)
def test_iterations_are_as_threads(seed: int, count: int, bytes_: int, length: int) -> None:
    events, text = random_events(random.Random(seed), count, bytes_)
    threads, places = naive_lanes.as_threads(events, LANES, text.ranks)
    wanted = {(places[one], places[two]): common for (one, two), common in naive.races(naive.run(threads)).items()}
    module = RankedRaces(program(), RaceOptions())
    module.lexical = text.lexical
    runner = CallbackRunner(module, "races", 1)
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
