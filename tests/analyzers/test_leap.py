"""The module ``leap`` against its reference: descriptors, dependences, strides, and what they are compared with."""

from __future__ import annotations

import json
from collections import Counter
from fractions import Fraction
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.naive.leap import NaiveLeap, beyond, described, error_shares
from tests.naive.translation import MemoryMachine
from tests.translation.test_translation import fed, made
from tracekit.analyzers.leap import Leap, LeapOptions
from tracekit.formats.errors import TracekitError
from tracekit.formats.events import BY_CODE, CODE
from tracekit.leap.comparison import errors, truth_of
from tracekit.modules.options import make_options

PLENTY = 1 << 20


def run(seed: int, options: LeapOptions, workers: int = 1) -> tuple[Leap, Any, NaiveLeap]:
    """The module and the reference after random plays with memory."""
    program, sites = made()
    random = Random(seed)
    machine = MemoryMachine(random, sites, stack=options.stack, by=options.by)
    machine.begin_threads()
    machine.run(1 + seed % 150)
    module = Leap(program, options)
    runner = fed(module, machine.events, 1 + seed % 40, workers)
    naive = NaiveLeap(options.window)
    places = iter(machine.expected)
    for _, code, subject, _, _ in machine.events:
        if code in (CODE["load"], CODE["store"]):
            group, number, offset = next(places)
            naive.access(subject, BY_CODE[code].name == "store", group, number, offset)
    runner.finished()
    return module, runner, naive


def access(name: tuple[int, bool]) -> int:
    return 2 * name[0] + name[1]


@settings(deadline=None, max_examples=60)
@given(seed=st.integers(0, 2**32), most=st.sampled_from([1, 2, 3, 30]), workers=st.integers(1, 2))
def test_descriptors(seed: int, most: int, workers: int) -> None:
    module, _, naive = run(seed, LeapOptions(descriptors=most), workers)
    profile = module.profile
    assert len(profile.streams) == len(naive.streams)
    known = {}
    for row in profile.streams:
        points = profile.points[slice(*row["points"])]
        names = ("object", "offset", "time")
        known[int(row["access"]), str(module.groups.site(int(row["group"])))] = (
            [
                (tuple(each[list(names)].item()), tuple(each[f"{name}_stride"].item() for name in names), each["count"])
                for each in points
            ],
            [
                ((each["start"].item(),), (each["stride"].item(),), each["count"].item())
                for each in profile.lines[slice(*row["lines"])]
            ],
            (row["accesses"], row["captured"], row["in_lines"]),
            row["beyond"].tolist(),
        )
    for (name, group), points in naive.streams.items():
        found = known.pop((access(name), str(0xFFFF_FFFF if group is None else group[1])))  # type: ignore[index]
        three, captured = described(points, most)
        one, in_lines = described([(point[1],) for point in points], most)
        assert found[:3] == (three, one, (len(points), captured, in_lines))
        rest = points[min(captured, in_lines) :]
        assert found[3] == (beyond(rest) if rest else [0] * 5)
    assert not known


@settings(deadline=None, max_examples=60)
@given(seed=st.integers(0, 2**32), by=st.sampled_from(["site", "caller", "context"]), stack=st.booleans())
def test_what_follows_from_all_descriptors_is_exact(seed: int, by: str, stack: bool) -> None:
    options = LeapOptions(descriptors=PLENTY, by=by, stack=stack, compare=True, window=5)
    module, runner, naive = run(seed, options)
    truth = truth_of(runner.finished().exact)
    for found, counts in (
        (module.profile.dependences(), naive.pairs),
        (truth.pairs, naive.pairs),
        (truth.last, naive.last_pairs),
        (truth.window, naive.near),
    ):
        wanted = {
            (access((store, True)), access((load, False))): float(part)
            for (store, load), part in naive.frequencies(counts).items()
        }
        assert found == pytest.approx(wanted)
    strides = {each: stride for each, (stride, _) in truth.strided.items()}
    assert strides == {access(name): stride for name, stride in naive.strong().items()}
    result, _ = runner.result()
    assert result["comparison"]["within_10_percent"] in (100, 0)  # 0: no pair
    assert sum(row["window"] for row in result["errors"]) in (0, pytest.approx(100, abs=1))


