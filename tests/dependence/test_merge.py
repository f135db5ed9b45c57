"""The union of dependence profiles: verdicts are those of all dependences together, in any order of joining."""

from __future__ import annotations

import copy
import itertools
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.naive import verdicts as naive
from tests.naive.scenario import Block, Context, Dependence, Loop, Op, Scenario
from tests.verdicts import scenario_tables
from tests.verdicts.test_verdicts_random import _add_dependences, scenarios
from tracekit.dependence.merge import unite
from tracekit.dependence.profile import LISTED_OBJECTS, DependenceProfile
from tracekit.formats.events import NONE
from tracekit.verdicts.verdicts import judge


@st.composite
def runs(draw: st.DrawFn) -> list[Scenario]:
    """Up to three runs of one program: other dependences, iterations and external calls in each."""
    first = draw(st.booleans().flatmap(lambda contexts: scenarios(contexts)))
    found = [first]
    for _ in range(draw(st.integers(1, 2))):
        other = copy.deepcopy(first)
        other.dependences, other.exposed = [], set()
        _add_dependences(draw, other)
        for context in other.contexts:
            if context.kind == "loop":
                context.iterations = draw(st.integers(1, 3))
                context.external = draw(st.none() | st.integers(0, len(other.ops) - 1))
        found.append(other)
    for scenario in found:
        for each in scenario.dependences:
            each.objects = each.objects or None  # a dependence happens in some object
        scenario.dependences = list(_one_each(scenario.dependences).values())
    return found


def _key(each: Dependence) -> tuple[Any, ...]:
    return (each.kind, each.source, each.source_context, each.destination, each.destination_context)


def _one_each(dependences: list[Dependence]) -> dict[tuple[Any, ...], Dependence]:
    """Dependences that are the same become one: their objects and levels joined."""
    found: dict[tuple[Any, ...], Dependence] = {}
    for each in copy.deepcopy(dependences):
        known = found.setdefault(_key(each), each)
        if known is each:
            each.levels = _joined_levels(each.levels)
            continue
        both = None if known.objects is None or each.objects is None else (*known.objects, *each.objects)
        known.objects = None if both is None else tuple(sorted(set(both)))
        known.levels = _joined_levels([*known.levels, *each.levels])
    for each in found.values():
        if each.objects is not None and len(each.objects) > LISTED_OBJECTS:
            each.objects = None
    return found


def _joined_levels(levels: list[tuple[int, bool, bool]]) -> list[tuple[int, bool, bool]]:
    joined: dict[int, tuple[bool, bool]] = {}
    for level, intra, inter in levels:
        before = joined.get(level, (False, False))
        joined[level] = (before[0] or intra, before[1] or inter)
    return [(level, *flags) for level, flags in sorted(joined.items())]


def naive_union(scenarios: list[Scenario]) -> Scenario:
    """What one run that does all of it would have shown."""
    union = copy.deepcopy(scenarios[0])
    union.dependences = list(_one_each([each for s in scenarios for each in s.dependences]).values())
    union.exposed = set().union(*(s.exposed for s in scenarios))
    union.counts = {
        op: sum(s.counts.get(op, 0) for s in scenarios) for op in set().union(*(s.counts for s in scenarios))
    }
    for number, context in enumerate(union.contexts):
        others = [s.contexts[number] for s in scenarios]
        context.iterations = max(other.iterations for other in others)
        externals = [other.external for other in others if other.external is not None]
        context.external = min(externals, default=None)
    return union


def tables(scenario: Scenario) -> DependenceProfile:
    """The profile of a scenario, with objects that have sites and rows that the union can tell apart."""
    profile = scenario_tables.profile(scenario)
    profile.objects["site"] = [scenario_tables.own_site(scenario, number) for number in range(len(profile.objects))]
    profile.nodes["function"] = np.arange(len(profile.nodes))
    return profile


def same(first: DependenceProfile, second: DependenceProfile) -> bool:
    return all(
        np.array_equal(getattr(first, name), getattr(second, name))
        for name in ("nodes", "dependences", "exposed", "accesses", "objects")
    ) and all(map(np.array_equal, _arrays(first), _arrays(second)))


