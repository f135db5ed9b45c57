"""What is valid at the levels of a profile, against its rows one by one."""

from __future__ import annotations

from typing import Any
from unittest import mock

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.naive.scenario import Scenario
from tests.verdicts import scenario_tables
from tests.verdicts.test_verdicts_random import scenarios
from tracekit.dependence.profile import DependenceKind
from tracekit.verdicts import levels as kept
from tracekit.verdicts.levels import ANY_CALL
from tracekit.verdicts.verdicts import Judge


def places(bench: Judge, row: Any) -> tuple[int, int]:
    """Where the two ends of a dependence are in the graph of the loop at a level."""
    dependence, node = bench.profile.dependences[row["dependence"]], np.array([row["node"]], np.int64)
    ends = (
        bench.levels.places(np.array([dependence[end]]), np.array([dependence[f"{end}_node"]]), node)
        for end in ("source", "destination")
    )
    tail, head = (int(place[0]) for place in ends)
    return tail, head


@settings(deadline=None, max_examples=150)
@given(scenarios(contexts=True), st.data(), st.sampled_from([1, 3, kept.TOGETHER]))
def test_what_is_valid_at_levels_is_what_the_rows_say(scenario: Scenario, data: Any, together: int) -> None:
    bench = Judge(scenario_tables.program(scenario), scenario_tables.profile(scenario))
    profile, levels, rows = bench.profile, bench.levels, bench.profile.levels.rows
    flags = st.lists(st.booleans(), min_size=len(profile.nodes), max_size=len(profile.nodes))
    nodes = np.array(data.draw(flags), np.bool_)
    wanted = np.array([data.draw(st.booleans()) for _ in profile.dependences], np.bool_)
    for node in range(len(profile.nodes)):
        mine = rows[rows["node"] == node]
        view = levels.view(node)
        assert view.dependences.tolist() == mine["dependence"].tolist()
        assert view.carried.tolist() == mine["inter"].tolist()
        assert levels.dependence[levels.rows(node)].tolist() == mine[mine["inter"]]["dependence"].tolist()
        assert list(zip(*(end.tolist() for end in levels.ends(node)))) == [places(bench, row) for row in mine]
        flows = [row for row in mine if profile.dependences["kind"][row["dependence"]] == DependenceKind.RAW]
        assert levels.changing(node) == sorted({places(bench, row)[1] for row in flows})
    valid = zip(*(column.tolist() for column in levels.valid(wanted, nodes)))
    chosen = [row for row in rows if nodes[row["node"]]]
    assert sorted(valid) == sorted((row["node"], row["dependence"]) for row in chosen if wanted[row["dependence"]])
    edges = {(int(row["node"]), *places(bench, row)) for row in chosen}
    with mock.patch.object(kept, "TOGETHER", together):
        found = levels.edges(nodes)
    assert list(map(tuple, found.T.tolist())) == sorted(
        (node, tail, head) for node, tail, head in edges if tail != head or tail == ANY_CALL
    )
