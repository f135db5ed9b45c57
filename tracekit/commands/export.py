"""`tracekit export`: loads and stores of a trace in the format of a simulator, a profile in that of a viewer."""

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
"""Of the loads and stores of traces."""
TABLE_FORMATS = ("parquet", "arrow")
"""Of tables of traces."""
TABLES = ("accesses", "events", "instructions")
PROFILE_FORMATS = ("callgrind", "speedscope", "pprof", "sarif", "dot", "graphml", "csv")
"""Of profiles."""


@click.command("export")
@click.option("-o", "--output", type=click.Path(), metavar="FILE", help="Write to FILE instead of standard output.")
@click.option("--function", metavar="NAME", help="Only accesses while this function, or what it calls, runs.")
@click.option("--loop", metavar="FILE:LINE", help="Only accesses while this loop is open.")
@click.option("--thread", type=click.IntRange(min=0), metavar="N", help="Only accesses of this stream.")
@click.option("--from", "start", metavar="X", help="Skip the first X accesses, or as much of them: 25%.")
@click.option("--to", "stop", metavar="Y", help="Only accesses among the first Y, or the first 25%.")
@click.option("--module", metavar="NAME", help="Of a profile file with several modules, the one to export.")
@click.option(
    "--table",
    metavar="NAME",
    help="The table to export. Of a profile, by default the first that fits; of a trace, as parquet or arrow: accesses"
    " (the default), events, instructions.",
)
@click.argument("form", type=click.Choice([*FORMATS, *TABLE_FORMATS, *PROFILE_FORMATS]), metavar="FORMAT")
@click.argument("trace", type=click.Path(), metavar="FILE")
def command(
    form: str,
    trace: str,
    output: str | None,
    function: str | None,
    loop: str | None,
    thread: int | None,
    start: str | None,
    stop: str | None,
    module: str | None,
    table: str | None,
) -> None:
    """Write the loads and stores of a trace in the FORMAT of a simulator, in the order of replay, or as a table:

    \b
        din         Dinero IV, -informat d: a line for each word of 4 bytes
        xdin        Dinero IV, -informat D: with sizes
        lackey      valgrind --tool=lackey --trace-mem=yes
        ramulator2  Ramulator 2, LoadStoreTrace: a line for each 64 bytes
        champsim    ChampSim's input_instr; an instruction for each access
        parquet     Apache Parquet: a row for each access (--table)
        arrow       Apache Arrow's file format, the same

    or a profile file (`tracekit analyze -o`) in that of a viewer:

    \b
        callgrind   callgrind.out, for KCachegrind and callgrind_annotate
        speedscope  speedscope's JSON: a flame graph of each number
        pprof       pprof's protocol buffer: all numbers in one file
        sarif       SARIF 2.1.0: errors of memory, verdicts of loops
        dot         Graphviz: dependences between instructions, task graphs
        graphml     GraphML: dependences between instructions, task graphs
        csv         a table of the profile, one line for each row
    """
    parts = {"function": function, "loop": loop, "thread": thread, "from": start, "to": stop}
    if form in PROFILE_FORMATS:
        if any(part is not None for part in parts.values()):
            raise click.UsageError("a profile has no window: choose it when the trace is analysed.")
        _export_profile(form, trace, module, table or "", output)
        return
    if module is not None:
        raise click.UsageError(f"--module is of profiles, and {form} is a format of traces.")
    window = _window(parts)
    if form in TABLE_FORMATS:
        _export_table(form, table or "accesses", trace, output, window)
        return
    if table is not None:
        raise click.UsageError(f"--table is of profiles, parquet and arrow; {form} has loads and stores alone.")
    _export_accesses(form, trace, output, window)


def _window(parts: dict[str, Any]) -> dict[str, Any] | None:
    """The parts that are there, if any. Raises UsageError if they make no sense."""
    from tracekit.replay.window import Window

    try:
        Window.of(parts)
    except TracekitError as error:
        raise click.UsageError(str(error)) from None
    return {name: value for name, value in parts.items() if value is not None} or None


def _export_profile(form: str, path: str, module: str | None, table: str, output: str | None) -> None:
    from tracekit.profiles import files
    from tracekit.render import export

    chosen = export.FORMATS[form]
    _refuse_terminal(form, output, chosen.is_text)
    with shown():
        found = {profile.module: profile for profile in files.load(path)}
        if module is None and len(found) > 1:
            raise click.UsageError(f"{path} has profiles of {', '.join(found)}: choose one, --module NAME.")
        if module is not None and module not in found:
            raise TracekitError(f"{path} has no profile of {module}; it has: {', '.join(found)}.")
        report = found[module or next(iter(found))].report
        _write([chosen.write(report, table)], output, "the profile")


def _export_accesses(form: str, trace: str, output: str | None, window: dict[str, Any] | None) -> None:
    from tracekit.formats import export
    from tracekit.replay.trace import Trace

    chosen = export.FORMATS[form]
    _refuse_terminal(form, output, chosen.is_text)
    with Trace(trace) as opened, shown(), progress.step("exporting accesses"):
        _say_if_cut(opened)
        batches = opened.batches(["load", "store"], ["subject", "address", "size"], window=window)
        program = opened.program
        known = export.counters_of(program.counters, len(program.ops)) if program.is_imported else None
        _write(export.exported(batches, chosen, known), output, "the accesses")


def _export_table(form: str, table: str, trace: str, output: str | None, window: dict[str, Any] | None) -> None:
    """Write a table of the trace, into a file whole or not at all."""
    from tracekit import extras

    if table not in TABLES:
        raise click.UsageError(f"the tables of a trace are {', '.join(TABLES)}; {table!r} is none.")
    if output is None:
        raise click.UsageError(f"{form} is written to a file: -o FILE.")
    if table == "instructions" and window:
        raise click.UsageError("The table of instructions is that of the whole program: there is no window on it.")
    extras.require("arrow", f"Writing {form}")
    from tracekit.formats.export import NO_COUNTER, arrow, counters_of
    from tracekit.profiles.files import written_whole
    from tracekit.replay.trace import Trace

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


def _refuse_terminal(form: str, output: str | None, is_text: bool) -> None:
    if output is None and not is_text and sys.stdout.isatty():
        raise click.UsageError(f"{form} is binary: write it to a file, -o FILE.")


def _say_if_cut(opened: Trace) -> None:
    if not opened.complete:
        click.echo("tracekit: the trace is cut off; this is what it holds.", err=True)


def _write(parts: Iterable[bytes], output: str | None, what: str) -> None:
    """Write all parts, into a file whole or not at all."""
    from tracekit.profiles.files import write_bytes_whole

    if output is not None:
        write_bytes_whole(output, parts, what)
        return
    for part in parts:
        sys.stdout.buffer.write(part)
    sys.stdout.buffer.flush()
