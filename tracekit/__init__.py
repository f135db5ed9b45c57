"""tracekit: a trace-driven, offline memory profiler."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tracekit.formats.errors import TracekitError
from tracekit.version import __version__

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from numpy import ndarray

    from tracekit.modules.contract import Analysis
    from tracekit.profiles.profile import Profile
    from tracekit.replay.trace import Trace

__all__ = ["TracekitError", "__version__", "analyze", "calls", "load_profile", "merge", "open"]


def open(path: str | Path) -> Trace:
    """Open a trace: its image tables as arrays, its events as batches of columns.

    Raises tracekit.formats.errors.TracekitError for a file that is no trace or is damaged.
    """
    # NumPy and Numba are for those who read traces, not for `import tracekit`.
    from tracekit.replay.trace import Trace

    return Trace(path)


def analyze(
    path: str | Path | Sequence[str | Path],
    module: str | type[Analysis],
    jobs: int | None = None,
    *,
    window: Mapping[str, Any] | None = None,
    **options: Any,
) -> Profile:
    """Replay the trace at `path` through an analysis module; see :func:`tracekit.api.analyze`.

    Of several traces of one build, files, folders or patterns, the merged profile: `module` is the name of one then.
    """
    # pathlib, too, is not for `tracekit cc`, which is started for each file of a build.
    from pathlib import PurePath

    from tracekit import api

    if not isinstance(path, (str, PurePath)):
        from tracekit.many.analysis import analyze_each

        return analyze_each(path, module, jobs, window=window, options=options)
    return api.analyze(path, module, jobs, window=window, **options)


def calls(path: str | Path) -> dict[str, dict[str, ndarray]]:
    """The calls of intercepted functions, by function: a column for each argument, NAME.out for outputs, return.

    The columns ``call`` (numbers them all, from 0), ``thread``, ``depth`` and ``returned`` come first. Columns of
    numbers that no call lacks are int64, uint64, float64 or bool; all others hold objects: text, bytes, lists, None.
    """
    from tracekit.intercepted.reading import columns, read_calls

    with open(path) as trace:
        return columns(read_calls(trace.reader, trace.program))


def load_profile(path: str | Path, module: str | None = None) -> Profile:
    """Read a profile file, as ``tracekit analyze -o`` writes it; see :func:`tracekit.api.load_profile`."""
    from tracekit import api

    return api.load_profile(path, module)


def merge(paths: Sequence[str | Path]) -> list[Profile]:
    """The profiles in several files, of runs of one build, joined: one for each module; as ``tracekit merge`` does."""
    from tracekit.profiles import files
    from tracekit.profiles import merge as merging

    twice = [str(path) for number, path in enumerate(paths) if path in paths[:number]]
    if twice:
        raise TracekitError(f"{twice[0]} is named twice.")
    return merging.merge_files({str(path): files.load(path) for path in paths})
