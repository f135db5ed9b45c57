"""The decoded records of a trace, batch by batch, stream by stream: what replay reads (imports Numba)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from tracekit.formats.chunk_codec import Decoder
from tracekit.formats.errors import TracekitError
from tracekit.formats.reader import TraceReader

Records = tuple[NDArray[np.uint32], NDArray[np.uint64]]
"""Record ids (u4), and the words (u8) of all of them one after another."""


class RecordSource:
    """The records of a trace.

    arity: (ids) u4, words of each record id, NONE for ids that no record may have (``Program.arity``). ahead: whether
    a thread decodes the next batch of each stream while the present one is read.
    """

    def __init__(self, reader: TraceReader, arity: NDArray[np.uint32], ahead: bool = False) -> None:
        self._reader = reader
        self._arity = arity
        self._thread = ThreadPoolExecutor(1, "decode") if ahead else None

    def streams(self) -> Sequence[int]:
        """The numbers of the streams, ascending."""
        return self._reader.streams()

    def records(self, stream: int) -> Iterator[Records]:
        """Batches of whole records of a stream, in order; the arrays are overwritten by the next batch.

        Several streams may be read in turns. Raises TracekitError that names the frame if a chunk is damaged.
        """
        return self.records_from(stream, 0)[1]

    def records_from(self, stream: int, record: int) -> tuple[int, Iterator[Records]]:
        """As :meth:`records`, from the chunk on that holds `record`; and how many records lie before that chunk."""
        before = chunks = 0
        frames = self._reader.chunk_frames(stream)
        largest = max((frame.items for frame in frames), default=0)
        for frame in frames:
            if before + frame.items > record:
                break
            before += frame.items
            chunks += 1
        if self._thread is None:
            return before, self._decoded(stream, Decoder.for_chunks(largest, self._arity), chunks)
        return before, _ahead(self._thread, self._decoded(stream, Decoder.for_chunks(largest, self._arity, 2), chunks))

    def spread(self, stream: int, places: int) -> Iterator[Records]:
        """A batch at each of so many places of a stream, evenly spread over it: a sample. Raises as :meth:`records`."""
        records = sum(frame.items for frame in self._reader.chunk_frames(stream))
        for place in range(places if records else 0):
            _, batches = self.records_from(stream, records * (2 * place + 1) // (2 * places))
            yield from islice(batches, 1)

    def _decoded(self, stream: int, decoder: Decoder, first: int = 0) -> Iterator[Records]:
        for frame in self._reader.chunk_frames(stream)[first:]:
            decoder.start(self._reader.chunk(frame))
            while True:
                try:
                    batch = decoder.batch()
                except TracekitError as error:
                    raise TracekitError(f"The trace is damaged: {frame}: {error}.") from None
                if batch is None:
                    break
                yield batch


def _ahead(thread: ThreadPoolExecutor, batches: Iterator[Records]) -> Iterator[Records]:
    """The same batches, of which `thread` always makes the one behind that which is being read."""
    coming = thread.submit(next, batches, None)
    while (batch := coming.result()) is not None:
        coming = thread.submit(next, batches, None)
        yield batch
