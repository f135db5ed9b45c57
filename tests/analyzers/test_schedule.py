"""The module ``schedule``: hand-overs of random records, by hand, and of a program whose threads fill buffers."""

from __future__ import annotations

import itertools
import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tracekit
from tests.programs.running import compile_program, record, run_here
from tests.taskgraph.test_random import LOADS, STORES, program
from tracekit.formats.container import WITH_PLANES
from tracekit.formats.errors import TracekitError
from tracekit.formats.events import CODE
from tracekit.formats.reader import TraceReader
from tracekit.render.export.perfetto import write
from tracekit.render.schedule import svg
from tracekit.schedule.hand_overs import HandOvers
from tracekit.schedule.rows import GAP, result_of

SOURCE = """
#include <pthread.h>
static volatile int memory[2][64];
static void *work(void *number)
{
    int *own = (int *)memory[(long)number];
    for (int k = 0; k < 400000; k++)
        own[own[k & 63] & 63] += k;
    return 0;
}
__attribute__((constructor)) static void prepare(void) { memory[0][0] = 1; }
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
EACH = LOADS + STORES


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32), slices=st.integers(1, 20))
def test_accesses_lie_between_hand_overs(seed: int, slices: int) -> None:
    rng = random.Random(seed)
    made, path = program()
    taken = HandOvers(made)
    expected: dict[int, list[tuple[int, int, int]]] = {}  # time, processor, accesses before
    for stream in range(rng.randrange(1, 4)):
        time = accesses = 0
        for _ in range(rng.randrange(1, 5)):
            ids: list[int] = []
            words: list[int] = []
            for _ in range(rng.randrange(6)):
                times = rng.randrange(4)
                ids += [path] * times
                words += [8] * (EACH * times)
                accesses += EACH * times
                time += rng.choice((10, 10, 12, 10_000))
                ids.append(CODE["hand_over"])
                words += [time, rng.randrange(2)]
                expected.setdefault(stream, []).append((time, words[-1], accesses))
            taken.add(stream, np.array(ids, np.uint32), np.array(words, np.uint64))
    result = result_of(made, taken.streams, slices)
    end = max((rows[-1][0] for rows in expected.values()), default=0)
    assert result["summary"]["nanoseconds"] == end
    assert result["summary"]["hand_overs"] == sum(map(len, expected.values()))
    for row in result["threads"]:
        known = expected.get(row["thread"], [])
        processors = [processor for _, processor, _ in known]
        assert row["processors"] == sorted(set(processors))
        assert row["migrations"] == sum(one != other for one, other in itertools.pairwise(processors))
        assert sum(row["slices"]) == (known[-1][2] if known else 0) and min(row["slices"]) >= 0
        assert_stretches([each for each in result["stretches"] if each["thread"] == row["thread"]], known)


def assert_stretches(stretches: list[dict[str, Any]], known: list[tuple[int, int, int]]) -> None:
    """They lie one behind the other, are of one processor each, and have all accesses."""
    assert sum(each["accesses"] for each in stretches) == (known[-1][2] if known else 0)
    for one, other in itertools.pairwise(stretches):
        assert one["end"] == other["begin"]
    ends = {time: processor for time, processor, _ in known}
    for each in stretches:
        inside = [processor for time, processor, _ in known if each["begin"] < time <= each["end"]]
        assert set(inside) <= {each["processor"]}
        assert ends[each["end"]] == each["processor"]
    assert GAP > 1


def test_a_program(tmp_path: Path) -> None:
    (tmp_path / "app.c").write_text(SOURCE)
    app = compile_program([tmp_path / "app.c"], tmp_path / "app", ["-O1", "-g", "-pthread"], instrumented=True)
    trace = record(app).trace
    with TraceReader(trace) as opened:
        assert opened.version == WITH_PLANES
    profile = tracekit.analyze(trace, "schedule", slices=50)
    result = profile.result
    assert [row["role"] for row in result["threads"]] == ["main", "work", "work"]
    for row in result["threads"][1:]:
        assert row["accesses"] > 1_000_000 and row["hand_overs"] > 3 and row["processors"]
        assert 0 < row["begin"] < row["end"] <= result["summary"]["nanoseconds"]
    assert result["threads"][0]["hand_overs"] == 0 and result["threads"][0]["begin"] is None
    shown = run_here("analyze", "-m", "schedule", trace).stdout.decode()
    assert "what it did over the run" in shown
    profile.save(tmp_path / "saved")
    events = json.loads(run_here("export", "perfetto", tmp_path / "saved").stdout)["traceEvents"]
    slices = [event for event in events if event["ph"] == "X"]
    assert len(slices) == 2 * len(result["stretches"])
    assert {event["tid"] for event in slices if event["pid"] == 1} == {1, 2}
    assert all(event["dur"] >= 0 and event["ts"] >= 0 for event in slices)
    assert svg(result).count("<title>") == 4
    with pytest.raises(TracekitError, match="a schedule"):
        write({"module": "camp", "result": {}}, "")


def test_a_run_without_a_full_buffer_is_as_before(tmp_path: Path) -> None:
    (tmp_path / "app.c").write_text("int main(void) { return 0; }\n")
    trace = record(compile_program([tmp_path / "app.c"], tmp_path / "app", ["-O1"], instrumented=True)).trace
    with TraceReader(trace) as opened:
        assert opened.version == WITH_PLANES
    assert "there are no times" in run_here("analyze", "-m", "schedule", trace).stdout.decode()