@settings(deadline=None, max_examples=60)
@given(seed=st.integers(0, 2**32), most=st.sampled_from([1, 2, 30]), window=st.sampled_from([1, 5, 1024]))
def test_few_descriptors_beside_what_is_exact(seed: int, most: int, window: int) -> None:
    options = LeapOptions(descriptors=most, compare=True, window=window)
    module, runner, naive = run(seed, options)
    result, _ = runner.result()
    columns = {"exact": naive.pairs, "last": naive.last_pairs, "window": naive.near}
    parts = {name: naive.frequencies(pairs) for name, pairs in columns.items()}
    by_leap = {(store >> 1, load >> 1): Fraction(part) for (store, load), part in module.pairs.items()}
    rows = Counter[str]()
    for pair in set(by_leap) | set(parts["exact"]):
        ends = [module._instruction(2 * each) for each in pair]
        found = [100 * float(each.get(pair, 0)) for each in (by_leap, *parts.values())]
        rows[json.dumps([*ends, *(round(each, 2) for each in found), naive.executions[pair[1], False]])] += 1
    assert Counter(json.dumps(list(row.values())) for row in result["dependences"]) == rows
    by_leap = {pair: part.limit_denominator(10**6) for pair, part in by_leap.items()}
    wanted = [error_shares(parts["exact"], each) for each in (by_leap, parts["window"])]
    for row in result["errors"]:
        shares = [shares[row["error"]] for shares in wanted]
        assert [row["leap"], row["window"]] == [pytest.approx(100 * float(part), abs=0.051) for part in shares]
    for row in result["strided"]:
        exact = [
            round(100 * count / naive.executions[name], 1)
            for name, count in ((name, naive.strides[name, row["stride"]]) for name in naive.executions)
            if module._instruction(access(name)) == row["instruction"]
        ]
        assert row["exact"] in exact
    strong = [(module._instruction(access(name)), stride) for name, stride in naive.strong().items()]
    assert all(each in [(row["instruction"], row["stride"]) for row in result["strided"]] for each in strong)


@settings(deadline=None, max_examples=40)
@given(seeds=st.lists(st.integers(0, 2**32), min_size=1, max_size=3))
def test_runs_add(seeds: list[int]) -> None:
    options = LeapOptions(descriptors=PLENTY)
    runs = [run(seed, options) for seed in seeds]
    profiles: list[dict[str, Any]] = []
    for _, runner, _ in runs:
        result, _ = runner.result()
        profiles.append(json.loads(json.dumps({"result": result, "evidence": runner.merge_state, "options": {}})))
    merged = Leap.merge(profiles, None)
    executions, pairs = Counter[Any](), Counter[Any]()
    for _, _, naive in runs:
        executions.update(naive.executions)
        pairs.update({pair: count for pair, count in naive.pairs.items() if count})
    shown = runs[0][0]._instruction
    assert {
        (json.dumps(row["store"]), json.dumps(row["load"])): (row["percent"], row["loads"])
        for row in merged["result"]["dependences"]
    } == {
        (json.dumps(shown(2 * store)), json.dumps(shown(2 * load))): (
            pytest.approx(100 * count / executions[load, False], abs=0.01),
            executions[load, False],
        )
        for (store, load), count in pairs.items()
    }
    assert merged["result"]["summary"]["accesses"] == executions.total()
    assert Leap.merge([{**merged, "options": {}}], None) == merged
    if len(runs) == 1:
        assert merged["result"]["summary"] == profiles[0]["result"]["summary"]
        for table in ("dependences", "strided"):
            assert sorted(map(json.dumps, merged["result"][table])) == sorted(
                map(json.dumps, profiles[0]["result"][table])
            )


def test_the_stream_of_the_paper() -> None:
    stream = [(each,) for each in (*range(0, 81, 8), *range(4, 37, 4))]
    assert described(stream, 30) == ([((0,), (8,), 11), ((4,), (4,), 9)], 20)


def test_errors_are_counted_in_steps() -> None:
    exact = {(1, 2): 0.5, (3, 4): 0.25, (5, 6): 1.0}
    shares = errors(exact, {(1, 2): 0.5, (3, 4): 0.3, (7, 8): 1.0})
    assert {step: share for step, share in shares.items() if share} == {0: 25, 1: 25, -10: 25, 10: 25}


@pytest.mark.parametrize("given", [{"descriptors": "0"}, {"window": "0"}, {"by": "name"}])
def test_options_that_make_no_sense(given: dict[str, str]) -> None:
    with pytest.raises(TracekitError, match=next(iter(given))):
        make_options(LeapOptions, given)
