"""How workers compress chunks, and how these get back into the order of their streams."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import zstandard

from tracekit.recorder.encoder import Chunk
from tracekit.recorder.native import crc32
from tracekit.recorder.pool import Pool

CALM_LEVEL = 3
"""zstd's level while the program does not wait for the recorder."""

QUIET = 4
"""Chunks of a worker in a row during which the program must not have waited before the higher level is taken."""


class CompressedChunk(NamedTuple):
    """A chunk as one zstd frame: ``payload`` bytes when decompressed; ``crc`` is that of ``data``."""

    data: bytes
    payload: int
    stream: int
    records: int
    crc: int


class Pressure:
    """Whether the program has waited for buffers lately, as one worker sees it."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._waits = 0
        self._quiet = 0

    def now(self) -> bool:
        """Ask once for each chunk."""
        before, self._waits = self._waits, self._pool.status().waits
        self._quiet = 0 if self._waits > before else self._quiet + 1
        return self._quiet < QUIET


def compress(chunk: Chunk, hurried: bool) -> CompressedChunk:
    """Compress a chunk; ``hurried``: in less time, to a little more."""
    data = _compressor(threading.get_ident(), hurried).compress(chunk.payload)
    return CompressedChunk(data, len(chunk.payload), chunk.stream, chunk.records, crc32(data))


@cache
def _compressor(_worker: int, hurried: bool) -> zstandard.ZstdCompressor:
    """Each worker has its own: they are not for several threads."""
    return (
        zstandard.ZstdCompressor(compression_params=_hurried())
        if hurried
        else zstandard.ZstdCompressor(level=CALM_LEVEL)
    )


def _hurried() -> zstandard.ZstdCompressionParameters:
    """Level 1 with a table of matches that stays in the first cache, and no short matches: 5 to 15 % less time."""
    return zstandard.ZstdCompressionParameters(
        strategy=zstandard.STRATEGY_FAST,
        window_log=21,
        hash_log=13,
        min_match=7,
        target_length=0,
        chain_log=6,
        search_log=1,
    )


class InOrder:
    """Hands chunks on in the order of their streams, whichever is finished first."""

    def __init__(self, write: Callable[[CompressedChunk], None]) -> None:
        self._write = write
        self._lock = threading.Lock()
        self._next: dict[int, int] = {}
        self._early: dict[tuple[int, int], CompressedChunk] = {}

    def put(self, stream: int, ordinal: int, chunk: CompressedChunk) -> None:
        """Write a chunk and those after it that wait for it; keep it if an earlier one of its stream is missing."""
        with self._lock:
            self._early[stream, ordinal] = chunk
            following = self._next.get(stream, 0)
            while ready := self._early.pop((stream, following), None):
                self._write(ready)
                following += 1
            self._next[stream] = following

    def put_last(self, stream: int, ordinal: int, chunk: CompressedChunk) -> None:
        """Write a chunk at which its stream is cut: what was early and stands behind it is dropped."""
        with self._lock:
            for early in [at for at in self._early if at[0] == stream and at[1] > ordinal]:
                del self._early[early]
        self.put(stream, ordinal, chunk)
