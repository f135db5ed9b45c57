"""Modules that join the states of stretches of a trace (`combine`): what one state finds that goes on through all."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.analyzers.test_access_modules import batches, program, some_events
from tests.segments.random_traces import write_affordable
from tracekit import api
from tracekit.formats.errors import TracekitError
from tracekit.formats.events import ACCESS_EVENTS
from tracekit.formats.reader import TraceReader
from tracekit.module import BatchModule, EventBatch, Module
from tracekit.modules import registry
from tracekit.modules.callback_runner import CallbackRunner
from tracekit.modules.options import make_options
from tracekit.modules.runners import runner, segment_runners
from tracekit.program.program import Program
from tracekit.replay.totals import trace_totals
from tracekit.segments.analysis import SegmentedAnalysis

COMBINING = ("accesses", "footprint", "heatmap", "value_pattern")


class InContext(Module):
    """An author's module: accesses, and the sums of their times, by calling and loop context."""

    def state(self) -> Any:
        return (np.zeros((1000, 2), np.int64),)

    @staticmethod
    def load(state: Any, context: int, time: int, levels: Any) -> None:
        state[0][context, 0] += 1
        state[0][context, 1] += time

    def combine(self, states: Sequence[Any]) -> Any:
        return (sum(state[0] for state in states),)

    def result(self, state: Any) -> dict[str, Any]:
        numbers = np.flatnonzero(state[0][:, 0])
        sums = zip(self.contexts.rows(numbers).tolist(), state[0][numbers].tolist())
        return {"rows": [{"context": self.contexts.describe(row), "sums": each} for row, each in sums]}


class InBatches(BatchModule):
    """An author's module that takes batches: for each instruction how often it ran, and a sum in which order counts."""

    events: ClassVar[Mapping[str, tuple[str, ...]]] = dict.fromkeys(ACCESS_EVENTS, ("instruction", "size"))

    def __init__(self, program: Any, options: Any) -> None:
        super().__init__(program, options)
        self.seen: list[tuple[int, int]] = []

    def feed(self, batch: EventBatch) -> None:
        self.seen += zip(batch.subject.tolist(), batch.size.tolist())

    def found(self) -> Any:
        return np.array(self.seen, np.uint64).reshape(-1, 2)

    def combine(self, found: Sequence[Any]) -> None:
        self.seen = [tuple(row) for row in np.concatenate(found).tolist()]

    def result(self) -> dict[str, Any]:
        return {"rows": [list(row) for row in self.seen], "accesses": self.accesses}


@settings(max_examples=150, deadline=None)
@given(seed=st.integers(0, 2**32), name=st.sampled_from(COMBINING), most=st.integers(0, 3))
def test_states_of_stretches_come_to_one(seed: int, name: str, most: int) -> None:
    rng = random.Random(seed)
    events = some_events(rng, rng.randint(1, 150))
    cuts = sorted(rng.randrange(len(events) + 1) for _ in range(rng.randint(0, 5)))
    kind = registry.load(name)
    given_options = (
        {"small_set": str(most), "linear": "true", "stores": str(rng.random() < 0.5)} if name == "value_pattern" else {}
    )
    module = kind(program(10), make_options(kind.Options, given_options))
    module.accesses = sum(event[1] in ACCESS_EVENTS for event in events)
    assert isinstance(module, Module)

    def fed(part: Sequence[Any], clock: int) -> CallbackRunner:
        fresh = CallbackRunner(module, name, 1)
        fresh.go_on(module.state(), None, {}, clock)
        for batch in batches(part, 64):
            fresh.feed(batch, 0)  # type: ignore[arg-type]
        return fresh

    states, clock = [], 0
    for first, last in zip([0, *cuts], [*cuts, len(events)]):
        states.append(module.remains(fed(events[first:last], clock).worker.state))
        clock += sum(event[1] in ACCESS_EVENTS for event in events[first:last])
    while len(states) > 1:  # any two that follow each other
        place = rng.randrange(len(states) - 1)
        states[place : place + 2] = [module.fold(*states[place : place + 2])]
    joined = CallbackRunner(module, name, 1)
    joined.finish(lambda: module.combine(states))
    assert joined.result() == fed(events, 0).result()


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    streams=st.integers(1, 4),
    broken=st.booleans(),
    batch=st.sampled_from((1, 8, 64)),
    jobs=st.integers(1, 3),
    module=st.sampled_from(("accesses", "footprint", "heatmap", InContext, InBatches)),
)
def test_traces_in_segments(
    tmp_path_factory: pytest.TempPathFactory,
    seed: int,
    streams: int,
    broken: bool,
    batch: int,
    jobs: int,
    module: Any,
) -> None:
    rng = random.Random(seed)
    path = tmp_path_factory.mktemp("t") / "trace.zst"
    accesses = write_affordable(path, rng, streams, broken)
    cuts = None if jobs > 1 and rng.random() < 0.5 else sorted(rng.randrange(accesses + 1) for _ in range(5))
    with TraceReader(path) as trace:
        made = Program.from_images(trace.images())
        kind = registry.load(module) if isinstance(module, str) else module
        analysis = kind(made, make_options(kind.Options, {}))
        try:
            analysis.accesses = trace_totals(trace, made)["accesses"]
        except TracekitError:
            assume(False)
        runners = segment_runners({"it": runner(analysis, "it", 1)})
        SegmentedAnalysis(trace, made, runners, batch).run(jobs, cuts)
        found = runners["it"].result()[0]
    assert found == api.analyze(path, module, 1).report["result"]
