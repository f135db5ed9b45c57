"""Whether a replay through some modules is worth compiled paths, and those paths."""

from __future__ import annotations

from collections.abc import Collection
from functools import partial

from tracekit.formats.reader import TraceReader
from tracekit.modules.callback_runner import CallbackRunner
from tracekit.modules.contract import Analysis, Module, RecordModule
from tracekit.modules.ranges import is_for_runs
from tracekit.modules.runner import Runner
from tracekit.program.program import Program
from tracekit.replay.compiled.compiler import CompiledPaths
from tracekit.replay.compiled.cost_model import (
    LONG_ENOUGH_AHEAD,
    LONG_ENOUGH_TO_LOAD,
    pays,
    records_of,
    work_of,
)
from tracekit.replay.compiled.hot_paths import count_hot_paths
from tracekit.replay.totals import trace_totals


def work_for(trace: TraceReader, program: Program, modules: Collection[Analysis]) -> int:
    """How long kernels take for a trace through these modules: :func:`tracekit.replay.compiled.cost_model.work_of`."""
    for_runs = all(
        isinstance(module, Module) and is_for_runs(module.callbacks(), module.range_callbacks())
        for module in modules
        if not isinstance(module, RecordModule) or module.events
    )
    return work_of(records_of(trace), trace_totals(trace, program)["accesses"], for_runs=for_runs)


def paths_for(
    trace: TraceReader,
    program: Program,
    runners: Collection[Runner],
    work: int,
    records: int | None = None,
    follows: bool = False,
) -> CompiledPaths | None:
    """The compiled paths of a replay through these runners, whose events are handed to them one by one.

    `work`: of the whole trace; `records`: how many of it are replayed at most, None: all; `follows`: paths are those
    that another replay has compiled (:class:`~tracekit.replay.compiled.compiler.CompiledPaths`). None if one of the
    modules takes events otherwise, or what is replayed is too short for so many paths.
    """
    if records is not None:
        work = work * records // max(records_of(trace), 1)
    sinks = [runner for runner in runners if isinstance(runner, CallbackRunner) and runner.handlers]
    if (
        not pays(work, LONG_ENOUGH_AHEAD if follows else LONG_ENOUGH_TO_LOAD)
        or not sinks
        or len(sinks) < sum(bool(runner.workers) for runner in runners)
    ):
        return None
    paths = CompiledPaths(
        sinks,
        repr(trace.build).encode(),
        records or records_of(trace),
        work,
        follows,
        partial(count_hot_paths, trace, program),
    )
    return paths if paths.may_compile else None
