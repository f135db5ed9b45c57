"""The components of many loops' graphs are those of each graph by itself, however many are looked at together."""

from __future__ import annotations

from unittest import mock

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.naive.scenario import Scenario
from tests.verdicts import scenario_tables
from tests.verdicts.test_verdicts_random import scenarios
from tracekit.contexts.nodes import LOOPS
from tracekit.program.loop_graph import LoopGraph
from tracekit.verdicts import whole_graph
from tracekit.verdicts.levels import ANY_CALL
from tracekit.verdicts.verdicts import Judge
from tracekit.verdicts.whole_graph import Dependences


def by_itself(graph: LoopGraph, dependences: Dependences) -> int:
    ends = np.append(dependences.tails, dependences.heads)
    if not graph.calls.size and (ends == ANY_CALL).any():
        return 0
    labels = whole_graph.whole_graph(graph, dependences).labels
    return len({label for label, works in zip(labels.tolist(), graph.works.tolist()) if works})


@settings(deadline=None, max_examples=100)
@given(scenarios(contexts=True), st.sampled_from([1, 20, whole_graph.TOGETHER]))
def test_components_of_many_graphs_are_those_of_each(scenario: Scenario, together: int) -> None:
    bench = Judge(scenario_tables.program(scenario), scenario_tables.profile(scenario))
    nodes = bench.profile.nodes
    graphs = [
        (bench.graphs[int(nodes["loop"][node])], Dependences(*bench.levels.ends(node), bench.tied_calls(node)))
        for node in np.flatnonzero(np.isin(nodes["kind"], LOOPS)).tolist()
    ]
    with mock.patch.object(whole_graph, "TOGETHER", together):
        assert whole_graph.working_components(graphs) == [by_itself(*each) for each in graphs]
