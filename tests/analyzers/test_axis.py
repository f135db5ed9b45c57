"""footprint and heatmap with seconds on their axis, against their references; hand-overs against replay."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tracekit
from tests.analyzers.test_access_modules import batches, program, some_events
from tests.naive import modules as naive
from tests.programs.running import compile_program, record
from tracekit.formats.errors import TracekitError
from tracekit.module import MOST_INTERVALS, Module
from tracekit.modules import registry
from tracekit.modules.callback_runner import CallbackRunner
from tracekit.modules.options import make_options
from tracekit.modules.scheduler import run
from tracekit.paths.tables import has_known_size
from tracekit.render.registry import as_text
from tracekit.render.text import Style
from tracekit.schedule.hand_overs import read_hand_overs

SOURCE = """
#include <pthread.h>
#include <string.h>
static char memory[2][4096];
static void *work(void *number)
{
    char *own = memory[(long)number];
    for (int k = 0; k < 60000; k++) {
        memcpy(own + (k & 1023), own + 2048, k & 15);
        own[own[k & 2047] & 63] += k;
    }
    return 0;
}
int main(void)
{
    pthread_t threads[2];
    for (long k = 0; k < 2; k++)
        pthread_create(&threads[k], 0, work, (void *)k);
    for (int k = 0; k < 2; k++)
        pthread_join(threads[k], 0);
    return 0;
}
"""


def some_hand_overs(rng: random.Random, events: list[naive.Event]) -> dict[int, list[tuple[int, int]]]:
    """Those of each stream, that ascend; one stream at least has some, and not all do."""
    counts = Counter(event[0] for event in naive.accesses_of(events))
    made: dict[int, list[tuple[int, int]]] = {}
    for stream in {0, *counts}:
        if stream and rng.random() < 0.3:
            continue
        time, before = rng.randrange(1000) if stream else 0, 0
        made[stream] = [(time, 0)]
        while before < counts[stream] and rng.random() < 0.9:
            time += rng.choice((0, 1, 7, 1000, 10**9))
            before += min(rng.choice((0, 1, 5, 40)), counts[stream] - before)
            made[stream].append((time, before))
    return made


def analysed(name: str, events: list[naive.Event], hand_overs: dict[int, list[tuple[int, int]]], granule: int) -> Any:
    kind = registry.load(name)
    module = kind(program(8), make_options(kind.Options, {"axis": "seconds", "granule": granule}))
    assert isinstance(module, Module)
    module.accesses = len(naive.accesses_of(events))
    module.hand_overs = {
        stream: (np.array([time for time, _ in rows]), np.array([before for _, before in rows]))
        for stream, rows in hand_overs.items()
    }
    runner = CallbackRunner(module, name, 1)
    run(iter(batches(events, 7)), [runner], 1)
    return runner.result()[0]


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32), granule=st.sampled_from((1, 8, 64)))
def test_slices_are_those_of_the_references(seed: int, granule: int) -> None:
    rng = random.Random(seed)
    events = [(rng.randrange(3), *event[1:]) for event in some_events(rng, rng.randrange(1, 200))]
    hand_overs = some_hand_overs(rng, events)
    length = max(rows[-1][0] for rows in hand_overs.values()) // MOST_INTERVALS + 1
    slices = naive.timed_slices(events, hand_overs, length)
    assert analysed("footprint", events, hand_overs, granule) == naive.timed_footprint(events, slices, granule, length)
    heatmap = analysed("heatmap", events, hand_overs, 4096)
    assert heatmap["summary"]["untimed_accesses"] == slices.count(None)
    expected = naive.timed_heatmap(events, slices, heatmap["summary"]["bytes_per_row"])
    for kind, counts in expected.items():
        cells = {
            (row["start"], number): count
            for row in heatmap["rows"]
            for number, count in enumerate(row[kind + "s"])
            if count
        }
        assert cells == counts


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("axis")
    (folder / "app.c").write_text(SOURCE)
    return record(
        compile_program([folder / "app.c"], folder / "app", ["-O1", "-g", "-pthread"], instrumented=True)
    ).trace


def test_hand_overs_count_what_replay_delivers(recorded: Path) -> None:
    counts: Counter[int] = Counter()
    with tracekit.open(recorded) as trace:
        known = has_known_size(trace.program)
        for batch in trace.batches(events=["load", "store"]):
            inside = np.minimum(batch.subject, len(known) - 1)
            counts[batch.stream] += int((known[inside] | (batch.subject >= len(known))).sum())
        hand_overs = read_hand_overs(trace.reader, trace.program)
        assert not known.all()
    assert len(hand_overs) == 2
    for stream, (times, before) in hand_overs.items():
        assert len(times) > 2 and 0 < before[-1] <= counts[stream]
        assert (np.diff(times) >= 0).all() and (np.diff(before) >= 0).all()


def test_a_run_has_its_time_on_the_axis(recorded: Path) -> None:
    by_time = tracekit.analyze(recorded, "footprint", axis="seconds").result
    in_order = tracekit.analyze(recorded, "footprint").result
    untimed = by_time["summary"]["untimed_accesses"]
    total = sum(row["accesses"] for row in in_order["slices"])
    assert 0 < untimed < total == untimed + sum(row["accesses"] for row in by_time["slices"])
    assert by_time["summary"]["bytes"] == in_order["summary"]["bytes"]
    report = tracekit.analyze(recorded, "heatmap", axis="seconds").report
    shown = as_text(report, {}, 0, Style(False))
    assert f"Left out: {report['result']['summary']['untimed_accesses']:,} accesses" in shown and " ms; " in shown


def test_what_has_no_times_is_refused(recorded: Path, tmp_path: Path) -> None:
    (tmp_path / "app.c").write_text("int main(void) { return 0; }\n")
    short = record(compile_program([tmp_path / "app.c"], tmp_path / "app", ["-O1"], instrumented=True)).trace
    with pytest.raises(TracekitError, match="no thread filled a buffer"):
        tracekit.analyze(short, "footprint", axis="seconds")
    with pytest.raises(
        TracekitError, match=r"^With these options the module heatmap looks at whole runs: leave out the window"
    ):
        tracekit.analyze(recorded, "heatmap", axis="seconds", window={"from": "10%"})
