"""What segments begin with, kept by an earlier analysis: the same bytes as the whole, and who may use it."""

from __future__ import annotations

import random
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

import tracekit
from tests.segments.random_traces import write_affordable
from tracekit import api
from tracekit.analysis.modules import modules_of
from tracekit.formats.errors import TracekitError
from tracekit.formats.reader import TraceReader
from tracekit.jit import object_cache
from tracekit.modules.callback_runner import CallbackRunner
from tracekit.modules.contract import Module
from tracekit.modules.options import make_options
from tracekit.modules.registry import load
from tracekit.program.program import Program
from tracekit.replay import turn_length
from tracekit.replay.engine import Replay
from tracekit.segments import analysis, start_cache
from tracekit.segments.ahead import PassAhead
from tracekit.segments.analysis import SegmentedAnalysis
from tracekit.segments.progress import SegmentProgress
from tracekit.segments.start_cache import StartCache

FIXTURE = Path(tracekit.__file__).resolve().parents[1] / "fixtures/traces/v1.zst"
CHOSEN: list[tuple[str, dict[str, str]]] = [
    ("camp", {}),
    ("camp", {"contexts": "static"}),
    ("lamp", {}),
    ("advise", {}),
    ("dependence", {"kinds": "raw,war,waw", "distance": "true", "counts": "true"}),
]


class Cache:
    """What is kept of beginnings: nothing at first."""

    def __init__(self, patched: pytest.MonkeyPatch) -> None:
        self.kept: dict[str, bytes] = {}
        read, write = object_cache.read, object_cache.write

        def read_here(key: str) -> bytes | None:
            return self.kept.get(key) if key.startswith("beginnings-") else read(key)

        def write_here(key: str, contents: bytes) -> None:
            if key.startswith("beginnings-"):
                self.kept[key] = contents
            else:
                write(key, contents)

        patched.setattr(object_cache, "read", read_here)
        patched.setattr(object_cache, "write", write_here)


def runners_of(trace: TraceReader, program: Program, name: str, options: dict[str, str]) -> dict[str, CallbackRunner]:
    """Of the one module, of which nothing has run."""
    made = modules_of(trace, program, {name: make_options(load(name).Options, options)})
    return {name: CallbackRunner(module, name, 1) for name, module in made.items() if isinstance(module, Module)}


def keep(trace: TraceReader, program: Program, analysed: SegmentedAnalysis, batch: int, parts: int) -> None:
    """What an analysis keeps whose pass ahead goes over the whole trace."""
    pilots = {name: CallbackRunner(each.pilot, f"{name}_ahead", 1) for name, each in analysed.segments.items()}
    events = {event for pilot in pilots.values() for event in pilot.columns}
    columns = {column for pilot in pilots.values() for columns in pilot.columns.values() for column in columns}
    ahead = PassAhead(analysed.segments, pilots, Replay(trace, program, batch, events, columns))
    beginnings = StartCache(trace, analysed.segments, parts)
    assert not beginnings.are_there
    while ahead.go_on():
        beginnings.look(ahead)
    beginnings.write()


class Told:
    """Segments go on to their next batch when they have been told their ends, so that short ones are cut, too."""

    def __init__(self, patched: pytest.MonkeyPatch) -> None:
        self._over = threading.Event()
        look, begin = SegmentProgress.look, SegmentedAnalysis._begin_kept

        def look_when_asked(progress: SegmentProgress, replay: Replay) -> None:
            while progress._asked is None and not self._over.is_set():
                time.sleep(0.0002)
            look(progress, replay)

        def begin_all(analysed: SegmentedAnalysis, beginnings: StartCache) -> None:
            try:
                begin(analysed, beginnings)
            finally:
                self._over.set()

        patched.setattr(SegmentProgress, "look", look_when_asked)
        patched.setattr(SegmentedAnalysis, "_begin_kept", begin_all)


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    streams=st.integers(1, 4),
    broken=st.booleans(),
    chosen=st.sampled_from(CHOSEN),
    batch=st.sampled_from((1, 8)),
    jobs=st.integers(2, 5),
)
# A loop carries a dependence from an instruction that nobody knows.
@example(seed=768, streams=1, broken=True, chosen=("advise", {}), batch=1, jobs=2)
def test_an_analysis_that_begins_with_what_is_kept(
    tmp_path_factory: pytest.TempPathFactory,
    seed: int,
    streams: int,
    broken: bool,
    chosen: tuple[str, dict[str, str]],
    batch: int,
    jobs: int,
) -> None:
    name, options = chosen
    path = tmp_path_factory.mktemp("t") / "trace.zst"
    write_affordable(path, random.Random(seed), streams, broken)
    with pytest.MonkeyPatch.context() as patched, TraceReader(path) as trace:
        cache = Cache(patched)
        program = Program.from_images(trace.images())
        try:
            runners = runners_of(trace, program, name, options)
        except TracekitError:
            assume(False)
        keep(trace, program, SegmentedAnalysis(trace, program, runners, batch), batch, jobs)
        if cache.kept:
            Told(patched)
        again = SegmentedAnalysis(trace, program, runners_of(trace, program, name, options), batch)
        count = again.run(jobs)
        assert again.is_known == bool(cache.kept)
        assert count <= jobs
        found = again.runners[name].result()
    (whole,) = api.analyze_all(path, {name: make_options(load(name).Options, options)}, 1)
    assert found == (whole.report["result"], whole.facts)


