"""Which calls of a loop entered some functions, against a walk over the loop's nodes one by one."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests.contexts.test_subtrees import forests
from tracekit.contexts.nodes import CALLS, LOOPS, NODE, ContextKind
from tracekit.contexts.subtrees import subtree_ends
from tracekit.formats.events import NONE
from tracekit.verdicts.calls_made import CallsMade

FUNCTIONS = 4


def calls_made(nodes: Any, node: int, functions: Any) -> set[int]:
    """The calls of the loop's own function through which one of the functions was reached below its node."""
    first, found = {node: NONE}, set()
    for row in range(node + 1, len(nodes)):
        parent = int(nodes["parent"][row])
        if parent not in first:
            break
        kind, through = nodes["kind"][row], first[parent]
        if kind in CALLS:
            through = int(nodes["call"][row]) if through == NONE else through
            if kind == ContextKind.RECURSION or functions[nodes["function"][row]]:
                found.add(through)
        first[row] = through
    return found


@given(forests(), st.lists(st.booleans(), min_size=FUNCTIONS, max_size=FUNCTIONS), st.data())
def test_calls_that_entered_functions(parents: list[int], are_wanted: list[bool], data: st.DataObject) -> None:
    nodes, functions = np.zeros(len(parents), NODE), np.array(are_wanted)
    kinds = st.sampled_from([ContextKind.CALL, ContextKind.LOOP, ContextKind.RECURSION, ContextKind.RECURSIVE_CALL])
    for row, parent in enumerate(parents):
        kind = ContextKind.ROOT if parent == NONE else data.draw(kinds)
        call = row if kind in CALLS else NONE
        nodes[["parent", "kind", "function", "call"]][row] = (
            parent,
            kind,
            data.draw(st.integers(0, FUNCTIONS - 1)),
            call,
        )
    judge: Any = SimpleNamespace(profile=SimpleNamespace(nodes=nodes), subtree_ends=subtree_ends(nodes["parent"]))
    made, ops = CallsMade(judge, functions), list(range(len(parents)))
    loops = np.flatnonzero(np.isin(nodes["kind"], LOOPS)).tolist()
    for loop in loops:
        assert set(made.among(ops, [loop])) == calls_made(nodes, loop, functions)
    assert set(made.among(ops, loops)) == set().union(*(calls_made(nodes, loop, functions) for loop in loops))
