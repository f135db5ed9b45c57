"""Subtrees of a forest in pre-order, against walking from each node to its root."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tracekit.contexts.subtrees import count_around, subtree_ends
from tracekit.formats.events import NONE


@st.composite
def forests(draw: st.DrawFn) -> list[int]:
    """The parents of a forest's nodes in pre-order, NONE at roots: each stands below the last one or one around it."""
    parents: list[int] = []
    for row in range(draw(st.integers(0, 30))):
        around = path(parents, row - 1) if row else []
        parents.append(draw(st.sampled_from([*around, NONE])))
    return parents


def path(parents: list[int], row: int) -> list[int]:
    """A node and all around it."""
    nodes = [row]
    while parents[nodes[-1]] != NONE:
        nodes.append(parents[nodes[-1]])
    return nodes


@given(forests(), st.randoms(use_true_random=False))
def test_subtrees_and_what_is_around_each_node(parents: list[int], random: np.random.Generator) -> None:
    ends = subtree_ends(np.array(parents, np.uint32))
    paths = [path(parents, row) for row in range(len(parents))]
    for node, end in enumerate(ends.tolist()):
        assert [row for row in range(len(parents)) if node in paths[row]] == list(range(node, end))
    are_counted = np.array([random.random() < 0.5 for _ in parents], np.bool_)
    assert count_around(ends, are_counted).tolist() == [int(are_counted[nodes].sum()) for nodes in paths]


def test_a_long_chain() -> None:
    parents = np.arange(-1, 9999).astype(np.uint32)
    ends = subtree_ends(parents)
    assert (ends == 10_000).all() and (count_around(ends, np.ones(10_000, np.bool_)) == np.arange(1, 10_001)).all()
