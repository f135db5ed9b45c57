"""Graphs in Graphviz's DOT, and GraphML (graphml.graphdrawing.org), which networkx, Gephi and yEd read.

Task graphs are in tasks.py; else dependences are the edges.
A node is an instruction, in its calling and loop context where the profile has them. An edge goes from what was done
first to what depends on it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any
from xml.sax.saxutils import escape, quoteattr

from tracekit.modules.merge_rows import as_key
from tracekit.render.export import tasks
from tracekit.render.export.stacks import table_of
from tracekit.render.places import instruction_text

Json = dict[str, Any]


@dataclass(frozen=True)
class Node:
    """An instruction; `context` is text, empty where contexts are not told apart; `line` is None if it is not known."""

    label: str
    function: str
    file: str
    line: int | None
    context: str


@dataclass(frozen=True)
class Edge:
    """A dependence: rows of the nodes, kind, how often (None: not counted), the loops that carry it."""

    source: int
    destination: int
    kind: str
    count: int | None
    carried_by: str


NODE_KEYS = {"label": "string", "function": "string", "file": "string", "line": "int", "context": "string"}
EDGE_KEYS = {"kind": "string", "count": "long", "carried_by": "string"}


def fits(report: Json) -> bool:
    """Whether it has dependences, or is a task graph."""
    return tasks.is_task_graph(report) or "dependences" in report["result"]


def graph_of(report: Json, table: str) -> tuple[list[Node], list[Edge]]:
    """Nodes in the order in which they appear, and an edge for each row. Raises TracekitError without dependences."""
    _, rows = table_of(report, table or "dependences")
    numbers: dict[str, int] = {}
    nodes: list[Node] = []

    def node(row: Mapping[str, Any], end: str) -> int:
        key = as_key(row, (end, f"{end}_context"))
        if key not in numbers:
            numbers[key] = len(nodes)
            nodes.append(_node(row[end], row.get(f"{end}_context")))
        return numbers[key]

    edges = [
        Edge(
            node(row, "source"),
            node(row, "destination"),
            str(row.get("kind", "")),
            row.get("count"),
            ", ".join(_carrying(row)),
        )
        for row in rows
        if {"source", "destination"} <= row.keys()
    ]
    return nodes, edges


def _node(instruction: Json, context: Json | None) -> Node:
    steps = [] if context is None else [context["root"], *context["path"]]
    return Node(
        instruction_text(instruction),
        instruction["function"],
        instruction["file"],
        instruction["line"] or None,
        " > ".join(filter(None, steps)),
    )


def _carrying(row: Mapping[str, Any]) -> Iterator[str]:
    for level in row.get("levels", ()):
        if level.get("inter"):
            loop = level.get("loop") or level
            yield f"{loop['function']}:{loop['line']}" if "line" in loop else str(loop.get("recursion", ""))


COLOURS = {"RAW": "black", "WAR": "blue", "WAW": "red"}


def dot(report: Json, table: str) -> bytes:
    """Graphviz's language; a dependence that a loop carries is a bold edge."""
    if tasks.is_task_graph(report):
        return ("\n".join(tasks.dot_lines(tasks.tasks_of(report, table))) + "\n").encode()
    nodes, edges = graph_of(report, table)
    lines = ["digraph dependences {", "  rankdir=LR;", "  node [shape=box];"]
    for number, node in enumerate(nodes):
        label = node.label + (f"\n{node.context}" if node.context else "")
        lines.append(f"  n{number} [label={_quoted(label)}, tooltip={_quoted(node.file)}];")
    for edge in edges:
        label = "\n".join(filter(None, (edge.kind, "" if edge.count is None else f"{edge.count:,}", edge.carried_by)))
        style = ", style=bold" if edge.carried_by else ""
        colour = COLOURS.get(edge.kind, "gray")
        lines.append(f"  n{edge.source} -> n{edge.destination} [label={_quoted(label)}, color={colour}{style}];")
    return ("\n".join([*lines, "}"]) + "\n").encode()


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


def graphml(report: Json, table: str) -> bytes:
    """GraphML; edges have numbers, since there may be several between two nodes."""
    if tasks.is_task_graph(report):
        found = tasks.tasks_of(report, table)
        return _graphml("tasks", (tasks.node_keys(found.nodes), found.nodes), (tasks.EDGE_KEYS, found.edges))
    nodes, edges = graph_of(report, table)
    return _graphml("dependences", (NODE_KEYS, [*map(asdict, nodes)]), (EDGE_KEYS, [*map(asdict, edges)]))


def _graphml(name: str, nodes: tuple[Json, list[Json]], edges: tuple[Json, list[Json]]) -> bytes:
    """Keys and rows of nodes, of edges; edges name their ends by `source` and `destination`. None is left out."""
    lines = ['<?xml version="1.0" encoding="UTF-8"?>', '<graphml xmlns="http://graphml.graphdrawing.org/xmlns">']
    for of, (keys, _) in (("node", nodes), ("edge", edges)):
        for key, kind in keys.items():
            lines.append(f'  <key id="{of}_{key}" for="{of}" attr.name="{key}" attr.type="{kind}"/>')
    lines.append(f'  <graph id="{name}" edgedefault="directed">')
    for number, node in enumerate(nodes[1]):
        lines.append(f'    <node id="n{number}">{_data("node", node, nodes[0])}</node>')
    for number, edge in enumerate(edges[1]):
        ends = f'source="n{edge["source"]}" target="n{edge["destination"]}"'
        lines.append(f'    <edge id="e{number}" {ends}>{_data("edge", edge, edges[0])}</edge>')
    return ("\n".join([*lines, "  </graph>", "</graphml>"]) + "\n").encode()


def _data(of: str, values: Json, keys: Json) -> str:
    return "".join(
        f"<data key={quoteattr(f'{of}_{name}')}>{escape(_printable(values[name]))}</data>"
        for name in keys
        if values[name] is not None
    )


def _printable(value: Any) -> str:
    """Without what XML cannot hold; truth values as XML has them."""
    if isinstance(value, bool):
        return str(value).lower()
    return "".join(letter for letter in str(value) if letter >= " " or letter in "\t\n")
