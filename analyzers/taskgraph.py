"""Task graph: what threads did between the events that order them; work, span, parallelism, the critical path.

Contech's graph (Railing, Hein, Conte, ACM TACO 2015): nodes are tasks, and the creations, joins, barriers and
synchronisations between them; edges are what has to come before what. Work and span are as in Cilkview (He, Leiserson,
Leiserson, SPAA 2010), groups of nodes with one creation context as in grain graphs (Muddukrishna et al., PPoPP 2016).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from tracekit.module import Display, EventBatch, RecordModule, option

if TYPE_CHECKING:
    from tracekit.taskgraph.collector import StepCollector
    from tracekit.taskgraph.footprints import FootprintCollector


def faster_of(text: str) -> list[tuple[str, float]]:
    """``FUNCTION:FACTOR,...`` as pairs. Raises ValueError, with a sentence, for what is none."""
    pairs = []
    for part in filter(None, map(str.strip, text.split(","))):
        name, colon, factor = part.rpartition(":")
        try:
            pair = name, float(factor)
        except ValueError:
            pair = "", 0.0
        if not colon or not pair[0] or not 0 < pair[1] < float("inf"):
            raise ValueError(f"what is faster is FUNCTION:FACTOR, compress:2 say, not {part!r}.")
        pairs.append(pair)
    return pairs


@dataclass(frozen=True)
class TaskGraphOptions:
    """What is counted, what orders, what is tried."""

    work: str = option("blocks", "What work is counted in.", choices=("blocks", "accesses", "bytes"))
    locks: bool = option(True, "Whether the order in which threads got locks is an order of the graph.")
    faster: str = option("", "Work and span if these functions took FACTOR times less.", "FUNCTION:FACTOR,...")
    footprint: int = option(0, "Bytes of the unit in which each node's working set is counted; 0: it is not.", "BYTES")
    graph: int = option(1000, "Nodes up to which the profile holds the whole graph, for `export dot`.", "N")

    def __post_init__(self) -> None:
        faster_of(self.faster)
        if self.graph < 0:
            raise ValueError(f"graph is a number of nodes, not {self.graph}.")
        if not 0 <= self.footprint <= 1 << 30 or self.footprint & (self.footprint - 1):
            raise ValueError(f"footprint is 0 or a power of two of at most 2**30, not {self.footprint}.")


class TaskGraphModule(RecordModule):
    """Tables of groups of nodes, edges between them, lines, functions; and the graph if it is small."""

    Options = TaskGraphOptions

    @cached_property
    def _collector(self) -> StepCollector:
        from tracekit.taskgraph.collector import StepCollector

        return StepCollector(self.program, self.options.locks)

    def feed(self, stream: int, ids: Any, words: Any) -> None:
        """Take records."""
        self._collector.add(stream, ids, words)

    @cached_property
    def _footprints(self) -> FootprintCollector | None:
        from tracekit.taskgraph.footprints import FootprintCollector

        return FootprintCollector(self.options.footprint, self.options.locks) if self.options.footprint else None

    @property
    def events(self) -> Mapping[str, tuple[str, ...]]:
        """Accesses and what begins a step, if footprints are asked for; else nothing is replayed."""
        return self._footprints.events if self._footprints else {}

    def feed_events(self, batch: EventBatch) -> None:
        """Take events for the footprints."""
        assert self._footprints is not None
        self._footprints.add(batch)

    def result(self) -> dict[str, Any]:
        """All tables."""
        from tracekit.taskgraph.profile import TaskGraphProfile

        made = TaskGraphProfile(self.program, self._collector, self.options.work, self._footprints)
        return made.result(faster_of(self.options.faster), self.options.graph)

    @classmethod
    def merge(cls, profiles: Sequence[Mapping[str, Any]], program: Any) -> dict[str, Any]:
        """Runs one after another: work and span add."""
        from tracekit.taskgraph.profile import joined

        return {"result": joined([profile["result"] for profile in profiles])}


DISPLAY = Display(
    text="tracekit.render.taskgraph:taskgraph_text",
    section="tracekit.render.html.taskgraph:section",
    image="tracekit.render.taskgraph:write_image",
    heading="Task graph",
    columns={
        "groups": (
            "group.id group.kind group.created group.begins count threads on_critical_path work "
            "critical_work blocks loads stores bytes longest first"
        ),
        "group_edges": "source destination kind count",
        "lines": "line:place work critical_work",
        "functions": "function:place work critical_work",
        "what_if": "faster work span",
    },
)
MODULE = TaskGraphModule
