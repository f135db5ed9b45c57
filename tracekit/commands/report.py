"""`tracekit report`: a self-contained HTML page of a run."""

from __future__ import annotations

from pathlib import Path

import click

from tracekit import progress
from tracekit.commands import options
from tracekit.commands.progress import progress_line


@click.command("report")
@click.option(
    "-o",
    "--output",
    type=click.Path(),
    default="report.html",
    show_default=True,
    metavar="FILE",
    help="The page (-: standard output).",
)
@options.source_folders()
@click.option(
    "--loops",
    type=click.IntRange(min=1),
    default=200,
    show_default=True,
    metavar="N",
    help="Loops at most, those with most accesses.",
)
@options.jobs
@click.argument("trace", type=click.Path())
def command(output: str, folders: tuple[str, ...], loops: int, jobs: int | None, trace: str) -> None:
    """Write an HTML page: loops, dependence graphs, annotated source, heat map. It needs no network.

    TRACE is a trace, or a profile file of `tracekit analyze -o`, whose modules the page then shows.
    """
    from tracekit.inputs import gather
    from tracekit.modules import registry
    from tracekit.profiles.files import STANDARD_OUTPUT, write_whole
    from tracekit.program.sources import Sources
    from tracekit.render.html import write_page
    from tracekit.render.html.data import Limits

    modules = [name for name, display in registry.displays().items() if display.on_page]
    with progress_line():
        gathered = gather(trace, modules, jobs)
        command_line = gathered.meta.get("command") or [Path(trace).name]
        title = f"{Path(str(command_line[0])).name}: memory profile"
        with progress.step("writing the page"):
            compilation = gathered.folders.get("compilation", "")
            sources = Sources(gathered.embedded, folders, compilation, gathered.digests)
            page = write_page(gathered, sources, title, Limits(loops=loops))
            write_whole(output, [page], "the page")
    if output not in STANDARD_OUTPUT:
        click.echo(f"tracekit: {len(page.encode()) / 1000:,.0f} kB -> {output}", err=True)
