"""Strongly connected components against mutual reachability."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.naive.verdicts import reachable
from tracekit.program.components import components


@st.composite
def graphs(draw: st.DrawFn) -> tuple[int, list[tuple[int, int]]]:
    nodes = draw(st.integers(1, 12))
    node = st.integers(0, nodes - 1)
    return nodes, draw(st.lists(st.tuples(node, node), max_size=30))


@given(graphs())
def test_components_are_mutual_reachability_and_topological(graph: tuple[int, list[tuple[int, int]]]) -> None:
    nodes, edges = graph
    ends = np.array(edges, np.int64).reshape(-1, 2)
    labels = components(nodes, ends[:, 0], ends[:, 1])
    named = {(("op", tail), ("op", head)) for tail, head in edges}
    reach = [{number for _, number in reachable(("op", node), named)} for node in range(nodes)]
    for one in range(nodes):
        for other in range(nodes):
            assert (labels[one] == labels[other]) == (other in reach[one] and one in reach[other])
    assert all(labels[tail] >= labels[head] for tail, head in edges)
    assert sorted(set(labels.tolist())) == list(range(labels.max() + 1))


def test_a_long_path_does_not_recurse() -> None:
    nodes = 200_000
    path = np.arange(nodes - 1)
    assert components(nodes, path, path + 1).max() == nodes - 1
    assert components(nodes, np.append(path, nodes - 1), np.append(path + 1, 0)).max() == 0


def test_edges_must_lie_inside() -> None:
    with pytest.raises(ValueError, match="leaves the 2 nodes"):
        components(2, np.array([0]), np.array([2]))
    with pytest.raises(ValueError, match="1 tails but 0 heads"):
        components(2, np.array([0]), np.array([], np.int64))
