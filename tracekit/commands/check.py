"""`tracekit check`: every invariant of a trace, from the checksums of its frames to the balance of its calls."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from tracekit import progress
from tracekit.commands.progress import progress_line
from tracekit.counted import counted
from tracekit.formats.errors import TracekitError
from tracekit.formats.reader import TraceReader

if TYPE_CHECKING:
    from tracekit.program.program import Program

Compared = list[int]


@click.command("check")
@click.argument("trace", type=click.Path())
def command(trace: str) -> None:
    """Verify every invariant of TRACE; exit with status 1 if one does not hold.

    Checked are checksums and sizes of all frames, the image tables, that every record is known and complete, calls
    and returns, the nesting of loops, addresses within the objects that they are based on, the totals of the end
    record, the snapshots of `tracekit index`, and the ground-truth records of a trace that was recorded with them.
    """
    compared: Compared = [0, 0, 0]
    with TraceReader(trace) as reader:
        with progress_line():
            faults = list(dict.fromkeys(check(reader, compared)))  # a damaged frame shows at every step
        for fault in faults:
            click.echo(fault)
        if faults:
            click.echo(f"{trace}: {counted(len(faults), 'fault')}{cut(reader)}")
            click.get_current_context().exit(1)
        click.echo(f"{trace}: good{ground_truth(compared)}{cut(reader)}")


def cut(reader: TraceReader) -> str:
    """Why the trace ends before its program did, if it does."""
    try:
        why = reader.cut
    except TracekitError:  # a fault that was said
        why = ""
    return f"; the trace is cut, because of this: {why}" if why else ""


def ground_truth(compared: Compared) -> str:
    """What the ground-truth records of the trace say; nothing if it has none."""
    if not any(compared):
        return ""
    addresses, blocks, runs = compared
    equal = f"{counted(addresses, 'address')} and {counted(blocks, 'block')}"
    alike = counted(
        runs,
        "run has the iterations that were recorded beside it",
        "runs have the iterations that were recorded beside them",
    )
    return f"; {equal} equal what the program recorded in place" + (f", and {alike}" if runs else "")


def check(reader: TraceReader, compared: Compared | None = None) -> Iterator[str]:
    """The faults of a trace, each as a line; what can still be checked after a fault is checked.

    compared: afterwards how many addresses, blocks and runs are equal to what the program recorded in place.
    """
    frames = len(reader.frames)
    yield from _frames(reader)
    if not reader.complete:
        yield f"the file ends early, after {counted(frames, 'whole frame')}"
    try:
        from tracekit.program.program import Program

        program = Program.from_images(reader.images())
    except TracekitError as error:
        yield str(error)
        return
    yield from _totals(reader, program)
    yield from _replay(reader, program, compared)
    yield from _snapshots(reader, program)


def _frames(reader: TraceReader) -> Iterator[str]:
    """Every frame decompresses to what its header says; chunks agree with themselves."""
    done = 0
    with progress.step("checking frames", reader.file_bytes, lambda: done):
        for frame in reader.frames:
            try:
                if frame.type == b"CHNK":
                    reader.chunk(frame)
                else:
                    reader.payload(frame)
            except TracekitError as error:
                yield str(error)
            done = frame.end
    try:
        _ = reader.meta, reader.done, reader.sources()
    except TracekitError as error:
        yield str(error)


def _totals(reader: TraceReader, program: Program) -> Iterator[str]:
    """The totals in the end record are those of the records."""
    from tracekit.replay.totals import count_records, totals

    try:
        counted = totals(program, count_records(reader, program))
        claimed = (reader.done or {}).get("totals", {})
    except TracekitError as error:
        yield str(error)
        return
    for name, value in claimed.items():
        if name in counted and counted[name] != value:
            yield f"the end record claims {value} {name.replace('_', ' ')}, the records have {counted[name]}"


def _replay(reader: TraceReader, program: Program, compared: Compared | None) -> Iterator[str]:
    """The records follow the rules of replay (docs/internals/replay.md)."""
    from tracekit.replay.engine import Replay

    replay = Replay(reader, program)
    try:
        for _ in replay.batches():
            pass
    except TracekitError as error:
        yield str(error)
    if compared is not None:
        compared[:] = replay.compared()
    for violation in replay.violations():
        yield (
            f"stream {violation.stream}: {violation.text}: {counted(violation.count, 'time')}, "
            f"first at record {violation.record}"
        )


def _snapshots(reader: TraceReader, program: Program) -> Iterator[str]:
    """Snapshots are what replay has at their places."""
    if any(frame.type == b"SNAP" for frame in reader.frames):
        from tracekit.replay.snapshot_index import faults

        yield from faults(reader, program)
