"""The chunk encoder of recorder/runtime as Python objects."""

from __future__ import annotations

import ctypes
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tracekit.formats.errors import TracekitError
from tracekit.recorder.native import Drained, library
from tracekit.recorder.pool import Pool

UNUSED = 0xFFFF
"""The arity of a path number that no path has."""

CHUNK_LIMIT = 4 << 20
"""Records and words from which on a chunk is complete."""


class Chunk(NamedTuple):
    """A finished chunk: ``payload`` is what a CHNK frame holds, decompressed (formats/SPEC.md)."""

    stream: int
    records: int
    payload: memoryview


class Encoder:
    """Turns raw records (id or event code, words) into chunks, stream by stream. Used by one thread."""

    def __init__(self, limit: int = CHUNK_LIMIT, buffer_words: int = 1 << 20) -> None:
        """``limit``: records and words of a complete chunk; ``buffer_words``: the most that is encoded at once."""
        self._handle = library().tk_encoder_new(limit, buffer_words)
        self._buffer_words = buffer_words
        if not self._handle:
            raise MemoryError

    def close(self) -> None:
        """Free the encoder's memory; it cannot be used afterwards."""
        library().tk_encoder_free(self._handle)
        self._handle = None

    def add_image(self, low: int, arities: NDArray[np.uint16], loaded: int,
                  runs: NDArray[np.bool_] | None = None) -> int:
        """Make known the ids ``low .. low + len(arities) - 1``, loaded in epoch ``loaded``.

        ``arities``: u2, words of each path, :data:`UNUSED` where there is none. ``runs``: which of them are runs of
        iterations (``PathFlag.RUN``). Returns the number of the first.
        """
        flags = np.zeros(len(arities), np.uint8) if runs is None else runs.astype(np.uint8)
        arities = np.ascontiguousarray(arities, np.uint16)
        first = int(library().tk_encoder_add(self._handle, low, len(arities), arities.ctypes.data,
                                             flags.ctypes.data, loaded))
        if not first:
            raise MemoryError
        return first

    def encode(self, words: NDArray[np.uint64], stream: int = 0, thread: int = 0, kind: int = 0, epoch: int = 0) -> int:
        """Encode whole records from ``words`` (u8); returns how many words that took.

        Fewer than ``len(words)``: a zero, a record cut short, or an id that no image explains stands there.
        """
        if len(words) > self._buffer_words:
            raise ValueError(f"more than {self._buffer_words} words at once")
        words = np.ascontiguousarray(words, np.uint64)
        handle = library().tk_encoder_stream(self._handle, stream, thread, kind)
        return int(library().tk_encode(self._handle, handle, words.ctypes.data, len(words), epoch))

    def drain(self, pool: Pool, timeout: float) -> tuple[Drained, Chunk | None]:
        """Encode what the program hands over, for at most ``timeout`` seconds or until there is something to do."""
        ready = ctypes.c_void_p()
        drained = Drained(
            library().tk_drain(self._handle, pool.address, int(timeout * 1e9), ctypes.byref(ready))
        )
        if drained == Drained.FAILED:
            raise TracekitError("the recorder ran out of memory; the trace ends here")
        return drained, self._take(ready.value) if drained == Drained.CHUNK and ready.value else None

    def unfinished(self, age: float = 0.0) -> list[Chunk]:
        """Take the chunks that were begun ``age`` seconds ago or earlier, as they are."""
        chunks: list[Chunk] = []
        number = 0
        while handle := library().tk_chunk_older(self._handle, number, int(age * 1e9)):
            number = int(library().tk_chunk_stream(handle)) + 1
            chunks.append(self._take(handle))
        return chunks

    def counts(self) -> NDArray[np.uint64]:
        """How many records of each number were encoded, u8: event codes, then path numbers."""
        counts = np.zeros(int(library().tk_encoder_ids(self._handle)), np.uint64)
        library().tk_encoder_counts(self._handle, counts.ctypes.data)
        return counts

    def iterations(self) -> NDArray[np.uint64]:
        """How many iterations the encoded runs of each number have, u8: as :meth:`counts`; 0 for what is no run."""
        iterations = np.zeros(int(library().tk_encoder_ids(self._handle)), np.uint64)
        library().tk_encoder_iterations(self._handle, iterations.ctypes.data)
        return iterations

    def unknown(self) -> int:
        """Words dropped because no image explained their id."""
        return int(library().tk_encoder_unknown(self._handle))

    def _take(self, handle: int) -> Chunk:
        payload = np.empty(library().tk_chunk_bytes(handle), np.uint8)  # not zeroed: all of it is written
        chunk = Chunk(int(library().tk_chunk_stream(handle)), int(library().tk_chunk_records(handle)), payload.data)
        library().tk_chunk_take(handle, payload.ctypes.data)
        return chunk
