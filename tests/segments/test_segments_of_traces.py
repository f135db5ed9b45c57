"""Traces analysed in segments, by the pass ahead and in threads, and what is refused."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

import tracekit
from tests.segments.random_traces import write_affordable
from tracekit import api
from tracekit.analyzers.camp import MODULE as CAMP
from tracekit.formats.errors import TracekitError
from tracekit.formats.reader import TraceReader
from tracekit.modules.callback_runner import CallbackRunner
from tracekit.modules.options import make_options
from tracekit.modules.registry import load
from tracekit.program.program import Program
from tracekit.replay import turn_length
from tracekit.replay.totals import trace_totals
from tracekit.segments import analysis
from tracekit.segments.analysis import SegmentedAnalysis
from tracekit.segments.start_cache import StartCache
from tracekit.verdicts.module import ContextOptions

FIXTURE = Path(tracekit.__file__).resolve().parents[1] / "fixtures/traces/v1.zst"


@pytest.fixture(autouse=True, scope="module")
def nothing_is_kept() -> Iterator[None]:
    """Each analysis has a pass ahead."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(StartCache, "write", lambda kept: None)
        yield


def results(path: Path, cuts: list[int] | None, batch: int, jobs: int) -> tuple[Any, Any]:
    """What camp finds in the whole of a trace, and in its segments."""
    with TraceReader(path) as trace:
        program = Program.from_images(trace.images())
        runners = {"camp": CallbackRunner(CAMP(program, ContextOptions()), "camp", 1)}
        SegmentedAnalysis(trace, program, runners, batch).run(jobs, cuts)
        found = runners["camp"].result()
    whole = api.analyze(path, "camp", 1)
    return (whole.report["result"], whole.facts), found


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    streams=st.integers(1, 4),
    broken=st.booleans(),
    batch=st.sampled_from((1, 8, 64)),
    jobs=st.integers(1, 4),
    shared=st.booleans(),
)
@example(seed=991, streams=1, broken=True, batch=1, jobs=1, shared=False)  # a store goes on at address 0
def test_cut_at_any_record(
    tmp_path_factory: pytest.TempPathFactory, seed: int, streams: int, broken: bool, batch: int, jobs: int, shared: bool
) -> None:
    rng = random.Random(seed)
    path = tmp_path_factory.mktemp("t") / "trace.zst"
    accesses = write_affordable(path, rng, streams, broken)
    cuts = sorted(rng.randrange(accesses + 1) for _ in range(rng.randint(1, 8)))
    with TraceReader(path) as trace:
        try:
            trace_totals(trace, Program.from_images(trace.images()))
        except TracekitError:
            assume(False)
    whole, found = results(path, None if shared and jobs > 1 else cuts, batch, jobs)
    assert found == whole


def test_threads_share_a_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    def feed_slowly(runner: CallbackRunner, batch: Any, worker: int) -> None:
        if runner.name == "camp":
            time.sleep(0.02)  # else the fixture is over before the pass ahead has overtaken it
        feed(runner, batch, worker)

    feed = CallbackRunner.feed
    whole = api.analyze(FIXTURE, "camp", 1).report["result"]
    api.analyze_all(FIXTURE, {"camp": ContextOptions()}, 2, segments=2)  # has all kernels compiled: none waits for one
    monkeypatch.setattr(CallbackRunner, "feed", feed_slowly)
    counts = set()
    with TraceReader(FIXTURE) as trace:
        program = Program.from_images(trace.images())
        for jobs in (2, 3, 5):
            runners = {"camp": CallbackRunner(CAMP(program, ContextOptions()), "camp", 1)}
            counts.add(SegmentedAnalysis(trace, program, runners, batch=8).run(jobs))
            assert runners["camp"].result()[0] == whole
    assert counts == {2, 3, 5}


def test_a_long_trace_is_cut_unless_something_speaks_against_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(analysis, "LEAST_ACCESSES", 1)
    monkeypatch.setattr(turn_length, "SHORT", 0)
    said: list[str] = []
    options = {name: make_options(load(name).Options, {}) for name in ("camp", "reuse")}
    api.analyze_all(FIXTURE, {"camp": options["camp"]}, 2, said.append)
    assert said[0].startswith("analysed in ")
    cheap = {"accesses": make_options(load("accesses").Options, {})}
    alone = {"camp": options["camp"]}
    for chosen, jobs, window, segments, why in (
        (
            options,
            2,
            None,
            None,
            "The module reuse is not analysed in segments: a distance may reach back to the first access",
        ),
        (alone, 1, None, None, "One thread was asked for"),
        (alone, 2, None, 1, "One segment was asked for"),
        (alone, 2, {"thread": 0}, None, "A window is not analysed in segments"),
        (cheap, 2, None, None, "Cutting it would cost more than these modules take"),
    ):
        said.clear()
        api.analyze_all(FIXTURE, chosen, jobs, said.append, window, segments)
        assert said[0] == f"analysed as a whole: {why}."
    monkeypatch.setattr(turn_length, "SHORT", 1 << 40)
    said.clear()
    api.analyze_all(FIXTURE, alone, 2, said.append)
    assert said[0] == "analysed as a whole: Threads hand over often."
    monkeypatch.undo()
    said.clear()
    api.analyze_all(FIXTURE, alone, 2, said.append)
    assert said[0] == "analysed as a whole: The trace has fewer than 33,554,432 accesses."


@pytest.mark.parametrize("count", [2, 7, 200])
def test_the_fixture_in_as_many_segments_as_are_asked_for(count: int) -> None:
    variants: tuple[dict[str, str], ...] = ({"kinds": "raw,war,waw", "counts": "true"}, {}, {"carried_by": "hottest"})
    others: list[tuple[str, dict[str, str]]] = [
        (name, {}) for name in ("camp", "lamp", "advise", "accesses", "heatmap", "footprint", "leap", "object_lifetime")
    ]
    others.append(("points_to", {"accesses": "true"}))
    for name, options in [*others, *(("dependence", variant) for variant in variants)]:
        chosen = {name: make_options(load(name).Options, options)}
        (whole,) = api.analyze_all(FIXTURE, chosen, 1)
        (found,) = api.analyze_all(FIXTURE, chosen, 2, segments=count)
        assert json.dumps(found.report) == json.dumps(whole.report)
        assert (found.evidence is None) == (whole.evidence is None)


@pytest.mark.parametrize(
    ("name", "window", "message"),
    [
        (
            "memory_errors",
            None,
            (
                "The module memory_errors is not analysed in segments: what is known of each byte goes on: "
                "leave out --segments."
            ),
        ),
        ("camp", {"thread": 0}, "A window is not analysed in segments: leave out --segments."),
    ],
)
def test_what_is_not_analysed_in_segments_is_refused(name: str, window: Any, message: str) -> None:
    with pytest.raises(TracekitError) as raised:
        api.analyze_all(FIXTURE, {name: make_options(load(name).Options, {})}, 2, window=window, segments=2)
    assert str(raised.value) == message


def test_an_error_in_a_segment_is_told_and_ends_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(runner: CallbackRunner, batch: object, worker: int) -> None:
        if runner.name == "camp":
            raise TracekitError("It failed.")

    monkeypatch.setattr(CallbackRunner, "feed", fail)
    with pytest.raises(TracekitError, match=r"^It failed\.$"):
        results(FIXTURE, [1, 2], 1, 2)
