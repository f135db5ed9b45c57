"""Flow dependences alone and those that a loop carries, in segments, against those of the whole and the reference."""

from __future__ import annotations

from functools import reduce
from itertools import pairwise
from random import Random
from typing import Any
from unittest.mock import patch

from hypothesis import given, settings

from tests.naive.flow_segments import combine, summary
from tests.segments.test_segments_random import RUN, feed, in_segments, run_of, whole
from tracekit.analyzers.dependence import Dependence, Options
from tracekit.containers import maps
from tracekit.dependence.flow_segments import FlowSegments
from tracekit.dependence.kernels import flow
from tracekit.modules.callback_runner import CallbackRunner

MOST_CUTS = 5
"""All states are there at once, and each reserves much address space."""


def pairs_of(state: Any) -> set[tuple[int, int]]:
    """Sources and destinations."""
    return {(int(key >> 32) - 1, int(key & 0xFFFF_FFFF)) for key in maps.rows(state.pairs)["key"].tolist()}


@settings(deadline=None, max_examples=60)
@given(*RUN)
def test_segments_are_joined_in_any_order(seed: int, streams: int, limit: int, share: float) -> None:
    program, events, cuts = run_of(seed, streams, limit, share)
    cuts = sorted(Random(seed).sample(cuts, min(len(cuts), MOST_CUTS)))
    module = Dependence(program, Options())
    begun = sorted({event[0] for event in events})
    parts, states = [], []
    for first, last in pairwise([0, *cuts, len(events)]):
        runner = CallbackRunner(module, "dependence", 1)
        if first:
            runner.go_on(FlowSegments(module).begin(module.state(), begun, {}), None, {}, 0)
        feed(runner, events[first:last])
        parts.append(summary(events[first:last]))
        states.append(runner.worker.state)
    none = len(program.ops)
    expected = {tuple(min(end, none) for end in pair) for pair in reduce(combine, parts).pairs}
    found = set.union(*map(pairs_of, states))
    random = Random(seed)
    while len(states) > 1:
        place = random.randrange(len(states) - 1)
        flow.join(states[place], states.pop(place + 1))
        found |= pairs_of(states[place])
        parts[place] = combine(parts[place], parts.pop(place + 1))
    assert found == expected == {tuple(min(end, none) for end in pair) for pair in parts[0].pairs}


class OfLoops(Dependence):
    """What chosen loops carry, wherever they stand."""

    chosen: tuple[bool, ...] = ()

    def state(self) -> Any:
        """No store yet."""
        made = super().state()
        made.loops[:] = self.chosen
        return made


@settings(deadline=None, max_examples=80)
@given(*RUN)
def test_what_some_loops_carry(seed: int, streams: int, limit: int, share: float) -> None:
    program, events, cuts = run_of(seed, streams, limit, share)
    random = Random(seed)
    with patch("tracekit.dependence.carried.one_place"):  # which loops is said here
        module = OfLoops(program, Options(carried_by="somewhere.c:1"))
        module.chosen = tuple(random.random() < 0.5 for _ in range(max(len(program.loops), 1)))
        one, other = whole(module, events), in_segments(module, events, cuts)
    assert one.result() == other.result()
