"""Adds nodes, edges and lists to a graph. A chain is what runs one thing after another.

In these kernels and those that build the graph of them `number` is a row of `graph.chains`, a node one of
`graph.nodes`, a list the row of its first element in `graph.links`; 0 is none of each. `step` is a row of STEP.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tracekit.containers.kernels.arena import take
from tracekit.containers.kernels.hash_table import row_of
from tracekit.jit.kernel import kernel
from tracekit.taskgraph.kernels.layouts import CONTINUE, Graph


@kernel
def running(graph: Graph, stream: Any) -> Any:
    """The chain that a stream is in: a logical task, or the thread's own."""
    task = np.int64(graph.running.rows[row_of(graph.running, stream)].chain)
    if task == 0:
        task = np.int64(row_of(graph.chains, stream))
    return task


@kernel
def add_node(graph: Graph, number: Any, step: Any, kind: Any) -> int:
    """Add a node of a kind behind the last one of chain `number`, with the edge that leads there. Returns its row."""
    chain = graph.chains.rows[number]
    added = take(graph.nodes, 1)
    node = graph.nodes.rows[added]
    node.kind = kind
    node.stream = step.stream
    node.context = step.context
    node.created = chain.created
    node.chain = number
    add_edge(graph, chain.last, added, chain.via)
    chain.last = added
    chain.via = CONTINUE
    return int(added)


@kernel
def add_edge(graph: Graph, source: Any, destination: Any, kind: Any) -> None:
    """An edge between two nodes; none if one of them is none."""
    if source != 0 and destination != 0:
        edge = graph.edges.rows[take(graph.edges, 1)]
        edge.source = source
        edge.destination = destination
        edge.kind = kind


@kernel
def edge_from_others(graph: Graph, source: Any, destination: Any, kind: Any) -> None:
    """An edge, unless it would lead from a chain to itself."""
    if graph.nodes.rows[source].chain != graph.nodes.rows[destination].chain:
        add_edge(graph, source, destination, kind)


@kernel
def edges_from_list(graph: Graph, row: Any, destination: Any, kind: Any) -> None:
    """Edges from all nodes of the list `row`, unless they would lead from a chain to itself."""
    while row != 0:
        edge_from_others(graph, graph.links.rows[row].node, destination, kind)
        row = graph.links.rows[row].next


@kernel
def listed(graph: Graph, node: Any, following: Any) -> int:
    """A list that begins with a node, or whatever else has a number, and goes on with another list. Returns its row."""
    row = take(graph.links, 1)
    graph.links.rows[row].node = node
    graph.links.rows[row].next = following
    return int(row)
