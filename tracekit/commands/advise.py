"""`tracekit advise`: what to do with the hot loops of a run, or with one loop; with --patch, as a diff."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from tracekit.commands import completing, options
from tracekit.commands.progress import progress_line
from tracekit.commands.terminal import terminal_style
from tracekit.formats.errors import TracekitError

if TYPE_CHECKING:
    from tracekit.inputs import Gathered

TRACE = "trace.zst"
"""What `tracekit record` writes."""


@click.command("advise")
@click.option("--patch", is_flag=True, help="Print a unified diff that inserts the directives, outermost loops first.")
@options.source_folders("With --patch: look for source files below DIR, too; may be given several times.")
@click.option("--top", metavar="N", help="So many loops, those with the most accesses; 0 shows all.  [default: 10]")
@click.option("--min-share", metavar="PERCENT", help="Only loops with so much of all accesses.  [default: 1.0]")
@click.option(
    "--rare", metavar="PERCENT", help="Speculate on what happens in so few of 100 iterations.  [default: 1.0]"
)
@click.option("--threads", is_flag=True, help="Also say what depends on what between threads.")
@click.option("--json", "as_json", is_flag=True, help="Print the advice as JSON, as `analyze -m advise --json` does.")
@options.jobs
@click.argument("words", nargs=-1, metavar="[FILE:LINE] [TRACE]", shell_complete=completing.files)
def command(
    patch: bool,
    folders: tuple[str, ...],
    top: str | None,
    min_share: str | None,
    rare: str | None,
    threads: bool,
    as_json: bool,
    jobs: int | None,
    words: tuple[str, ...],
) -> None:
    """Say of each hot loop of a run what keeps it from being parallel, or how to make it so; or of that at FILE:LINE.

    TRACE is a trace, by default trace.zst, or a profile file of `tracekit analyze -m camp` or `-m advise`.
    """
    from tracekit.inputs import gather_advice

    at, trace = _place_and_trace(words)
    given = {"top": top, "min_share": min_share, "rare": rare, "at": at, "threads": threads or None}
    options = _options({name: value for name, value in given.items() if value is not None})
    with progress_line():
        gathered = gather_advice(trace, options, jobs)
    (profile,) = gathered.profiles
    for caution in profile.cautions:
        click.echo(f"tracekit: {caution}", err=True)
    if patch:
        _print_patch(gathered, folders)
        return
    if as_json:
        from tracekit.profiles.json import as_json as json_of

        click.echo(json_of([profile.report]), nl=False)
        return
    from tracekit.render.registry import as_text

    click.echo(as_text(profile.report, profile.facts, 0, terminal_style()), nl=False)


def _place_and_trace(words: Sequence[str]) -> tuple[str, str]:
    """FILE:LINE, or nothing, and the file of the trace, in either order."""
    if len(words) > 2:
        raise click.UsageError(f"advise takes FILE:LINE and a trace, not {len(words)} words.")
    places = [word for word in words if _is_place(word)]
    traces = [word for word in words if word not in places]
    if len(places) > 1:
        raise click.UsageError(f"{places[0]} and {places[1]} are two places; advise takes one, and a trace.")
    if len(traces) > 1:
        raise click.UsageError(f"{traces[0]!r} is no FILE:LINE.")
    return "".join(places), traces[0] if traces else TRACE


def _is_place(word: str) -> bool:
    file, _, line = word.rpartition(":")
    return bool(file) and line.isdecimal() and not os.path.exists(word)


def _options(given: dict[str, Any]) -> Any:
    from tracekit.modules import registry
    from tracekit.modules.options import make_options

    try:
        return make_options(registry.load("advise", files=False).Options, given)
    except TracekitError as error:
        raise click.UsageError(str(error)) from None


def _print_patch(gathered: Gathered, folders: Sequence[str]) -> None:
    """The diff on standard output; on standard error what it leaves out, and why."""
    from tracekit.patches.patch import make_patch
    from tracekit.program.sources import Sources

    compilation = gathered.folders.get("compilation", "")
    sources = Sources(gathered.embedded, folders, compilation, gathered.digests)
    made = make_patch(gathered.profiles[0].result["loops"], sources, folders, compilation)
    for sentence in made.notes:
        click.echo(f"tracekit: {sentence}", err=True)
    if not made.diff:
        raise TracekitError("There is nothing to insert." if made.notes else _no_loop(gathered))
    sys.stdout.flush()
    sys.stdout.buffer.write(made.diff)
    sys.stdout.buffer.flush()


def _no_loop(gathered: Gathered) -> str:
    """Why there is no patch although nothing was left out."""
    from tracekit.program.fates import fate_text

    at, replaced = gathered.profiles[0].report["options"]["at"], gathered.profiles[0].result["replaced"]
    if replaced:
        return fate_text(replaced)
    return f"The loop at {at} is not parallel as it stands." if at else "No hot loop is parallel as it stands."
