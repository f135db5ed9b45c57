"""`tracekit top`: loops, source and dependences in the terminal."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from tracekit import extras
from tracekit.commands import options
from tracekit.commands.annotate import annotating
from tracekit.commands.progress import progress_line
from tracekit.commands.usage import ShortUsageError


@click.command("top")
@options.source_folders()
@options.jobs
@click.argument("trace", type=click.Path())
def command(folders: tuple[str, ...], jobs: int | None, trace: str) -> None:
    """Browse the loops of a run, hottest first, their source and their dependences side by side.

    TRACE is a trace, or a profile file of `tracekit analyze -m camp -m accesses -o`. Arrows choose, Tab changes the
    pane, / searches, v shows one verdict, s sorts, Enter on a dependence goes to its ends, q leaves. It needs
    pip install 'tracekit[top]'.
    """
    extras.require("top", "tracekit top")
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise ShortUsageError(
            "tracekit top is for a terminal; `tracekit annotate` and `tracekit analyze -m camp` print."
        )
    from tracekit.inputs import gather
    from tracekit.program.sources import Sources
    from tracekit.top.view import View

    with progress_line():
        gathered = gather(trace, annotating(), jobs)
        sources = Sources(gathered.embedded, folders, gathered.folders.get("compilation", ""), gathered.digests)
        view = View(gathered, sources)
    from tracekit.top.app import Top

    Top(view, Path(trace).name).run()
