"""Whether the trace of an analysis is cut into segments, and the replay of the segments beside one another."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from tracekit.counted import counted
from tracekit.formats.errors import TracekitError

if TYPE_CHECKING:
    from tracekit.formats.reader import TraceReader
    from tracekit.modules.contract import Analysis
    from tracekit.modules.runner import Runner
    from tracekit.program.program import Program
    from tracekit.replay.window import Restriction


class ReplayedSegments(NamedTuple):
    """How the segments of a trace were replayed."""

    explained: list[str]
    """Lines that say it."""
    rules_broken: bool
    """Whether records broke rules of replay."""


def why_not_segmented(
    trace: TraceReader,
    program: Program,
    modules: Mapping[str, Analysis],
    restricted: Restriction,
    segments: int | None,
    threads: int,
) -> str | None:
    """Why the trace is not analysed in segments; None: it is.

    Modules that take less time than replay does gain nothing: the pass ahead would take longer than they do.
    Raises TracekitError if `segments` requests what the modules cannot do.
    """
    from tracekit.modules.contract import Module
    from tracekit.replay.recorded_windows import is_windowed
    from tracekit.replay.totals import trace_totals
    from tracekit.replay.turn_length import has_short_turns
    from tracekit.segments.analysis import LEAST_ACCESSES, why_whole

    if segments == 1:
        return "One segment was asked for"
    why = why_whole(modules, trace.streams(), restricted.window is not None or is_windowed(trace))
    if segments is not None:
        if why is not None:
            raise TracekitError(f"{why}: leave out --segments.")
        return None
    if threads == 1:
        return "One thread was asked for"
    if why is not None:
        return why
    if not any(isinstance(module, Module) and module.compute_bound for module in modules.values()):
        return "Cutting it would cost more than these modules take"
    if trace_totals(trace, program)["accesses"] < LEAST_ACCESSES:
        return f"The trace has fewer than {LEAST_ACCESSES:,} accesses"
    if has_short_turns(trace, program):
        return "Threads hand over often"
    return None


def replay_segments(
    trace: TraceReader,
    program: Program,
    runners: Mapping[str, Runner],
    segments: int | None,
    threads: int,
    memory: int | None,
) -> ReplayedSegments:
    """Replay the segments of the trace, each through all modules."""
    from tracekit.modules.runners import segment_runners
    from tracekit.replay.totals import trace_totals
    from tracekit.segments.analysis import SegmentedAnalysis

    working = segment_runners(runners)
    cuts = None
    if segments is not None:
        accesses = trace_totals(trace, program)["accesses"]
        cuts = [accesses * number // segments for number in range(1, segments)]
    analysis = SegmentedAnalysis(trace, program, working, memory=memory)
    parts = analysis.run(threads, cuts)
    kept = ", which begin with what an earlier analysis has kept" if analysis.is_known else ""
    lines = [f"analysed in {counted(parts, 'segment')}{kept}", *analysis.explained()]
    return ReplayedSegments(lines, analysis.rules_broken)
