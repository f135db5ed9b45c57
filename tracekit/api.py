"""Analyses as a program asks for them; the command line is one of its users.

import tracekit

profile = tracekit.analyze("trace.zst", "camp", kinds="raw")
profile.to_dataframe("loops")
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tracekit import progress
from tracekit.counted import counted
from tracekit.formats.errors import TracekitError
from tracekit.formats.events import BY_NAME
from tracekit.modules import registry
from tracekit.modules.options import make_options, said
from tracekit.modules.table import with_rows
from tracekit.profiles.gc_paused import gc_paused
from tracekit.profiles.profile import Profile

if TYPE_CHECKING:
    from tracekit.formats.reader import TraceReader
    from tracekit.modules.contract import Analysis, Module
    from tracekit.modules.runner import Runner
    from tracekit.program.program import Program
    from tracekit.replay.engine import Replay
    from tracekit.replay.window import Restriction

    Elsewhere = Callable[[TraceReader, Program, Mapping[str, Runner], Mapping[str, Any]], int]
    """Replays segments of a trace through the modules of all runners, and says how many there were."""

ALONE = 2
"""Threads up to which a module with compiled paths and one worker is as fast as workers that share the memory; for one
that is bound by its own computing it is not with two."""


def load_profile(path: str | Path, module: str | None = None) -> Profile:
    """The profile in a file that ``tracekit analyze -o`` or :meth:`Profile.save` wrote; of several that of `module`.

    Raises TracekitError if the file is no profile, is of a newer version, or has none, or several, to choose from.
    """
    from tracekit.profiles import files

    profiles = [profile for profile in files.load(path) if module is None or profile.module == module]
    if len(profiles) == 1:
        return profiles[0]
    if profiles:
        raise TracekitError(
            f"{path} holds profiles of {', '.join(profile.module for profile in profiles)}: name one of them."
        )
    raise TracekitError(f"{path} holds no profile of {module}.")


def analyze(
    path: str | Path,
    module: str | type[Analysis],
    jobs: int | None = None,
    *,
    window: Mapping[str, Any] | None = None,
    **options: Any,
) -> Profile:
    """Replay the trace at `path` through one module; `options` are the module's.

    `module`: its name, the path of its file (.py), or its class. `jobs` is the number of threads (None: one for each
    core); the profile does not depend on it. `window` restricts the analysis (docs/cli.md, "Windows"): any of
    ``{"function": "main", "loop": "app.c:12", "thread": 0, "from": 1000, "to": "25%"}``.
    Raises TracekitError for a bad file, module, option or value.
    """
    loaded = _loaded(module)
    profiles = analyze_all(path, {module: make_options(loaded.Options, options)}, jobs, window=window)
    if len(profiles) > 1:
        raise TracekitError(f"{registry.shown_name(module)} stands for several modules: use tracekit.api.analyze_all.")
    return profiles[0]


def analyze_all(
    path: str | Path,
    options: Mapping[Any, Any],
    jobs: int | None = None,
    explain: Callable[[str], None] | None = None,
    window: Mapping[str, Any] | None = None,
    segments: int | None = None,
    elsewhere: Elsewhere | None = None,
    memory: int | None = None,
    as_tables: bool = False,
) -> list[Profile]:
    """Replay a trace once through several modules: name, file or class -> an instance of the module's Options.

    `explain` is called with lines that say what was specialised; it costs a second pass. The trace is cut into so many
    `segments`, which are analysed beside one another (tracekit/segments): None: as many as keep the `jobs` busy, if the
    trace is long, a module takes long, and all say how; more than 1: raises TracekitError if they do not.
    What segments leave and waits to be joined may take `memory` bytes, packed; the rest is on disk. None: any number.
    `as_tables`: long tables of results may be a :class:`~tracekit.modules.table.Table` in place of a list.
    """
    from tracekit.formats.reader import TraceReader

    with TraceReader(str(path)) as trace:
        # Only now the modules that import Numba: a file that is no trace is told so at once.
        from tracekit.program.program import Program
        from tracekit.replay.recorded_windows import recorded_windows
        from tracekit.replay.window import Restriction

        threads = jobs or os.cpu_count() or 1
        with progress.step("reading the program's tables"):
            program = Program.from_images(trace.images())
        restricted = Restriction(window, trace, program)
        options = expanded(trace, program, options, window, restricted.loop, threads)
        modules = modules_of(trace, program, options, restricted)
        is_known = False
        whole = None if elsewhere else _why_whole(trace, program, modules, restricted, segments, threads)
        replay, runners = _prepared(trace, program, modules, 1 if whole is None else threads, restricted)
        if elsewhere is not None:
            parts = elsewhere(trace, program, runners, options)
        elif whole is None:
            parts, is_known = _run_in_segments(trace, program, runners, segments, threads, memory)
        else:
            _run(replay, runners, restricted, threads)
            _run_records(trace, program, runners, threads)
        if explain is not None:
            kept = ", which begin with what an earlier analysis has kept" if is_known else ""
            explain(
                f"analysed in {counted(parts, 'segment')}{kept}" if whole is None else f"analysed as a whole: {whole}."
            )
            _explain(trace, program, runners, restricted, replay, explain)
        windows = [window.as_json() for window in recorded_windows(trace, program)]
        return [
            _profile(name, chosen, trace, program, runner, restricted, windows, as_tables)
            for (name, runner), chosen in zip(runners.items(), options.values())
        ]


def expanded(
    trace: TraceReader,
    program: Program,
    options: Mapping[Any, Any],
    window: Mapping[str, Any] | None,
    loop: tuple[str, int] | None,
    threads: int,
) -> dict[Any, Any]:
    """The modules that presets stand for in their places; one that is also asked for by itself has its own options.

    What options leave to the trace is settled; `loop` is that of the window.
    """
    from tracekit.modules.contract import NoOptions, Preset
    from tracekit.replay.window import Restriction

    def count(module: type[Module]) -> dict[str, Any]:
        restricted = Restriction(window, trace, program)
        replay, runners = prepare(trace, program, {module: NoOptions()}, threads, restricted)
        with progress.step("counting first"):
            _run(replay, runners, restricted, threads)
        return runners[module.__name__].result()[0]

    expanded: dict[Any, Any] = {}
    for name, chosen in options.items():
        kind = _loaded(name)
        members = kind(program, chosen).modules() if issubclass(kind, Preset) else {name: chosen}
        expanded.update((member, options.get(member, own)) for member, own in members.items())
    for name, chosen in expanded.items():
        _require_events(trace, program, name, chosen)
    return {name: _loaded(name).settled(chosen, loop, count) for name, chosen in expanded.items()}


def _require_events(trace: TraceReader, program: Program, module: Any, chosen: Any) -> None:
    """Raise TracekitError if the trace is imported, and the module wants more than such a trace has."""
    kind = _loaded(module)
    if not program.is_imported or kind.accesses_suffice(chosen):
        return
    asked = " with these options" if kind.accesses_suffice(make_options(kind.Options, {})) else ""
    origin = (trace.meta.get("imported") or {}).get("format", "another tool")
    raise TracekitError(
        f"The module {registry.shown_name(module)} needs more than loads and stores{asked}; "
        f"a trace imported from {origin} has nothing else."
    )


def _run(replay: Replay, runners: Mapping[str, Runner], restricted: Restriction, threads: int) -> None:
    """Replay, through all modules. With compiled paths what they do not replay has to be done before they go on."""
    from tracekit.modules.runner import CallbackRunner
    from tracekit.modules.scheduler import run

    if all(not runner.workers for runner in runners.values()):
        return
    events = {event for runner in runners.values() for event in runner.columns}
    jobs = threads if replay.compiled is None else 1
    for runner in runners.values():
        if isinstance(runner, CallbackRunner) and restricted.window is None:
            runner.begin(replay.no_events())
    run(restricted.batches(replay.batches(), events), list(runners.values()), jobs)


def _run_records(trace: TraceReader, program: Program, runners: Mapping[str, Runner], threads: int) -> None:
    """Hand the records of the trace, stream by stream, to the modules that take them."""
    from tracekit.formats.records import RecordSource
    from tracekit.modules.runner import RecordRunner

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


def _why_whole(
    trace: TraceReader,
    program: Program,
    modules: Mapping[str, Analysis],
    restricted: Restriction,
    segments: int | None,
    threads: int,
) -> str | None:
    """Why the trace is not analysed in segments, or None: it is. Raises TracekitError if that was asked for.

    The pass ahead takes longer than it spares modules that take less than replaying.
    """
    from tracekit.modules.contract import Module
    from tracekit.replay.recorded_windows import is_windowed
    from tracekit.replay.totals import trace_totals
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
    return None


def _run_in_segments(
    trace: TraceReader,
    program: Program,
    runners: Mapping[str, Runner],
    segments: int | None,
    threads: int,
    memory: int | None,
) -> tuple[int, bool]:
    """Replay segments of the trace, each through all modules.

    Returns how many there are, and whether an earlier analysis has kept what they begin with.
    """
    from tracekit.modules.runner import CallbackRunner
    from tracekit.replay.totals import trace_totals
    from tracekit.segments.analysis import SegmentedAnalysis

    working = {name: runner for name, runner in runners.items() if isinstance(runner, CallbackRunner)}
    cuts = None
    if segments is not None:
        accesses = trace_totals(trace, program)["accesses"]
        cuts = [accesses * number // segments for number in range(1, segments)]
    analysis = SegmentedAnalysis(trace, program, working, memory=memory)
    return analysis.run(threads, cuts), analysis.is_known


def _loaded(module: str | type[Analysis]) -> type[Analysis]:
    return registry.load(module) if isinstance(module, str) else module


def modules_of(
    trace: TraceReader,
    program: Program,
    options: Mapping[str | type[Analysis], Any],
    restricted: Restriction | None = None,
) -> dict[str, Analysis]:
    """The modules of one pass, by name, each with its options."""
    modules: dict[str, Analysis] = {}
    for module, chosen in options.items():
        name, made = registry.shown_name(module), _loaded(module)(program, chosen)
        if name in modules:
            raise TracekitError(f"Two modules of one pass are called {name!r}.")
        _inform(made, name, trace, program, restricted)
        modules[name] = made
    return modules


def _inform(module: Analysis, name: str, trace: TraceReader, program: Program, restricted: Restriction | None) -> None:
    """Tell a module what is known of the run before the first event.

    Raises TracekitError if it looks at whole runs and is given a part of one.
    """
    from tracekit.address_space import read_snapshots
    from tracekit.modules.contract import Module, RecordModule
    from tracekit.modules.services import LOCATED
    from tracekit.physical.table import read_page_frames
    from tracekit.replay.recorded_windows import is_windowed
    from tracekit.replay.totals import trace_totals
    from tracekit.schedule.hand_overs import read_hand_overs

    module.windowed = is_windowed(trace) or (restricted is not None and restricted.window is not None)
    if module.windowed and (isinstance(module, RecordModule) or module.wants_hand_overs):
        who = f"{'With these options the' if module.wants_hand_overs else 'The'} module {name} looks at whole runs"
        raise TracekitError(
            f"{who}, and this trace holds windows of one." if is_windowed(trace) else f"{who}: leave out the window."
        )
    module.accesses = trace_totals(trace, program)["accesses"]
    module.metadata = {**trace.meta, **(trace.done or {})}
    if module.wants_address_space:
        module.address_space = [snapshot.as_json() for snapshot in read_snapshots(trace)]
    if module.wants_hand_overs:
        module.hand_overs = read_hand_overs(trace, program)
    if isinstance(module, Module) and LOCATED & module.services():
        module.page_frames = read_page_frames(trace)
        module.stream_count = max(trace.streams(), default=0) + 1
        module.whole_because = module.whole_because or "page frames follow from the times of all that was before"


def prepare(
    trace: TraceReader,
    program: Program,
    options: Mapping[str | type[Analysis], Any],
    threads: int,
    restricted: Restriction | None = None,
) -> tuple[Replay, dict[str, Runner]]:
    """A replay of the events and columns that modules want, and the modules' runners by name."""
    return _prepared(trace, program, modules_of(trace, program, options, restricted), threads, restricted)


