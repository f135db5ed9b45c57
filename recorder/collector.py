"""The collector: the process that empties the pool, encodes, compresses, and writes the trace.

It outlives the traced program, however that ends, and is told by ``record`` how it ended. Its workers are threads that
each encode and compress a chunk at a time, nearly always in C without the GIL (runtime/encoder_work.c reads buffers).
If the trace cannot be written any further, or the program wrote into the pool what it should not, the pool is turned
to discard, the program goes on, and the trace is closed where it stands.
"""

from __future__ import annotations

import json
import os
import select
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np
from numpy.typing import NDArray

from tracekit.formats.errors import TracekitError
from tracekit.formats.events import BY_CODE, CODE, FIRST_PATH, RECORDED
from tracekit.formats.image_frame import build_image
from tracekit.formats.unit import Unit
from tracekit.formats.writer import TraceWriter
from tracekit.recorder import own_malloc
from tracekit.recorder.address_space import Snapshots
from tracekit.recorder.collector_messages import CollectorOptions, Ending, Outcome
from tracekit.recorder.compression import CompressedChunk, InOrder, Pressure, compress
from tracekit.recorder.encoder import Encoder, Payload
from tracekit.recorder.image_facts import PathFacts, path_facts
from tracekit.recorder.native import Worked
from tracekit.recorder.pool import DamagedPoolError, Pool
from tracekit.recorder.registered import RegisteredImage, registered_image

CHUNK_AGE = 1.0
"""Seconds after which a chunk that is not filled any further is written though it is not complete."""

LOOK = 0.5
"""Seconds between two looks at what else there is to do."""


class WholeFile:
    """An unbuffered file whose writes are whole or raise, and that can be cut back to its last whole frame."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def write(self, data: bytes | bytearray | memoryview) -> int:
        """Write all of it."""
        view = memoryview(data)
        while view:
            view = view[os.write(self._descriptor, view) :]
        return len(data)

    def seek(self, offset: int) -> int:
        """The next write goes there."""
        return os.lseek(self._descriptor, offset, os.SEEK_SET)

    def flush(self) -> None:
        """Nothing is buffered."""

    def cut(self, size: int) -> None:
        """Drop what stands behind the first ``size`` bytes."""
        os.ftruncate(self._descriptor, size)
        os.lseek(self._descriptor, size, os.SEEK_SET)

    def close(self) -> None:
        """Make it durable, then close it."""
        os.fsync(self._descriptor)
        os.close(self._descriptor)


class Watched:
    """A process that is nobody's child here, from its id: whether it is gone."""

    def __init__(self, process: int) -> None:
        self._process = process
        try:
            self._descriptor: int | None = os.pidfd_open(process)
        except (OSError, OverflowError):  # it is gone, or the kernel has none of these, or this is no process's id
            self._descriptor = None

    def gone(self) -> bool:
        """Whether it has ended, reaped or not."""
        if self._descriptor is not None:
            return bool(select.select([self._descriptor], [], [], 0)[0])
        try:
            os.kill(self._process, 0)
        except (OSError, OverflowError):  # also where the id is by now that of a process of somebody else
            return True
        return False


