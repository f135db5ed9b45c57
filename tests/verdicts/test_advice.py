"""Stages and remedies against the naive reference, on random small programs and profiles."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.naive import advise as naive
from tests.naive.scenario import Scenario
from tests.verdicts import scenario_tables
from tests.verdicts.test_verdicts_known import HEADER, LOOP, flow, list_walk, loop
from tests.verdicts.test_verdicts_random import scenarios
from tracekit.verdicts.blocker_details import BlockerDetails
from tracekit.verdicts.carried import PlacedBlocker
from tracekit.verdicts.loop_facts import Reason
from tracekit.verdicts.names import VerdictNames, as_in_source
from tracekit.verdicts.pipeline import stages
from tracekit.verdicts.verdicts import Judge, judge


def found_stages(scenario: Scenario, level: int) -> list[naive.Stage]:
    bench = Judge(scenario_tables.program(scenario), scenario_tables.profile(scenario))
    return [
        (stage.parallel, frozenset(stage.operations), frozenset(stage.recurrences)) for stage in stages(bench, level)
    ]


def test_a_list_walk_follows_the_pointers_and_then_works_in_parallel() -> None:
    scenario = list_walk()
    expected = [(False, frozenset({1}), frozenset({0})), (True, frozenset({0}), frozenset())]
    assert naive.stages(scenario, LOOP) == expected
    assert found_stages(scenario, LOOP) == expected


def test_parallel_components_side_by_side_are_one_stage() -> None:
    scenario = loop("load", "store", "load", "store")
    scenario.edges = [
        ("register", ("phi", 0), ("branch", HEADER)),
        ("register", ("op", 0), ("op", 1)),
        ("register", ("op", 2), ("op", 3)),
    ]
    scenario.dependences = [flow("RAW", 1, 0, carried=True)]
    expected = [(False, frozenset({0, 1}), frozenset()), (True, frozenset({2, 3}), frozenset())]
    assert found_stages(scenario, LOOP) == naive.stages(scenario, LOOP) == expected


def test_parallel_components_with_a_carried_dependence_between_them_are_two_stages() -> None:
    """a[i + 1] = b[i]; c[i] = a[i]: each is parallel, both together are not."""
    scenario = loop("load", "store", "load", "store")
    scenario.edges = [
        ("register", ("phi", 0), ("branch", HEADER)),
        ("register", ("op", 0), ("op", 1)),
        ("register", ("op", 2), ("op", 3)),
    ]
    scenario.dependences = [flow("RAW", 1, 2, carried=True)]
    expected = [(True, frozenset({0, 1}), frozenset()), (True, frozenset({2, 3}), frozenset())]
    assert found_stages(scenario, LOOP) == naive.stages(scenario, LOOP) == expected


@settings(max_examples=200, deadline=None)
@given(st.booleans().flatmap(lambda contexts: scenarios(contexts)))
def test_stages_are_those_of_the_naive_reference(scenario: Scenario) -> None:
    for level, context in enumerate(scenario.contexts):
        if context.kind == "loop":
            assert found_stages(scenario, level) == naive.stages(scenario, level)


def with_names(scenario: Scenario) -> Any:
    """The scenario's program, in which an instruction is shown by its number."""

    def instruction(op: int) -> dict[str, Any]:
        return {"id": f"0:{op}", "kind": "", "function": "f", "file": "f.c", "line": op, "column": 0, "inlined_at": []}

    def shown_loop(number: int) -> dict[str, Any]:
        return {"function": "f", "file": "f.c", "line": number, "column": 0, "depth": 1}

    def source_loop(number: int) -> dict[str, Any]:
        return {**shown_loop(number), "inlined_at": []}

    def row_place(number: int) -> dict[str, Any]:
        return {"file": "f.c", "line": number, "column": 0}

    places = {"phi_place": row_place, "exit_place": row_place}
    names = {"instruction": instruction, "loop": shown_loop, "source_loop": source_loop, **places}
    tables = vars(scenario_tables.program(scenario))
    return SimpleNamespace(**tables, **names, function_name=lambda function: "f")


@settings(max_examples=200, deadline=None)
@given(st.booleans().flatmap(lambda contexts: scenarios(contexts)), st.integers(1, 100))
def test_details_of_blockers_are_those_of_the_naive_reference(scenario: Scenario, iterations: int) -> None:
    program, profile = with_names(scenario), scenario_tables.profile(scenario)
    judgements = judge(program, profile)
    details = BlockerDetails(Judge(program, profile), VerdictNames(program, profile), 50.0)
    for judgement in judgements:
        blockers = [blocker for blocker in judgement.blocked_by if blocker.reason is Reason.DEPENDENCE]
        rows = details.rows([[PlacedBlocker(blocker, judgement.node)] for blocker in blockers], iterations)
        for blocker, row in zip(blockers, rows, strict=True):
            carried = [
                each
                for each in scenario.dependences
                for at, _, inter in each.levels
                if at == judgement.node
                and inter
                and (each.source, each.destination) == (blocker.source, blocker.destination)
            ]
            assert row["executions"] == len(carried)
            assert row["rare"] == (2 * len(carried) <= iterations)
            assert set(row["kinds"]) == {each.kind for each in carried}
            expected = naive.remedy(scenario, judgement.node, blocker.source, blocker.destination)
            assert (row["remedy"] and row["remedy"]["kind"]) == expected


def test_a_variable_whose_place_is_guessed_is_one_in_all_copies_of_its_loop() -> None:
    def copy(line: int, **more: Any) -> Any:
        place = {"kind": "register", "name": "most", "file": "a.c", "line": line, "column": 0}
        return as_in_source([{"object": {**place, **more}, "operator": "max"}])

    assert copy(199, nearby=True) == copy(201, nearby=True)
    assert copy(199) != copy(201)
    assert copy(199, nearby=True, name="") != copy(201, nearby=True, name="")
    assert copy(199, nearby=True) != copy(199, nearby=True, name="least")
