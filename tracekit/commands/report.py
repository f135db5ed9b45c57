"""`tracekit report`: a self-contained HTML page of a run."""

from __future__ import annotations

from pathlib import Path

import click

MODULES = ("camp", "accesses", "heatmap")
"""What a trace is analysed with."""

IF_THERE = ("object_lifetime",)
"""And with these, if there are such modules."""


@click.command("report")
@click.option("-o", "--output", default="report.html", show_default=True, metavar="FILE", help="The page.")
@click.option("--source", "folders", multiple=True, metavar="DIR", type=click.Path(exists=True, file_okay=False),
              help="Look for source files below DIR, too; may be given several times.")
@click.option("--loops", type=click.IntRange(min=1), default=200, show_default=True, metavar="N",
              help="Loops at most, those with most accesses.")
@click.option("-j", "--jobs", type=click.IntRange(min=1), metavar="N", help="Threads.")
@click.argument("trace", type=click.Path())
def command(output: str, folders: tuple[str, ...], loops: int, jobs: int | None, trace: str) -> None:
    """Write an HTML page: loops, dependence graphs, annotated source, heat map. It needs no network.

    TRACE is a trace, or a profile file of `tracekit analyze -o`, whose modules the page then shows.
    """
    from tracekit import gathering, registry
    from tracekit.page import write_page
    from tracekit.page.data import Limits
    from tracekit.profiles import write_whole
    from tracekit.sources import Sources

    modules = (*MODULES, *(name for name in IF_THERE if registry.exists(name)))
    gathered = gathering.gather(trace, modules, jobs)
    command_line = gathered.meta.get("command") or [Path(trace).name]
    title = f"{Path(str(command_line[0])).name}: memory profile"
    page = write_page(gathered, Sources(gathered.embedded, folders), title, Limits(loops=loops))
    write_whole(output, page, "the page")
    click.echo(f"tracekit: {len(page.encode()) / 1000:,.0f} kB -> {output}", err=True)
