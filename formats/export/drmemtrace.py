"""DynamoRIO's drmemtrace: one file, a zip of chunks of records, as its raw2trace writes for a thread.

A trace of ours has accesses, not machine instructions. So each access is one instruction with its data, and the file
says that instructions are filtered; accesses of more than a cache line are pieces of one. The time is a count: it goes
on where another thread does. Several threads are in the file as on one core that runs them in turn.
"""

from __future__ import annotations

import importlib
import zipfile
import zlib
from collections.abc import Callable, Iterable
from itertools import cycle
from typing import Any, BinaryIO

import numpy as np

from tracekit.formats import drmemtrace as records
from tracekit.formats.drmemtrace import ENTRY
from tracekit.formats.events import CODE
from tracekit.formats.export.background import IN_USE, background_thread
from tracekit.formats.export.champsim import STEP
from tracekit.formats.export.lines import LINE, next_piece, put_word
from tracekit.jit.kernel import inlined, kernel

CHUNK = 10_000_000
"""Instructions of a chunk, as raw2trace has it."""
LEVEL = 1
"""Of zlib, and of ISA-L, whose 1 is another."""
BUFFER = 1 << 16
"""Records that are written at once at most."""
PAGE = 4096

INSTRUCTIONS, RECORDS = 2, 3
"""Elements of the place (int64[4]; the first two are as in other formats): instructions that the present chunk has room
for, and records so far that a reader shows."""


def _isal() -> Any:
    """ISA-L's module, of the extra of that name, which compresses several times as fast as zlib; or None."""
    try:
        return importlib.import_module("isal.isal_zlib")
    except ImportError:
        return None


ISAL = _isal()

_STORE = CODE["store"]
_SIZE = ENTRY.itemsize
_INSTRUCTION = np.uint64(records.INSTR | STEP << 16)
_OF_LOAD, _OF_STORE = np.uint64(records.READ << 32), np.uint64(records.WRITE << 32)


def write(
    batches: Iterable[Any],
    file: BinaryIO,
    counters: Callable[[Any], Any],
    file_type: int,
    process: int,
    threads: Callable[[int], int],
) -> None:
    """Write the accesses of batches (stream, kind, subject, address, size).

    counters: program counters (uint64) of instructions. file_type: what is said beside INSTRUCTIONS_FILTERED.
    process, threads: the process' id, and that of a stream's thread.
    """
    archive = zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=LEVEL)
    try:
        members = _Members(archive)
        with background_thread() as hand_over:
            chunks = _Chunks(members, hand_over, file_type | records.INSTRUCTIONS_FILTERED, process)
            for batch in batches:
                chunks.turn_to(threads(batch.stream))
                chunks.add(batch.kind, counters(batch.subject), batch.address, batch.size)
            chunks.end(threads(0))
        archive.close()
    finally:
        archive.fp = None  # where writing failed, nothing is tried again when the object is deleted


class _Members:
    """The archive's members, chunk.0000 and so on, of which one is open."""

    def __init__(self, archive: zipfile.ZipFile) -> None:
        self._archive = archive
        self._count = 0
        self._member = self._opened()

    def write(self, data: Any) -> None:
        """Write bytes into the present member."""
        member = self._member
        if not ISAL:
            member.write(data)
            return
        # zipfile takes no compressor of another's, and its own checksum takes half as long as compressing
        member._file_size += len(data)
        member._crc = ISAL.crc32(data, member._crc)
        packed = member._compressor.compress(data)
        member._compress_size += len(packed)
        member._fileobj.write(packed)

    def turn(self) -> None:
        """End the present member, and begin the next one."""
        self.close()
        self._count += 1
        self._member = self._opened()

    def close(self) -> None:
        """End the last member."""
        self._member.close()

    def _opened(self) -> Any:
        member = zipfile.ZipInfo(f"chunk.{self._count:04}")  # without a time of day: the same bytes each time
        member.compress_type = zipfile.ZIP_DEFLATED
        member._compresslevel = LEVEL  # type: ignore[attr-defined]
        opened = self._archive.open(member, "w", force_zip64=True)
        if ISAL:  # any stream of deflate is valid in a zip
            opened._compressor = ISAL.compressobj(LEVEL, ISAL.DEFLATED, -zlib.MAX_WBITS)  # type: ignore[attr-defined]
        return opened


