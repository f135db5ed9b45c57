"""The Python interface to analyses; the command line uses it, too.

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
from tracekit.analysis.first_pass import find_first
from tracekit.analysis.modules import class_of, modules_of
from tracekit.analysis.passes import explain_pass, feed_records, prepare_modules, replay_through
from tracekit.analysis.presets import expanded
from tracekit.analysis.profiles import profile_of
from tracekit.analysis.segmented import replay_segments, why_not_segmented
from tracekit.formats.errors import TracekitError
from tracekit.modules import registry
from tracekit.modules.options import make_options
from tracekit.profiles.profile import Profile

if TYPE_CHECKING:
    from tracekit.analysis.segmented import ReplayedSegments
    from tracekit.formats.reader import TraceReader
    from tracekit.modules.contract import Analysis
    from tracekit.modules.runner import Runner
    from tracekit.program.program import Program

    Elsewhere = Callable[[TraceReader, Program, Mapping[str, Runner], Mapping[str, Any]], ReplayedSegments]
    """Replays segments of a trace through the modules of all runners."""


def load_profile(path: str | Path, module: str | None = None) -> Profile:
    """Read the profile in a file that ``tracekit analyze -o`` or :meth:`Profile.save` wrote.

    `module`: the name of the module whose profile is read, if the file holds several.

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
    loaded = class_of(module)
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
    """Replay a trace once through several modules, and return their profiles in the same order.

    options: module (name, file or class) -> an instance of its Options. A preset has a profile for each of its modules.
    jobs, window: as for :func:`analyze`.
    explain: is called with lines that say what was specialised; this costs a second pass.
    segments: into how many parts the trace is cut, which are analysed in parallel (tracekit/segments). None: as many as
    keep the `jobs` busy if the trace is long, a module is slow, and all modules can be analysed so.
    elsewhere: replays the segments in other processes.
    memory: bytes (packed) that results of segments may take while they wait to be joined; the rest is kept on disk.
    None: no limit.
    as_tables: long tables in results may be a :class:`~tracekit.modules.table.Table` instead of a list.

    Raises TracekitError for a bad file, module, option or value, and if `segments` is more than 1 and a module cannot
    be analysed in segments.
    """
    from tracekit.formats.reader import TraceReader

    with TraceReader(str(path)) as trace:
        # Only now the modules that import Numba: a file that is no trace is refused at once.
        from tracekit.program.program import Program
        from tracekit.replay.recorded_windows import recorded_windows
        from tracekit.replay.window import Restriction

        threads = jobs or os.cpu_count() or 1
        with progress.step("reading the program's tables"):
            program = Program.from_images(trace.images())
        restricted = Restriction(window, trace, program)
        options = expanded(trace, program, options, window, restricted.loop, threads)
        modules = modules_of(trace, program, options, restricted)
        whole = None if elsewhere else why_not_segmented(trace, program, modules, restricted, segments, threads)
        first = [] if elsewhere else find_first(trace, program, modules, restricted, threads)
        replay, runners = prepare_modules(trace, program, modules, 1 if whole is None else threads, restricted)
        if elsewhere is not None:
            how, rules_broken = elsewhere(trace, program, runners, options)
        elif whole is None:
            how, rules_broken = replay_segments(trace, program, runners, segments, threads, memory)
        else:
            replay_through(replay, runners, restricted, threads)
            feed_records(trace, program, runners, threads)
            how, rules_broken = [f"analysed as a whole: {whole}."], replay.breaks_rules
        if explain is not None:
            for line in [*first, *how]:
                explain(line)
            explain_pass(trace, program, runners, restricted, replay, explain)
        windows = [window.as_json() for window in recorded_windows(trace, program)]
        return [
            profile_of(name, chosen, trace, program, runner, restricted, windows, rules_broken, as_tables)
            for (name, runner), chosen in zip(runners.items(), options.values())
        ]
