"""The profile of a task graph: sums, groups of nodes, lines and functions with their part of the critical path."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracekit.formats.events import NONE
from tracekit.modules.merge_rows import add, greatest, join_rows, least
from tracekit.paths.profile import Names
from tracekit.program.lookup import functions_named
from tracekit.program.program import Program
from tracekit.taskgraph.collector import StepCollector
from tracekit.taskgraph.distinct import distinct
from tracekit.taskgraph.footprints import FootprintCollector
from tracekit.taskgraph.graph import TaskGraph
from tracekit.taskgraph.kernels.layouts import EDGE_KINDS, NODE_KINDS, TASK
from tracekit.taskgraph.lines import Places
from tracekit.taskgraph.names import GroupNames

Json = Mapping[str, Any]
Faster = Sequence[tuple[str, float]]

TRIED = 10
"""Functions on the critical path that are made faster, one after the other."""
TWICE = 2.0


class TaskGraphProfile:
    """Makes the rows of one run; `work`: what is counted (graph.MEASURES); `footprints`: if they are wanted."""

    def __init__(
        self, program: Program, collector: StepCollector, work: str, footprints: FootprintCollector | None = None
    ) -> None:
        self.program, self.work = program, work
        self.graph = TaskGraph(program, collector)
        self.names = GroupNames(program, collector)
        self.places = Places(program, work)
        self.functions = Names(program).function
        self.done = {name: self.graph.of_nodes(column) for name, column in self.graph.of_steps.items()}
        self.weights = self.done[work]
        self.footprint = None
        if footprints is not None:
            self.footprint = self.graph.of_nodes(footprints.of_steps(collector.steps))
        span, self.on_path = self.graph.span(self.weights)
        self.span = int(span)
        self._number_groups()

    def _number_groups(self) -> None:
        nodes = self.graph.nodes[1:]
        found, index = distinct([nodes["kind"], nodes["created"], nodes["context"]])
        shown = [self.names.group(*key) for key in found.tolist()]
        by_id = {group["id"]: group for group in shown}
        self.groups = list(by_id.values())
        number = {name: place for place, name in enumerate(by_id)}
        of = np.array([number[group["id"]] for group in shown], np.int64)
        self.group_of = np.concatenate([[-1], of[index]]) if len(of) else np.array([-1])

    def result(self, faster: Faster, most: int) -> dict[str, Any]:
        """All tables; `most`: nodes up to which the whole graph is one of them."""
        whole = int(self.weights.sum())
        without, _ = self.graph.span(self.weights, locks=False)
        kinds = np.bincount(self.graph.nodes["kind"][1:], minlength=len(NODE_KINDS)).tolist()
        lines, functions = self._places(faster)
        summary = {
            "counted_in": self.work,
            "work": whole,
            "span": self.span,
            "span_without_locks": int(without),
            "threads": len(np.unique(self.graph.nodes["stream"][1:])),
            "nodes": dict(zip(NODE_KINDS, kinds)),
            "edges": dict(zip(EDGE_KINDS, np.bincount(self.graph.edges["kind"], minlength=len(EDGE_KINDS)).tolist())),
            **{name: int(self.done[name].sum()) for name in ("blocks", "loads", "stores", "bytes")},
            "broken_records": self.graph.collector.broken,
        }
        return {
            "summary": summary,
            "groups": self._group_rows(),
            "group_edges": self._edge_rows(),
            "lines": lines,
            "functions": functions,
            "what_if": self._what_if(faster),
            "graph": self._whole(most),
        }

    # -- groups --

    def _group_rows(self) -> list[dict[str, Any]]:
        count = len(self.groups)
        of, nodes = self.group_of[1:], self.graph.nodes[1:]
        pairs = distinct([of, nodes["stream"]])[0][:, 0]
        columns = {
            "count": np.bincount(of, minlength=count),
            "threads": np.bincount(pairs, minlength=count),
            "on_critical_path": _summed(of, self.on_path[1:].astype(np.int64), count),
            "work": _summed(of, self.weights[1:], count),
            "critical_work": _summed(of, self.weights[1:] * self.on_path[1:], count),
            **{name: _summed(of, self.done[name][1:], count) for name in ("blocks", "loads", "stores", "bytes")},
        }
        columns["longest"] = _greatest(of, self.weights[1:], count)
        if self.footprint is not None:
            columns["footprint"] = _summed(of, self.footprint[1:], count)
            columns["largest_footprint"] = _greatest(of, self.footprint[1:], count)
        first = np.full(count, len(nodes), np.int64)
        np.minimum.at(first, of, np.arange(len(nodes)))
        columns["first"] = first
        rows = [
            {"group": group, **{name: int(column[number]) for name, column in columns.items()}}
            for number, group in enumerate(self.groups)
        ]
        return sorted(rows, key=_by_first)

    def _edge_rows(self) -> list[dict[str, Any]]:
        edges = self.graph.edges
        ends = (self.group_of[edges["source"]], self.group_of[edges["destination"]])
        keys, of = distinct([*ends, edges["kind"]])
        counts = np.bincount(of, minlength=len(keys))
        return [
            {
                "source": self.groups[source]["id"],
                "destination": self.groups[destination]["id"],
                "kind": EDGE_KINDS[kind],
                "count": count,
            }
            for (source, destination, kind), count in zip(keys.tolist(), counts.tolist())
        ]

    # -- lines and functions --

    def _places(self, faster: Faster) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        """Lines and functions, those with most work on the critical path first."""
        every = self.places.by_site(self.graph.record_counts(self.graph.nodes["kind"] == TASK))
        critical = self.places.by_site(self.graph.record_counts(self.on_path))
        function_of = self.places.function_of_site()
        of_function: dict[int, list[int]] = {}
        of_line: dict[tuple[int, str, str, int], list[int]] = {}
        for site in np.flatnonzero(every).tolist():
            function = int(function_of[site])
            for sums in (
                of_function.setdefault(function, [0, 0]),
                of_line.setdefault((function, *self.places.line_of(site)), [0, 0]),
            ):
                sums[0] += int(every[site])
                sums[1] += int(critical[site])
        lines = [{"line": self._line(*key), "work": sums[0], "critical_work": sums[1]} for key, sums in of_line.items()]
        functions = [
            {"function": self.functions(function), "work": sums[0], "critical_work": sums[1]}
            for function, sums in of_function.items()
        ]
        return sorted(lines, key=_by_critical("line")), sorted(functions, key=_by_critical("function"))

    def _line(self, function: int, name: str, file: str, line: int) -> dict[str, Any]:
        """A line of a function, or of one of this name that was inlined into it: `within` is the former."""
        own = self.functions(function)
        return {
            "id": f"{own['id']}:{name}:{line}",
            "kind": "line",
            "within": own["function"],
            "function": name,
            "file": file,
            "line": line,
            "column": 0,
        }

    # -- what if --

    def _what_if(self, faster: Faster) -> list[dict[str, Any]]:
        """Work and span if functions took so much less; without a wish, for each of the first on the critical path."""
        program, rows = self.program, []
        owners = self.places.function_of_record
        names = np.array([program.function_name(function) for function in range(len(program.functions))], object)
        wishes: list[tuple[str, float, NDArray[np.bool_]]] = []
        for name, factor in faster:
            wishes.append((name, factor, functions_named(program, name).astype(np.bool_)))
        if not faster:
            critical = np.zeros(len(names), np.int64)
            counts = self.graph.record_counts(self.on_path)[: len(owners)] * self.graph.each[self.work][: len(owners)]
            known = owners != NONE
            np.add.at(critical, owners[known], counts[known])
            for function in np.argsort(-critical, kind="stable")[:TRIED].tolist():
                if critical[function]:
                    wishes.append((str(names[function]), TWICE, np.arange(len(names)) == function))
        groups = [[wish] for wish in wishes]
        if len(faster) > 1:
            groups.append(wishes)
        for group in groups:
            scale = np.ones(len(self.graph.each[self.work]))
            for _, factor, chosen in group:
                inside = (owners != NONE) & chosen[np.where(owners != NONE, owners, 0)]
                scale[: len(owners)][inside] /= factor
            rows.append(
                {"faster": [{"name": name, "factor": factor} for name, factor, _ in group], **self._with_scale(scale)}
            )
        return rows

    def _with_scale(self, scale: NDArray[np.float64]) -> dict[str, int]:
        """Work and span if paths took so many times what they take, by record id."""
        each = self.graph.each[self.work]
        less = self.graph.sums(each * (scale - 1.0))
        weights = np.maximum(self.weights + self.graph.of_nodes(less), 0.0)
        span, _ = self.graph.span(weights)
        return {"work": round(float(weights.sum())), "span": round(float(span))}

    # -- the whole graph --

    def _whole(self, most: int) -> dict[str, Any] | None:
        """Every node and edge, if there are at most so many nodes."""
        if len(self.graph.nodes) - 1 > most:
            return None
        nodes = [
            {
                "node": number,
                "kind": NODE_KINDS[int(node["kind"])],
                "group": self.groups[int(self.group_of[number])]["id"],
                "thread": int(node["stream"]),
                "work": int(self.weights[number]),
                "critical": bool(self.on_path[number]),
                **({} if self.footprint is None else {"footprint": int(self.footprint[number])}),
            }
            for number, node in enumerate(self.graph.nodes)
            if number
        ]
        edges = [
            {"source": int(edge["source"]), "destination": int(edge["destination"]), "kind": EDGE_KINDS[edge["kind"]]}
            for edge in self.graph.edges
        ]
        return {"nodes": nodes, "edges": edges}


def _summed(index: NDArray[np.int64], values: NDArray[np.generic], count: int) -> NDArray[np.int64]:
    sums = np.zeros(count, np.int64)
    np.add.at(sums, index, values)
    return sums


def _greatest(index: NDArray[np.int64], values: NDArray[np.generic], count: int) -> NDArray[np.int64]:
    most = np.zeros(count, np.int64)
    np.maximum.at(most, index, values)
    return most


def _by_first(row: Json) -> Any:
    """Groups in the order in which their first nodes began."""
    return row["first"], row["group"]["id"]


def _by_critical(key: str) -> Any:
    return lambda row: (-row["critical_work"], -row["work"], row[key]["file"], row[key]["line"], row[key]["id"])


def joined(results: Sequence[Json]) -> dict[str, Any]:
    """The profile of runs one after another: work and span add. The graphs themselves are left out."""
    whole: dict[str, Any] = {}
    for result in results:
        whole = _plus(whole, result["summary"])
    numbers = ("count", "threads", "on_critical_path", "work", "critical_work", "blocks", "loads", "stores", "bytes")
    greatest_of = dict.fromkeys(("longest", "largest_footprint"), greatest)
    places = dict.fromkeys(("work", "critical_work"), add)
    tried = [{json_key(row) for row in result["what_if"]} for result in results]
    shared = set.intersection(*tried)
    return {
        "summary": whole,
        "groups": join_rows(
            [result["groups"] for result in results],
            ("group",),
            {**dict.fromkeys((*numbers, "footprint"), add), **greatest_of, "first": least},
            _by_first,
        ),
        "group_edges": join_rows(
            [result["group_edges"] for result in results], ("source", "destination", "kind"), {"count": add}
        ),
        "lines": sorted(
            join_rows([result["lines"] for result in results], ("line",), places), key=_by_critical("line")
        ),
        "functions": sorted(
            join_rows([result["functions"] for result in results], ("function",), places),
            key=_by_critical("function"),
        ),
        "what_if": join_rows(
            [[row for row in result["what_if"] if json_key(row) in shared] for result in results],
            ("faster",),
            {"work": add, "span": add},
        ),
        "graph": None,
    }


def json_key(row: Json) -> str:
    """What a row of `what_if` makes faster."""
    return repr(row["faster"])


def _plus(first: Json, second: Json) -> dict[str, Any]:
    """Numbers add; the rest is that of the second."""
    return {
        name: _plus(first.get(name, {}), value)
        if isinstance(value, Mapping)
        else first.get(name, 0) + value
        if isinstance(value, int)
        else value
        for name, value in second.items()
    }
