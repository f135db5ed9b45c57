"""The rows of a profile: their order, their merging, their names."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.naive.scenario import Block, Context, Dependence, Loop, Op, Scenario
from tests.verdicts import scenario_tables
from tests.verdicts.test_verdicts_random import scenarios
from tracekit.dependence.level_rows import levels_of
from tracekit.dependence.profile import DependenceProfile
from tracekit.formats.events import NONE
from tracekit.verdicts.loop_rows import LoopReport
from tracekit.verdicts.verdicts import judge

ALL = ("RAW", "WAR", "WAW")


def named(tables: Any, same_place: bool = False) -> Any:
    """A program whose operation k stands in line 10 + k, and whose loop k in line 100 + k (or all in one line)."""

    def instruction(op: int, free: bool = False) -> dict[str, Any]:
        return {
            "id": f"unit:{op}",
            "kind": "load",
            "function": "f",
            "file": "a.c",
            "line": 10 + op,
            "column": 1,
            "inlined_at": [],
        }

    def loop(number: int) -> dict[str, Any]:
        line = 100 if same_place else 100 + number
        return {"function": "f", "file": "a.c", "line": line, "column": 5, "depth": 1}

    program = SimpleNamespace(**vars(tables))
    program.instruction, program.loop = instruction, loop
    program.function_name = lambda function: "main"
    program.phi_place = program.exit_place = lambda row: {"file": "", "line": 0, "column": 0}
    program.source_names = SimpleNamespace(compilation="")
    nameless = [{"name": 0, "source_name": 0}] * max(len(tables.globals), 1)
    program.globals = scenario_tables.table("globals", nameless)
    program.locations = program.sources = np.zeros(0)
    for rows in (program.blocks, program.loop_exits, program.phis):
        rows["location"] = NONE
    program.loops["location"] = NONE
    return program


def report(
    scenario: Scenario, profile: DependenceProfile | None = None, contexts: bool = True, same_place: bool = False
) -> LoopReport:
    program = named(scenario_tables.program(scenario), same_place)
    profile = profile or scenario_tables.profile(scenario)
    return LoopReport(program, profile, judge(program, profile), contexts)


def two_copies() -> Scenario:
    """A loop that the compiler doubled: the first copy carries a dependence, the second ran once."""
    s = Scenario(
        ops=[Op("load", 0), Op("store", 0), Op("load", 1)],
        blocks=[Block(0, 0), Block(0, 1)],
        loops=[Loop(0, 0, exits=[0]), Loop(0, 1, exits=[1])],
        edges=[("register", ("op", 0), ("op", 1))],
        contexts=[Context("root"), Context("loop", 0, 0, iterations=7), Context("loop", 0, 1, iterations=1)],
        objects=["heap"],
    )
    s.dependences = [Dependence("RAW", 1, 1, 0, 1, (0,), [(1, False, True)])]
    return s


def test_loops_of_one_place_are_one_loop_with_the_worst_verdict() -> None:
    (row,) = report(two_copies(), same_place=True).loops()
    assert row["verdict"] == "sequential"
    assert row["carried"] == {"raw": 1, "war": 0, "waw": 0}
    assert row["context"] == {"id": 1, "root": "main", "path": ["loop f:100"]}
    assert [blocker["reason"] for blocker in row["blocked_by"]] == ["dependence"]
    assert report(two_copies(), same_place=True).parallel_loops() == 0


def test_loops_of_two_places_are_two_rows_in_the_order_of_lines() -> None:
    rows = report(two_copies()).loops()
    assert [(row["loop"]["line"], row["verdict"]) for row in rows] == [(100, "sequential"), (101, "not-exercised")]


def test_a_dependence_row_has_everything_that_the_design_names() -> None:
    (row,) = report(two_copies()).dependences(ALL, None)
    assert row["kind"] == "RAW"
    assert (row["source"]["line"], row["destination"]["line"]) == (11, 10)
    assert row["source_context"] == row["destination_context"] == {"id": 1, "root": "main", "path": ["loop f:100"]}
    assert row["levels"] == [
        {
            "loop": {"function": "f", "file": "a.c", "line": 100, "column": 5, "depth": 1},
            "intra": False,
            "inter": True,
            "min_distance": 1,
            "max_distance": 1,
        }
    ]
    assert row["count"] == 3


def test_distances_are_null_unless_inter() -> None:
    s = two_copies()
    s.dependences[0].levels = [(1, True, False)]
    (row,) = report(s).dependences(ALL, None)
    assert (row["levels"][0]["min_distance"], row["levels"][0]["max_distance"]) == (None, None)


def test_lamp_has_no_contexts() -> None:
    (row,) = report(two_copies(), contexts=False).dependences(ALL, None)
    assert row["source_context"] is None
    assert report(two_copies(), contexts=False).loops()[0]["context"] is None


def test_rows_can_be_limited_to_a_kind_or_a_loop() -> None:
    made = report(two_copies())
    assert made.dependences(("WAR",), None) == []
    assert made.dependences(ALL, ("a.c", 101)) == []
    assert len(made.dependences(ALL, ("a.c", 100))) == 1
    assert made.dependences(ALL, ("b/a.c", 100)) == []


def test_an_access_of_no_instruction_can_be_shown_and_judged() -> None:
    s = two_copies()
    profile = scenario_tables.profile(s)
    profile.dependences["source"] = NONE
    (row,) = report(s, profile).dependences(ALL, None)
    assert row["source"]["id"] is None
    assert report(s, profile).loops()[0]["verdict"] == "sequential"


@settings(max_examples=40, deadline=None)
@given(scenarios(contexts=True), st.randoms(use_true_random=False))
def test_the_rows_do_not_depend_on_the_order_of_discovery(scenario: Scenario, random: Any) -> None:
    profile = scenario_tables.profile(scenario)
    order = list(range(len(profile.dependences)))
    random.shuffle(order)
    place = np.empty(len(order), np.uint32)
    place[order] = np.arange(len(order))
    levels = profile.levels.rows
    levels = levels[random.sample(range(len(levels)), len(levels))]
    levels["dependence"] = place[levels["dependence"]]
    shuffled = replace(
        profile,
        dependences=profile.dependences[order],
        levels=levels_of(levels, len(order)),
        exposed=profile.exposed[::-1].copy(),
    )
    one, other = report(scenario), report(scenario, shuffled)
    assert one.dependences(ALL, None) == other.dependences(ALL, None)
    assert one.loops() == other.loops()
    assert one.dependence_count == other.dependence_count == len(one.dependences(ALL, None))


@settings(max_examples=40, deadline=None)
@given(scenarios(contexts=True))
def test_carried_numbers_are_those_of_the_rows(scenario: Scenario) -> None:
    made = report(scenario)
    for row in made.loops():
        for kind, count in row["carried"].items():
            carried = sum(
                each["kind"] == kind.upper()
                and any(level["inter"] and level["loop"] == row["loop"] for level in each["levels"])
                for each in scenario_rows(scenario, made)
            )
            assert carried == count


def scenario_rows(scenario: Scenario, made: LoopReport) -> list[dict[str, Any]]:
    """The dependences of a scenario as they were made, not merged."""
    return [
        {
            "kind": each.kind,
            "levels": [{"loop": made.names.level(node), "inter": inter} for node, _, inter in each.levels],
        }
        for each in scenario.dependences
    ]
