"""`tracekit mcp`: a server for coding assistants."""

from __future__ import annotations

import signal

import click

from tracekit import extras
from tracekit.commands import options


@click.command("mcp")
@options.jobs
@click.argument("folders", nargs=-1, type=click.Path(exists=True, file_okay=False), metavar="[FOLDER...]")
def command(jobs: int | None, folders: tuple[str, ...]) -> None:
    """Serve coding assistants the profiles of runs by the Model Context Protocol, on standard input and output.

    It reads traces, profile files and sources below the FOLDERs, by default the current one, and nothing else, and
    changes nothing. Assistants start it themselves; docs/mcp.md says how. It needs pip install 'tracekit[mcp]'.
    """
    extras.require("mcp", "tracekit mcp")
    from tracekit.assistant.server import make_server
    from tracekit.assistant.tools import Tools

    signal.signal(signal.SIGINT, signal.SIG_DFL)  # else Ctrl-C waits for the thread that reads standard input
    make_server(Tools(folders or (".",), jobs)).run("stdio")
