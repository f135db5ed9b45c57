"""The manual page, tracekit(1), made from the commands: ``python -m tracekit.manual_page``.

``docs/tracekit.1`` is what it prints; `make format` writes it anew.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import click

from tracekit.cli import COMMANDS, group
from tracekit.version import __version__

STATUS = [
    ("0", "done"),
    ("1", "failed; check: the trace breaks an invariant; doctor: something is missing; diff: the profiles differ"),
    ("2", "the command line is wrong; diff: it failed"),
    ("125", "record itself failed; else it has the status of the program"),
    ("130", "interrupted"),
    ("141", "the reader of the output went away"),
]


def page() -> str:
    """The page as roff with the macros of man(7)."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    yield f'.TH TRACEKIT 1 "" "tracekit {__version__}" "User Commands"'
    yield from (".SH NAME", "tracekit \\- record memory accesses of a program once, analyse them offline")
    yield from (".SH SYNOPSIS", ".B tracekit", "[\\-\\-version] [\\-\\-help]", ".I COMMAND", "\\&...")
    yield ".SH DESCRIPTION"
    yield from _text(group.help or "")
    yield ".SH COMMANDS"
    outer = click.Context(group, info_name="tracekit")
    for name in COMMANDS:
        yield from _command(outer, name)
    yield ".SH EXIT STATUS"
    yield from _list(STATUS)
    yield from (".SH SEE ALSO", ".BR clang (1),", ".BR valgrind (1),", ".BR perf (1)")


def _command(outer: click.Context, name: str) -> Iterator[str]:
    """The section of one command: how it is called, what it does, its options."""
    command = group.get_command(outer, name)
    assert command is not None, f"there is no command {name}"
    takes = [_argument(parameter) for parameter in command.params if isinstance(parameter, click.Argument)]
    yield f".SS tracekit {_escaped(' '.join([name, '[OPTIONS]', *takes]))}"
    yield from _text(command.help or "")
    yield from _list([_option(parameter) for parameter in command.params if isinstance(parameter, click.Option)])


# The texts are those that click shows, but for words of its own, which are others in other versions of it.


def _argument(argument: click.Argument) -> str:
    """As in the usage."""
    name = argument.metavar or (argument.name or "").upper() + ("..." if argument.nargs == -1 else "")
    return name if argument.required or name.startswith("[") else f"[{name}]"


def _option(option: click.Option) -> tuple[str, str]:
    """Its names with what it takes, and what it does."""
    names = ", ".join([*option.opts, *option.secondary_opts])
    takes = "" if option.is_flag else option.metavar or "|".join(getattr(option.type, "choices", []))
    default = f"  [default: {option.default}]" if option.show_default else ""
    return f"{names} {takes}".strip(), (option.help or "") + default


def _text(text: str) -> Iterator[str]:
    """Paragraphs; one that begins with the sign that click has for it keeps its lines."""
    for number, paragraph in enumerate(re.split(r"\n\s*\n", text.strip("\n"))):
        if number:
            yield ".PP"
        if paragraph.lstrip(" ").startswith("\b"):
            yield from (".nf", *map(_escaped, paragraph.partition("\n")[2].split("\n")), ".fi")
        else:
            yield _escaped(" ".join(paragraph.split()))


def _list(entries: list[tuple[str, str]]) -> Iterator[str]:
    for term, text in entries:
        yield from (".TP", f".B {_escaped(term)}", _escaped(text))


def _escaped(text: str) -> str:
    """Text in which roff finds no request, escape or hyphen."""
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return "\\&" + text if text.startswith((".", "'")) else text


if __name__ == "__main__":
    print(page(), end="")
