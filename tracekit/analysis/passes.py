"""One pass over a trace for all modules: a replay of what they request, and their runners."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from tracekit import progress
from tracekit.analysis.modules import modules_of
from tracekit.counted import counted
from tracekit.formats.events import BY_NAME

if TYPE_CHECKING:
    from tracekit.formats.reader import TraceReader
    from tracekit.modules.contract import Analysis
    from tracekit.modules.runner import Runner
    from tracekit.program.program import Program
    from tracekit.replay.engine import Replay
    from tracekit.replay.window import Restriction

ALONE = 2
"""Up to so many threads, one worker with compiled paths is as fast as several workers that share the memory.

A module that is bound by its own computing (``compute_bound``) gains from a second worker already."""


def prepare(
    trace: TraceReader,
    program: Program,
    options: Mapping[str | type[Analysis], Any],
    threads: int,
    restricted: Restriction | None = None,
) -> tuple[Replay, dict[str, Runner]]:
    """Make the replay of the events and columns that the modules request, and the modules' runners, by name."""
    return prepare_modules(trace, program, modules_of(trace, program, options, restricted), threads, restricted)


def prepare_modules(
    trace: TraceReader,
    program: Program,
    modules: Mapping[str, Analysis],
    threads: int,
    restricted: Restriction | None,
) -> tuple[Replay, dict[str, Runner]]:
    """As :func:`prepare`, for modules that are made already.

    One thread, or few, replay by compiled paths, where that pays and all modules can be called by them.
    """
    from tracekit.containers.budget import divided
    from tracekit.modules.compiling import paths_for, work_for
    from tracekit.modules.contract import Module
    from tracekit.modules.runners import runners_of
    from tracekit.modules.scheduler import KEPT
    from tracekit.replay.compiled.cost_model import pays
    from tracekit.replay.engine import Replay
    from tracekit.replay.turn_length import has_short_turns
    from tracekit.replay.window import Restriction

    restricted = restricted or Restriction(None, trace, program)
    is_costly = any(isinstance(module, Module) and module.compute_bound for module in modules.values())
    work = work_for(trace, program, modules.values())
    takes_paths = restricted.window is None and pays(work) and not has_short_turns(trace, program)
    alone = threads <= (1 if is_costly else ALONE) and takes_paths
    runners = divided(lambda: runners_of(modules, 1 if alone else threads))
    events = {event for runner in runners.values() for event in runner.columns}
    columns = {column for runner in runners.values() for columns in runner.columns.values() for column in columns}
    replay = Replay(
        trace,
        program,
        events=events | restricted.events,
        columns=columns | restricted.columns,
        kept=KEPT if threads > 1 else 1,
        start=restricted.beginning(trace, program, events),
    )
    if alone:
        replay.compiled = paths_for(trace, program, runners.values(), work)
    if restricted.window is None:
        replay.mix_streams()
    return replay, runners


def replay_through(replay: Replay, runners: Mapping[str, Runner], restricted: Restriction, threads: int) -> None:
    """Replay the trace through all modules.

    Compiled paths call the modules themselves. So replay and modules then share one thread: batches that the kernels
    make have to be delivered before compiled paths go on.
    """
    from tracekit.modules.callback_runner import CallbackRunner
    from tracekit.modules.scheduler import run

    if all(not runner.workers for runner in runners.values()):
        return
    events = {event for runner in runners.values() for event in runner.columns}
    jobs = threads if replay.compiled is None else 1
    for runner in runners.values():
        if isinstance(runner, CallbackRunner) and restricted.window is None:
            runner.begin(replay.example())
    to_end = not all(ends_with_window(runner) for runner in runners.values())
    run(restricted.batches(replay.batches(), events, to_end), list(runners.values()), jobs)


def ends_with_window(runner: Runner) -> bool:
    """Whether nothing that happens behind a window changes what the module finds."""
    from tracekit.replay.window import inside_only

    return runner.module.ends_with_window or inside_only(runner.columns)


def feed_records(trace: TraceReader, program: Program, runners: Mapping[str, Runner], threads: int) -> None:
    """Hand the records of the trace, stream by stream, to the modules that take them."""
    from tracekit.formats.records import RecordSource
    from tracekit.modules.batch_runner import RecordRunner

    taking = [runner for runner in runners.values() if isinstance(runner, RecordRunner)]
    if not taking:
        return
    source = RecordSource(trace, program.arity, ahead=threads > 1)
    done = 0
    with progress.step("reading records", sum(frame.items for frame in trace.chunk_frames()), lambda: done):
        for stream in source.streams():
            for ids, words in source.records(stream):
                for runner in taking:
                    runner.feed_records(stream, ids, words)
                done += len(ids)


def explain_pass(
    trace: TraceReader,
    program: Program,
    runners: Mapping[str, Runner],
    restricted: Restriction,
    replayed: Replay,
    say: Callable[[str], None],
) -> None:
    """Say where the replay began, and which events and columns it generated and left out (PROMPT, Table 8)."""
    from tracekit.modules.callback_runner import origin
    from tracekit.replay.engine import count_events
    from tracekit.replay.kernels.derive import derive

    say(f"replay: {origin(derive)}")
    if replayed.compiled is not None and replayed.position():  # segments have replays of their own
        say(replayed.compiled.explained(replayed.position()))
    counts = count_events(trace, program, replayed.selection)
    total = sum(counts.values())
    for name, runner in runners.items():
        say(f"{name}: {counted(runner.workers, 'worker')}, {runner.explained}")
        for event, columns in runner.columns.items():
            say(f"  {event:16}  {', '.join(_field_names(event, columns)) or '(that it happened)'}")
    if restricted.events:
        say(f"the window: {', '.join(sorted(restricted.events))}")
    if restricted.window is not None:
        place = "the beginning of the trace"
        if replayed.start is not None:
            place = f"a snapshot behind {counted(replayed.start.accesses, 'access')}"
        say(f"the replay began at {place}")
    events = restricted.events.union(*(runner.columns for runner in runners.values()))
    made = sum(counts.get(event, 0) for event in events)
    say(f"events generated: {made:,} of {total:,}; removed: {100 * (total - made) / max(total, 1):.1f} %")


def _field_names(event: str, columns: frozenset[str]) -> list[str]:
    """What `tracekit modules --events` calls these columns of an event, and any other thing by its own name."""
    names = {field.column: field.name for field in BY_NAME[event].fields}
    return [*(name for column, name in names.items() if column in columns), *sorted(columns - names.keys())]
