"""Takes the streams of a replay to the places where a snapshot of the trace has them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tracekit.formats.errors import TracekitError
from tracekit.formats.records import RecordSource
from tracekit.replay.kernels import layouts
from tracekit.replay.snapshot import Snapshot
from tracekit.replay.stream_states import restored

if TYPE_CHECKING:
    from tracekit.program.program import Program
    from tracekit.replay.engine import Source
    from tracekit.replay.stream import StreamReplay


def resume(
    streams: Sequence[StreamReplay], snapshot: Snapshot, source: Source, program: Program, tables: layouts.Tables
) -> None:
    """Give streams that have not begun the states of a snapshot, and go to its places in the records of `source`.

    Raises TracekitError if the snapshot is of other streams, or none that the program can have.
    """
    numbers, turn = [stream.number for stream in streams], snapshot.turn
    if [then.number for then in snapshot.streams] != numbers or turn.stream not in numbers[: turn.begun]:
        raise TracekitError("The trace is damaged: a snapshot is of other streams.")
    for stream, then in zip(streams, snapshot.streams, strict=True):
        state = restored(then.state, program, tables, stream.state)
        if isinstance(source, RecordSource):
            stream.before, stream.source = source.records_from(stream.number, then.records)
        stream.go_on_from(state, then.records, program.arity)
