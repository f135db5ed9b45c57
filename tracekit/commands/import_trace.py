"""`tracekit import`: a trace of ours, made of another tool's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from tracekit.commands import options
from tracekit.commands.progress import progress_line
from tracekit.counted import rounded, rounded_bytes
from tracekit.formats.file_names import shell_word

FORMATS = ("lackey", "champsim", "drmemtrace")


@click.command("import")
@click.option(
    "-o",
    "--output",
    required=True,
    type=click.Path(),
    metavar="TRACE",
    callback=options.require_file,
    help="Write the trace to TRACE.",
)
@click.option(
    "--binary",
    "binaries",
    multiple=True,
    metavar="FILE[@BASE]",
    help="Name program counters after the symbols and lines of FILE, loaded at BASE (hexadecimal), or where --modules "
    "says. May be repeated.",
)
@click.option(
    "--modules",
    type=click.Path(),
    metavar="FILE",
    help="Where binaries were loaded: DynamoRIO's modules.log, or a copy of /proc/PID/maps.",
)
@click.option(
    "--access-bytes",
    type=click.IntRange(1, 64),
    metavar="N",
    help="champsim: take accesses to have N bytes (1), fewer at the end of a cache line.",
)
@click.option("--kernel", is_flag=True, help="drmemtrace: keep accesses of the kernel, too, where there are any.")
@click.argument("form", type=click.Choice(FORMATS), metavar="FORMAT")
@click.argument("file", type=click.Path())
def command(
    form: str,
    file: str,
    output: str,
    binaries: tuple[str, ...],
    modules: str | None,
    access_bytes: int | None,
    kernel: bool,
) -> None:
    """Make a trace of FILE, which another tool wrote in FORMAT. It may be compressed (gzip, xz, zstd, LZ4).

    \b
        lackey      valgrind --tool=lackey --trace-mem=yes --log-file=FILE
        champsim    ChampSim's input_instr
        drmemtrace  DynamoRIO's drmemtrace, a .trace.zip or the folder of all threads

    Its instructions are program counters, and nothing is known of calls, loops and objects: modules that need more than
    loads and stores refuse it. FILE may be - for standard input.
    """
    from tracekit.imports.binaries import parsed
    from tracekit.imports.importing import import_trace

    try:
        known = parsed(binaries)
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    options: dict[str, Any] = {}
    if kernel:
        if form != "drmemtrace":
            raise click.UsageError(f"--kernel is for drmemtrace; traces of {form} have no accesses of the kernel.")
        options["with_kernel"] = True
    if access_bytes is not None:
        if form != "champsim":
            raise click.UsageError(
                f"--access-bytes is for champsim; traces of {form} say how many bytes an access has."
            )
        options["size"] = access_bytes
    with progress_line():
        import_trace(form, file, output, known, modules, **options)
    _report(output)


def _report(output: str) -> None:
    """Say what was imported, unless it went into a pipe."""
    from tracekit.formats.reader import TraceReader

    path = Path(output)
    if path.is_file():
        with TraceReader(output) as reader:
            accesses = (reader.done or {})["totals"]["accesses"]
        quoted = shell_word(output)
        click.echo(
            f"tracekit: {rounded(accesses)} accesses, {rounded_bytes(path.stat().st_size)} -> {quoted}; "
            f"see: tracekit analyze --module=cache {quoted}",
            err=True,
        )