class _Chunks:
    """The chunks, one after the other; `hand_over` (background.py) calls what compresses them."""

    def __init__(self, members: _Members, hand_over: Callable[..., None], file_type: int, process: int) -> None:
        self._members = members
        self._hand_over = hand_over
        self._process = process
        self._file_type = file_type
        self._place = np.array([0, 0, CHUNK, 0], np.int64)
        self._buffers = cycle([np.empty(BUFFER * ENTRY.itemsize, np.uint8) for _ in range(IN_USE)])
        self._count = 0  # chunks
        self._thread = 0  # 0 before the first
        self._time = 0
        self._met: dict[int, int] = {}  # threads, and their instructions so far

    def turn_to(self, thread: int) -> None:
        """What follows is of this thread (not 0)."""
        if thread == self._thread:
            return
        begins = self._thread == 0
        self._thread = thread
        self._met.setdefault(thread, 0)
        self._time += 1
        of_thread = ((records.THREAD, 4, thread), (records.PID, 4, self._process))
        if begins:
            self._put((records.HEADER, 0, records.NEWEST))
            self._mark((records.VERSION, records.NEWEST), (records.FILE_TYPE, self._file_type))
            self._put(*of_thread)
            self._mark((records.CACHE_LINE_SIZE, LINE), (records.PAGE_SIZE, PAGE), (records.CHUNK_INSTRUCTIONS, CHUNK))
        else:
            self._put(*of_thread)
        self._mark((records.TIMESTAMP, self._time), (records.CPU_ID, 0))

    def add(self, kinds: Any, counters: Any, addresses: Any, sizes: Any) -> None:
        """Write accesses."""
        self._place[:2] = 0
        while self._place[0] < len(kinds):
            if self._place[INSTRUCTIONS] == 0 and self._place[1] == 0:
                self._next_chunk()
            buffer = next(self._buffers)  # the others may still be being compressed
            room = int(self._place[INSTRUCTIONS])
            filled = _encode(kinds, counters, addresses, sizes, self._place, buffer)
            self._met[self._thread] += room - int(self._place[INSTRUCTIONS])
            self._hand_over(self._members.write, buffer[:filled])

    def end(self, thread: int) -> None:
        """The threads end, and the file; `thread` is named if there was none."""
        if not self._met:
            self.turn_to(thread)
        for each, count in sorted(self._met.items(), key=lambda item: item[1]):  # DynamoRIO checks that counts ascend
            self.turn_to(each)
            self._mark((records.INSTRUCTION_COUNT, count))
            self._put((records.THREAD_EXIT, 4, each))
        self._put((records.FOOTER, 0, 0))
        self._hand_over(self._members.close)

    def _next_chunk(self) -> None:
        """End a chunk; the next one repeats where the reader is."""
        self._mark((records.CHUNK_FOOTER, self._count))
        self._hand_over(self._members.turn)
        self._count += 1
        self._place[INSTRUCTIONS] = CHUNK
        shown = int(self._place[RECORDS])
        self._mark((records.RECORD_ORDINAL, shown), (records.TIMESTAMP, self._time), (records.CPU_ID, 0))
        self._place[RECORDS] = shown  # a reader skips these

    def _mark(self, *markers: tuple[int, int]) -> None:
        self._put(*((records.MARKER, what, value) for what, value in markers))
        self._place[RECORDS] += len(markers)

    def _put(self, *entries: tuple[int, int, int]) -> None:
        self._hand_over(self._members.write, np.array(list(entries), ENTRY).tobytes())


@kernel
def _encode(kinds: Any, counters: Any, addresses: Any, sizes: Any, place: Any, out: Any) -> int:
    """Write an instruction, and its data, for each access, until the chunk is full; returns the filled bytes.

    An entry of 12 bytes has its head in the first four.
    """
    at, access, begun, room, shown = 0, place[0], np.uint64(place[1]), place[INSTRUCTIONS], place[RECORDS]
    while access < kinds.size and at + 2 * _SIZE <= out.size and (room > 0 or begun > 0):
        if begun == 0:
            most = min(room, (out.size - at) // (2 * _SIZE), kinds.size - access)
            put = _put_short(kinds, counters, addresses, sizes, access, access + most, out, at) - access
            access, at, room, shown = access + put, at + 2 * _SIZE * put, room - put, shown + 2 * put
            if put == most:
                continue
        size = sizes[access]
        if size == 0:
            access += 1
            continue
        kind = np.uint64(records.WRITE if kinds[access] == _STORE else records.READ)
        if begun == 0:
            counter = counters[access]
            put_word(out, at, _INSTRUCTION | counter << np.uint64(32))
            put_word(out, at + 8, counter >> np.uint64(32) | kind << np.uint64(32) | size << np.uint64(48))
            at += _SIZE
            room -= 1
            shown += 1
        start = addresses[access]
        if size > LINE:
            left = size - begun
            start, begun = next_piece(start, size, begun, LINE)
            length = min(np.uint64(LINE) - start % np.uint64(LINE), left)
            put_word(out, at, kind | length << np.uint64(16))
        put_word(out, at + 4, start)
        at += _SIZE
        shown += 1
        access += begun == 0
    place[0], place[1], place[INSTRUCTIONS], place[RECORDS] = access, np.int64(begun), room, shown
    return at


@inlined
def _put_short(
    kinds: Any, counters: Any, addresses: Any, sizes: Any, first: Any, last: Any, out: Any, start: Any
) -> Any:
    """Write accesses `first` to `last` - 1 at out[start]; returns the first that has no byte, or more than LINE."""
    at = start
    for access in range(first, last):
        size = sizes[access]
        if size - np.uint64(1) >= np.uint64(LINE):
            return access
        counter = counters[access]
        kind = _OF_STORE if kinds[access] == _STORE else _OF_LOAD
        put_word(out, at, _INSTRUCTION | counter << np.uint64(32))
        put_word(out, at + 8, counter >> np.uint64(32) | kind | size << np.uint64(48))
        put_word(out, at + 16, addresses[access])
        at += 2 * _SIZE
    return last
