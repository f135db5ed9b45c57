"""`tracekit diff`: what differs between two profiles."""

from __future__ import annotations

import json

import click

from tracekit.commands import options
from tracekit.commands.progress import progress_line
from tracekit.commands.terminal import terminal_style
from tracekit.formats.errors import TracekitError


@click.command("diff")
@options.output_format(("text", "json"), "What standard output gets.")
@options.short_json
@click.option(
    "--factor",
    type=click.FloatRange(min=1),
    default=1.0,
    show_default=True,
    metavar="F",
    help="In text, leave out rows of which only numbers changed, by less than this factor.",
)
@options.row_limit("Rows of each kind in text; 0 shows all.")
@click.option("--exit-code", is_flag=True, help="Exit with 1 if there are differences.")
@click.argument("before", type=click.Path())
@click.argument("after", type=click.Path())
def command(form: str, as_json: bool, factor: float, limit: int, exit_code: bool, before: str, after: str) -> int:
    """Compare two profile files: what is new, gone and changed from BEFORE to AFTER.

    Of one build, rows are matched by the ids of instructions; of two builds, by function, line, column and kind.
    """
    from tracekit.profiles.diff import compare, differ
    from tracekit.profiles.files import load
    from tracekit.render.diff import diff_text
    from tracekit.render.folding import fold_lines

    with progress_line():
        old, new = ({profile.module: profile for profile in load(path)} for path in (before, after))
    common = [module for module in old if module in new]
    if not common:
        raise TracekitError(f"{before} and {after} have no module in common: {', '.join(old)}; {', '.join(new)}.")
    alone = sorted(old.keys() ^ new.keys())
    if alone:
        click.echo(f"tracekit: only one of the files has {', '.join(alone)}; not compared.", err=True)
    with progress_line():
        differences = [compare(old[module], new[module]) for module in common]
    if as_json or form == "json":
        printed = differences[0] if len(differences) == 1 else differences
        click.echo(json.dumps(printed, ensure_ascii=False, indent=1))
    else:
        style = terminal_style()
        texts = [diff_text(difference, (before, after), factor, limit, style) for difference in differences]
        click.echo(fold_lines("\n".join(texts), style.width), nl=False)
    return int(exit_code and any(map(differ, differences)))
