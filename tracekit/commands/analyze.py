"""`tracekit analyze`: replay a trace once through one or more modules and print or write their profiles."""

from __future__ import annotations

import dataclasses
import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import click

from tracekit import registry
from tracekit.formats.errors import TracekitError
from tracekit.options import make_options


class Misused(click.UsageError):
    """A usage error that one sentence explains."""

    def show(self, file: Any = None) -> None:
        """Print the sentence to `file`, by default standard error."""
        click.echo(f"tracekit: {self.format_message()}", file=file, err=file is None)


class AnalyzeCommand(click.Command):
    """Shows the options of the one module that is named as its own."""

    def make_context(self, info_name: str | None, args: list[str], parent: click.Context | None = None,
                     **extra: Any) -> click.Context:
        """Note the modules that the command line names."""
        extra.setdefault("obj", _named_modules(args))
        return super().make_context(info_name, args, parent, **extra)

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """The parameters for parsing and for the help; ``ctx.obj`` are the modules named on the command line."""
        own = super().get_params(ctx)
        named = ctx.obj or []
        if len(named) != 1 or named[0] not in registry.names():
            return own
        return own[:-1] + module_options(named[0]) + own[-1:]  # the last is --help


def _named_modules(arguments: Sequence[str]) -> list[str]:
    """The modules that a command line names, found before it is parsed."""
    found: list[str] = []
    words = iter(arguments)
    for word in words:
        if word == "--":
            break
        if word in ("-m", "--module"):
            found.append(next(words, ""))
        elif word.startswith("--module="):
            found.append(word.partition("=")[2])
        elif word.startswith("-m") and not word.startswith("--"):
            found.append(word[2:])
    return list(dict.fromkeys(found))


def module_options(name: str) -> list[click.Parameter]:
    """The options of a module as options of the command."""
    options: list[click.Parameter] = []
    for field in dataclasses.fields(registry.load(name).Options):
        flag = "--" + field.name.replace("_", "-")
        text = f"{name}: {field.metadata.get('help', '')}"
        if isinstance(field.default, bool):
            options.append(click.Option([flag + "/--no-" + flag[2:]], default=None, help=text))
        else:
            shown = "" if field.default == "" else f"  [default: {field.default}]"
            options.append(click.Option([flag], type=str, metavar=field.metadata.get("metavar"), help=text + shown))
    return options


@click.command("analyze", cls=AnalyzeCommand)
@click.option("-m", "--module", "modules", multiple=True, required=True, metavar="NAME",
              help="The analysis to run (`tracekit modules` lists them); may be given several times.")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True,
              help="What standard output gets.")
@click.option("--json", "as_json", is_flag=True, help="Short for --format json.")
@click.option("-o", "--output", metavar="FILE", help="Write the profile to FILE, as JSON.")
@click.option("--set", "settings", multiple=True, metavar="MODULE.OPTION=VALUE", help="Set an option of a module.")
@click.option("--limit", type=click.IntRange(min=0), default=30, show_default=True, metavar="N",
              help="Rows of each table in text; 0 shows all.")
@click.option("-j", "--jobs", type=click.IntRange(min=1), metavar="N",
              help="Threads; the profile is the same for any number.  [default: one for each core]")
@click.option("--explain", is_flag=True, help="Say, on standard error, which events and fields were generated.")
@click.argument("trace", type=click.Path())
def command(modules: tuple[str, ...], form: str, as_json: bool, output: str | None, settings: tuple[str, ...],
            limit: int, jobs: int | None, explain: bool, trace: str, **own: Any) -> None:
    """Replay TRACE through an analysis module and print the profile."""
    from tracekit import api, render

    names = list(dict.fromkeys(modules))
    unknown = [name for name in names if name not in registry.names()]
    if unknown:
        raise Misused(f"There is no module {unknown[0]!r}; the modules are: {', '.join(registry.names())}.")
    options = _options(names, settings, own)
    profiles = api.analyze_all(trace, options, jobs, (lambda line: click.echo(line, err=True)) if explain else None)
    if not profiles[0].complete:
        click.echo("tracekit: the trace is cut off; this is the profile of what it holds.", err=True)
    reports = [profile.report for profile in profiles]
    if output is not None:
        _write(output, render.as_json(reports))
        return
    if as_json or form == "json":
        click.echo(render.as_json(reports), nl=False)
        return
    style = render.Style(sys.stdout.isatty() and "NO_COLOR" not in os.environ)
    texts = [render.as_text(profile.report, profile.facts, limit, style) for profile in profiles]
    click.echo("\n".join(texts), nl=False)


def _options(names: Sequence[str], settings: Sequence[str], own: Mapping[str, Any]) -> dict[str, Any]:
    """Module -> its options, from `--set` and, for a single module, from options of its own."""
    values: dict[str, dict[str, Any]] = {name: {} for name in names}
    for setting in settings:
        target, equals, value = setting.partition("=")
        name, dot, option = target.partition(".")
        if not (equals and dot):
            raise Misused(f"--set takes MODULE.OPTION=VALUE, not {setting!r}.")
        if name not in values:
            raise Misused(f"--set {setting}: module {name!r} is not one that this command runs (-m).")
        values[name][option] = value
    values[names[0]].update({option: value for option, value in own.items() if value is not None})
    options = {}
    for name in names:
        try:
            options[name] = make_options(registry.load(name).Options, values[name])
        except TracekitError as error:
            raise Misused(f"{name}: {error}") from None
    return options


def _write(path: str, text: str) -> None:
    try:
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise TracekitError(f"Cannot write the profile to {path}: {error.strerror}.") from None
