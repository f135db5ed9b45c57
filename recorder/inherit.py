"""The trace of a forked process begins with what its parent's holds before the fork.

Contexts, registers and live objects of the child stem from there, so without it most of its records mean nothing. The
child numbers images, streams and tickets on from its parent's: whole chunks are copied as they are, and in each stream
the one in which the fork happened is cut there.
"""

from __future__ import annotations

import os
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tracekit.formats.container import Frame
from tracekit.formats.errors import TracekitError
from tracekit.formats.events import BY_CODE, CODE, FIRST_PATH, NONE, RECORDED
from tracekit.formats.imageframe import Image
from tracekit.formats.reader import TraceReader
from tracekit.formats.stream import Decoder, encode
from tracekit.formats.writer import TraceWriter
from tracekit.recorder.collector import totals
from tracekit.recorder.encoder import UNUSED
from tracekit.recorder.imagefacts import PathFacts, path_facts
from tracekit.recorder.pool import RegisteredImage


class Records(NamedTuple):
    """Records of a chunk: their ids (n) u4, where the words of each begin (n + 1) i8, and all words, u8."""

    ids: NDArray[np.uint32]
    first: NDArray[np.int64]
    words: NDArray[np.uint64]


def prepend(parent: str, child: str, ticket: int) -> None:
    """Put what the trace ``parent`` holds before its fork_begin with that ticket before the records of ``child``.

    Raises TracekitError if it is not there, or the traces do not belong together; then ``child`` is as it was.
    """
    whole = child + ".whole"
    try:
        with TraceReader(parent) as before, TraceReader(child) as after, TraceWriter(whole) as writer:
            _Joiner(before, after, writer, ticket).run()
        os.replace(whole, child)
    except BaseException:
        if os.path.exists(whole):
            os.unlink(whole)
        raise


class _Joiner:
    def __init__(self, before: TraceReader, after: TraceReader, writer: TraceWriter, ticket: int) -> None:
        self._before, self._after, self._writer, self._ticket = before, after, writer, ticket
        images = after.images()
        for old, new in zip(before.images(), images):
            if (old.first_path, old.span, old.name) != (new.first_path, new.span, new.name):
                raise TracekitError(f"image {old.number} is {old.name} in its parent's trace, but {new.name} here")
        self._facts = [_facts(image) for image in images]
        self._arity = _arity(images, self._facts)
        self._counts = np.zeros(len(self._arity), np.uint64)
        self._iterations = np.zeros(len(self._arity), np.uint64)
        self._run = np.zeros(len(self._arity), np.bool_)
        for image, facts in zip(images, self._facts):
            self._run[image.first_path : image.first_path + image.span] = facts.run

    def run(self) -> None:
        frames = self._after.frames[1:]
        records = (index for index, frame in enumerate(frames) if frame.type in (b"CHNK", b"DONE"))
        first_chunk = next(records, len(frames))
        for frame in frames[:first_chunk]:
            self._copy(self._after, frame)
        found = [self._inherit(stream) for stream in self._before.streams()]
        if not any(found):
            raise TracekitError("its parent's trace does not reach the fork")
        for frame in frames[first_chunk:]:
            if frame.type != b"DONE":
                self._copy(self._after, frame)
        if self._after.done is not None:
            self._writer.done(self._done(self._after.done))

    def _inherit(self, stream: int) -> bool:
        """Copy the stream up to the fork; whether it is the one that forked."""
        for frame in self._before.chunk_frames(stream):
            chunk = self._before.chunk(frame)
            records = self._decode(frame)
            ticketed = np.flatnonzero(_TICKETED[np.minimum(records.ids, FIRST_PATH)])
            tickets = records.words[records.first[ticketed]]
            late = ticketed[tickets >= self._ticket]
            if not len(late):
                self._copy(self._before, frame)
                self._count(records)
                continue
            end = int(late[0])
            kept = Records(records.ids[:end], records.first[: end + 1], records.words[: records.first[end]])
            if end:
                self._count(kept)
                payload = encode(kept.ids, kept.words, self._arity, chunk.thread, chunk.kind).build()
                self._writer.chunk(stream, end, payload)
            word = int(records.words[records.first[end]])
            return int(records.ids[end]) == CODE["fork_begin"] and word == self._ticket
        return False

    def _decode(self, frame: Frame) -> Records:
        decoder = Decoder(self._arity)
        decoder.start(self._before.chunk(frame))
        ids, words = [np.zeros(0, np.uint32)], [np.zeros(0, np.uint64)]
        while (batch := decoder.batch()) is not None:
            ids.append(batch[0].copy())
            words.append(batch[1].copy())
        numbers = np.concatenate(ids)
        first = np.concatenate([np.zeros(1, np.int64), np.cumsum(self._arity[numbers].astype(np.int64))])
        return Records(numbers, first, np.concatenate(words))

    def _count(self, records: Records) -> None:
        self._counts += np.bincount(records.ids, minlength=len(self._counts)).astype(np.uint64)
        runs = np.flatnonzero(self._run[records.ids])
        np.add.at(self._iterations, records.ids[runs], records.words[records.first[runs]])

    def _done(self, done: dict[str, Any]) -> dict[str, Any]:
        inherited = totals(self._facts, self._counts, self._iterations)
        own = done.get("totals")
        both = {"totals": {name: own[name] + inherited[name] for name in own}} if own else {}
        return {**done, **both, "inherited": inherited}

    def _copy(self, reader: TraceReader, frame: Frame) -> None:
        self._writer.compressed_frame(frame.type, reader.compressed(frame), frame.payload, frame.stream, frame.items)


def _facts(image: Image) -> PathFacts:
    rows = np.zeros(len(image.functions), [("first", "<u8"), ("unit", "<u4"), ("function", "<u4"), ("paths", "<u4")])
    for name in ("first", "unit", "function"):
        rows[name] = image.functions[name]
    for number, unit in enumerate(image.units):
        here = rows["unit"] == number
        rows["paths"][here] = unit.tables["functions"]["paths"][rows["function"][here]]
    registered = RegisteredImage(image.name, 0, image.span, 0, rows, rows[:0], [])
    return path_facts(registered, image.units)


def _arity(images: list[Image], facts: list[PathFacts]) -> NDArray[np.uint32]:
    """Words of each record id, NONE for ids that no record may have."""
    arity = np.full(max([FIRST_PATH, *(image.first_path + image.span for image in images)]), NONE, np.uint32)
    for code in RECORDED:
        arity[code] = len(BY_CODE[code].words)
    for image, rows in zip(images, facts):
        words = rows.words.astype(np.uint32)
        arity[image.first_path : image.first_path + image.span] = np.where(rows.words == UNUSED, NONE, words)
    return arity


_TICKETED = np.zeros(FIRST_PATH + 1, np.bool_)
_TICKETED[[code for code in RECORDED if BY_CODE[code].words[:1] == ("ticket",)]] = True
