"""Options that several commands have."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from tracekit import sizes
from tracekit.commands.usage import ShortUsageError
from tracekit.formats.errors import TracekitError

_Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


if TYPE_CHECKING:
    _Whole = click.ParamType[int]
else:
    _Whole = click.ParamType  # which older versions of click do not tell the value's type of


class Size(_Whole):
    """A size of memory in bytes, as ``512M``."""

    name = "size"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """The bytes."""
        try:
            return value if isinstance(value, int) else sizes.parsed(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


def source_folders(text: str = "Look for source files below DIR, too; may be given several times.") -> _Decorator:
    """The option --source DIR; the command gets the folders as its parameter `folders`."""
    folder = click.Path(exists=True, file_okay=False)
    return click.option("--source", "folders", multiple=True, metavar="DIR", type=folder, help=text)


def _file_or_dash(ctx: click.Context, param: click.Parameter, path: str) -> str:
    from tracekit.profiles.files import STANDARD_OUTPUT

    return "-" if path in STANDARD_OUTPUT else path


output: _Decorator = click.option(
    "-o",
    "--output",
    type=click.Path(allow_dash=True),
    metavar="FILE",
    default="-",
    callback=_file_or_dash,
    help="Write to FILE instead of standard output.",
)
"""The option --output FILE of commands that print; they get it as their parameter `output`, "-": standard output."""


def require_file(ctx: click.Context, param: click.Parameter, path: str) -> str:
    """The callback of an option --output of commands that write a trace. Raises ShortUsageError for "-"."""
    if path == "-":
        raise ShortUsageError("A trace is a file: give it a name, -o FILE.")
    return path


jobs: _Decorator = click.option(
    "-j",
    "--jobs",
    type=click.IntRange(min=1),
    metavar="N",
    help="Threads; the result is the same for any number.  [default: one for each core]",
)
"""The option --jobs N; the command gets it as its parameter `jobs`."""


def output_format(choices: Sequence[str], text: str) -> _Decorator:
    """The option --format, whose default is the first of `choices`; the command gets it as its parameter `form`."""
    return click.option(
        "--format", "form", type=click.Choice(choices), default=choices[0], show_default=True, help=text
    )


short_json: _Decorator = click.option("--json", "as_json", is_flag=True, help="Short for --format json.")
"""The option --json; the command gets it as its parameter `as_json`."""


def row_limit(text: str) -> _Decorator:
    """The option --limit N: 30 rows by default, 0 for all; the command gets it as its parameter `limit`."""
    return click.option("--limit", type=click.IntRange(min=0), default=30, show_default=True, metavar="N", help=text)


def window(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options of a window on a trace; the command's parameters `function`, `loop`, `thread`, `start`, `stop`."""
    for option in reversed(_WINDOW):
        command = option(command)
    return command


_WINDOW = (
    click.option("--function", metavar="NAME", help="Only accesses while this function, or what it calls, runs."),
    click.option("--loop", metavar="FILE:LINE", help="Only accesses while this loop is open."),
    click.option("--thread", type=click.IntRange(min=0), metavar="N", help="Only accesses of this stream."),
    click.option("--from", "start", metavar="X", help="Skip the first X accesses, or as much of them: 25%."),
    click.option("--to", "stop", metavar="Y", help="Only accesses among the first Y, or the first 25%."),
)


NO_ACCESS = "tracekit: there was no access inside the window"
"""What commands say of a window that is empty, behind which the trace may be named."""


def window_of(parts: Mapping[str, Any]) -> dict[str, Any] | None:
    """The window that a command's parameters say, None without one.

    Raises ShortUsageError if it makes sense for no trace.
    """
    names = {"function": "function", "loop": "loop", "thread": "thread", "start": "from", "stop": "to"}
    chosen = {name: parts[parameter] for parameter, name in names.items() if parts.get(parameter) is not None}
    if not chosen:
        return None
    from tracekit.replay.window import Window

    try:
        Window.of(chosen)
    except TracekitError as error:
        raise ShortUsageError(str(error)) from None
    return chosen
