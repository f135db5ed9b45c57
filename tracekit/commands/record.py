"""`tracekit record`: run a program, pass through all that it does, and leave its trace."""

from __future__ import annotations

import errno
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from tracekit import sizes
from tracekit.commands import completing, options
from tracekit.counted import counted, rounded, rounded_bytes
from tracekit.formats.errors import TracekitError
from tracekit.formats.file_names import shell_word
from tracekit.version import __version__

if TYPE_CHECKING:
    from tracekit.recorder.session import Request, Result
    from tracekit.recorder.window_filters import Filter
    from tracekit.recorder.window_rules import WindowRule

FAILED = 125

SHOWN = 5
"""Names and reasons of further processes that are printed."""

BUILD = 'build it with `tracekit cc` or `tracekit c++`, as in CC="tracekit cc" make'


@click.command("record", context_settings={"allow_interspersed_args": False, "ignore_unknown_options": False})
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    type=click.Path(),
    default="",
    callback=options.require_file,
    help="The trace's name; %p: process id, %h: host, %r: MPI's rank. Default: trace.zst (older: trace.zst.old).",
)
@click.option("-f", "--force", is_flag=True, help="Overwrite FILE.")
@click.option("--with-sources", is_flag=True, help="Put the source files into the trace.")
@click.option("--with-host", is_flag=True, help="Put host, working directory and environment into the trace.")
@click.option("--late", is_flag=True, help="The program loads its instrumented code later (dlopen, another program).")
@click.option(
    "--follow-fork", is_flag=True, help="A trace for each process that comes of APP: FILE.zst, FILE.PID.zst, and so on."
)
@click.option(
    "--processes",
    metavar="NUMBERS",
    help="With --follow-fork: record only the 1st and the 4th process, as 1,4; 2-5 are ranges.",
)
@click.option(
    "--intercept",
    "intercepted",
    metavar="FUNCTION",
    multiple=True,
    help="Record calls with values: 'compress(src: bytes[len], len: u64) -> i32', or a name built with cc --intercept.",
)
@click.option("--snapshots", metavar="TIME", help="Take a snapshot of the address space each TIME, as 1s or 250ms.")
@click.option(
    "--physical", is_flag=True, help="Page frames in the snapshots, too (each second, if not said otherwise); as root."
)
@click.option(
    "--paused",
    is_flag=True,
    help="Record windows only, which `tracekit start PID`, SIGUSR2 and tracekit.h open; built with --windows.",
)
@click.option(
    "--window",
    "windows",
    metavar="WHEN",
    multiple=True,
    help="As --paused, and a window opens when it says: 'on=call:NAME', 'on=line:FILE:LINE', 'every=1s for=20ms'.",
)
@click.option("--windows", "windows_file", metavar="FILE", help="Such windows from a TOML file.")
@click.option("--sample", metavar="SHARE", help="As --paused, with a window in every second, as 2%.")
@click.option(
    "--only",
    metavar="WHAT",
    multiple=True,
    help="Record these only: 'functions=parse,lex* files=src/*.c libraries=libz* threads=0,2', built with --windows; "
    "'events=stores,values'.",
)
@click.option("--without", metavar="WHAT", multiple=True, help="Leave these out; written as for --only.")
@click.option("--buffer-size", metavar="SIZE", default="256K", help="Of one of the 256 buffers; default 256K.")
@click.option("--workers", metavar="N", type=click.IntRange(1, 64), help="Threads that encode; default: one per core.")
@click.argument("app", nargs=-1, required=True, type=click.UNPROCESSED, shell_complete=completing.files)
def command(
    output: str,
    force: bool,
    with_sources: bool,
    with_host: bool,
    late: bool,
    follow_fork: bool,
    processes: str | None,
    intercepted: tuple[str, ...],
    snapshots: str | None,
    physical: bool,
    paused: bool,
    windows: tuple[str, ...],
    windows_file: str | None,
    sample: str | None,
    only: tuple[str, ...],
    without: tuple[str, ...],
    buffer_size: str,
    workers: int | None,
    app: tuple[str, ...],
) -> int:
    """Run an instrumented program and write its trace.

    Its input, output, signals and exit status pass through (128 + n if signal n ended it). tracekit's own failures
    exit with 125, a program that cannot be executed with 126, one that is not found with 127.
    """
    from tracekit.recorder import session

    try:
        size = _buffer_bytes(buffer_size)
        period = _snapshot_period(snapshots, physical)
        rules, filters, chosen = _rules(windows, windows_file, sample, only, without, paused)
        chosen = _chosen_processes(processes, chosen, follow_fork)
        asked = rules if paused or rules or (windows_file is not None and not chosen) else None
        if not late:
            _require_built_for(session.find_program(app[0]), follow_fork, asked is not None)
        request = session.Request(
            app,
            __version__,
            output,
            force,
            with_sources,
            with_host,
            size,
            workers or 0,
            chosen,
            intercepted,
            period,
            physical,
            asked,
            filters,
        )
        result = _run(request, follow_fork)
    except session.ProgramError as error:
        print(f"tracekit: {error}", file=sys.stderr)
        return error.status
    return _report_all(result, app[0], asked)


