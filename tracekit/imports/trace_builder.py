"""Builds a trace from another tool's: takes records by stream, compresses them in threads, and writes the file at last.

In a trace the image comes before the chunks that use it, but its contents are known only when all records are there.
So chunks wait in a file without a name, in the folder of the trace.
"""

from __future__ import annotations

import tempfile
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, NamedTuple, cast

import numpy as np
import zstandard
from numpy.typing import NDArray

from tracekit.containers.hash_table import hash_table, used_rows
from tracekit.containers.kernels.arena import EXHAUSTED
from tracekit.formats.chunk_codec import encode
from tracekit.formats.errors import TracekitError
from tracekit.formats.events import BY_CODE, CODE, FIRST_PATH, NONE, RECORDED
from tracekit.formats.image_frame import Image
from tracekit.formats.writer import LEVEL, TraceWriter
from tracekit.imports.binaries import Binaries
from tracekit.imports.image import image_of, words_of
from tracekit.imports.kernels.records import RECORDS, USED_WORDS, WORDS, Instructions, Records
from tracekit.program.program import Program
from tracekit.replay.totals import Counter, totals

MOST_INSTRUCTIONS = 1 << 20
"""Paths at most: their tables have to fit a frame."""

CHUNK = 1 << 18
"""Records of a chunk at most."""

_WAITING = 4
"""Chunks at most that wait to be compressed."""


class _Chunk(NamedTuple):
    stream: int
    records: int
    payload: int
    compressed: int


class TraceBuilder:
    """The records that have been read so far. Their temporary file in `folder` is removed when the block ends."""

    def __init__(self, folder: str | Path | None = None, chunk: int | None = None) -> None:
        try:
            self._file: BinaryIO = cast(BinaryIO, tempfile.TemporaryFile(dir=folder))  # noqa: SIM115
        except OSError as error:
            raise TracekitError(f"Cannot write into {folder}: {error.strerror}.") from None
        self.instructions = Instructions(hash_table([], MOST_INSTRUCTIONS), hash_table([], MOST_INSTRUCTIONS))
        self._chunk = chunk or CHUNK
        self._streams: dict[int, Records] = {}
        self._counts = np.zeros(FIRST_PATH + 1, np.int64)  # of records, by id
        self._chunks: list[_Chunk] = []
        self._worker = ThreadPoolExecutor(1)
        self._waiting: list[Future[tuple[_Chunk, bytes]]] = []

    def stream(self, number: int) -> Records:
        """The records of a stream that wait, with room for one more instruction's."""
        records = self._streams.get(number)
        if records is None:
            # Each of many streams gets less room.
            room = max(self._chunk >> min(len(self._streams) // 8, 4), min(self._chunk, 64))
            records = Records(np.empty(room, np.uint32), np.empty(WORDS * room, np.uint64), np.zeros(2, np.int64))
            self._streams[number] = records
            self._put(records, FIRST_PATH)
        return records

    def mark(self, number: int, event: str, word: int) -> None:
        """Add a recorded event of one word to a stream."""
        records = self.stream(number)
        if records.filled[RECORDS] == len(records.ids):
            self.flush(number)
        self._put(records, CODE[event], word)

    def flush(self, number: int) -> None:
        """Make a chunk of the records of a stream that wait. Raises TracekitError if there are too many instructions.

        To be called when a kernel says that there is no room, and after the last record.
        """
        if any(table.control[EXHAUSTED] for table in self.instructions):
            raise TracekitError(
                f"The trace has accesses of more than {MOST_INSTRUCTIONS:,} different instructions and sizes."
            )
        records = self._streams[number]
        used, words = int(records.filled[RECORDS]), int(records.filled[USED_WORDS])
        if not used:
            return
        ids = records.ids[:used].copy()
        counted = np.bincount(ids, minlength=len(self._counts))
        counted[: len(self._counts)] += self._counts
        self._counts = counted
        given = (number, ids, records.words[:words].copy(), _arity(self.instructions))
        self._waiting.append(self._worker.submit(_compressed, *given))
        records.filled[:] = 0
        self._collect(_WAITING)

    def write(self, target: BinaryIO, form: str, known: dict[str, Any], binaries: Binaries) -> None:
        """Flush all streams and write the trace. `known`: what META says of the import beside its format."""
        for number in self._streams:
            self.flush(number)
        self._collect(0)
        payload, sources = image_of(self.instructions, form, binaries)
        program = Program.from_images([Image.parse(payload)])
        counter = Counter(program)
        counter.records[: len(self._counts)] = self._counts
        counter.repeats[: len(self._counts)] = self._counts
        with TraceWriter(target) as writer:
            writer.meta({"imported": {"format": form, **known}})
            writer.image(0, payload)
            if sources:
                writer.sources(sources)
            self._file.seek(0)
            for chunk in self._chunks:
                data = self._file.read(chunk.compressed)
                writer.compressed_frame(b"CHNK", data, chunk.payload, chunk.stream, chunk.records)
            done = {"streams": len(self._streams), "images": 1, "totals": totals(program, counter)}
            writer.done(done)

    def _put(self, records: Records, identity: int, *words: int) -> None:
        record, word = records.filled.tolist()
        records.ids[record] = identity
        records.words[word : word + len(words)] = words
        records.filled[:] = record + 1, word + len(words)

    def _collect(self, most: int) -> None:
        """Keep compressed chunks until at most so many are under way."""
        while len(self._waiting) > most:
            chunk, data = self._waiting.pop(0).result()
            self._chunks.append(chunk)
            try:
                self._file.write(data)
            except OSError as error:
                raise TracekitError(f"Cannot keep the trace in a temporary file: {error.strerror}.") from None

    def __enter__(self) -> TraceBuilder:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._worker.shutdown(cancel_futures=True)
        self._file.close()


def _arity(instructions: Instructions) -> NDArray[np.uint32]:
    """Words of each record id."""
    paths = words_of(used_rows(instructions.paths)["key"][1:])
    arity = np.full(FIRST_PATH + 1 + len(paths), NONE, np.uint32)
    for code in RECORDED:
        arity[code] = len(BY_CODE[code].words)
    arity[FIRST_PATH] = 0
    arity[FIRST_PATH + 1 :] = paths
    return arity


def _compressed(
    number: int, ids: NDArray[np.uint32], words: NDArray[np.uint64], arity: NDArray[np.uint32]
) -> tuple[_Chunk, bytes]:
    payload = encode(ids, words, arity, number).build()
    data = zstandard.ZstdCompressor(level=LEVEL).compress(payload)
    return _Chunk(number, len(ids), len(payload), len(data)), data
