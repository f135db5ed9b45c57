"""Many iterations at once against one after the other, and the way back."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np

from tests.contexts.test_telling_levels import program, step
from tracekit.contexts.kernels.contexts import enter_function, iterate
from tracekit.contexts.kernels.iterations import go_back, is_in_loop, iterate_often, mark_of
from tracekit.contexts.kernels.levels import began_at, iteration_at
from tracekit.contexts.kernels.streams import CLOCK, CONTROL, LEVELS, RECENT, RUNS, TELLING, Stream
from tracekit.contexts.kernels.tree import DYNAMIC
from tracekit.contexts.state import MOST_CONTEXTS, empty_contexts, empty_stream, with_room
from tracekit.jit.kernel import kernel

STEPS = 400
ROOM = 20 * STEPS
CHANGED = ("control", "levels", "begun", "recent", "runs")
"""What iterations change of a stream."""


@kernel
def and_back(stream: Any, count: Any) -> None:
    """Some iterations, and back."""
    mark = mark_of(stream)
    iterate_often(stream, count)
    if is_in_loop(stream):
        go_back(stream, mark)


def copied(stream: Stream) -> Stream:
    return stream._replace(**{name: getattr(stream, name).copy() for name in CHANGED})


def visible(stream: Stream) -> list[Any]:
    """All that dependences see of a stream: the runs alone may say the same in other rows."""
    control = stream.control
    levels = int(control[LEVELS])
    rows = stream.levels[:levels].copy()
    first, end = [*rows["first_run"].tolist()], [*rows["first_run"][1:].tolist(), int(control[RUNS])]
    stamps = np.linspace(0, int(control[CLOCK]), 40).astype(int).tolist()
    iterations = [
        [int(iteration_at(stream, level, stamp)) for stamp in stamps if stamp >= rows["invocation"][level]]
        for level in range(levels)
        if rows["depth"][level] == 0 and first[level] < end[level]
    ]
    return [
        control[[place for place in range(CONTROL) if place != RUNS]].tolist(),
        np.delete(rows.view(np.int64).reshape(levels, -1), 4, axis=1).tolist() if levels else [],
        stream.begun[: 2 * control[TELLING] + 2].tolist(),
        stream.recent[: RECENT * levels].tolist(),
        iterations,
    ]


def test_many_iterations_are_as_many_single_ones_and_can_be_taken_back() -> None:
    random = Random(1)
    contexts = empty_contexts(program(), DYNAMIC)
    stream = with_room(empty_stream(0, MOST_CONTEXTS), ROOM)
    enter_function(contexts, stream, 0, 0xFFFF_FFFF)
    open_loops, in_loops = [0], 0
    for _ in range(STEPS):
        step(random, contexts, stream, open_loops)
        count = random.choice((0, 1, 2, 3, 7, 8, 9, 20))
        one_by_one, back = copied(stream), copied(stream)
        and_back(back, count)
        assert visible(back) == visible(stream)
        for _ in range(count):
            iterate(one_by_one)
        if random.random() < 0.5:
            iterate_often(stream, count)
            in_loops += int(is_in_loop(stream))
            assert visible(stream) == visible(one_by_one)
    assert in_loops > STEPS // 10


def test_the_clock_at_which_an_iteration_began() -> None:
    random = Random(2)
    contexts = empty_contexts(program(), DYNAMIC)
    stream = with_room(empty_stream(0, MOST_CONTEXTS), ROOM)
    enter_function(contexts, stream, 0, 0xFFFF_FFFF)
    open_loops = [0]
    for _ in range(STEPS):
        step(random, contexts, stream, open_loops)
        for number in range(int(stream.control[LEVELS])):
            level = stream.levels[number]
            if level["depth"] == 0:
                iteration = random.randint(1, int(level["iteration"]))
                began = int(began_at(stream, number, iteration))
                assert iteration_at(stream, number, began) == iteration
                assert iteration == 1 or iteration_at(stream, number, began - 1) == iteration - 1
                assert began_at(stream, number, 1 - iteration) == level["invocation"]