def _run(request: Request, follow_fork: bool) -> Result:
    from tracekit.recorder import session

    try:
        if not follow_fork:
            return session.run(request)
        from tracekit.recorder import follow

        return follow.run(request)
    except OSError as error:
        option = {errno.EMFILE: "n", errno.EAGAIN: "u"}.get(error.errno or 0)
        if option is None:
            raise
        raise TracekitError(
            f"recording takes more than a limit leaves it ({error.strerror}); raise it (`ulimit -{option}`)"
        ) from error


def _snapshot_period(snapshots: str | None, physical: bool) -> float:
    """Seconds between snapshots of the address space; 0: none."""
    from tracekit.recorder import address_space

    period = address_space.parse_period(snapshots or "1s") if snapshots is not None or physical else 0.0
    if physical:
        from tracekit.recorder import physical as frames

        frames.require()
    return period


def _chosen_processes(numbers: str | None, of_file: frozenset[int], follow_fork: bool) -> frozenset[int]:
    """The numbers of the processes that are recorded, by `--processes` or else by the file of windows; empty: all."""
    from tracekit.recorder import processes

    chosen = of_file if numbers is None else processes.parse(numbers)
    if chosen and not follow_fork:
        raise TracekitError("processes can be chosen only where all are followed: add --follow-fork")
    return chosen


def _say_that_none_opened(rules: Sequence[WindowRule]) -> None:
    hint = ""
    if any(rule.is_of_code for rule in rules):
        hint = (
            "; a function that the compiler has inlined is not called (__attribute__((noinline)), -fno-inline), "
            "and lines that it has optimised away are not there"
        )
    print(f"tracekit: no window opened: the trace holds allocations, locks and threads alone{hint}", file=sys.stderr)


def _report_others(result: Result) -> None:
    if result.others:
        shown = " ".join(shell_word(path) for path in result.others[:SHOWN])
        rest = f" and {len(result.others) - SHOWN} more" if len(result.others) > SHOWN else ""
        count = f"{len(result.others)} further process{'es' if len(result.others) > 1 else ''}"
        print(f"tracekit: {count} -> {shown}{rest}", file=sys.stderr)
    for why in result.unfollowed[:SHOWN]:
        print(f"tracekit: not all was recorded: {why}", file=sys.stderr)
    if len(result.unfollowed) > SHOWN:
        print(f"tracekit: and so {len(result.unfollowed) - SHOWN} more", file=sys.stderr)


def _buffer_bytes(text: str) -> int:
    from tracekit.recorder.pool import LARGEST_BUFFER, SMALLEST_BUFFER

    try:
        size = sizes.parsed(text)
    except ValueError as error:
        raise TracekitError(f"--buffer-size {text}: {error}") from None
    if not SMALLEST_BUFFER <= size <= LARGEST_BUFFER or size % 4096:
        raise TracekitError(
            f"--buffer-size {text}: from {SMALLEST_BUFFER >> 10}K to {LARGEST_BUFFER >> 20}M, in multiples of 4K"
        )
    return size


def _require_built_for(program: str, follow_fork: bool, in_windows: bool) -> None:
    """Raises TracekitError if the program was not built so that it can be recorded like this."""
    _require_instrumentation(program, follow_fork)
    if in_windows:
        _require_windows(program)


