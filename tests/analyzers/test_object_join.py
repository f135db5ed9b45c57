"""Joined profiles of object_lifetime, points_to and privateer: against naive joins of their references, and laws."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.analyzers.test_object_lifetime import fed, fresh, random_runs
from tests.analyzers.test_privateer import expected_loops, operators_of, privateer, shown_loops
from tests.naive import object_join
from tests.naive.object_rows import ObjectRows
from tests.naive.objects import NaiveObjects, around
from tests.naive.points_to import NaivePointsTo
from tests.naive.privateer import NaiveSets
from tracekit.analyzers.object_lifetime import ObjectLifetime
from tracekit.analyzers.points_to import PointsTo, PointsToOptions
from tracekit.analyzers.privateer import Privateer
from tracekit.module import Module
from tracekit.modules.options import NoOptions
from tracekit.objects.profile import from_merge_state
from tracekit.profiles.json import as_json

RUNS = st.tuples(st.integers(0, 2**32), st.integers(1, 2), st.integers(2, 3))
"""Seed, streams, runs."""

Json = dict[str, Any]


def lifetimes(made: Any) -> ObjectLifetime:
    return ObjectLifetime(made.program, NoOptions())


def points_to(made: Any) -> PointsTo:
    return PointsTo(made.program, PointsToOptions(accesses=True))


MODULES = (lifetimes, points_to, privateer)
NAMES: dict[type[Module], str] = {
    ObjectLifetime: "object_lifetime",
    PointsTo: "points_to",
    Privateer: "privateer",
}
"""Under these the modules' own tests compile the same kernels."""


def kept(module: Module, events: Any, length: int = 50) -> tuple[Json, frozenset[int]]:
    """What a profile file of a run holds, read back from its text; and the calls that never let an object grow."""
    name = next(name for kind, name in NAMES.items() if isinstance(module, kind))
    runner = fed(module, name, events, length)
    result, _ = runner.result()
    profile = {"options": dataclasses.asdict(module.options), "result": result, "evidence": runner.merge_state}
    state = runner._workers[0].state
    return read_back(profile), fresh(module, getattr(state, "lifetimes", state))


def read_back(profile: Json) -> Json:
    found: Json = json.loads(as_json([profile]))
    return found


def joined(module: Module, parts: Sequence[Json]) -> Json:
    return read_back({"options": parts[0]["options"], **type(module).merge(parts, module.program)})


def joined_runs(
    drawn: tuple[int, int, int], make: Callable[[Any], Any], naive: Callable[[Any, frozenset[int]], Any]
) -> tuple[Any, list[Json], Json, list[Any]]:
    """Of runs that were drawn: a module, the profile of each run, the joined one, the reference of each."""
    made, runs = random_runs(*drawn)
    module, parts, references = make(made), [], []
    for events in runs:
        profile, calls = kept(make(made), events)
        parts.append(profile)
        references.append(naive(made.program, calls))
        references[-1].feed(events)
    return module, parts, joined(module, parts), references


def rows_of(module: Any, profile: Json) -> ObjectRows:
    found = from_merge_state(profile["evidence"], module.program, module.tables)
    return ObjectRows(module.program, found)


# -- against the references ------------------------------------------------------------------------


@settings(deadline=None, max_examples=60)
@given(RUNS)
def test_joined_lifetimes_are_those_of_all_runs(drawn: tuple[int, int, int]) -> None:
    module, _, both, naive = joined_runs(drawn, lifetimes, NaiveObjects)
    found = rows_of(module, both).lifetimes()
    assert found == object_join.lifetimes(naive)
    assert len(both["result"]["sites"]) == len(found)
    for site, here in ((site, here) for run in naive for site, here in run.lifetimes().items()):
        assert found[site][3] in around(here[3])  # no run's objects live longer than the joined profile says


