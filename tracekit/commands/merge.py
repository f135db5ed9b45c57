"""`tracekit merge`: join the profiles of several runs of one build."""

from __future__ import annotations

import click

from tracekit.commands import options
from tracekit.commands.coverage import coverage, why_no_coverage
from tracekit.commands.progress import progress_line
from tracekit.commands.terminal import terminal_style
from tracekit.modules import registry


@click.command("merge")
@click.option(
    "-o",
    "--output",
    type=click.Path(),
    metavar="FILE",
    help="Write the joined profile to FILE (-: standard output), a profile file again.",
)
@options.output_format(("text", "json", "lcov"), "What standard output gets; lcov: coverage, of the module paths.")
@options.short_json
@options.row_limit("Rows of each table in text; 0 shows all.")
@click.argument("profiles", nargs=-1, required=True, type=click.Path(), metavar="PROFILE...")
def command(output: str | None, form: str, as_json: bool, limit: int, profiles: tuple[str, ...]) -> None:
    """Join profile files of several runs of one build into one profile.

    A dependence is there if any run shows it; counts add; verdicts of loops, lifetimes and classes of objects are
    derived anew from what all runs did. The runs may have had any inputs; the build and the options of the analysis
    have to be the same.
    """
    from tracekit.profiles.files import load, save
    from tracekit.profiles.json import as_json as json_of
    from tracekit.profiles.merge import merge_files
    from tracekit.render.registry import as_text

    names = list(dict.fromkeys(profiles))
    if len(names) < len(profiles):
        twice = next(name for name in names if profiles.count(name) > 1)
        raise click.UsageError(f"{twice} is named twice.")
    with progress_line():
        loaded = {name: load(name) for name in names}
        merged = merge_files(loaded) if len(loaded) > 1 else loaded[names[0]]
        if output is not None:
            save(output, merged)
            return
    if as_json or form == "json":
        click.echo(json_of([profile.report for profile in merged]), nl=False)
        return
    if form == "lcov":
        displays = {profile.module: registry.display(profile.module) for profile in merged}
        if (why := why_no_coverage(displays)) is not None:
            raise click.UsageError(why)
        click.echo(coverage([profile.report for profile in merged], displays), nl=False)
        return
    style = terminal_style()
    texts = [as_text(profile.report, profile.facts, limit, style) for profile in merged]
    click.echo("\n".join(texts), nl=False)
