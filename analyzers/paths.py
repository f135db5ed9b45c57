"""Ball-Larus paths: how often each path through a function ran, its accesses, edges and lines; see docs/paths.md.

A path begins where its function does or behind a back edge, and ends at a back edge or where its function ends (Ball
and Larus, Efficient Path Profiling, MICRO 1996). It goes on behind a call.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from tracekit.module import Display, RecordModule, option

if TYPE_CHECKING:
    from tracekit.paths.counter import PathCounter

MOST = 1 << 26


@dataclass(frozen=True)
class PathsOptions:
    """What the table may hold."""

    most: int = option(1 << 22, "Beginnings of paths to tell apart; when there are more, paths are cut short.", "N")

    def __post_init__(self) -> None:
        if not 1 <= self.most <= MOST:
            raise ValueError(f"most is 1 to {MOST:,}, not {self.most}.")


class Paths(RecordModule):
    """Tables of paths, functions, calls, edges and lines, and the hot path across calls."""

    Options = PathsOptions
    merges_with_program = True

    @cached_property
    def _counter(self) -> PathCounter:
        from tracekit.paths.counter import PathCounter

        return PathCounter(self.program, self.options.most)

    def feed(self, stream: int, ids: Any, words: Any) -> None:
        """Count records."""
        self._counter.add(stream, ids, words)

    def result(self) -> dict[str, Any]:
        """All tables."""
        from tracekit.paths.profile import profile

        return profile(self.program, self._counter)

    @classmethod
    def merge(cls, profiles: Sequence[Mapping[str, Any]], program: Any) -> dict[str, Any]:
        """All numbers add."""
        from tracekit.paths.profile import joined

        return {"result": joined([profile["result"] for profile in profiles], program)}


DISPLAY = Display(
    text="tracekit.render.paths:paths_text",
    section="tracekit.render.html.paths:section",
    heading="Paths",
    lcov="tracekit.render.lcov:lcov",
    columns={
        "hot": "path:path frequency accesses inclusive",
        "paths": "path:path frequency loads stores bytes inclusive",
        "functions": "function:place calls paths loads stores bytes inclusive blocks blocks_run counts",
        "calls": "call:place call.block call.caller call.name call.callee count accesses",
        "edges": "edge:place edge.name edge.blocks count",
        "lines": "file line count",
    },
)
MODULE = Paths
