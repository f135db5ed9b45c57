"""The trace of a forked process begins with what its parent's holds before the fork.

Contexts, registers and live objects of the child stem from there, so without it most of its records mean nothing. The
child numbers images, streams and tickets on from its parent's: whole chunks are copied as they are, and in each stream
the one in which the fork happened is cut there.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tracekit.formats.chunk_codec import Decoder, encode
from tracekit.formats.container import Frame
from tracekit.formats.errors import TracekitError
from tracekit.formats.events import BY_CODE, CODE, FIRST_PATH, NONE, RECORDED
from tracekit.formats.image_frame import Image
from tracekit.formats.reader import TraceReader
from tracekit.formats.writer import TraceWriter
from tracekit.recorder.collector import totals
from tracekit.recorder.encoder import UNUSED
from tracekit.recorder.image_facts import PathFacts, path_facts
from tracekit.recorder.registered import RegisteredImage


class Records(NamedTuple):
    """Records of a chunk: their ids (n) u4, where the words of each begin (n + 1) i8, and all words, u8."""

    ids: NDArray[np.uint32]
    first: NDArray[np.int64]
    words: NDArray[np.uint64]


class Inheritance:
    """Gives children what their parents' traces hold, one child after another; close it in the end.

    A shell forks again and again: what is read of the last parent is kept for its next child.
    """

    def __init__(self) -> None:
        self._parent: _Parent | None = None

    def prepend(self, parent: str, child: str, ticket: int) -> None:
        """Put what the trace ``parent`` holds before its fork_begin with that ticket before the records of ``child``.

        Raises TracekitError if it is not there, or the traces do not belong together; then ``child`` is as it was.
        """
        whole = child + ".whole"
        try:
            if self._parent is None or self._parent.path != parent:
                self.close()
                self._parent = _Parent(parent)
            with TraceReader(child) as after:
                version = max(self._parent.reader.version, after.version)
                with TraceWriter(whole, version=version) as writer:
                    _Joiner(self._parent, after, writer, ticket).run()
            os.replace(whole, child)
        except BaseException:
            if os.path.exists(whole):
                os.unlink(whole)
            raise

    def close(self) -> None:
        """Close the parent's trace."""
        if self._parent is not None:
            self._parent.reader.close()
            self._parent = None


class Facts:
    """What is known of the ids of a process with these images."""

    def __init__(self, images: Sequence[Image]) -> None:
        self.images = images
        self.of_paths = [_facts(image) for image in images]
        self.arity = _arity(images, self.of_paths)
        self.run = np.zeros(len(self.arity), np.bool_)
        for image, facts in zip(images, self.of_paths):
            self.run[image.first_path : image.first_path + image.span] = facts.run


class _Summary(NamedTuple):
    """What the records of a whole chunk come to."""

    last_ticket: int  # the greatest, -1 without any
    ids: NDArray[np.uint32]
    counts: NDArray[np.int64]  # of each of the ids
    iterations: NDArray[np.int64]


