"""`tracekit annotate`: the source, with what happened beside each line."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from tracekit.commands import completing, options
from tracekit.commands.progress import progress_line
from tracekit.commands.terminal import terminal_style
from tracekit.formats.errors import TracekitError

if TYPE_CHECKING:
    from tracekit.profiles.annotation import Annotations


@click.command("annotate")
@options.source_folders()
@click.option(
    "--lines",
    "around",
    type=click.IntRange(min=0),
    default=3,
    show_default=True,
    metavar="N",
    help="Lines shown before and after each line with notes.",
)
@click.option("--all", "whole", is_flag=True, help="Show the whole file.")
@click.option("--json", "as_json", is_flag=True, help="Print the notes as one JSON object.")
@options.row_limit("Files listed; 0 lists all.")
@options.jobs
@click.argument("trace", type=click.Path())
@click.argument("file", required=False, shell_complete=completing.files)
def command(
    folders: tuple[str, ...],
    around: int,
    whole: bool,
    as_json: bool,
    limit: int,
    jobs: int | None,
    trace: str,
    file: str | None,
) -> None:
    """Print the source FILE with the loads, stores, carried dependences and verdicts of each line.

    TRACE is a trace, or a profile file of `tracekit analyze -m camp -m accesses -o`. Without FILE the files are listed.
    """
    from tracekit.inputs import gather
    from tracekit.modules import registry
    from tracekit.profiles.annotation import Annotations
    from tracekit.program.sources import Sources, chosen_file
    from tracekit.render.annotation import files_text, source_text

    with progress_line():
        gathered = gather(trace, annotating(), jobs)
        notes = Annotations([profile.report for profile in gathered.profiles])
    if not notes.has_accesses and not notes.loops_from:
        *others, last = [name for name, display in registry.displays().items() if display.notes]
        raise TracekitError(f"{trace} says nothing of lines: it has no profile of {', '.join(others)} or {last}.")
    compilation = gathered.folders.get("compilation", "")
    sources = Sources(gathered.embedded, folders, compilation, gathered.digests)
    style = terminal_style()
    if file is None:
        if as_json:
            click.echo(json.dumps([_file_json(notes, name) for name in notes.hottest()], ensure_ascii=False, indent=1))
            return
        readable = [name for name in notes.hottest()[: limit or None] if sources.lines(name) is not None]
        click.echo(files_text(notes, readable, gathered.folders, limit, style), nl=False)
        return
    name = chosen_file(file, notes.files, compilation)
    if as_json:
        click.echo(json.dumps(_file_json(notes, name), ensure_ascii=False, indent=1))
        return
    text = sources.lines(name)
    if text is None:
        raise TracekitError(sources.missing(name))
    click.echo(source_text(notes, name, text, None if whole else around, style), nl=False)


def annotating() -> list[str]:
    """The modules that say something of lines, and are run on a trace for that."""
    from tracekit.modules import registry

    return [name for name, display in registry.displays().items() if display.on_page and display.notes]


def _file_json(notes: Annotations, file: str) -> dict[str, Any]:
    """A file's notes: the lines in order, each with its number."""
    lines = []
    for number, note in sorted(notes.files[file].items()):
        ends = [
            {"kind": kind, "way": way, "file": other, "line": line, "count": count}
            for (kind, way, other, line), count in sorted(note.ends.items())
        ]
        lines.append(
            {
                "line": number,
                "loads": note.loads,
                "stores": note.stores,
                "bytes": note.bytes,
                "carried": ends,
                "loops": [asdict(loop) for loop in note.loops],
            }
        )
    loads, stores = notes.totals(file)
    return {"file": file, "loads": loads, "stores": stores, "lines": lines}
