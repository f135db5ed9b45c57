"""The table of dependences makes few rows, or the JSON of all, as if all rows were there."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.verdicts import scenario_tables
from tests.verdicts.test_loop_rows import ALL, named
from tests.verdicts.test_verdicts_random import scenarios
from tracekit.dependence.names import ProfileNames
from tracekit.dependence.rows import DependenceReport
from tracekit.modules.table import Table, heaviest, with_rows
from tracekit.profiles.json import as_json

PLACES = (None, ("a.c", 100), ("a.c", 101), ("b.c", 100))


@st.composite
def tables(draw: st.DrawFn) -> tuple[DependenceReport, Any, Any]:
    """A report of a random profile whose dependences have random counts, kinds, and a loop's place."""
    scenario = draw(scenarios())
    profile = scenario_tables.profile(scenario)
    size = profile.dependences.size
    counts = st.integers(0, 3) | st.integers(0, 2**63)
    profile.dependences["count"] = draw(st.lists(counts, min_size=size, max_size=size))
    program = named(scenario_tables.program(scenario), draw(st.booleans()))
    report = DependenceReport(ProfileNames(program, profile), profile, draw(st.booleans()))
    return report, draw(st.sets(st.sampled_from(ALL))), draw(st.sampled_from(PLACES))


@settings(deadline=None, max_examples=200)
@given(tables(), st.integers(0, 9))
def test_the_heaviest_rows_are_those_of_all_rows_sorted(made: Any, limit: int) -> None:
    report, kinds, place = made
    table = report.table(kinds, place)
    rows = report.dependences(kinds, place)
    assert isinstance(table, Table)
    assert heaviest(table, limit) == sorted(rows, key=lambda row: -row["count"])[: limit or None]
    assert heaviest(rows, limit) == heaviest(table, limit)
    assert len(table) == len(rows)
    assert list(table) == table == rows


@settings(deadline=None, max_examples=200)
@given(tables())
def test_its_json_is_that_of_its_rows(made: Any) -> None:
    table = made[0].table(*made[1:])
    result = {"dependences": table, "summary": 1}
    text = as_json([{"module": "camp", "result": result}])
    assert text == as_json([{"module": "camp", "result": with_rows(result)}])
    assert json.loads(text)["result"]["dependences"] == table.rows()
    lines = text.splitlines()
    assert [line.rstrip(",") for line in lines if line.startswith('{"kind"')] == [
        json.dumps(row, ensure_ascii=False) for row in table.rows()
    ]


@settings(deadline=None, max_examples=200)
@given(tables(), st.data())
def test_levels_of_some_groups_are_those_that_all_have(made: Any, data: st.DataObject) -> None:
    report = made[0]
    number = st.integers(0, max(report.dependence_count - 1, 0))
    chosen = data.draw(st.lists(number, unique=True)) if report.dependence_count else []
    groups = np.array(chosen, np.int64)
    lists, list_of = report.levels()
    some, some_of = report.levels(groups)
    assert [some[some_of[group]] for group in chosen] == [lists[list_of[group]] for group in chosen]
