"""`tracekit check`: every invariant of a trace, from the checksums of its frames to the balance of its calls."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from tracekit.formats.errors import TracekitError
from tracekit.formats.reader import TraceReader

if TYPE_CHECKING:
    from tracekit.replay.program import Program

Compared = list[int]


@click.command("check")
@click.argument("trace", type=click.Path())
def command(trace: str) -> None:
    """Verify every invariant of TRACE; exit with status 1 if one does not hold.

    Checked are checksums and sizes of all frames, the image tables, that every record is known and complete, calls
    and returns, the nesting of loops, addresses within the objects that they are based on, the totals of the end
    record, and the witnesses of a trace that was recorded with them.
    """
    compared: Compared = [0, 0, 0]
    with TraceReader(trace) as reader:
        faults: set[str] = set()
        for fault in check(reader, compared):
            if fault not in faults:  # a damaged frame shows at every step
                click.echo(fault)
            faults.add(fault)
        if faults:
            click.echo(f"{trace}: {len(faults)} {'fault' if len(faults) == 1 else 'faults'}")
            click.get_current_context().exit(1)
        click.echo(f"{trace}: good{witnessed(compared)}")


def witnessed(compared: Compared) -> str:
    """What the trace itself bears witness to, if it was recorded with witnesses."""
    if not any(compared):
        return ""
    addresses, blocks, runs = compared
    said = f"; {addresses:,} addresses and {blocks:,} blocks equal what the program recorded in place"
    return said + (f", and {runs:,} runs have the iterations that were recorded beside them" if runs else "")


def check(reader: TraceReader, compared: Compared | None = None) -> Iterator[str]:
    """The faults of a trace, each as a line; what can still be checked after a fault is checked.

    compared: afterwards how many addresses, blocks and runs are equal to what the program recorded in place.
    """
    frames = len(reader.frames)
    yield from _frames(reader)
    if not reader.complete:
        yield f"the file ends early, after {frames} whole frames"
    try:
        from tracekit.replay.program import Program

        program = Program.from_images(reader.images())
    except TracekitError as error:
        yield str(error)
        return
    yield from _totals(reader, program)
    yield from _replay(reader, program, compared)


def _frames(reader: TraceReader) -> Iterator[str]:
    """Every frame decompresses to what its header says; chunks agree with themselves."""
    for frame in reader.frames:
        try:
            if frame.type == b"CHNK":
                reader.chunk(frame)
            else:
                reader.payload(frame)
        except TracekitError as error:
            yield str(error)
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
    """The records follow the rules of replay (docs/internals.md)."""
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
        yield (f"stream {violation.stream}: {violation.text}: {violation.count} times, "
               f"first at record {violation.record}")
