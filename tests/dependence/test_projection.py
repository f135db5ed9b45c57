"""camp's profile without its contexts: against a plain regrouping, and never judged better than with them."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, settings

from tests.naive.scenario import Context, Dependence, Scenario
from tests.verdicts import scenario_tables
from tests.verdicts.test_verdicts_random import scenarios
from tracekit.dependence.profile import LISTED_OBJECTS
from tracekit.dependence.projection import without_contexts
from tracekit.verdicts.verdicts import judge


def flattened(s: Scenario) -> Scenario:
    """The scenario as one without contexts would have found it."""
    loops = sorted({row.loop for row in s.contexts if row.loop is not None})
    node_of = {number: loops.index(row.loop) + 1 for number, row in enumerate(s.contexts) if row.loop is not None}
    flat = replace(s, contexts=[Context("root")], dependences=[])
    for loop in loops:
        rows = [row for row in s.contexts if row.loop == loop]
        externals = [row.external for row in rows if row.external is not None]
        flat.contexts.append(
            Context("loop", 0, loop, None, max(row.iterations for row in rows), min(externals, default=None))
        )
    groups: dict[tuple[str, int, int], list[Dependence]] = {}
    for each in s.dependences:
        groups.setdefault((each.kind, each.source, each.destination), []).append(each)
    for kind, source, destination in groups:
        members = groups[kind, source, destination]
        objects: tuple[int, ...] | None = None
        if all(each.objects is not None for each in members):
            objects = tuple(sorted({thing for each in members for thing in each.objects or ()}))
            objects = objects if len(objects) <= LISTED_OBJECTS else None
        levels: dict[int, tuple[bool, bool]] = {}
        for node, intra, inter in (level for each in members for level in each.levels):
            if node not in node_of:  # the level of a recursion, of which nothing is known without contexts
                continue
            before = levels.get(node_of[node], (False, False))
            levels[node_of[node]] = (before[0] or intra, before[1] or inter)
        flat.dependences.append(
            Dependence(kind, source, 0, destination, 0, objects, [(node, *flags) for node, flags in levels.items()])
        )
    flat.exposed = {(load, 0, node_of[level]) for load, _, level in s.exposed if level in node_of}
    return flat


@settings(max_examples=80, deadline=None)
@given(scenarios(contexts=True))
def test_contexts_are_dropped_as_a_plain_regrouping_drops_them(scenario: Scenario) -> None:
    tables = scenario_tables.program(scenario)
    ours = judge(tables, without_contexts(scenario_tables.profile(scenario)))
    theirs = judge(tables, scenario_tables.profile(flattened(scenario)))
    assert [scenario_tables.as_answer(one) for one in ours] == [scenario_tables.as_answer(one) for one in theirs]


@settings(max_examples=120, deadline=None)
@given(scenarios(contexts=True))
def test_no_loop_is_judged_better_without_contexts(scenario: Scenario) -> None:
    """Of dependences in objects: what would happen in none may become private with one of the same instructions."""
    scenario.dependences = [replace(each, objects=each.objects or None) for each in scenario.dependences]
    tables = scenario_tables.program(scenario)
    with_contexts = scenario_tables.profile(scenario)
    without = without_contexts(with_contexts)
    worst: dict[int, int] = {}
    for answer in judge(tables, with_contexts):
        loop = int(with_contexts.nodes["loop"][answer.node])
        worst[loop] = max(worst.get(loop, 0), answer.verdict.rank)
    for answer in judge(tables, without):
        assert answer.verdict.rank >= worst[int(without.nodes["loop"][answer.node])]
