"""`tracekit export`: loads and stores of a trace in the format of a simulator."""

from __future__ import annotations

import sys
from collections.abc import Iterable

import click

from tracekit import progress
from tracekit.commands.progress import shown
from tracekit.formats.errors import TracekitError

FORMATS = ("din", "xdin", "lackey", "ramulator2", "champsim")


@click.command("export")
@click.option("-o", "--output", type=click.Path(), metavar="FILE", help="Write to FILE instead of standard output.")
@click.option("--function", metavar="NAME", help="Only accesses while this function, or what it calls, runs.")
@click.option("--loop", metavar="FILE:LINE", help="Only accesses while this loop is open.")
@click.option("--thread", type=click.IntRange(min=0), metavar="N", help="Only accesses of this stream.")
@click.option("--from", "start", metavar="X", help="Skip the first X accesses, or as much of them: 25%.")
@click.option("--to", "stop", metavar="Y", help="Only accesses among the first Y, or the first 25%.")
@click.argument("form", type=click.Choice(FORMATS), metavar="FORMAT")
@click.argument("trace", type=click.Path())
def command(
    form: str,
    trace: str,
    output: str | None,
    function: str | None,
    loop: str | None,
    thread: int | None,
    start: str | None,
    stop: str | None,
) -> None:
    """Write the loads and stores of TRACE in the FORMAT of a simulator, in the order of replay.

    \b
        din         Dinero IV, -informat d: a line for each word of 4 bytes
        xdin        Dinero IV, -informat D: with sizes
        lackey      valgrind --tool=lackey --trace-mem=yes
        ramulator2  Ramulator 2, LoadStoreTrace: a line for each 64 bytes
        champsim    ChampSim's input_instr; an instruction for each access
    """
    from tracekit.formats import export
    from tracekit.replay.trace import Trace
    from tracekit.replay.window import Window

    parts = {"function": function, "loop": loop, "thread": thread, "from": start, "to": stop}
    try:
        Window.of(parts)
    except TracekitError as error:
        raise click.UsageError(str(error)) from None
    window = {name: value for name, value in parts.items() if value is not None}
    chosen = export.FORMATS[form]
    if output is None and not chosen.is_text and sys.stdout.isatty():
        raise click.UsageError(f"{form} is binary: write it to a file, -o FILE.")
    with Trace(trace) as opened, shown(), progress.step("exporting accesses"):
        if not opened.complete:
            click.echo("tracekit: the trace is cut off; this is what it holds.", err=True)
        wanted = ["subject", "address", "size"]
        batches = opened.batches(["load", "store"], wanted, window=window or None)
        program = opened.program
        known = export.counters_of(program.counters, len(program.ops)) if program.is_imported else None
        _write(export.exported(batches, chosen, known), output)


def _write(parts: Iterable[bytes], output: str | None) -> None:
    """Write all parts, into a file whole or not at all."""
    from tracekit.profiles.files import write_bytes_whole

    if output is not None:
        write_bytes_whole(output, parts, "the accesses")
        return
    for part in parts:
        sys.stdout.buffer.write(part)
    sys.stdout.buffer.flush()
