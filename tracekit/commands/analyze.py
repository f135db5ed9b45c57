"""`tracekit analyze`: replay traces through one or more modules, each once, and print or write the profiles."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from tracekit.commands import completing, options
from tracekit.commands.coverage import coverage, why_no_coverage
from tracekit.commands.options import window_of
from tracekit.commands.progress import progress_line
from tracekit.commands.terminal import terminal_style
from tracekit.commands.usage import ShortUsageError
from tracekit.formats.errors import TracekitError
from tracekit.modules import registry
from tracekit.modules.options import make_options

if TYPE_CHECKING:
    from tracekit.modules.display import Display
    from tracekit.profiles.profile import Profile


class AnalyzeCommand(click.Command):
    """Shows the options of the one module that is named as its own."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        """Note the modules that the command line names."""
        named = extra.setdefault("obj", _named_modules(args))
        try:
            return super().make_context(info_name, args, parent, **extra)
        except click.NoSuchOption as error:
            if len(named) < 2:
                raise
            raise ShortUsageError(
                f"There is no option {error.option_name}. With several modules theirs are given as "
                "--set MODULE.OPTION=VALUE."
            ) from None

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """The parameters for parsing and for the help; ``ctx.obj`` are the modules named on the command line."""
        own = super().get_params(ctx)
        named = ctx.obj or []
        if len(named) != 1 or not registry.exists(named[0]):
            return own
        taken = {flag for parameter in own for flag in parameter.opts}
        return own[:-1] + module_options(named[0], taken) + own[-1:]  # the last is --help


def _named_modules(arguments: Sequence[str]) -> list[str]:
    """The modules that a command line names, found before it is parsed."""
    names: list[str] = []
    words = iter(arguments)
    for word in words:
        if word == "--":
            break
        if word in ("-m", "--module"):
            names.append(next(words, ""))
        elif word.startswith("--module="):
            names.append(word.partition("=")[2])
        elif word.startswith("-m") and not word.startswith("--"):
            names.append(word[2:])
    return list(dict.fromkeys(names))


def module_options(name: str, taken: Collection[str]) -> list[click.Parameter]:
    """The options of a module as options of the command, but for flags that are `taken`: for them there is --set."""
    options: list[click.Parameter] = []
    for field in dataclasses.fields(registry.load(name).Options):
        flag = "--" + field.name.replace("_", "-")
        if flag in taken:
            continue
        text = f"{registry.shown_name(name)}: {field.metadata.get('help', '')}"
        if isinstance(field.default, bool):
            options.append(click.Option([flag + "/--no-" + flag[2:]], default=None, help=text))
        else:
            shown = "" if field.default == "" else f"  [default: {field.default}]"
            options.append(click.Option([flag], type=str, metavar=field.metadata.get("metavar"), help=text + shown))
    return options


@click.command("analyze", cls=AnalyzeCommand)
@click.option(
    "-m",
    "--module",
    "modules",
    multiple=True,
    required=True,
    metavar="NAME",
    shell_complete=completing.modules,
    help="The analysis to run (`tracekit modules` lists them); may be given several times.",
)
@options.output_format(("text", "json", "lcov"), "What standard output gets; lcov: coverage, of the module paths.")
@options.short_json
@click.option(
    "-o",
    "--output",
    type=click.Path(),
    metavar="FILE",
    help="Write the profile to FILE (-: standard output), for merge, diff, annotate and report.",
)
@click.option("--image", type=click.Path(), metavar="FILE", help="Draw heatmap's profile into FILE, .svg or .png.")
@click.option("--set", "settings", multiple=True, metavar="MODULE.OPTION=VALUE", help="Set an option of a module.")
@options.row_limit("Rows of each table in text; 0 shows all.")
@options.jobs
@click.option(
    "--segments",
    type=click.IntRange(min=1),
    metavar="N",
    help="Cut the trace into N, analysed beside one another, of modules that say how; by default, for camp and others"
    " that take long, a long one into as many as there are jobs.",
)
@click.option(
    "--engine",
    metavar="ENGINE",
    help="Analyse on other workers, each trace on one, a single trace in segments where its modules can: processes"
    " starts -j of them on this machine, dask a Dask cluster of them; dask://HOST:PORT is a running scheduler.",
)
@click.option(
    "--memory",
    type=options.Size(),
    metavar="SIZE",
    help="Of what segments leave keep so much in memory while it waits to be joined, as 512M, the rest on disk;"
    " default: all in memory.",
)
@options.window
@click.option("--explain", is_flag=True, help="Say, on standard error, which events and fields were generated.")
@click.option("--keep-going", is_flag=True, help="Of several traces, leave out those that cannot be analysed.")
@click.option("--exit-code", is_flag=True, help="End with status 1 if memory_errors or races finds an error.")
@click.argument("traces", nargs=-1, required=True, type=click.Path(), metavar="TRACE...")
def command(
    modules: tuple[str, ...],
    form: str,
    as_json: bool,
    output: str | None,
    image: str | None,
    settings: tuple[str, ...],
    limit: int,
    jobs: int | None,
    segments: int | None,
    engine: str | None,
    memory: int | None,
    explain: bool,
    function: str | None,
    loop: str | None,
    thread: int | None,
    start: str | None,
    stop: str | None,
    keep_going: bool,
    exit_code: bool,
    traces: tuple[str, ...],
    **own: Any,
) -> int:
    """Replay TRACE through an analysis module and print the profile.

    Several traces, of runs of one build, are analysed beside one another, and their profiles merged, as by `tracekit
    merge`. A folder stands for its files *.zst; a pattern in quotes for what it matches.
    """
    from tracekit.many.paths import traces_of
    from tracekit.profiles.files import save

    names = list(dict.fromkeys(modules))
    displays = _displays(names)
    _check_uses(displays, image, exit_code, form)
    options = _options(names, settings, own)
    window = window_of({"function": function, "loop": loop, "thread": thread, "start": start, "stop": stop})
    _check_engine(engine, jobs)
    with progress_line():
        gathered = _gathered(traces_of(traces), options, jobs, segments, engine, memory, window, keep_going, explain)
    for line in gathered.said:
        click.echo(line, err=True)
    profiles, status = gathered.profiles, int(gathered.is_partial)
    if exit_code:
        status |= int(_failed(profiles, displays))
    if image is not None:
        _draw(profiles, displays, image)
    if output is not None:
        with progress_line():
            save(output, profiles)
    else:
        _print(profiles, displays, "json" if as_json else form, limit)
    return status


def _displays(names: Sequence[str]) -> dict[str, Display]:
    """Module -> how its profile is shown."""
    unknown = [name for name in names if not registry.exists(name)]
    if unknown:
        raise ShortUsageError(registry.unknown_text(unknown[0]))
    return {registry.shown_name(name): registry.display(name, files=True) for name in names}


def _check_uses(displays: Mapping[str, Display], image: str | None, exit_code: bool, form: str) -> None:
    """Refuse what none of the modules' profiles serves, before a replay."""
    if image is not None and len(drawn := _drawn(displays)) != 1:
        raise ShortUsageError(_no_image(drawn))
    if exit_code and not any(display.failed for display in displays.values()):
        raise ShortUsageError(_no_exit_code())
    if form == "lcov" and (why := why_no_coverage(displays)) is not None:
        raise ShortUsageError(why)


