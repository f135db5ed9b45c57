"""`tracekit calls`: the calls of chosen functions, with their arguments and results."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from tracekit.commands import options
from tracekit.commands.progress import progress_line
from tracekit.formats.errors import TracekitError

if TYPE_CHECKING:
    from tracekit.intercepted.reading import Call

SHOWN = 32
"""Bytes and elements of a value that lines for a person have."""


@click.command("calls")
@options.output_format(("text", "jsonl"), "Lines for a person, or one JSON object a line.")
@click.option("--function", metavar="F", help="Only calls of this function.")
@click.option("--limit", type=click.IntRange(min=0), metavar="N", help="Stop after N calls.")
@click.argument("trace", type=click.Path())
def command(trace: str, form: str, function: str | None, limit: int | None) -> None:
    """List the calls of functions that were built with `cc --intercept` or named by `record --intercept`."""
    from tracekit.intercepted.reading import read_calls
    from tracekit.replay.trace import Trace

    with Trace(trace) as opened, progress_line():
        found = list(read_calls(opened.reader, opened.program))
    if not found:
        raise TracekitError(f"{trace} has no calls: name functions with `tracekit record --intercept`")
    chosen = [call for call in found if function is None or call.function == function]
    for call in chosen[:limit]:
        click.echo(json.dumps(call.as_json(), ensure_ascii=False) if form == "jsonl" else as_text(call))


def as_text(call: Call) -> str:
    """One line: `1  compress(dest=0x7ff0, size=200) = 0, size=31`, the thread before it, indented by its depth."""
    arguments = ", ".join(f"{name}={_shown(value)}" for name, value in call.arguments.items())
    parts = [] if call.result is None else [_shown(call.result)]
    parts += [f"{name}={_shown(value)}" for name, value in call.outputs.items()]
    ending = f" = {', '.join(parts)}" if parts else ""
    return f"{call.thread:>3}  {'  ' * call.depth}{call.function}({arguments}){ending if call.returned else ' ...'}"


def _shown(value: Any) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return json.dumps(value[:SHOWN], ensure_ascii=False) + ("..." if len(value) > SHOWN else "")
    if isinstance(value, bytes):
        return value[:SHOWN].hex(" ", -4) + (f"... ({len(value)} bytes)" if len(value) > SHOWN else "")
    if isinstance(value, list):
        rest = f", ... ({len(value)})" if len(value) > SHOWN else ""
        return f"[{', '.join(_shown(each) for each in value[:SHOWN])}{rest}]"
    return hex(value) if isinstance(value, int) and value >= 1 << 32 else f"{value}"
