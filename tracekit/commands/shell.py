"""`tracekit shell`: queries typed at a prompt."""

from __future__ import annotations

import sys
from typing import Any

import click

from tracekit.commands import options
from tracekit.commands.progress import progress_line
from tracekit.commands.query import opened, remarks, settings_option
from tracekit.commands.terminal import terminal_style


@click.command("shell")
@settings_option
@options.jobs
@options.window
@click.argument("trace", type=click.Path())
def command(settings: tuple[str, ...], jobs: int | None, trace: str, **parts: Any) -> int:
    """Ask queries in SQL one after another, of TRACE, a trace or a profile file; .help says what else there is.

    Each module runs once, for the first query that needs it. Where standard input is no terminal, queries are read from
    it, and the exit status is 1 if one fails. It needs pip install 'tracekit[query]'.
    """
    from tracekit.query.shell import Shell, prompted

    database = opened(trace, jobs, settings, options.window_of(parts))
    style = terminal_style()
    shell = Shell(
        database,
        style,
        say=lambda text: click.echo(text, nl=False),
        complain=lambda sentence: click.echo(f"tracekit: {sentence}", err=True),
        working=progress_line,
        remarks=lambda: remarks(database.run),
    )
    if sys.stdin.isatty():
        click.echo(f"{trace}: .help for help, Ctrl-D to leave.", err=True)
        shell.run(prompted(shell))
        return 0
    shell.run(line.removesuffix("\n") for line in sys.stdin)
    return int(shell.failed)