class Collector:
    """Everything between a pool and a trace file. ``run`` returns when the program is gone and the trace closed."""

    def __init__(
        self,
        pool: Pool,
        descriptor: int,
        meta: Mapping[str, Any],
        options: CollectorOptions,
    ) -> None:
        """``descriptor``: of the empty file; ``meta``: the META object, completed from the first image's tables."""
        self._pool = pool
        self._meta = dict(meta)
        self._options = options
        self._file = WholeFile(descriptor)
        self._writing = threading.RLock()
        self._writer = TraceWriter(cast(BinaryIO, self._file))
        self._chunks = InOrder(self._write_chunk)
        self._encoder = Encoder(buffer_words=pool.buffer_words, workers=options.workers)
        if options.left_out:
            from tracekit.recorder import trimming

            for code in trimming.dropped_events(options.left_out):
                self._encoder.drop(code)
        self._adding = threading.Lock()
        self._facts: list[PathFacts] = []
        self._sources: dict[str, bytes] = {}
        self._failure = ""
        self._own_malloc = False
        self._damaged = False
        self._is_file_cut = False
        self._owner: Watched | None = None  # once it has registered an image, or `record` was killed
        self._began = self._shown = time.monotonic()
        self._snapshots: Snapshots | None = None
        if options.snapshots:
            self._snapshots = Snapshots(options.snapshots, pool.made, self._write_snapshot, options.physical)

    def run(self, control: BinaryIO) -> Outcome:
        """Collect until the program is gone; ``control`` then yields an Ending as JSON (or ends: `record` is gone)."""
        numbers = range(self._options.workers)
        workers = [threading.Thread(target=self._work, name=f"worker {number}") for number in numbers]
        for worker in workers:
            worker.start()
        ending = self._await_end(control)
        self._pool.say_exited(self._owner is None or self._owner.gone())
        for worker in workers:
            while worker.is_alive():
                worker.join(LOOK)
                self._show_progress()
        if self._snapshots:
            self._snapshots.stop()
        if self._damaged:
            self._write_unfinished()
        outcome = self._outcome()
        outcome.failure = self._failure
        if not outcome.attached:
            return outcome
        self._close(ending, outcome)
        outcome.failure = self._failure
        outcome.file_bytes = self._writer.bytes_written
        return outcome

    # -- the workers -----------------------------------------------------------------------------

    def _work(self) -> None:
        """One worker, until the program is gone or the trace cannot go on."""
        try:
            room, pressure = Payload(), Pressure(self._pool)
            while not self._failure:
                worked, chunk = self._encoder.work(self._pool, CHUNK_AGE, LOOK, room)
                if worked == Worked.ALL:
                    break
                if worked == Worked.IMAGE:
                    self._add_images()
                if chunk:
                    self._chunks.put(chunk.stream, chunk.ordinal, compress(chunk, pressure.now()))
        except DamagedPoolError as error:
            self._damaged = True
            self._fail(str(error))
        except TracekitError as error:
            self._fail(str(error))
        except BaseException as error:  # a bug: the program must not wait for a worker that is gone
            self._fail(f"the collector failed: {error!r}")
            if os.environ.get("TRACEKIT_DEBUG"):
                raise

    def _await_end(self, control: BinaryIO) -> Ending:
        """Wait for the program's end, as `record` tells it, or as it shows if `record` was killed."""
        while not select.select([control], [], [], LOOK)[0]:
            self._show_progress()
        said = control.readline()
        if said:
            return Ending(**json.loads(said))
        while not self._is_gone():
            time.sleep(LOOK)
        return Ending()

    def _is_gone(self) -> bool:
        """Whether the process that claimed the pool has ended; there may be none, or it has no image yet."""
        owner = self._pool.status().owner
        if self._owner is None and owner:
            self._owner = Watched(owner)
        return self._owner is None or self._owner.gone()

    def _add_images(self) -> None:
        with self._adding:
            while len(self._facts) < self._pool.status().images:
                self._add_image(len(self._facts))

    def _add_image(self, number: int) -> None:
        """Write an image, then let the workers know its ids: it stands before the chunks that use them."""
        image, units, facts = self._read_image(number)
        if number == 0:
            self._owner = Watched(self._pool.status().owner)
            self._complete_meta(units)
            self._own_malloc = own_malloc.is_unseen(image.name, units)
            if self._snapshots:
                self._snapshots.start(self._pool.status().owner)
        rows = image.functions[["unit", "function", "first"]]
        first_path = self._encoder.ids
        payload = build_image(number, first_path, image.span, image.name, image.units, rows, image.globals)
        self._write(partial(self._writer.image, number, payload))
        if self._options.with_sources:
            self._note_sources(units)
        self._facts.append(facts)
        self._encoder.add_image(image.low, facts.words, image.loaded, facts.run)

    def _read_image(self, number: int) -> tuple[RegisteredImage, list[Unit], PathFacts]:
        image = registered_image(self._pool, number)
        units = [Unit.parse(unit) for unit in image.units]
        try:
            if self._options.left_out:
                from tracekit.recorder import trimming

                left = trimming.trim_image(image, units, self._options.left_out)
                self._encoder.trim(left.words, left.kept, left.which)
                image, units = image._replace(units=left.units), [Unit.parse(unit) for unit in left.units]
            return image, units, path_facts(image, units)
        except (IndexError, ValueError) as error:  # a row names what the unit does not have
            raise DamagedPoolError from error

    def _complete_meta(self, units: list[Unit]) -> None:
        if "session" in self._meta:
            self._meta["process"] = self._pool.status().owner
        for unit in units[:1]:
            row = unit.tables["unit"][0]
            self._meta["compiler"] = unit.text(int(row["producer"]))
            self._meta["target"] = unit.text(int(row["target"]))
        self._write(partial(self._writer.meta, self._meta))

    def _note_sources(self, units: list[Unit]) -> None:
        for unit in units:
            for row in unit.tables["sources"]:
                path = unit.text(int(row["path"]))
                name = os.path.join(unit.folder, path)
                files = [file for file in (name, path) if os.path.isfile(file)]  # the folder may be no real one
                if name not in self._sources and files:
                    self._sources[name] = Path(files[0]).read_bytes()

    def _show_progress(self) -> None:
        """Once a second, on a terminal."""
        if not self._options.progress or time.monotonic() - self._shown < 1.0:
            return
        self._shown = time.monotonic()
        counts = int(self._encoder.counts().sum())
        rate = counts / (time.monotonic() - self._began)
        written = self._writer.bytes_written
        print(
            f"\rtracekit: {counts / 1e6:.0f} M records, {written / 1e6:.1f} MB, {rate / 1e6:.1f} M/s \x1b[K",
            end="",
            file=sys.stderr,
            flush=True,
        )

    # -- writing ---------------------------------------------------------------------------------

    def _write_chunk(self, chunk: CompressedChunk) -> None:
        if chunk.records:
            self._write(partial(self._writer.compressed_frame, b"CHNK", *chunk))

    def _write_unfinished(self) -> None:
        """Write what was encoded before the damage was noticed: of each stream the chunk at which it stands.

        Other chunks of a stream were begun behind that one, and records between them are missing.
        """
        try:
            self._add_images()  # also of a program that did its damage before anybody looked
        except TracekitError:
            pass  # what describes the next one is damaged too
        streams: set[int] = set()
        for chunk in self._encoder.unfinished():
            if chunk.stream not in streams:
                self._chunks.put_last(chunk.stream, chunk.ordinal, compress(chunk, hurried=True))
            streams.add(chunk.stream)

    def _write(self, action: Callable[[], None]) -> None:
        """Write frames; the first failure cuts the trace to its last whole frame and ends the recording.

        After another failure, what workers have in their hands is written still.
        """
        with self._writing:
            if self._is_file_cut:
                return
            try:
                action()
            except OSError as error:
                self._is_file_cut = True
                self._fail(error.strerror or str(error))
                self._file.cut(self._writer.bytes_written)

    def _write_snapshot(self, payload: bytes) -> None:
        self._write(partial(self._writer.frame, b"MAPS", payload))

    def _fail(self, reason: str) -> None:
        self._failure = self._failure or reason
        self._pool.discard()

    # -- the end -----------------------------------------------------------------------------------

    def _outcome(self) -> Outcome:
        status = self._pool.status()
        made = totals(self._facts, self._encoder.counts(), self._encoder.iterations())
        return Outcome(
            attached=bool(self._facts),
            accesses=made["accesses"],
            unknown=self._encoder.unknown(),
            unrecorded=status.unrecorded,
            forked=status.forked,
            images_lost=status.images_lost,
            windows=int(self._encoder.counts(FIRST_PATH)[CODE["window_begin"]]),
            waited=status.waited / 1e9,
            own_malloc=self._own_malloc,
            totals=made,
        )

    def _close(self, ending: Ending, outcome: Outcome) -> None:
        """DONE and the seek table; also on a full disk, if the room that the cut made suffices."""
        status = self._pool.status()
        # Of a trace that was cut, nobody counted what was written.
        totals = {} if self._failure else {"totals": outcome.totals}
        done = {
            **asdict(ending),
            **totals,
            "streams": status.streams,
            "images": len(self._facts),
            "seconds_waited": round(outcome.waited, 6),
            "waits": status.waits,
            "unknown_words": outcome.unknown,
            "unrecorded": outcome.unrecorded,
            "images_lost": outcome.images_lost,
            "cut": self._failure,
        }
        try:
            if self._sources and not self._failure:
                self._writer.sources(self._sources)
            self._writer.done(done)
            self._writer.close()
            outcome.complete = True
        except OSError as error:
            self._failure = self._failure or error.strerror or str(error)
            self._file.cut(self._writer.bytes_written)
        self._file.close()


def totals(images: Sequence[PathFacts], counts: NDArray[np.uint64], iterations: NDArray[np.uint64]) -> dict[str, int]:
    """The totals of the end record, from the counts and iterations of an Encoder to which `images` were added."""
    counts = counts.astype(np.int64)
    paths = counts[FIRST_PATH:]
    words, run, blocks, loads, stores = (
        np.concatenate([np.zeros(0, np.int64), *(getattr(facts, name).astype(np.int64) for facts in images)])
        for name in ("words", "run", "blocks", "loads", "stores")
    )
    repeats = np.where(run, iterations[FIRST_PATH:].astype(np.int64), paths)
    event_words = sum(int(counts[code]) * len(BY_CODE[code].words) for code in RECORDED)
    total = {
        "path_records": int(paths.sum()),
        "blocks": int(repeats @ blocks),
        "words": int(paths @ words) + event_words,
        "loads": int(repeats @ loads) + int(counts[CODE["library_load"]]),
        "stores": int(repeats @ stores) + int(counts[CODE["library_store"]]),
        "events": int(counts[:FIRST_PATH].sum()),
    }
    total["accesses"] = total["loads"] + total["stores"]
    total["raw_bytes"] = 8 * (total["path_records"] + total["events"] + total["words"])
    return total
