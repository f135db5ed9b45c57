"""Loops that OpenMP shares out in ``races``: random ones against all pairs, and programs with and without a race."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.analyzers.test_access_modules import batches
from tests.naive import tasks as naive
from tests.naive.races import Event, has_first_races
from tests.needs import needs
from tests.races.test_lanes import program
from tests.races.test_programs import FOLDER, compiled, lines_of, marked, races
from tests.races.test_random import MEMORY, RawRaces
from tracekit.analyzers.races import RaceOptions
from tracekit.formats.event_values import SyncRegion, Work
from tracekit.modules.callback_runner import CallbackRunner
from tracekit.modules.scheduler import run
from tracekit.races.kernels.state import COUNTS, SHARED_LOOP, SPLIT_AT_ONCE, TELLS, State

LOOPS, LOCK = 3, 0x100
OF_PLAIN = {(name, LOOPS) for name in ("loop_invocation", "loop_iteration", "loop_exit")}
BARRIER = int(SyncRegion.BARRIER_IMPLICIT_WORKSHARE)


class SharedLoops(RawRaces):
    """All loops but the last are shared out; of some instructions a thread learns which one it is."""

    telling: frozenset[int] = frozenset()
    counting: frozenset[int] = frozenset()

    def state(self) -> State:
        made = super().state()
        made.lanes_of[:LOOPS], made.lanes_of[LOOPS:] = SHARED_LOOP, 0
        made.kinds[list(self.telling)] |= TELLS
        made.kinds[list(self.counting)] |= COUNTS
        return made


def found_in(
    events: list[Event], telling: frozenset[int], length: int = 100, counting: frozenset[int] = frozenset()
) -> set[tuple[int, int]]:
    module = SharedLoops(program(), RaceOptions())
    module.telling, module.counting = telling, counting
    runner = CallbackRunner(module, "races", 1)
    run(batches([(*event, 0) for event in events], length), [runner], 1)
    return {(one, two) for one, two, _ in runner.result()[0]["pairs"]}


def random_events(rng: random.Random, count: int, bytes_: int, threads: int) -> list[Event]:
    """A team whose threads run loops, which may lie in one another, and single regions, take a lock and meet."""
    events: list[Event] = [(0, "program_start", 0, 0, 7), (0, "function_entry", 0, 0, 0)]
    for stream in range(1, threads):
        events += [(0, "thread_create", stream, 0, 0), (stream, "thread_start", stream, 0, 0)]
        events += [(stream, "function_entry", 0, 0, 0)]
    events += [(0, "parallel_begin", 0, 1, 0)]
    events += [(stream, "implicit_begin", stream, 1, 10 + stream) for stream in range(threads)]
    loops: list[list[int]] = [[] for _ in range(threads)]
    single, holder = [False] * threads, -1
    waiting: set[int] = set()
    while len(events) < count:
        if len(waiting) == threads:
            events += [(stream, "sync_end", BARRIER, 1, 10 + stream) for stream in range(threads)]
            waiting = set()
        stream = rng.choice([stream for stream in range(threads) if stream not in waiting])
        what = rng.choices(("access", "iteration", "begin", "exit", "lock", "single", "meet"), (12, 6, 2, 1, 1, 1, 1))[
            0
        ]
        if what == "access":
            name, size = rng.choice(("load", "load", "store")), rng.choice((1, 4, 8))
            events.append((stream, name, len(events), MEMORY + rng.randrange(bytes_), size))
        elif what == "iteration" and loops[stream]:
            events.append((stream, "loop_iteration", loops[stream][-1], 0, 0))
        elif what == "begin" and len(loops[stream]) < 2 and not single[stream]:
            loop = rng.choice([loop for loop in range(LOOPS + 1) if loop not in loops[stream]])
            if loop == LOOPS or not loops[stream]:  # a shared loop lies in no shared loop of the same team
                loops[stream].append(loop)
                events.append((stream, "loop_invocation", loop, 0, 0))
        elif what == "exit" and loops[stream]:
            events.append((stream, "loop_exit", loops[stream].pop(), 0, 0))
        elif what == "lock" and holder in (-1, stream) and (loops[stream] or rng.random() < 0.2):
            events.append((stream, "mutex_released" if holder == stream else "mutex_acquired", 5, LOCK, 0))
            holder = -1 if holder == stream else stream
        elif what == "single" and not loops[stream]:
            single[stream] = not single[stream]
            kind = int(Work.SINGLE_EXECUTOR)
            events.append((stream, "work_begin" if single[stream] else "work_end", kind, 1, 10 + stream))
        elif what == "meet" and not loops[stream] and not single[stream] and holder != stream:
            events.append((stream, "sync_begin", BARRIER, 1, 10 + stream))
            waiting.add(stream)
    return events


@settings(max_examples=300, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    count=st.sampled_from((12, 40, 150, 380)),
    bytes_=st.sampled_from((8, 24, 80)),
    threads=st.sampled_from((1, 2, 3)),
    tells=st.sampled_from((0, 0, 0.02)),
    length=st.sampled_from((1, 100)),
)
def test_iterations_of_a_thread_are_beside_one_another(
    seed: int, count: int, bytes_: int, threads: int, tells: float, length: int
) -> None:
    rng = random.Random(seed)
    events = random_events(rng, count, bytes_, threads)
    accesses = [place for place, event in enumerate(events) if event[1] in ("load", "store")]
    telling = frozenset(place for place in accesses if rng.random() < tells)
    counting = frozenset(place for place in accesses if rng.random() < tells)
    plain = [event if event[1:3] not in OF_PLAIN else (event[0], "nothing", 0, 0, 0) for event in events]
    wanted = naive.races(plain, telling, counting)
    reported = found_in(events, telling, length, counting)
    assert reported <= wanted.keys()
    # what a thread stores between a loop and a single region hides from that what iterations loaded
    without_single = [event if event[1] != "work_begin" else (event[0], "nothing", 0, 0, 0) for event in plain]
    assert has_first_races(reported, naive.races(without_single, telling, counting))


def one_loop(threads: int, iterations: int) -> list[Event]:
    """A team of one thread whose loop stores to one place in its first and its last iteration."""
    events: list[Event] = [(0, "program_start", 0, 0, 7), (0, "function_entry", 0, 0, 0)]
    events += [(0, "parallel_begin", 0, 1, threads), (0, "implicit_begin", 0, 1, 10), (0, "loop_invocation", 0, 0, 0)]
    events += [(0, "store", 1, MEMORY, 8)]
    events += [(0, "loop_iteration", 0, 0, 0)] * (iterations - 1)
    return [*events, (0, "store", 2, MEMORY, 8)]


@pytest.mark.parametrize("iterations", [2, SPLIT_AT_ONCE, 3 * SPLIT_AT_ONCE])
def test_iterations_behind_those_that_are_told_apart_are_one(iterations: int) -> None:
    events = one_loop(0, iterations)
    assert found_in(events, frozenset()) == {(1, 2)}
    again = [*events, (0, "loop_iteration", 0, 0, 0), (0, "store", 3, MEMORY, 8)]
    assert found_in(again, frozenset()) == ({(1, 2), (2, 3)} if iterations == 2 else {(1, 2)})


def test_a_team_that_was_asked_to_be_of_one_thread_is_in_order() -> None:
    assert found_in(one_loop(1, 3), frozenset()) == set()


CASES = re.findall(r'\{"(\w+)", \w+\}', (FOLDER / "shares.c").read_text())


@needs("libomp")
@pytest.mark.parametrize("level", ["-O0", "-O1", "-O2"])
def test_programs(tmp_path: Path, level: str) -> None:
    path = compiled(tmp_path, "shares.c", "-fopenmp", level)
    for case in CASES:
        for variant in ("ok", "race"):
            (tmp_path / "trace.zst").unlink(missing_ok=True)
            result = races(tmp_path, path, case, variant)
            assert bool(result["races"]) == (variant == "race"), (case, variant, result["races"])
            for race in result["races"]:
                for end in (race["first"], race["second"]):
                    assert lines_of(end, "shares.c") & marked("shares.c"), (case, end)
    assert len(CASES) >= 10
