"""The clocks and names of the levels that dependences report, against what the levels themselves say."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np

from tests.naive.program_builder import ProgramBuilder
from tracekit.contexts.kernels.contexts import enter_function, enter_loop, iterate, leave_function, leave_loop
from tracekit.contexts.kernels.levels import last_begun
from tracekit.contexts.kernels.streams import CHAIN, CLOCK, FRAMES, LEVELS, NEVER, NO_LOOPS, TELLING, Stream
from tracekit.contexts.kernels.tree import DYNAMIC, Contexts
from tracekit.contexts.state import MOST_CONTEXTS, empty_contexts, empty_stream, with_room
from tracekit.formats.image import BlockFlag
from tracekit.program.program import Program

STEPS = 3000


def program() -> Program:
    """Three functions that call each other, with a loop each."""
    builder = ProgramBuilder()
    functions = [builder.function(name) for name in ("main", "even", "odd")]
    for function in functions:
        entry = builder.block(function, BlockFlag.ENTRY)
        body = builder.block(function, BlockFlag.LOOP_HEADER, builder.loop(function))
        for callee in ("even", "odd"):
            builder.call(entry, callee)
            builder.call(body, callee)
    return builder.program()


def test_clocks_and_chains_are_those_of_the_levels() -> None:
    random = Random(1)
    contexts = empty_contexts(program(), DYNAMIC)
    stream = with_room(empty_stream(0, MOST_CONTEXTS), 2 * STEPS)
    nodes_of: dict[int, tuple[int, ...]] = {NO_LOOPS: ()}
    open_loops = [0]  # in each open call
    deepest = 0
    enter_function(contexts, stream, 0, 0xFFFF_FFFF)
    for _ in range(STEPS):
        step(random, contexts, stream, open_loops)
        check_clocks(random, stream)
        check_chain(stream, nodes_of)
        deepest = max(deepest, int(stream.control[TELLING]))
    assert deepest > 8
    assert len(nodes_of) > 100


def step(random: Random, contexts: Contexts, stream: Stream, open_loops: list[int]) -> None:
    """One event that the program may make."""
    what = random.randrange(6)
    if what == 0 and len(open_loops) < 12:
        enter_function(contexts, stream, random.randrange(1, 3), random.randrange(12))
        open_loops.append(0)
    elif what == 1 and len(open_loops) > 1:
        leave_function(contexts, stream)
        open_loops.pop()
    elif what == 2 and open_loops[-1] < 2:
        enter_loop(contexts, stream, random.randrange(3))
        open_loops[-1] += 1
    elif what == 3 and open_loops[-1] > 0:
        leave_loop(contexts, stream, 0)
        open_loops[-1] -= 1
    elif open_loops[-1] > 0:
        iterate(stream)
    assert stream.control[FRAMES] == len(open_loops)


def telling(stream: Stream) -> list[Any]:
    """The levels that should be reported: all but activations that no other one of their node was inside."""
    levels = stream.levels[: stream.control[LEVELS]]
    numbers = stream.telling["level"][: stream.control[TELLING]].tolist()
    assert numbers == sorted(set(numbers))
    for number, level in enumerate(levels):
        is_inside = level["depth"] > 1
        has_inside = level["depth"] == 1 and any(
            other["depth"] > 1 and other["node"] == level["node"] for other in levels[number + 1 :]
        )
        assert number in numbers or not (level["depth"] == 0 or is_inside or has_inside)
    return [levels[number] for number in numbers]


def check_clocks(random: Random, stream: Stream) -> None:
    """``begun`` is what the levels say, and finds what had begun last."""
    reported = telling(stream)
    begun = [0] + [int(level[name]) for level in reported for name in ("invocation", "iteration_start")]
    assert stream.begun[: len(begun) + 1].tolist() == [*begun, NEVER]
    stamp = random.randrange(int(stream.control[CLOCK]) + 1)
    found = int(last_begun(stream.begun, stream.control, stamp))
    assert found == int(np.searchsorted(begun, stamp, side="right")) - 1


def check_chain(stream: Stream, nodes_of: dict[int, tuple[int, ...]]) -> None:
    """A name is that of one stack."""
    nodes = tuple(int(level["node"]) for level in telling(stream))
    chain = int(stream.control[CHAIN])
    assert chain > 0
    assert nodes_of.setdefault(chain, nodes) == nodes
