"""The context tree that the trees of several runs of one program are part of: nodes match by what was entered where."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tracekit.contexts.nodes import ContextKind
from tracekit.formats.events import NONE

Indices = npt.NDArray[np.int64]
Rows = npt.NDArray[Any]

IDENTITY = ("kind", "call", "loop", "function")
"""The fields of a node that tell it from its siblings, in the order that siblings have.

But a call (a loop) is the same whether or not recursion was folded there: in one run it may be, in another not.
"""
MORE_THAN: dict[int, tuple[int, ...]] = {
    ContextKind.CALL: (ContextKind.RECURSIVE_CALL, ContextKind.RECURSION),
    ContextKind.RECURSIVE_CALL: (ContextKind.RECURSION,),
    ContextKind.LOOP: (ContextKind.RECURSIVE_LOOP,),
}
"""What else a node of a kind may turn out to be."""
FIRST_KIND: dict[int, int] = {
    kind: least for least in (ContextKind.CALL, ContextKind.LOOP) for kind in MORE_THAN[least]
}


def unite_nodes(tables: Sequence[Rows], add: Callable[[Any, Any], None] | None = None) -> tuple[Rows, list[Indices]]:
    """The tree that all trees (rows with `parent` and :data:`IDENTITY`) are part of, and each node's row there.

    It is in pre-order. `add` adds the numbers of a second node, which is the same, to those of the first.
    """
    known: dict[tuple[int, ...], int] = {}
    kinds: list[int] = []
    united: list[Any] = []
    children: dict[int, list[int]] = {}
    places = []
    for table in tables:
        place = np.zeros(len(table), np.int64)
        own = zip(*(table[field].astype(np.int32).tolist() for field in IDENTITY))  # NONE is -1, and comes first
        for number, (row, key) in enumerate(zip(table, own)):  # parents stand before their children
            parent = -1 if row["parent"] == NONE else int(place[row["parent"]])
            kind = key[0]
            at = known.setdefault((parent, FIRST_KIND.get(kind, kind), *key[1:]), len(united))
            place[number] = at
            if at == len(united):
                united.append(row.copy())
                united[at]["parent"] = NONE if parent < 0 else parent
                kinds.append(kind)
                children.setdefault(parent, []).append(at)
            else:
                if add is not None:
                    add(united[at], row)
                if kind in MORE_THAN.get(kinds[at], ()):
                    kinds[at] = kind
        places.append(place)
    order = _pre_order(children, [(kind, *key[2:]) for kind, key in zip(kinds, known)])
    for at, kind in enumerate(kinds):
        united[at]["kind"] = kind
    new = np.zeros(len(united) + 1, np.int64)
    new[order] = np.arange(len(order))
    nodes = np.array([united[at] for at in order], tables[0].dtype)
    inner = nodes["parent"] != NONE
    nodes["parent"][inner] = new[nodes["parent"][inner]]
    return nodes, [new[place] for place in places]


def _pre_order(children: dict[int, list[int]], keys: Sequence[tuple[int, ...]]) -> list[int]:
    """Nodes with parents first and children by their keys; -1 is the parent of the roots."""
    order: list[int] = []
    waiting = [-1]
    while waiting:
        at = waiting.pop()
        if at >= 0:
            order.append(at)
        waiting += sorted(children.get(at, []), key=lambda child: keys[child], reverse=True)
    return order
