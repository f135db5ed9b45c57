"""One trace, analysed in segments by the workers of an engine."""

from __future__ import annotations

import contextlib
import dataclasses
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from tracekit import api
from tracekit.analysis.modules import modules_of
from tracekit.analysis.presets import expanded
from tracekit.analysis.segmented import ReplayedSegments
from tracekit.counted import counted
from tracekit.formats import remote
from tracekit.formats.reader import TraceReader
from tracekit.many.cluster import PROCESSES, Cluster, address_of
from tracekit.many.processes import Processes
from tracekit.modules import registry
from tracekit.modules.runner import Runner
from tracekit.modules.runners import segment_runners
from tracekit.profiles.profile import Profile
from tracekit.program.program import Program
from tracekit.replay.recorded_windows import is_windowed
from tracekit.replay.totals import trace_totals
from tracekit.replay.window import Restriction
from tracekit.segments.analysis import why_whole
from tracekit.segments.distribution import DistributedAnalysis, cuts_for, why_not
from tracekit.segments.pool import Workers


def analyze_in_segments(
    path: str | Path,
    options: Mapping[str, Any],
    engine: str,
    jobs: int | None = None,
    explain: Callable[[str], None] | None = None,
    segments: int | None = None,
    memory: int | None = None,
) -> list[Profile]:
    """As :func:`tracekit.api.analyze_all`, by the workers of an engine, for what :func:`why_by_one` has no reason.

    Raises TracekitError as that and the engine do.
    """
    with workers_of(engine, jobs or os.cpu_count() or 1) as workers:

        def elsewhere(
            trace: TraceReader, program: Program, runners: Mapping[str, Runner], settled: Mapping[str, Any]
        ) -> ReplayedSegments:
            working = segment_runners(runners)
            wanted = [name for name, shown in zip(settled, runners) if shown in working]
            task = {
                "trace": str(path) if remote.is_url(str(path)) else os.path.abspath(path),
                "options": {name: dataclasses.asdict(settled[name]) for name in wanted},
            }
            cuts = cuts_for(trace_totals(trace, program)["accesses"], workers.count, segments)
            analysis = DistributedAnalysis(trace, program, working, task, memory)
            parts = analysis.run(workers, cuts)
            return ReplayedSegments([f"analysed in {counted(parts, 'segment')}"], analysis.rules_broken)

        return api.analyze_all(path, options, 1, explain, elsewhere=elsewhere, as_tables=True)


def why_by_one(path: str | Path, options: Mapping[str, Any], window: Mapping[str, Any] | None) -> str | None:
    """Why a trace cannot be analysed by several workers, or None: it can; `options` as of ``api.analyze_all``."""
    if any(registry.is_file(name) for name in options):
        return "A module that is a file is not analysed in segments elsewhere"
    with TraceReader(str(path)) as trace:
        program = Program.from_images(trace.images())
        restricted = Restriction(window, trace, program)
        settled = expanded(trace, program, options, window, restricted.loop, 1)
        modules = modules_of(trace, program, settled, restricted)
        windowed = restricted.window is not None or is_windowed(trace)
        return why_whole(modules, trace.streams(), windowed) or why_not(modules)


@contextlib.contextmanager
def workers_of(engine: str, jobs: int) -> Iterator[Workers]:
    """The workers of an engine, `jobs` of them where it starts them. Raises TracekitError if it has none."""
    if engine == PROCESSES:
        yield Workers(Processes, jobs)
        return
    with Cluster(address_of(engine), jobs) as cluster:
        yield Workers(cluster.tasks, cluster.threads)