def _drawn(displays: Mapping[str, Display]) -> list[str]:
    """The modules whose profiles have a picture."""
    return [name for name, display in displays.items() if display.image]


def _draw(profiles: Sequence[Profile], displays: Mapping[str, Display], image: str) -> None:
    """Draw the profile of the one module that has a picture."""
    from tracekit.render.registry import call

    (name,) = _drawn(displays)
    report = next(profile.report for profile in profiles if profile.module == name)
    call(name, displays[name].image, report, image)


def _print(profiles: Sequence[Profile], displays: Mapping[str, Display], form: str, limit: int) -> None:
    """Profiles on standard output: as text, as JSON, or as coverage (lcov)."""
    from tracekit.profiles.gc_paused import gc_paused
    from tracekit.profiles.json import json_parts
    from tracekit.render.registry import as_text

    reports = [profile.report for profile in profiles]
    if form == "lcov":
        click.echo(coverage(reports, displays), nl=False)
    elif form == "json":
        with gc_paused():
            for part in json_parts(reports):
                click.echo(part, nl=False)
    else:
        style = terminal_style()
        texts = [as_text(each.report, each.facts, limit, style, displays.get(each.module)) for each in profiles]
        click.echo("\n".join(texts), nl=False)


class _Gathered(NamedTuple):
    """The profiles of an analysis, and what is to be said beside them."""

    profiles: Sequence[Profile]
    said: Sequence[str]
    is_partial: bool
    """Whether a trace was left out."""


