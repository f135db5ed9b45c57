"""The chunk encoder of recorder/runtime as Python objects."""

from __future__ import annotations

import ctypes
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tracekit.formats.errors import TracekitError
from tracekit.recorder.native import Worked, library
from tracekit.recorder.pool import DamagedPoolError, Pool

UNUSED = 0xFFFF
"""The arity of a path number that no path has."""

CHUNK_LIMIT = 4 << 20
"""Records and words from which on a chunk is complete."""


class Chunk(NamedTuple):
    """A finished chunk: ``payload`` is what a CHNK frame holds, decompressed (formats/SPEC.md).

    ``ordinal`` counts the chunks of a stream, in its order; workers finish them in any. One without records is none for
    the file.
    """

    stream: int
    ordinal: int
    records: int
    payload: memoryview


class Payload:
    """Memory for one payload at a time, used again: fresh pages cost as much as what is written into them."""

    def __init__(self) -> None:
        self._memory = np.empty(0, np.uint8)

    def of(self, size: int) -> NDArray[np.uint8]:
        """An array of ``size`` bytes, u1, that stands where the one before stood."""
        if len(self._memory) < size:
            self._memory = np.empty(size + size // 4, np.uint8)
        return self._memory[:size]


class Encoder:
    """Turns raw records (id or event code, words) into chunks, stream by stream."""

    def __init__(
        self, limit: int = CHUNK_LIMIT, buffer_words: int = 1 << 20, workers: int = 1, vector: bool = True
    ) -> None:
        """``limit``: records and words of a complete chunk; ``buffer_words``: the most that is encoded at once.

        ``workers``: how many threads may call :meth:`work` at a time. ``vector``: use the processor's vectors if it has
        AVX-512; the chunks are the same.
        """
        self._handle = library().tk_encoder_new(limit, buffer_words, workers, vector)
        self._buffer_words = buffer_words
        if not self._handle:
            raise MemoryError

    def close(self) -> None:
        """Free the encoder's memory; it cannot be used afterwards."""
        library().tk_encoder_free(self._handle)
        self._handle = None

    def add_image(
        self, low: int, arities: NDArray[np.uint16], loaded: int, runs: NDArray[np.bool_] | None = None
    ) -> int:
        """Make known the ids ``low .. low + len(arities) - 1``, loaded in epoch ``loaded``.

        ``arities``: u2, words of each path, :data:`UNUSED` where there is none. ``runs``: which of them are runs of
        iterations (``PathFlag.RUN``). Returns the number of the first.
        """
        flags = np.zeros(len(arities), np.uint8) if runs is None else runs.astype(np.uint8)
        arities = np.ascontiguousarray(arities, np.uint16)
        first = int(
            library().tk_encoder_add(self._handle, low, len(arities), arities.ctypes.data, flags.ctypes.data, loaded)
        )
        if not first:
            raise MemoryError
        return first

    def trim(self, words: NDArray[np.uint16], kept: NDArray[np.uint16], which: NDArray[np.uint16]) -> None:
        """Of the records of the image that is added next, leave out all words but some.

        ``words``, ``kept``: u2, of each of its path numbers how many words the program writes, and how many are left;
        ``which``: u2, number by number the places of these. Only records that workers take from the program count.
        """
        arrays = [np.ascontiguousarray(array, np.uint16) for array in (words, kept, which)]
        pointers = [array.ctypes.data for array in arrays]
        if not library().tk_encoder_trim(self._handle, self.ids, len(words), *pointers, len(which)):
            raise MemoryError

    def drop(self, code: int) -> None:
        """Leave out the records of an event."""
        library().tk_encoder_drop(self._handle, code)

    def encode(self, words: NDArray[np.uint64], stream: int = 0, thread: int = 0, kind: int = 0, epoch: int = 0) -> int:
        """Encode whole records from ``words`` (u8); returns how many words that took.

        Fewer than ``len(words)``: a zero, a record cut short, or an id that no image explains stands there.
        """
        if len(words) > self._buffer_words:
            raise ValueError(f"more than {self._buffer_words} words at once")
        words = np.ascontiguousarray(words, np.uint64)
        handle = library().tk_encoder_chunk(self._handle, stream, thread, kind)
        if not handle:
            raise MemoryError
        return int(library().tk_encode(self._handle, handle, words.ctypes.data, len(words), epoch))

    def work(self, pool: Pool, age: float, timeout: float, room: Payload) -> tuple[Worked, Chunk | None]:
        """Encode what the program hands over, for at most ``timeout`` seconds or until there is something to do.

        A chunk that was begun ``age`` seconds ago and is not filled any further is taken as it is. A chunk's payload
        stands in ``room``, the calling worker's own. Raises DamagedPoolError if the program wrote what it should not:
        what was encoded before stands in :meth:`unfinished`.
        """
        ready = ctypes.c_void_p()
        worked = Worked(
            library().tk_work(self._handle, pool.view, int(age * 1e9), int(timeout * 1e9), ctypes.byref(ready))
        )
        if worked == Worked.FAILED:
            raise TracekitError("the recorder ran out of memory; the trace ends here")
        if worked == Worked.DAMAGED:
            raise DamagedPoolError
        return worked, self._take(ready.value, room) if worked == Worked.CHUNK and ready.value else None

    def unfinished(self) -> list[Chunk]:
        """Take all chunks with records as they are; no worker is at work."""
        chunks: list[Chunk] = []
        while handle := library().tk_encoder_rest(self._handle):
            chunks.append(self._take(handle, Payload()))
        return [chunk for chunk in chunks if chunk.records]

    @property
    def lanes(self) -> int:
        """How many words are encoded at once: 1 without vectors."""
        return int(library().tk_encoder_lanes(self._handle))

    @property
    def ids(self) -> int:
        """How many record numbers there are; the next image's first path has this one."""
        return int(library().tk_encoder_ids(self._handle))

    def counts(self, ids: int = 0) -> NDArray[np.uint64]:
        """How many records of each number were encoded, u8: event codes, then path numbers. `ids`: the first only."""
        counts = np.zeros(ids or self.ids, np.uint64)
        library().tk_encoder_counts(self._handle, counts.ctypes.data, len(counts))
        return counts

    def iterations(self) -> NDArray[np.uint64]:
        """How many iterations the encoded runs of each number have, u8: as :meth:`counts`; 0 for what is no run."""
        iterations = np.zeros(self.ids, np.uint64)
        library().tk_encoder_iterations(self._handle, iterations.ctypes.data, len(iterations))
        return iterations

    def unknown(self) -> int:
        """Words dropped because no image explained their id."""
        return int(library().tk_encoder_unknown(self._handle))

    def _take(self, handle: int, room: Payload) -> Chunk:
        facts = np.zeros(3, np.uint32)
        library().tk_chunk_facts(handle, facts.ctypes.data)
        size = int(library().tk_chunk_bytes(self._handle, handle))
        if not size:
            raise TracekitError("the recorder ran out of memory; the trace ends here")
        payload = room.of(size)
        library().tk_chunk_write(handle, payload.ctypes.data)
        library().tk_chunk_recycle(self._handle, handle)
        stream, ordinal, records = map(int, facts)
        return Chunk(stream, ordinal, records, payload.data)