@pytest.fixture
def cache(monkeypatch: pytest.MonkeyPatch) -> Cache:
    """The next analysis in segments keeps what it finds; a segment goes on slowly, so it is overtaken."""
    feed = CallbackRunner.feed

    def feed_slowly(runner: CallbackRunner, batch: Any, worker: int) -> None:
        if not runner.name.endswith("_ahead"):
            time.sleep(0.005)
        feed(runner, batch, worker)

    monkeypatch.setattr(CallbackRunner, "feed", feed_slowly)
    monkeypatch.setattr(analysis, "LEAST_ACCESSES", 1)
    monkeypatch.setattr(turn_length, "SHORT", 0)
    monkeypatch.setattr(SegmentedAnalysis.__init__, "__defaults__", (8, None))
    return Cache(monkeypatch)


def explained(names: list[str], options: dict[str, str], jobs: int) -> tuple[Any, str]:
    """What modules find in the fixture, and how it was analysed."""
    said: list[str] = []
    chosen = {name: make_options(load(name).Options, options) for name in names}
    profiles = api.analyze_all(FIXTURE, chosen, jobs, said.append)
    return [(profile.report, profile.facts) for profile in profiles], said[0]


def compiled(names: list[str], options: dict[str, str]) -> None:
    """Have all kernels there: a segment that waits for none, while the pass ahead does, is not overtaken."""
    api.analyze_all(FIXTURE, {name: make_options(load(name).Options, options) for name in names}, 2, segments=2)


KNOWN = "analysed in 2 segments, which begin with what an earlier analysis has kept"


def test_the_next_analysis_needs_no_pass_ahead(cache: Cache, monkeypatch: pytest.MonkeyPatch) -> None:
    compiled(["camp"], {})
    whole = explained(["camp"], {}, 1)[0]
    assert explained(["camp"], {}, 2) == (whole, "analysed in 2 segments")
    assert len(cache.kept) == 1

    def go_on(ahead: PassAhead) -> bool:
        raise AssertionError("There is a pass ahead.")

    monkeypatch.setattr(PassAhead, "go_on", go_on)
    assert explained(["camp"], {}, 2) == (whole, KNOWN)
    assert explained(["advise"], {}, 2) == (explained(["advise"], {}, 1)[0], KNOWN)  # the same is kept for both


@pytest.mark.parametrize(
    ("names", "options", "jobs"),
    [(["lamp"], {}, 2), (["camp"], {"contexts": "static"}, 2), (["camp"], {}, 3), (["camp", "lamp"], {}, 2)],
)
def test_what_is_kept_for_others_is_not_used(
    cache: Cache, names: list[str], options: dict[str, str], jobs: int
) -> None:
    compiled(["camp"], {})
    compiled(names, options)
    explained(["camp"], {}, 2)
    found, said = explained(names, options, jobs)
    assert "kept" not in said and len(cache.kept) == 2
    again, said = explained(names, options, jobs)
    assert "kept" in said
    assert again == found == explained(names, options, 1)[0]


def test_what_takes_much_is_not_kept(cache: Cache, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(start_cache, "MOST_BYTES", 100)
    explained(["camp"], {}, 2)
    explained(["dependence"], {}, 2)  # does not say what its beginnings are
    assert not cache.kept
