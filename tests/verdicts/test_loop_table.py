"""The table of loops makes the rows that are asked for, as if all were there."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.naive.scenario import Scenario
from tests.verdicts.test_loop_rows import report
from tests.verdicts.test_verdicts_random import scenarios
from tracekit.modules.table import column, heaviest, with_rows
from tracekit.profiles.json import as_json
from tracekit.verdicts import loop_rows
from tracekit.verdicts.loop_rows import LoopReport


def made(scenario: Scenario, accesses: list[int], same_place: bool) -> LoopReport:
    found = report(scenario, same_place=same_place)
    found.profile.nodes["accesses"] = (accesses * len(scenario.contexts))[: len(scenario.contexts)]
    return found


ACCESSES = st.lists(st.integers(0, 3), min_size=1, max_size=5)


@settings(deadline=None, max_examples=100)
@given(scenarios(contexts=True), ACCESSES, st.booleans(), st.integers(0, 4))
def test_the_hottest_loops_are_those_of_all_rows_sorted(
    scenario: Scenario, accesses: list[int], same_place: bool, limit: int
) -> None:
    table = made(scenario, accesses, same_place).loops()
    rows = table.rows()
    assert heaviest(table, limit, "accesses") == heaviest(rows, limit, "accesses")
    assert column(table, "loop") == column(rows, "loop")
    assert column(table, "verdict") == [row["verdict"] for row in rows]
    assert len(table) == len(rows)
    text = as_json([{"module": "camp", "result": {"loops": table}}])
    assert text == as_json([{"module": "camp", "result": with_rows({"loops": table})}])


def test_only_the_rows_that_are_shown_are_made(monkeypatch: Any) -> None:
    from tests.verdicts.test_loop_rows import two_copies

    shown = []
    row = LoopReport.loop_row
    monkeypatch.setattr(
        loop_rows.LoopReport, "loop_row", lambda self, judgements: shown.append(judgements) or row(self, judgements)
    )
    table = report(two_copies()).loops()
    assert (len(table), column(table, "loop")[1]["line"], shown) == (2, 101, [])
    assert len(table.heaviest(1)) == len(shown) == 1