def _prepared(
    trace: TraceReader,
    program: Program,
    modules: Mapping[str, Analysis],
    threads: int,
    restricted: Restriction | None,
) -> tuple[Replay, dict[str, Runner]]:
    from tracekit.containers.budget import divided
    from tracekit.modules.contract import Module, RecordModule
    from tracekit.modules.ranges import is_for_runs
    from tracekit.modules.runner import CallbackRunner, runners_of
    from tracekit.modules.scheduler import KEPT
    from tracekit.replay.compiled import compiler, worth
    from tracekit.replay.engine import Replay
    from tracekit.replay.totals import trace_totals
    from tracekit.replay.window import Restriction

    restricted = restricted or Restriction(None, trace, program)
    accesses = trace_totals(trace, program)["accesses"]
    is_costly = any(isinstance(module, Module) and module.compute_bound for module in modules.values())
    for_runs = all(
        isinstance(module, Module) and is_for_runs(module.callbacks(), module.range_callbacks())
        for module in modules.values()
        if not isinstance(module, RecordModule) or module.events
    )
    records = worth.records_of(trace)
    work = worth.work_of(records, accesses, for_runs=for_runs)
    alone = threads <= (1 if is_costly else ALONE) and restricted.window is None and worth.pays(work)
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
    sinks = [runner for runner in runners.values() if runner.workers]
    if sinks and alone and all(isinstance(runner, CallbackRunner) and runner.handlers for runner in sinks):
        paths = compiler.CompiledPaths(
            [runner for runner in sinks if isinstance(runner, CallbackRunner)],
            repr(build_of(trace)).encode(),
            records,
            work,
        )
        replay.compiled = paths if paths.may_compile else None
    return replay, runners


