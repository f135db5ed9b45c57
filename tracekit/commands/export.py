"""`tracekit export`: loads and stores of a trace in the format of a simulator."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import click

from tracekit import progress
from tracekit.commands.progress import shown
from tracekit.formats.errors import TracekitError

if TYPE_CHECKING:
    from tracekit.replay.trace import Trace

FORMATS = ("din", "xdin", "lackey", "ramulator2", "champsim")
TABLES = ("accesses", "events", "instructions")
OF_TABLES = ("parquet", "arrow")
"""Formats of tables; the others are of loads and stores alone."""


@click.command("export")
@click.option("-o", "--output", type=click.Path(), metavar="FILE", help="Write to FILE instead of standard output.")
@click.option("--function", metavar="NAME", help="Only accesses while this function, or what it calls, runs.")
@click.option("--loop", metavar="FILE:LINE", help="Only accesses while this loop is open.")
@click.option("--thread", type=click.IntRange(min=0), metavar="N", help="Only accesses of this stream.")
@click.option("--from", "start", metavar="X", help="Skip the first X accesses, or as much of them: 25%.")
@click.option("--to", "stop", metavar="Y", help="Only accesses among the first Y, or the first 25%.")
@click.option(
    "--table",
    type=click.Choice(TABLES),
    help="parquet, arrow: loads and stores (the default), all events, or the instructions that they name.",
)
@click.argument("form", type=click.Choice(FORMATS + OF_TABLES), metavar="FORMAT")
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
    table: str | None,
) -> None:
    """Write the loads and stores of TRACE in the FORMAT of a simulator, in the order of replay, or as a table.

    \b
        din         Dinero IV, -informat d: a line for each word of 4 bytes
        xdin        Dinero IV, -informat D: with sizes
        lackey      valgrind --tool=lackey --trace-mem=yes
        ramulator2  Ramulator 2, LoadStoreTrace: a line for each 64 bytes
        champsim    ChampSim's input_instr; an instruction for each access
        parquet     Apache Parquet: a row for each access (--table)
        arrow       Apache Arrow's file format, the same
    """
    if table is not None and form not in OF_TABLES:
        raise click.UsageError(f"--table is for {' and '.join(OF_TABLES)}; {form} has loads and stores alone.")
    if form in OF_TABLES and output is None:
        raise click.UsageError(f"{form} is written to a file: -o FILE.")
    from tracekit.formats import export
    from tracekit.replay.trace import Trace
    from tracekit.replay.window import Window

    parts = {"function": function, "loop": loop, "thread": thread, "from": start, "to": stop}
    try:
        Window.of(parts)
    except TracekitError as error:
        raise click.UsageError(str(error)) from None
    window = {name: value for name, value in parts.items() if value is not None}
    if form in OF_TABLES:
        assert output is not None
        _write_table(form, table or "accesses", trace, output, window or None)
        return
    chosen = export.FORMATS[form]
    if output is None and not chosen.is_text and sys.stdout.isatty():
        raise click.UsageError(f"{form} is binary: write it to a file, -o FILE.")
    with Trace(trace) as opened, shown(), progress.step("exporting accesses"):
        _say_if_cut(opened)
        wanted = ["subject", "address", "size"]
        batches = opened.batches(["load", "store"], wanted, window=window or None)
        program = opened.program
        known = export.counters_of(program.counters, len(program.ops)) if program.is_imported else None
        _write(export.exported(batches, chosen, known), output)


def _say_if_cut(opened: Trace) -> None:
    if not opened.complete:
        click.echo("tracekit: the trace is cut off; this is what it holds.", err=True)


def _write_table(form: str, table: str, trace: str, output: str, window: dict[str, Any] | None) -> None:
    """Write a table of the trace, into a file whole or not at all."""
    from tracekit.formats.export import NO_COUNTER, arrow, counters_of
    from tracekit.profiles.files import written_whole
    from tracekit.replay.trace import Trace

    if table == "instructions" and window:
        raise click.UsageError("The table of instructions is that of the whole program: there is no window on it.")
    with Trace(trace) as opened, shown(), progress.step(f"exporting {table}"):
        _say_if_cut(opened)
        program = opened.program
        if table == "instructions":
            rows = map(program.instruction, range(len(program.ops)))
            made = arrow.instructions(rows, counters_of(program.counters, len(program.ops)), int(NO_COUNTER))
        else:
            columns = ["subject", "address", "size", *(["value"] if program.has_values else [])]
            chosen = ["load", "store"] if table == "accesses" else None
            batches = opened.batches(chosen, columns, window=window)
            made = getattr(arrow, table)(batches, program.has_values)
        with written_whole(output, f"the {table}") as file:
            arrow.write(form, made, file)


def _write(parts: Iterable[bytes], output: str | None) -> None:
    """Write all parts, into a file whole or not at all."""
    from tracekit.profiles.files import write_bytes_whole

    if output is not None:
        write_bytes_whole(output, parts, "the accesses")
        return
    for part in parts:
        sys.stdout.buffer.write(part)
    sys.stdout.buffer.flush()
