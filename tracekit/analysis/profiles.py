"""Makes the profile of what a module has found in a trace."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tracekit import progress
from tracekit.modules.options import said
from tracekit.modules.table import with_rows
from tracekit.profiles.gc_paused import gc_paused
from tracekit.profiles.profile import Profile

if TYPE_CHECKING:
    from tracekit.formats.reader import TraceReader
    from tracekit.modules.runner import Runner
    from tracekit.program.program import Program
    from tracekit.replay.window import Restriction


@gc_paused()
def profile_of(
    name: str,
    options: Any,
    trace: TraceReader,
    program: Program,
    runner: Runner,
    restricted: Restriction,
    windows: list[dict[str, Any]],
    rules_broken: bool,
    as_tables: bool,
) -> Profile:
    """Make the profile of one module; `windows`: those that the run was recorded in, as JSON values.

    rules_broken: whether the replay found records that break its rules.
    """
    from tracekit.formats.kept_images import kept_images
    from tracekit.replay.recorded_windows import is_windowed
    from tracekit.version import __version__

    with progress.step(f"making the profile of {name}"):
        runner.end()
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
        trace.build,
        images,
        runner.merge_state,
        rules_broken,
    )


def _folders(program: Program) -> dict[str, dict[str, str]]:
    """The folder that names of source files are relative to, and the one that all are in; empty if not known."""
    names = program.source_names
    return {"folders": {"compilation": names.compilation, "sources": names.common}} if names.compilation else {}