def _explain(
    trace: TraceReader,
    program: Program,
    runners: Mapping[str, Runner],
    restricted: Restriction,
    replayed: Replay,
    say: Callable[[str], None],
) -> None:
    """Where the replay began, which events and columns were generated, and the share that was not (PROMPT, Table 8)."""
    from tracekit.modules.runner import origin
    from tracekit.replay.engine import count_events
    from tracekit.replay.kernels.derive import derive

    say(f"replay: {origin(derive)}")
    if replayed.compiled is not None:
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
            place = f"a snapshot behind {counted(replayed.start.accesses, 'access', 'accesses')}"
        say(f"the replay began at {place}")
    events = restricted.events.union(*(runner.columns for runner in runners.values()))
    made = sum(counts.get(event, 0) for event in events)
    say(f"events generated: {made:,} of {total:,}; removed: {100 * (total - made) / max(total, 1):.1f} %")


def _field_names(event: str, columns: frozenset[str]) -> list[str]:
    """What `tracekit modules --events` calls these columns of an event, and any other thing by its own name."""
    names = {field.column: field.name for field in BY_NAME[event].fields}
    return [*(name for column, name in names.items() if column in columns), *sorted(columns - names.keys())]


@gc_paused()
def _profile(
    name: str,
    options: Any,
    trace: TraceReader,
    program: Program,
    runner: Runner,
    restricted: Restriction,
    windows: list[dict[str, Any]],
    as_tables: bool,
) -> Profile:
    from tracekit.formats.kept_images import kept_images
    from tracekit.replay.recorded_windows import is_windowed
    from tracekit.version import __version__

    with progress.step(f"making the profile of {name}"):
        result, facts = runner.result()
    report = {
        "tracekit": __version__,
        "module": name,
        "trace": trace.content_hash,
        **_folders(program),
        "options": said(options),
        **({} if restricted.window is None else {"window": restricted.window.as_json()}),
        **({"windows": windows} if is_windowed(trace) else {}),
        **({"filters": trace.meta["filters"]} if trace.meta.get("filters") else {}),
        "result": result if as_tables else with_rows(result),
    }
    images = tuple(kept_images(trace)) if runner.module.merges_with_program else ()
    return Profile(
        report,
        facts,
        trace.complete and not trace.cut,
        restricted.accesses_inside,
        build_of(trace),
        images,
        runner.merge_state,
    )


def build_of(trace: TraceReader) -> tuple[tuple[Any, ...], ...]:
    """What tells the program from others: the hash of each unit, image by image."""
    return tuple(tuple(unit.hash for unit in image.units) for image in trace.images())


def _folders(program: Program) -> dict[str, dict[str, str]]:
    """Where the names of source files start, and what folder they are all in; nothing if the former is not known."""
    names = program.source_names
    return {"folders": {"compilation": names.compilation, "sources": names.common}} if names.compilation else {}
