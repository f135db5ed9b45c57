"""Sets of loops, against Python's."""

from __future__ import annotations

import random
from types import SimpleNamespace
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tracekit.containers.hash_table import used_rows
from tracekit.contexts.kernels.streams import LEVEL as OPEN_LEVEL
from tracekit.dependence.kernels.loop_sets import NAMED_SETS, mark_within, number_sets, set_of, unnamed_set_of
from tracekit.dependence.level_rows import levels_found, levels_of
from tracekit.dependence.profile import LEVEL, DependenceLevels
from tracekit.dependence.state import empty_relations
from tracekit.jit.kernel import kernel

NODES = 6
FOUND = st.dictionaries(
    st.tuples(st.integers(0, 5), st.integers(0, NODES - 1)),
    st.tuples(st.booleans(), st.none() | st.integers(1, 9)).filter(any),  # intra, how often carried
)


def sets_of(levels: DependenceLevels) -> list[tuple[int, ...]]:
    first = levels.sets.first.tolist()
    return [tuple(levels.sets.nodes[first[number] : first[number + 1]].tolist()) for number in range(len(first) - 1)]


@given(FOUND, st.randoms(use_true_random=False))
def test_levels_are_the_rows_that_they_were_made_of(found: dict[tuple[int, int], Any], order: random.Random) -> None:
    rows = np.zeros(len(found), LEVEL)
    for row, ((dependence, node), (intra, carried)) in zip(rows, sorted(found.items())):
        row["dependence"], row["node"], row["intra"], row["inter"] = dependence, node, intra, carried is not None
        row["carried"] = row["min_distance"] = row["max_distance"] = carried or 0
    shuffled = rows[order.sample(range(len(rows)), len(rows))]
    levels = levels_of(shuffled, 6)
    assert levels.rows.tolist() == rows.tolist()
    sets = sets_of(levels)
    around = [
        tuple(sorted(node for (each, node), (intra, _) in found.items() if each == number and intra))
        for number in range(6)
    ]
    assert [sets[number] for number in levels.within] == around
    assert sets == list(dict.fromkeys([(), *around]))


@given(FOUND, st.lists(st.integers(-1, 3), min_size=NODES, max_size=NODES))
def test_sets_with_new_nodes(found: dict[tuple[int, int], Any], node_of: list[int]) -> None:
    rows = np.zeros(len(found), LEVEL)
    rows["dependence"], rows["node"] = np.array(list(found), np.int64).reshape(-1, 2).T
    rows["intra"] = True
    levels = levels_of(rows, 6)
    number_of, renamed = levels.sets.renamed(np.array(node_of))
    new = sets_of(levels._replace(sets=renamed))
    assert [new[number] for number in number_of] == [
        tuple(sorted({node_of[node] for node in old} - {-1})) for old in sets_of(levels)
    ]
    assert len(set(new)) == len(new)
    assert new[0] == ()


@kernel
def mark(sets: Any, dependence: Any, loops: Any) -> None:
    mark_within(sets, dependence, loops)


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("push"), st.integers(0, NODES - 1), st.integers(0, 3)),  # depth: 0 of a loop
        st.tuples(st.just("pop"), st.just(0), st.just(0)),
        st.tuples(st.just("mark"), st.integers(1, 3), st.integers(0, 9)),  # dependence, of how many levels
    ),
    max_size=60,
)


@given(STEPS, st.permutations(range(NODES)), st.booleans())
def test_a_dependence_has_the_loops_of_all_marks(
    steps: list[tuple[str, int, int]], new_dependence: list[int], are_joined: bool
) -> None:
    """Names of stacks that fall on one place, and such as have none; two tables that are joined."""
    _, relations = empty_relations()
    stack: list[tuple[int, int]] = []
    levels, names = np.zeros(64, OPEN_LEVEL), dict[tuple[int, ...], int]()
    expected: dict[int, set[int]] = {}
    for what, number, other in steps:
        if what == "push":
            stack.append((number, other))
            loops = tuple(node for node, depth in stack if depth == 0)
            name = names.setdefault(loops, 2 + len(names) * (NAMED_SETS // 2)) if len(loops) < 5 else 0
            levels[len(stack) - 1] = np.zeros((), OPEN_LEVEL)
            for field, value in (("node", number), ("depth", other), ("loops", name)):
                levels[field][len(stack) - 1] = value
        elif what == "pop" and stack:
            stack.pop()
        elif what == "mark":
            count = min(other, len(stack))
            loops = set_of(relations.sets, levels, count)
            nodes = {node for node, depth in stack[:count] if depth == 0}
            assert (
                nodes_of(relations, loops)
                == nodes_of(relations, unnamed_set_of(relations.sets, levels, count))
                == nodes
            )
            mark(relations.sets, number, loops)
            expected.setdefault(number, set()).update(nodes)
    loop_sets, within = used_rows(relations.sets.steps), used_rows(relations.sets.within).copy()
    if are_joined:
        _, relations = empty_relations()
        for order in (loop_sets[:1], loop_sets):
            numbers = np.zeros(len(order), np.int64)
            number_sets(relations.sets.steps, order, numbers)
        within["key"][1:] = within["key"][1:] >> np.uint64(32) << np.uint64(32) | numbers[
            (within["key"][1:] & np.uint64(0xFFFFFFFF)).astype(int)
        ].astype(np.uint64)
        loop_sets = used_rows(relations.sets.steps)
    findings = SimpleNamespace(levels=used_rows(relations.levels), loop_sets=loop_sets, within=within)
    made, row_of = levels_found(findings, np.array(new_dependence), np.arange(NODES)[::-1].copy())  # type: ignore[arg-type]
    assert row_of.tolist() == [-1]
    sets = sets_of(made)
    for dependence, place in enumerate(new_dependence, 1):
        assert sets[made.within[place]] == tuple(sorted(NODES - 1 - node for node in expected.get(dependence, ())))


def nodes_of(relations: Any, loops: int) -> set[int]:
    nodes = set()
    while loops:
        key = int(relations.sets.steps.rows[loops]["key"])
        nodes.add(key & 0xFFFFFFFF)
        loops = key >> 32
    return nodes