class _Parent:
    """A trace from which children inherit: read, decoded and counted once."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.reader = TraceReader(path)
        self.image_frames = _image_frames(self.reader)
        self.facts = Facts(self.reader.images())
        self._decoded: tuple[Frame, Records] | None = None
        self._summaries: dict[Frame, _Summary] = {}

    def facts_of(self, child: TraceReader) -> Facts:
        """Those of a child, whose images are mostly the same, byte by byte."""
        if _image_frames(child) == self.image_frames:
            return self.facts
        images = child.images()
        for old, new in zip(self.facts.images, images):
            if (old.first_path, old.span, old.name) != (new.first_path, new.span, new.name):
                raise TracekitError(f"image {old.number} is {old.name} in its parent's trace, but {new.name} here")
        return Facts(images)

    def records(self, frame: Frame) -> Records:
        """The records of a chunk; those of the last one are kept."""
        if self._decoded is None or self._decoded[0] != frame:
            self._decoded = frame, self._decode(frame)
        return self._decoded[1]

    def summary(self, frame: Frame) -> _Summary:
        """What they come to."""
        if frame not in self._summaries:
            records = self.records(frame)
            _, tickets = ticketed(records)
            ids, row, counts = np.unique(records.ids, return_inverse=True, return_counts=True)
            runs = np.flatnonzero(self.facts.run[records.ids])
            iterations = np.zeros(len(ids), np.int64)
            np.add.at(iterations, row[runs], records.words[records.first[runs]].astype(np.int64))
            self._summaries[frame] = _Summary(
                int(tickets.max(initial=0)) if len(tickets) else -1, ids, counts, iterations
            )
        return self._summaries[frame]

    def _decode(self, frame: Frame) -> Records:
        decoder = Decoder(self.facts.arity)
        decoder.start(self.reader.chunk(frame))
        ids, words = [np.zeros(0, np.uint32)], [np.zeros(0, np.uint64)]
        while (batch := decoder.batch()) is not None:
            ids.append(batch[0].copy())
            words.append(batch[1].copy())
        numbers = np.concatenate(ids)
        first = np.concatenate([np.zeros(1, np.int64), np.cumsum(self.facts.arity[numbers].astype(np.int64))])
        return Records(numbers, first, np.concatenate(words))


def _image_frames(reader: TraceReader) -> list[bytes]:
    return [reader.compressed(frame) for frame in reader.frames if frame.type == b"IMAG"]


def ticketed(records: Records) -> tuple[NDArray[np.int64], NDArray[np.uint64]]:
    """The rows of the records that have a ticket, and their tickets."""
    rows = np.flatnonzero(_TICKETED[np.minimum(records.ids, FIRST_PATH)])
    return rows, records.words[records.first[rows]]


class _Joiner:
    def __init__(self, before: _Parent, after: TraceReader, writer: TraceWriter, ticket: int) -> None:
        self._before, self._after, self._writer, self._ticket = before, after, writer, ticket
        self._facts = before.facts_of(after)
        self._counts = np.zeros(len(self._facts.arity), np.uint64)
        self._iterations = np.zeros(len(self._facts.arity), np.uint64)

    def run(self) -> None:
        frames = self._after.frames[1:]
        records = (index for index, frame in enumerate(frames) if frame.type in (b"CHNK", b"DONE"))
        first_chunk = next(records, len(frames))
        for frame in frames[:first_chunk]:
            self._copy(self._after, frame)
        found = [self._inherit(stream) for stream in self._before.reader.streams()]
        if not any(found):
            raise TracekitError("its parent's trace does not reach the fork")
        for frame in frames[first_chunk:]:
            if frame.type != b"DONE":
                self._copy(self._after, frame)
        if self._after.done is not None:
            self._writer.done(self._done(self._after.done))

    def _inherit(self, stream: int) -> bool:
        """Copy the stream up to the fork; whether it is the one that forked."""
        for frame in self._before.reader.chunk_frames(stream):
            summary = self._before.summary(frame)
            if summary.last_ticket < self._ticket:
                self._copy(self._before.reader, frame)
                self._counts[summary.ids] += summary.counts.astype(np.uint64)
                self._iterations[summary.ids] += summary.iterations.astype(np.uint64)
                continue
            return self._inherit_part(frame)
        return False

    def _inherit_part(self, frame: Frame) -> bool:
        """Copy the records of a chunk before the first with a ticket not before the fork's; whether that is it."""
        records = self._before.records(frame)
        rows, tickets = ticketed(records)
        end = int(rows[tickets >= self._ticket][0])
        kept = Records(records.ids[:end], records.first[: end + 1], records.words[: records.first[end]])
        if end:
            self._count(kept)
            chunk = self._before.reader.chunk(frame)
            payload = encode(kept.ids, kept.words, self._facts.arity, chunk.thread, chunk.kind).build()
            self._writer.chunk(frame.stream, end, payload)
        word = int(records.words[records.first[end]])
        return int(records.ids[end]) == CODE["fork_begin"] and word == self._ticket

    def _count(self, records: Records) -> None:
        self._counts += np.bincount(records.ids, minlength=len(self._counts)).astype(np.uint64)
        runs = np.flatnonzero(self._facts.run[records.ids])
        np.add.at(self._iterations, records.ids[runs], records.words[records.first[runs]])

    def _done(self, done: dict[str, Any]) -> dict[str, Any]:
        inherited = totals(self._facts.of_paths, self._counts, self._iterations)
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


def _arity(images: Sequence[Image], facts: Sequence[PathFacts]) -> NDArray[np.uint32]:
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