def _arrays(profile: DependenceProfile) -> list[Any]:
    """Those of its levels."""
    return [profile.levels.carried, profile.levels.within, *profile.levels.sets, profile.levels.rows]


def answers(scenario: Scenario, profile: DependenceProfile) -> dict[int, Any]:
    """Function (the node of the scenario) -> verdict, what blocks it, what is carried, kinds of steps."""
    found = {}
    program = scenario_tables.program(scenario)
    numbers = {scenario_tables.own_site(scenario, number): number for number in range(len(scenario.objects))}
    for each in judge(program, profile):
        answer = scenario_tables.as_answer(each)
        site = {row: numbers[int(profile.objects["site"][row])] for row in range(len(profile.objects))}
        transformations = {
            (kind, where, what if where != "memory" or what is None else site[what], operator)
            for kind, where, what, operator in answer.transformations
        }
        found[int(profile.nodes["function"][each.node])] = (
            answer.verdict,
            transformations,
            answer.blocked_by,
            answer.carried,
        )
    return found


@settings(max_examples=200, deadline=None)
@given(runs())
def test_verdicts_of_a_union_are_those_of_all_dependences(scenarios: list[Scenario]) -> None:
    found = answers(scenarios[0], unite([tables(s) for s in scenarios]))
    together = naive_union(scenarios)
    expected = {}
    for level in found:
        answer = naive.judge(together, level)
        expected[level] = (answer.verdict, answer.transformations, answer.blocked_by, answer.carried)
    assert found == expected


@settings(max_examples=100, deadline=None)
@given(runs().filter(lambda found: len(found) == 3))
def test_the_order_of_joining_does_not_matter(scenarios: list[Scenario]) -> None:
    profiles = [tables(s) for s in scenarios]
    expected = unite(profiles)
    for order in itertools.permutations(profiles):
        assert same(unite(order), expected)
    first, second, third = profiles
    assert same(unite([unite([first, second]), third]), expected)
    assert same(unite([first, unite([second, third])]), expected)


def test_counts_add_and_distances_keep_their_extremes() -> None:
    scenario = Scenario(
        ops=[Op("load", 0), Op("store", 0)],
        blocks=[Block(0, 0), Block(0)],
        loops=[Loop(0, 0)],
        contexts=[Context("root"), Context("loop", 0, 0)],
        dependences=[Dependence("RAW", 1, 0, 0, 0, (0,), [(1, False, True)])],
        objects=["global"],
    )
    first = tables(scenario)
    scenario.dependences[0].levels = [(1, True, True)]
    second = tables(scenario)
    first.dependences["count"], second.dependences["count"] = 3, 4
    first.levels.carried[["min_distance", "max_distance", "carried"]] = 2, 5, 2
    second.levels.carried[["min_distance", "max_distance", "carried"]] = 1, 4, 4
    first.nodes["invocations"][1], second.nodes["invocations"][1] = 5, 6
    united = unite([first, second])
    assert united.dependences["count"].tolist() == [7]
    rows = united.levels.rows
    assert rows[["intra", "inter", "min_distance", "max_distance"]].tolist() == [(True, True, 1, 5)]
    assert rows["carried"].tolist() == [2 + 4]
    assert united.nodes["invocations"].tolist() == [0, 11]


def test_nodes_that_only_one_run_has_are_placed_in_canonical_order() -> None:
    scenario = Scenario(
        contexts=[Context("root"), Context("loop", 0, 1), Context("loop", 0, 0)],
        loops=[Loop(0, 0), Loop(0, 0)],
    )
    first, second = tables(scenario), tables(scenario)
    first, second = _only(first, [0, 1]), _only(second, [0, 2])
    assert unite([first, second]).nodes["loop"].tolist() == [NONE, 0, 1]
    assert same(unite([first, second]), unite([second, first]))


def _only(profile: DependenceProfile, nodes: list[int]) -> DependenceProfile:
    profile.nodes["function"] = 0
    return DependenceProfile(
        profile.nodes[nodes], profile.dependences, profile.levels, profile.exposed, profile.accesses, profile.objects, 0
    )
