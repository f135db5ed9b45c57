"""The module ``reuse`` and its kernel against lists of lines in the order of their last touches."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.analyzers.test_access_modules import batches, program, some_events
from tests.naive import reuse as naive
from tracekit.analyzers.reuse import Reuse, ReuseOptions
from tracekit.containers.kernels.shadow import Shadow
from tracekit.formats.errors import TracekitError
from tracekit.jit.kernel import kernel
from tracekit.modules.callback_runner import CallbackRunner
from tracekit.modules.options import make_options
from tracekit.modules.scheduler import run
from tracekit.reuse import curve
from tracekit.reuse.kernels.distances import Slots, touch
from tracekit.reuse.state import no_lines, no_slots


@kernel
def touched(slots: Slots, last: Shadow, lines: Any, found: Any) -> None:
    for number in range(lines.size):
        found[number] = touch(slots, last, lines[number])


def profile(events: list[naive.Event], **options: Any) -> dict[str, Any]:
    runner = CallbackRunner(Reuse(program(8), make_options(ReuseOptions, options)), "reuse", 1)
    run(batches(events, 50), [runner], 1)
    return runner.result()[0]


def accesses(seed: int, count: int) -> list[naive.Event]:
    """Other events have no fields that would make sense of objects."""
    events = some_events(random.Random(seed), count)
    return [event for event in events if event[1] in ("load", "store")]


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    count=st.sampled_from((0, 1, 30, 150)),
    line=st.sampled_from((64, 512, 4096)),
    sizes=st.sampled_from(("4096", "12K,8K", "20K,1M,4K")),
)
def test_reuse(seed: int, count: int, line: int, sizes: str) -> None:
    events = accesses(seed, count)
    result = profile(events, line=line, sizes=sizes)
    touches = naive.distances(events, line)
    found = [distance for _, _, distance in touches]
    for point in result["curve"]:
        assert point["misses"] == naive.misses(found, point["size"] // line)
        assert point["miss_ratio"] == pytest.approx(point["misses"] / len(found), abs=1e-6)
    assert not found or result["curve"][-1]["misses"] == found.count(None)
    assert result["summary"]["touches"] == len(found)
    assert result["summary"]["lines"] == found.count(None)
    rows = {int(row["instruction"]["id"].rpartition(":")[2]): row for row in result["instructions"]}
    assert rows.keys() == {subject for subject, _, _ in touches}
    for subject, row in rows.items():
        own = [distance for other, _, distance in touches if other == subject]
        assert row["touches"] == len(own) and row["cold"] == own.count(None)
        assert row["misses"] == [naive.misses(own, size // line) for size in result["summary"]["sizes"]]
        assert sum(count for _, count in row["distances"]) + row["cold"] == len(own)
    if found:
        (unknown,) = result["objects"]  # no object was made
        assert unknown["touches"] == len(found) and unknown["object"] == {"kind": "unknown"}


@pytest.mark.parametrize("line", [1, 64])
def test_the_last_line_of_the_address_space_may_be_the_first_that_is_touched(line: int) -> None:
    events = [(0, "load", 0, 2**64 - line, line, 0)] * 2
    result = profile(events, line=line, sizes="4096")
    assert (result["summary"]["touches"], result["summary"]["lines"]) == (2, 1)


@settings(max_examples=30, deadline=None)
@given(seeds=st.lists(st.integers(0, 2**32), min_size=2, max_size=3), count=st.sampled_from((0, 9, 60)))
def test_joined_profiles_have_the_sums(seeds: list[int], count: int) -> None:
    runs = [accesses(seed, count) for seed in seeds]
    results = [{"result": profile(events)} for events in runs]
    joined = Reuse.merge(results, None)["result"]
    found = [[distance for _, _, distance in naive.distances(events, 64)] for events in runs]
    for point in joined["curve"]:
        assert point["misses"] == sum(naive.misses(each, point["size"] // 64) for each in found)
    assert sum(row["touches"] for row in joined["instructions"]) == sum(map(len, found))
    assert sum(row["cold"] for row in joined["objects"]) == sum(each.count(None) for each in found)
    assert Reuse.merge([Reuse.merge(results[:1], None), *results[1:]], None)["result"] == joined
    assert Reuse.merge(results[::-1], None)["result"] == joined


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32), count=st.sampled_from((1, 63, 64, 65, 600, 1500)), most=st.integers(1, 400))
def test_the_kernel_while_slots_run_out(seed: int, count: int, most: int) -> None:
    """With 64 slots to begin with, which double and are made anew again and again."""
    rng = random.Random(seed)
    lines = [int(most * rng.random() ** 3) for _ in range(count)]
    found = np.zeros(count, np.int64)
    touched(no_slots(64), no_lines(), np.array(lines), found)
    wanted = naive.distances([(0, "load", 0, line, 1, 0) for line in lines], 1)
    assert found.tolist() == [-1 if distance is None else distance for _, _, distance in wanted]


def test_steps_are_ascending_and_have_what_was_asked_for() -> None:
    steps = curve.steps([1000, 4])
    assert steps.tolist() == sorted(set(steps.tolist())) and 1000 in steps and steps[-1] == curve.MOST


@pytest.mark.parametrize(
    "given", [{"line": "48"}, {"line": "0"}, {"sizes": "32 bananas"}, {"sizes": "100"}, {"sizes": "1M,1M"}, {"by": "x"}]
)
def test_options_that_make_no_sense(given: dict[str, str]) -> None:
    with pytest.raises(TracekitError):
        make_options(ReuseOptions, given)