def _require_instrumentation(program: str, follow_fork: bool) -> None:
    """Scripts and launchers of MPI pass: what they start may be instrumented."""
    from tracekit.recorder import elf, mpi

    try:
        if not elf.is_elf(program) or (follow_fork and mpi.is_launcher(program)):
            return
        bare = not elf.holds_instrumented_code(program)
        closed = elf.is_static(program) and not elf.links_recorder(program)
    except OSError:
        return  # execute-only: the run will show
    if closed and not bare:
        raise TracekitError(
            f"{program} is statically linked, without the recorder's runtime: link it with `tracekit cc -static`, "
            "or without -static"
        )
    if bare:
        raise TracekitError(f"{program} holds no instrumented code: {BUILD} (--late if it loads such code later)")


def _rules(
    windows: tuple[str, ...],
    file: str | None,
    sample: str | None,
    only: tuple[str, ...],
    without: tuple[str, ...],
    paused: bool,
) -> tuple[tuple[WindowRule, ...], tuple[Filter, ...], frozenset[int]]:
    """When windows open, what is recorded in them, and the numbers of processes that the file of windows has."""
    from tracekit.recorder import window_filters, window_rules

    asked = window_rules.read(file) if file is not None else window_rules.Asked()
    rules = [window_rules.parse(text) for text in windows] + asked.windows
    rules += [window_rules.sampled(sample)] if sample is not None else []
    filters = [each for text in only for each in window_filters.parse(text, excludes=False)]
    filters += [each for text in without for each in window_filters.parse(text, excludes=True)]
    chosen = window_rules.together(rules)
    all_filters = window_rules.all_filters(chosen, filters + asked.filters)
    if window_filters.of_code(all_filters) and not chosen and not paused:
        chosen = (window_rules.ALWAYS,)
    return chosen, all_filters, asked.processes


def _require_windows(program: str) -> None:
    """Without them nobody knows where in the program a window opens."""
    from tracekit.recorder import elf

    try:
        unknown = elf.is_elf(program) and not elf.keeps_activations(program)
    except OSError:
        return
    if unknown:
        raise TracekitError(
            f"{program} was built without --windows, and a window could not say where in it it opens: "
            'build it with `tracekit cc --windows`, as in CC="tracekit cc --windows" make'
        )


def _report_all(result: Result, name: str, asked: Sequence[WindowRule] | None) -> int:
    """Print what came of the run of `name`, recorded in the windows that were asked for; the exit status."""
    status = _report(result, name)
    if asked is not None and result.outcome.windows == 0 and not result.outcome.failure:
        _say_that_none_opened(asked)
    forked = result.outcome.forked
    if forked and not result.outcome.failure:  # it may have written over the number, as over the trace
        print(
            f"tracekit: {counted(forked, 'forked process')} ran unrecorded; --follow-fork records "
            f"{'it' if forked == 1 else 'each'} in a trace of its own",
            file=sys.stderr,
        )
    if result.outcome.own_malloc and not result.outcome.failure:
        print(
            f"tracekit: {name} brings its own malloc, and its blocks are no objects in the trace: they are if it is "
            "compiled with `tracekit cc --allocator='*'`",
            file=sys.stderr,
        )
    _report_others(result)
    return status


def _report(result: Result, name: str) -> int:
    outcome = result.outcome
    if not result.path:
        why = outcome.failure or f"nothing that {name} ran was instrumented: {BUILD}"
        print(f"tracekit: no trace was written: {why}", file=sys.stderr)
        return FAILED
    quoted = shell_word(result.path)
    if outcome.failure:
        print(
            f"tracekit: the trace is cut, because of this: {outcome.failure}; {quoted} holds the run up to there",
            file=sys.stderr,
        )
        return result.status or FAILED
    waited = f", the program waited {outcome.waited:.1f} s for buffers" if outcome.waited >= 0.1 else ""
    lost = "".join(
        f", {count} {what}"
        for count, what in (
            (outcome.unknown, "unknown words dropped"),
            (outcome.unrecorded, "threads or handlers not recorded"),
            (outcome.images_lost, "images too large to register"),
        )
        if count
    )
    print(
        f"tracekit: {rounded(outcome.accesses)} accesses, {rounded_bytes(outcome.file_bytes)} -> "
        f"{quoted}{waited}{lost}; see: tracekit analyze --module=camp {quoted}",
        file=sys.stderr,
    )
    return result.status