@settings(deadline=None, max_examples=60)
@given(RUNS)
def test_joined_pointers_are_those_of_all_runs(drawn: tuple[int, int, int]) -> None:
    module, parts, both, naive = joined_runs(drawn, points_to, NaivePointsTo)
    rows, expected = rows_of(module, both), object_join.pointers(naive)
    assert (rows.found(), rows.plain(), rows.never_dereferenced()) == expected
    for table, column in (("pointers", "count"), ("accesses", "unknown")):
        assert sum(row[column] for row in both["result"][table]) == sum(
            row[column] for part in parts for row in part["result"][table]
        )


@settings(deadline=None, max_examples=60)
@given(RUNS)
def test_joined_sets_are_those_of_all_accesses(drawn: tuple[int, int, int]) -> None:
    module, _, both, naive = joined_runs(
        drawn, privateer, lambda program, calls: NaiveSets(program, calls, operators_of(program))
    )
    module.profile = from_merge_state(both["evidence"], module.program, module.tables)
    assert shown_loops(both["result"]) == expected_loops(module, naive)
    claims = object_join.loops(naive)
    for run in naive:
        for loop, row in object_join.loops([run]).items():
            here, whole = run.sets[loop], claims[loop]
            assert {each for each in whole["reductions"] if each[0] in here} <= row["reductions"]
            assert whole["short_lived"] & here.keys() & run.lifetimes().keys() <= row["short_lived"]
            assert row["writes"] <= whole["writes"]


@settings(deadline=None, max_examples=40)
@given(RUNS, st.integers(1, 4))
def test_a_limit_may_be_set_before_joining_or_after(drawn: tuple[int, int, int], most: int) -> None:
    made, runs = random_runs(*drawn)
    runs = [[event for event in events if event[1] > 2] for events in runs]  # see test_points_to.py
    assume(any(runs) and all(runs))
    limited = PointsTo(made.program, PointsToOptions(accesses=True, most=most))
    early = [kept(PointsTo(made.program, limited.options), events)[0] for events in runs]
    late = [{**kept(points_to(made), events)[0], "options": dataclasses.asdict(limited.options)} for events in runs]
    assert joined(limited, early) == joined(limited, late)


# -- laws ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", MODULES)
@settings(deadline=None, max_examples=30)
@given(seed=st.integers(0, 2**32), streams=st.integers(1, 2))
def test_joining_is_associative_and_commutative_to_the_byte(
    make: Callable[[Any], Module], seed: int, streams: int
) -> None:
    made, runs = random_runs(seed, streams, 3)
    first, second, third = (kept(make(made), events)[0] for events in runs)
    module = make(made)
    expected = as_json([joined(module, [first, second, third])])
    assert as_json([joined(module, [third, first, second])]) == expected
    assert as_json([joined(module, [joined(module, [second, first]), third])]) == expected
    assert as_json([joined(module, [first, joined(module, [third, second])])]) == expected


COUNTS = {
    "objects",
    "bytes",
    "never_freed",
    "count",
    "start",
    "interior",
    "past_end",
    "boundary",
    "dangling",
    "null",
    "elsewhere",
    "never_dereferenced",
    "unknown",
    "accesses",
}


def halved(value: Any) -> Any:
    """A result with half of each count."""
    if isinstance(value, list):
        return [halved(each) for each in value]
    if isinstance(value, dict):
        return {
            key: part // 2 if key in COUNTS and isinstance(part, int) else halved(part) for key, part in value.items()
        }
    return value


@pytest.mark.parametrize("make", MODULES)
@settings(deadline=None, max_examples=30)
@given(seed=st.integers(0, 2**32), streams=st.integers(1, 2))
def test_one_joined_is_itself_and_twice_the_same_claims_the_same(
    make: Callable[[Any], Module], seed: int, streams: int
) -> None:
    made, (events,) = random_runs(seed, streams, 1)
    module = make(made)
    profile, _ = kept(module, events)
    assert as_json([joined(module, [profile])]) == as_json([profile])
    twice = joined(module, [profile, profile])
    assert halved(twice["result"]) == profile["result"]
    assert twice["result"] != profile["result"] or not any(profile["result"].values())
