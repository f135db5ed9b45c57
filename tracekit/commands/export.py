"""`tracekit export`: loads and stores of a trace in the format of a simulator, a profile in that of a viewer."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable, Iterator
from typing import TYPE_CHECKING, Any

import click

from tracekit import interrupts, progress
from tracekit.commands import options
from tracekit.commands.progress import progress_line
from tracekit.formats.errors import TracekitError

if TYPE_CHECKING:
    from tracekit.replay.trace import Trace

FORMATS = ("din", "xdin", "lackey", "lackey-i", "ramulator2", "ramulator2-o3", "champsim", "gem5")
"""Of the loads and stores of traces."""
ARCHIVE = "drmemtrace"
"""The same, in a file that is no row of records."""
TABLE_FORMATS = ("parquet", "arrow")
"""Of tables of traces."""
TABLES = ("accesses", "events", "instructions", "objects")
PROFILE_FORMATS = ("callgrind", "speedscope", "pprof", "sarif", "memprof", "dot", "graphml", "perfetto", "csv")
"""Of profiles."""


@click.command("export")
@options.output
@options.window
@click.option("--module", metavar="NAME", help="Of a profile file with several modules, the one to export.")
@click.option(
    "--table",
    metavar="NAME",
    help="The table to export. Of a profile, by default the first that fits; of a trace, as parquet or arrow: accesses"
    " (the default), events, instructions, objects.",
)
@click.option(
    "--bubbles",
    type=click.IntRange(0, 2**31 - 1),
    metavar="N",
    help="Of ramulator2-o3: how many instructions without accesses are taken to come before each line. [default: 0]",
)
@click.argument("form", type=click.Choice([*FORMATS, ARCHIVE, *TABLE_FORMATS, *PROFILE_FORMATS]), metavar="FORMAT")
@click.argument("trace", type=click.Path(), metavar="FILE")
def command(
    form: str,
    trace: str,
    output: str,
    function: str | None,
    loop: str | None,
    thread: int | None,
    start: str | None,
    stop: str | None,
    module: str | None,
    table: str | None,
    bubbles: int | None,
) -> None:
    """Write the loads and stores of a trace in the FORMAT of a simulator, in the order of replay, or as a table:

    \b
        din            Dinero IV, -informat d: a line for each word of 4 bytes
        xdin           Dinero IV, -informat D: with sizes
        lackey         valgrind --tool=lackey --trace-mem=yes
        lackey-i       the same with a line I before each access
        ramulator2     Ramulator 2, LoadStoreTrace: a line for each 64 bytes
        ramulator2-o3  Ramulator 2, SimpleO3: bubbles, load, store
        champsim       ChampSim's input_instr; an instruction for each access
        gem5           gem5's packet trace, for TraceGen; a packet for each 64 bytes
        drmemtrace     DynamoRIO's drmemtrace: a zip of chunks
        parquet        Apache Parquet: a row for each access (--table)
        arrow          Apache Arrow's file format, the same

    or a profile file (`tracekit analyze -o`) in that of a viewer:

    \b
        callgrind   callgrind.out, for KCachegrind and callgrind_annotate
        speedscope  speedscope's JSON: a flame graph of each number
        pprof       pprof's protocol buffer: all numbers in one file
        sarif       SARIF 2.1.0: errors of memory, races, verdicts of loops
        memprof     LLVM's memory profile in YAML, for llvm-profdata merge
        dot         Graphviz: dependences between instructions, task graphs
        graphml     GraphML: dependences between instructions, task graphs
        perfetto    Trace Event Format, for ui.perfetto.dev: schedules
        csv         a table of the profile, one line for each row
    """
    window = options.window_of({"function": function, "loop": loop, "thread": thread, "start": start, "stop": stop})
    if form in PROFILE_FORMATS:
        if window is not None:
            raise click.UsageError("a profile has no window: choose it when the trace is analysed.")
        _export_profile(form, trace, module, table or "", output)
        return
    if module is not None:
        raise click.UsageError(f"--module is of profiles, and {form} is a format of traces.")
    if bubbles is not None and form != "ramulator2-o3":
        raise click.UsageError("--bubbles is of ramulator2-o3: no other format has them.")
    if form in TABLE_FORMATS:
        _export_table(form, table or "accesses", trace, output, window)
        return
    if table is not None:
        raise click.UsageError(f"--table is of profiles, parquet and arrow; {form} has loads and stores alone.")
    _export_accesses(form, trace, output, window, bubbles or 0)


def _export_profile(form: str, path: str, module: str | None, table: str, output: str) -> None:
    from tracekit.profiles import files
    from tracekit.render import export

    chosen = export.FORMATS[form]
    _refuse_terminal(form, output, chosen.is_text)
    with progress_line():
        found = {profile.module: profile for profile in files.load(path)}
        fitting = [name for name, profile in found.items() if chosen.fits(profile.report)]
        if module is None and not fitting and len(found) > 1:
            raise TracekitError(f"{path} has no profile that {form} holds; it has: {', '.join(found)}.")
        if module is None and len(fitting) > 1:
            raise click.UsageError(f"{path} has profiles of {', '.join(fitting)}: choose one, --module NAME.")
        if module is not None and module not in found:
            raise TracekitError(f"{path} has no profile of {module}; it has: {', '.join(found)}.")
        report = found[module or next(iter(fitting or found))].report
        files.write_bytes_whole(output, [chosen.write(report, table)], "the profile")


def _export_accesses(form: str, trace: str, output: str, window: dict[str, Any] | None, bubbles: int) -> None:
    from tracekit.formats import export
    from tracekit.profiles.files import write_bytes_whole
    from tracekit.replay.trace import Trace

    _refuse_terminal(form, output, form != ARCHIVE and export.FORMATS[form].is_text)
    with Trace(trace) as opened, progress_line(), progress.step("exporting accesses"):
        _say_if_cut(opened)
        batches = _batches(opened, ["load", "store"], ["subject", "address", "size"], window)
        program = opened.program
        known = export.counters_of(program.counters, len(program.ops)) if program.is_imported else None
        if form == ARCHIVE:
            is_shared = len(opened.reader.streams()) > 1 and "thread" not in (window or {})
            _write_archive(batches, known, opened.metadata, is_shared, output)
        else:
            parts = export.exported(batches, export.FORMATS[form], known, bubbles)
            write_bytes_whole(output, parts, "the accesses")


def _write_archive(batches: Iterable[Any], known: Any, metadata: dict[str, Any], is_shared: bool, output: str) -> None:
    """Write drmemtrace's archive. known: an imported trace's program counters. is_shared: several threads are in it."""
    from tracekit.formats import drmemtrace as records
    from tracekit.formats.export import champsim, counters, drmemtrace
    from tracekit.profiles.files import written_whole

    imported = metadata.get("imported", {})
    target = str(metadata.get("target", "")).partition("-")[0]
    file_type = {"x86_64": records.X86_64, "aarch64": records.AARCH64}.get(target, 0)
    for other in imported.get("file_types", ()):
        file_type |= int(other) & records.ARCHITECTURES
    threads = dict(enumerate(imported.get("threads", ())))

    with written_whole(output, "the accesses") as file:
        drmemtrace.write(
            batches,
            file,
            lambda instructions: counters(instructions, champsim.counters, known),
            file_type | (records.CORE_SHARDED if is_shared else 0),
            int(metadata.get("process", 1)),
            lambda stream: int(threads.get(stream, 1 + stream)),
        )


def _export_table(form: str, table: str, trace: str, output: str, window: dict[str, Any] | None) -> None:
    """Write a table of the trace, into a file whole or not at all."""
    from tracekit import extras

    if table not in TABLES:
        raise click.UsageError(f"the tables of a trace are {', '.join(TABLES)}; {table!r} is none.")
    if output == "-":
        raise click.UsageError(f"{form} is written to a file: -o FILE.")
    if table in ("instructions", "objects") and window:
        raise click.UsageError(f"The table of {table} is that of the whole run: there is no window on it.")
    extras.require("arrow", f"Writing {form}")
    from tracekit.formats.export import NO_COUNTER, arrow, counters_of
    from tracekit.objects.kinds import ObjectKind
    from tracekit.profiles.files import written_whole
    from tracekit.replay.trace import Trace

    with Trace(trace) as opened, progress_line(), progress.step(f"exporting {table}"):
        _say_if_cut(opened)
        program = opened.program
        if table == "instructions":
            rows = map(program.instruction, range(len(program.ops)))
            made = arrow.instructions(rows, counters_of(program.counters, len(program.ops)), int(NO_COUNTER))
        elif table == "objects":
            made = arrow.objects(_lives(opened), _names_of_globals(program), ObjectKind.GLOBAL)
        else:
            columns = ["subject", "address", "size", *(["value"] if program.has_values else [])]
            chosen = ["load", "store"] if table == "accesses" else None
            batches = _batches(opened, chosen, columns, window)
            made = getattr(arrow, table)(batches, program.has_values)
        with written_whole(output, f"the {table}") as file:
            arrow.write(form, made, file)


def _batches(
    opened: Trace, events: Collection[str] | None, columns: Collection[str], window: dict[str, Any] | None
) -> Iterator[Any]:
    """Those of :meth:`Trace.batches`; Ctrl-C ends them, and a window without loads and stores is told at the end."""
    from tracekit.formats.events import CODE

    accesses = [CODE["load"], CODE["store"]]
    is_empty = window is not None
    for batch in interrupts.checked(opened.batches(events, columns, window=window)):
        is_empty = is_empty and not any((batch.kind == code).any() for code in accesses)
        yield batch
    if is_empty:
        click.echo(f"{options.NO_ACCESS}.", err=True)


def _lives(opened: Trace) -> Any:
    """The objects of a trace, as formats.export.arrow takes them; instructions that are none are NONE."""
    from tracekit.formats.events import NONE
    from tracekit.objects.kinds import ObjectKind
    from tracekit.objects.lifetimes import COLUMNS, EVENTS, lives

    for rows in lives(opened.program, opened.batches(EVENTS, COLUMNS)):
        made = rows["kind"] != ObjectKind.GLOBAL
        rows["site"][made & (rows["site"] >= len(opened.program.ops))] = NONE
        yield rows


def _names_of_globals(program: Any) -> list[str]:
    return [program.text(int(row["source_name"]) or int(row["name"])) for row in program.globals]


def _refuse_terminal(form: str, output: str, is_text: bool) -> None:
    if output == "-" and not is_text and sys.stdout.isatty():
        raise click.UsageError(f"{form} is binary: write it to a file, -o FILE.")


def _say_if_cut(opened: Trace) -> None:
    from tracekit.profiles.profile import CUT_OFF

    if not opened.complete:
        click.echo(f"tracekit: {CUT_OFF}", err=True)