def _gathered(
    traces: Sequence[str],
    options: Mapping[str, Any],
    jobs: int | None,
    segments: int | None,
    engine: str | None,
    memory: int | None,
    window: Mapping[str, Any] | None,
    keep_going: bool,
    explain: bool,
) -> _Gathered:
    """Analyse one trace in this process, several, and on a cluster any, in others."""
    if len(traces) == 1 and engine is None:
        from tracekit import api

        said: list[str] = []
        say = said.append if explain else None
        profiles = api.analyze_all(traces[0], options, jobs, say, window, segments, memory=memory, as_tables=True)
        said += _cautions("", profiles[0].cautions, profiles[0].accesses_inside)
        return _Gathered(profiles, said, False)
    if len(traces) > 1 and segments is not None and segments > 1:
        raise ShortUsageError("--segments cuts one trace; several are analysed beside one another as they are.")
    from tracekit.many.analysis import analyze_many

    by_one = None
    if len(traces) == 1 and engine is not None and segments != 1:
        from tracekit.many.segments import analyze_in_segments, why_by_one

        by_one = why_by_one(traces[0], options, window)
        if by_one is None:
            lines: list[str] = []
            profiles = analyze_in_segments(
                traces[0], options, engine, jobs, lines.append if explain else None, segments, memory
            )
            lines += _cautions("", profiles[0].cautions, profiles[0].accesses_inside)
            return _Gathered(profiles, lines, False)
        if segments is not None:
            raise TracekitError(f"{by_one}: leave out --segments.")

    joined = analyze_many(traces, options, jobs, window=window, keep_going=keep_going, explain=explain, engine=engine)
    said = []
    for outcome in joined.outcomes:
        said += [f"{outcome.trace}: {line}" for line in outcome.explained]
        said += [f"{outcome.trace}: analysed by one worker: {by_one}."] if explain and by_one else []
        said += _cautions(outcome.trace, outcome.cautions, outcome.accesses_inside)
        if outcome.left_out:
            said.append(f"tracekit: {outcome.trace} is left out: {outcome.left_out}")
    return _Gathered(joined.profiles, said, any(outcome.left_out for outcome in joined.outcomes))


def _cautions(trace: str, cautions: Sequence[str], accesses_inside: int | None) -> list[str]:
    """What a user has to know of a trace's profile; `trace`: its name, if there are several."""
    said = [f"tracekit: {trace}: {caution}" if trace else f"tracekit: {caution}" for caution in cautions]
    if accesses_inside == 0:
        said.append(f"{options.NO_ACCESS}{f' of {trace}' if trace else ''}.")
    return said


def _no_image(drawn: Sequence[str]) -> str:
    """Why `--image` draws nothing: the command names none, or several, of the modules whose profiles have a picture."""
    if drawn:
        return f"--image draws what one module finds, not {' and '.join(drawn)}."
    known = [name for name, display in registry.displays().items() if display.image]
    return f"--image draws what the module {' or '.join(known)} finds; add -m {known[0]}."


def _no_exit_code() -> str:
    """Why `--exit-code` says nothing: none of the modules looks for errors."""
    known = [name for name, display in registry.displays().items() if display.failed]
    return f"--exit-code is about what the module {' or '.join(known)} finds; add -m {known[0]}."


def _failed(profiles: Sequence[Profile], displays: Mapping[str, Display]) -> bool:
    """Whether a module that looks for errors has found one."""
    from tracekit.render.registry import call

    asked = [(profile, displays[profile.module].failed) for profile in profiles if profile.module in displays]
    return any(call(profile.module, reference, profile.report) for profile, reference in asked if reference)


def _options(names: Sequence[str], settings: Sequence[str], own: Mapping[str, Any]) -> dict[str, Any]:
    """Module -> its options, from `--set` and, for a single module, from options of its own."""
    values: dict[str, dict[str, Any]] = {registry.shown_name(name): {} for name in names}
    for setting in settings:
        target, equals, value = setting.partition("=")
        name, dot, option = target.partition(".")
        if not (equals and dot):
            raise ShortUsageError(f"--set takes MODULE.OPTION=VALUE, not {setting!r}.")
        if name not in values:
            raise ShortUsageError(f"--set {setting}: module {name!r} is not one that this command runs (-m).")
        values[name][option] = value
    values[registry.shown_name(names[0])].update({option: value for option, value in own.items() if value is not None})
    options = {}
    for name in names:
        try:
            options[name] = make_options(registry.load(name).Options, values[registry.shown_name(name)])
        except TracekitError as error:
            raise ShortUsageError(f"{registry.shown_name(name)}: {error}") from None
    return options


def _check_engine(engine: str | None, jobs: int | None) -> None:
    """Refuse as misuse what no cluster can make sense of."""
    if engine is None:
        return
    from tracekit.many.cluster import PROCESSES, address_of

    if engine == PROCESSES:
        return
    try:
        address = address_of(engine)
    except TracekitError as error:
        raise ShortUsageError(str(error)) from None
    if address is not None and jobs is not None:
        raise ShortUsageError(
            "-j says how many workers a cluster on this machine has; those of a running one are its own."
        )
