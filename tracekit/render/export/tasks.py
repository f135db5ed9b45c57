"""Task graphs as DOT and GraphML: every node where the profile has them, else groups of nodes with one context."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from tracekit.formats.errors import TracekitError
from tracekit.render.taskgraph import COLOURS, context_text

Json = Mapping[str, Any]

SHAPES = {"task": "box", "create": "triangle", "join": "invtriangle", "barrier": "octagon", "sync": "diamond"}

NODE_KEYS = {
    "kind": "string",
    "begins": "string",
    "created": "string",
    "thread": "int",
    "nodes": "long",
    "work": "long",
    "critical": "boolean",
}
EDGE_KEYS = {"kind": "string", "count": "long"}


def node_keys(nodes: Sequence[Json]) -> dict[str, str]:
    """Names and types of what nodes have; footprints only if those were asked for."""
    return {**NODE_KEYS, **({"footprint": "long"} if nodes and "footprint" in nodes[0] else {})}


class Tasks(NamedTuple):
    """Nodes and edges, with the values of their keys; ends are numbers of nodes from 0."""

    nodes: list[dict[str, Any]]
    edges: list[dict[str, Any]]


def is_task_graph(report: Json) -> bool:
    """Whether a report is one of the module taskgraph."""
    return "group_edges" in report["result"]


def tasks_of(report: Json, table: str) -> Tasks:
    """The graph itself, or with `table` ``groups`` that of groups. Raises TracekitError for other tables."""
    result = report["result"]
    if table not in ("", "graph", "groups"):
        raise TracekitError(f"A task graph is exported as graph or groups, not {table!r}.")
    if table == "graph" and result["graph"] is None:
        raise TracekitError("The profile does not hold the whole graph: analyse with a greater --graph.")
    groups = {row["group"]["id"]: row for row in result["groups"]}
    if table == "groups" or result["graph"] is None:
        number = {name: place for place, name in enumerate(groups)}
        nodes = [_node(row["group"], row, row["count"], row["on_critical_path"]) for row in groups.values()]
        edges = [
            {**edge, "source": number[edge["source"]], "destination": number[edge["destination"]]}
            for edge in result["group_edges"]
        ]
        return Tasks(nodes, edges)
    graph = result["graph"]
    number = {row["node"]: place for place, row in enumerate(graph["nodes"])}
    nodes = [_node(groups[row["group"]]["group"], row, 1, row["critical"]) for row in graph["nodes"]]
    edges = [
        {"source": number[edge["source"]], "destination": number[edge["destination"]], "kind": edge["kind"], "count": 1}
        for edge in graph["edges"]
    ]
    return Tasks(nodes, edges)


def _node(group: Json, row: Json, count: int, critical: int) -> dict[str, Any]:
    """A node of a group, or that of the group itself; the footprint, if there is one, is the sum of its nodes'."""
    return {
        "kind": group["kind"],
        "begins": context_text(group["begins"]),
        "created": context_text(group["created"]),
        "thread": row["thread"] if "node" in row else -1,
        "nodes": count,
        "work": row["work"],
        "critical": critical > 0,
        **({"footprint": row["footprint"]} if "footprint" in row else {}),
    }


def dot_lines(tasks: Tasks) -> list[str]:
    """Nodes and edges in Graphviz's language: shapes by kind, the critical path bold."""
    lines = ["digraph tasks {", "  node [fontname=monospace];"]
    for number, node in enumerate(tasks.nodes):
        label = node["kind"] if node["nodes"] == 1 else f"{node['nodes']:,} {node['kind']}"
        label += f"\\n{node['work']:,}" if node["work"] else ""
        thread = f"\\nthread {node['thread']}" if node["thread"] >= 0 and node["kind"] == "task" else ""
        place = node["begins"].replace("\\", "\\\\").replace('"', '\\"')
        style = ", penwidth=3" if node["critical"] else ""
        lines.append(f'  n{number} [shape={SHAPES[node["kind"]]}, label="{label}{thread}", tooltip="{place}"{style}];')
    for edge in tasks.edges:
        count = f', label="{edge["count"]:,}"' if edge["count"] > 1 else ""
        both = tasks.nodes[edge["source"]]["critical"] and tasks.nodes[edge["destination"]]["critical"]
        style = ", penwidth=3" if both else ""
        lines.append(
            f'  n{edge["source"]} -> n{edge["destination"]} [color="{COLOURS[edge["kind"]]}", '
            f'tooltip="{edge["kind"]}"{count}{style}];'
        )
    return [*lines, "}"]
