"""Several workers on one stream: whatever the split into chunks and whoever is first, the records are the same."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections import defaultdict
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.recorder.recording import ENVIRONMENT, build, record
from tracekit.formats.chunk import Chunk
from tracekit.formats.chunk_codec import Decoder
from tracekit.formats.events import BY_CODE, FIRST_PATH, NONE, RECORDED
from tracekit.formats.reader import TraceReader
from tracekit.program.program import Program
from tracekit.recorder.compression import CompressedChunk, InOrder
from tracekit.recorder.encoder import Encoder, Payload
from tracekit.recorder.native import Worked, library
from tracekit.recorder.pool import DEFAULT_BUFFER, IMAGE_AREA, SMALLEST_BUFFER, Pool
from tracekit.recorder.session import program_environment

BUFFER = np.dtype(
    [
        ("state", "<u4"),
        ("stream", "<u4"),
        ("thread", "<u4"),
        ("kind", "<u4"),
        ("sequence", "<u8"),
        ("epoch", "<u4"),
        ("words", "<u4"),
        ("last", "<u8"),
        ("reserved", "<u8", 3),
    ]
)  # struct tk_buffer
FULL, BUFFERS = 2, 64
EVENTS = sorted(RECORDED)


@cache
def shared_pool() -> Pool:
    """A pool whose program is gone: what stands in its buffers is all there will be."""
    pool = Pool(SMALLEST_BUFFER, BUFFERS)
    pool.say_exited()
    return pool


def arity() -> np.ndarray:
    words = np.full(FIRST_PATH, NONE, np.uint32)
    for code in EVENTS:
        words[code] = len(BY_CODE[code].words)
    return words


@st.composite
def streams(draw: st.DrawFn) -> list[list[list[int]]]:
    """For each stream its buffers: whole records of events, as raw words."""
    draws = np.random.default_rng(draw(st.integers(0, 1 << 32)))
    words, found = arity(), []
    for count in draw(st.lists(st.integers(0, 24), min_size=1, max_size=2)):
        buffers = []
        for _ in range(count):
            raw: list[int] = []
            for code in draws.choice(EVENTS, draws.integers(1, 60)):
                raw += [int(code), *(0x7000_0000 + 8 * draws.integers(0, 99, words[code])).tolist()]
            buffers.append(raw)
        found.append(buffers)
    return found


def fill(pool: Pool, contents: list[list[list[int]]], order: np.random.Generator, last: int = -1) -> None:
    """Put the buffers into the pool, in any places; those of number `last` say that their streams end."""
    table = np.frombuffer(pool._memory, BUFFER, BUFFERS, int(library().tk_pool_table_offset(pool.view)))
    data = np.frombuffer(
        pool._memory, np.uint64, BUFFERS * pool.buffer_words, int(library().tk_pool_words_offset(pool.view))
    ).reshape(BUFFERS, -1)
    exchange = int(library().tk_pool_area_offset(pool.view)) + IMAGE_AREA
    np.frombuffer(pool._memory, np.uint32, 1, exchange)[0] = len(contents)  # streams
    free = iter(order.permutation(BUFFERS))
    for stream, buffers in enumerate(contents):
        for sequence, raw in enumerate(buffers):
            place = next(free)
            data[place, : len(raw)] = raw
            table[place] = (FULL, stream, stream, 0, sequence, 0, len(raw), sequence == last, 0)


def encoded(pool: Pool, workers: int, limit: int) -> dict[int, list[tuple[int, bytes]]]:
    """By stream, the chunks that `workers` threads make of the pool: ordinal, payload."""
    encoder, chunks = Encoder(limit, pool.buffer_words, workers), defaultdict(list)

    def work() -> None:
        room = Payload()
        while (found := encoder.work(pool, 10.0, 0.1, room))[0] != Worked.ALL:
            if chunk := found[1]:
                chunks[chunk.stream].append((chunk.ordinal, bytes(chunk.payload)))

    threads = [threading.Thread(target=work) for _ in range(workers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    counted = encoder.counts()
    encoder.close()
    assert counted.sum() == sum(Chunk.parse(payload).records for each in chunks.values() for _, payload in each)
    return chunks


def decoded(payloads: list[bytes], words: np.ndarray) -> list[int]:
    """The records of chunks, in order, as raw words; `words`: how many follow each id."""
    decoder, found = Decoder(words), []
    for payload in payloads:
        decoder.start(Chunk.parse(payload))
        while (batch := decoder.batch()) is not None:
            values = iter(batch[1].tolist())
            for code in batch[0].tolist():
                found += [code, *(next(values) for _ in range(words[code]))]
    return found


@settings(max_examples=60, deadline=None)
@given(streams(), st.sampled_from([1, 2, 4]), st.integers(1, 6), st.integers(0, 1 << 32))
def test_any_split_and_any_order_of_workers_give_the_same_records(
    contents: list[list[list[int]]], workers: int, buffers_each: int, seed: int
) -> None:
    pool = shared_pool()
    fill(pool, contents, np.random.default_rng(seed))
    chunks = encoded(pool, workers, buffers_each * pool.buffer_words)
    for stream, buffers in enumerate(contents):
        ordinals = sorted(chunks[stream])
        assert [ordinal for ordinal, _ in ordinals] == list(range(len(ordinals)))
        each = min(buffers_each, BUFFERS // (2 * workers))
        assert len(ordinals) == -(-len(buffers) // each)
        assert decoded([payload for _, payload in ordinals], arity()) == [word for raw in buffers for word in raw]


@settings(max_examples=20, deadline=None)
@given(streams(), st.sampled_from([1, 2]), st.integers(0, 5), st.integers(0, 1 << 32))
def test_a_stream_that_is_said_to_end_may_go_on(
    contents: list[list[list[int]]], workers: int, last: int, seed: int
) -> None:
    pool = shared_pool()
    fill(pool, contents, np.random.default_rng(seed), last)
    chunks = encoded(pool, workers, 4 * pool.buffer_words)
    for stream, buffers in enumerate(contents):
        payloads = [payload for _, payload in sorted(chunks[stream])]
        assert decoded(payloads, arity()) == [word for raw in buffers for word in raw]


IMAGES, LATE = 44, 0x10000  # where struct tk_pool counts its images; the only id of one that comes late


@pytest.mark.parametrize("stalls, last", [(0, 0), (1, -1)])
def test_a_chunk_that_waits_for_an_image_does_not_end_early_behind_those_that_follow_it(stalls: int, last: int) -> None:
    """The chunk that follows is whole and gone: nothing is left but the number at which the next one begins.

    The first one would end early because its buffer says that the stream ends, or because it was begun long ago.
    """
    pool, encoder = Pool(SMALLEST_BUFFER, BUFFERS), Encoder(2 * SMALLEST_BUFFER // 8, SMALLEST_BUFFER // 8)
    event = next(code for code in EVENTS if len(BY_CODE[code].words) == 1)
    raw = [[LATE if sequence == stalls else event, 8 * sequence] for sequence in range(4)]
    fill(pool, [raw], np.random.default_rng(0), last)
    chunks = [chunk for _ in range(2) if (chunk := encoder.work(pool, 0.0, 0.0, Payload())[1])]
    first = encoder.add_image(LATE, np.ones(1, np.uint16), 0)
    np.frombuffer(pool._memory, np.uint32, 1, IMAGES)[0] = 1
    while (found := encoder.work(pool, 0.0, 0.0, Payload()))[1]:
        chunks.append(found[1])
    chunks.sort(key=lambda chunk: chunk.ordinal)
    of = np.append(arity(), 1).astype(np.uint32)
    expected = [word for code, value in raw for word in (first if code == LATE else code, value)]
    assert [chunk.records for chunk in chunks] == [2, 2]
    assert decoded([bytes(chunk.payload) for chunk in chunks], of) == expected
    encoder.close()


def test_the_chunk_of_a_stream_that_ends_is_taken_at_once() -> None:
    pool, encoder = Pool(SMALLEST_BUFFER, BUFFERS), Encoder(1 << 20, SMALLEST_BUFFER // 8)
    raw = [EVENTS[0], *[8] * len(BY_CODE[EVENTS[0]].words)]
    for last, expected in ((-1, Worked.NOTHING), (0, Worked.CHUNK)):
        fill(pool, [[raw]] if last else [[], [raw]], np.random.default_rng(last + 1), last)
        worked, chunk = encoder.work(pool, 60.0, 0.1, Payload())
        assert worked == expected and (chunk is None or chunk.stream == 1)
    encoder.close()


JOINED = """
    #include <pthread.h>
    static int seen[8];
    static void *work(void *unused) { for (int i = 0; i < 8; i++) seen[i]++; return unused; }
    int main(void) {
        pthread_t thread;
        pthread_create(&thread, 0, work, 0);
        pthread_join(thread, 0);
        return seen[3] - 1;
    }"""


def test_a_thread_says_that_its_stream_ends(tmp_path: Path) -> None:
    app, pool = build(tmp_path, JOINED, "-pthread"), Pool(SMALLEST_BUFFER, BUFFERS)
    environment = {**program_environment(str(app)), "TRACEKIT_POOL": str(pool.descriptor)}
    assert subprocess.run([app], env=environment, pass_fds=[pool.descriptor], timeout=60).returncode == 0
    table = np.frombuffer(pool._memory, BUFFER, BUFFERS, int(library().tk_pool_table_offset(pool.view)))
    used = table[table["stream"] != 0xFFFFFFFF]
    assert set(used[["stream", "last"]].tolist()) == {(0, 0), (1, 1)}


@pytest.mark.parametrize("used, filled, megabytes", [(1, 1, 1), (2, 1, 2), (3, 1, 2), (4, 1, 4), (4, 0, 1)])
def test_memory_is_allocated_ahead_of_the_program_as_it_needs_it(used: int, filled: int, megabytes: int) -> None:
    pool, encoder = Pool(buffers=BUFFERS), Encoder(1 << 20, DEFAULT_BUFFER // 8)
    pool.adopt()
    table = np.frombuffer(pool._memory, BUFFER, BUFFERS, int(library().tk_pool_table_offset(pool.view)))
    words = np.frombuffer(pool._memory, np.uint64, BUFFERS << 15, int(library().tk_pool_words_offset(pool.view)))
    raw = [EVENTS[0], *[8] * len(BY_CODE[EVENTS[0]].words)]
    raw *= (20_000 if filled else 20) // len(raw)
    for number in range(used):
        words[number << 15 :][: len(raw)] = raw
        table[number] = (FULL, 0, 0, 0, number, 0, len(raw), 0, 0)
    encoder.work(pool, 10.0, 0.1, Payload())
    encoder.close()
    assert os.fstat(pool.descriptor).st_blocks * 512 >> 20 == megabytes


@given(st.permutations([(stream, ordinal) for stream in range(3) for ordinal in range(5)]))
def test_chunks_are_written_in_the_order_of_their_streams(arrivals: list[tuple[int, int]]) -> None:
    written: list[tuple[int, int]] = []
    chunks = InOrder(lambda chunk: written.append((chunk.stream, chunk.records)))
    for stream, ordinal in arrivals:
        chunks.put(stream, ordinal, CompressedChunk(b"", 0, stream, ordinal, 0))
    for stream in range(3):
        assert [ordinal for name, ordinal in written if name == stream] == list(range(5))


def test_nothing_is_written_behind_the_chunk_at_which_a_stream_is_cut() -> None:
    written: list[tuple[int, int]] = []
    chunks = InOrder(lambda chunk: written.append((chunk.stream, chunk.records)))
    for stream, ordinal in ((0, 0), (0, 2), (1, 1)):
        chunks.put(stream, ordinal, CompressedChunk(b"", 0, stream, ordinal, 0))
    chunks.put_last(0, 1, CompressedChunk(b"", 0, 0, 1, 0))
    chunks.put(1, 0, CompressedChunk(b"", 0, 1, 0, 0))
    assert written == [(0, 0), (0, 1), (1, 0), (1, 1)]


WALK = """
    #include <stdio.h>
    static int table[1 << 12];
    __attribute__((noinline)) int step(int at) { return table[at] += at & 7 ? at : table[at >> 3]; }
    int main(void) {
        unsigned at = 1;
        for (int i = 0; i < 700000; i++) step((at = at * 1103515245 + 12345) >> 20);
        puts("done");
        return 7;
    }"""


@pytest.fixture(scope="module")
def walk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("walk"), WALK, "-no-pie", "-fno-pie")


def paths(trace: Path) -> tuple[list[int], list[int], int]:
    """Path numbers and words of stream 0 (events, which hold process ids, left out), and how many chunks it has."""
    with TraceReader(trace) as reader:
        words_of = Program.from_images(reader.images()).arity
        decoder, ids, words = Decoder(words_of), [], []
        frames = reader.chunk_frames(0)
        for frame in frames:
            decoder.start(reader.chunk(frame))
            while (batch := decoder.batch()) is not None:
                owner = np.repeat(batch[0], words_of[batch[0]])
                ids.append(batch[0][batch[0] >= FIRST_PATH].copy())
                words.append(batch[1][owner >= FIRST_PATH].copy())
        return np.concatenate(ids).tolist(), np.concatenate(words).tolist(), len(frames)


def test_the_number_of_workers_changes_no_record(tmp_path: Path, walk: Path) -> None:
    found = []
    for workers in (1, 2, 4):
        options = ("-f", "-o", "trace.zst", "--buffer-size", "16K", "--workers", str(workers))
        run = record(tmp_path, walk, options=options)
        assert (run.returncode, run.stdout) == (7, "done\n"), run.stderr
        found.append(paths(tmp_path / "trace.zst"))
    assert len(found[0][0]) > 700_000 and found[0][2] > 2 and found[2][2] > 2 * found[0][2]
    assert found[0][:2] == found[1][:2] == found[2][:2]


FAILING = """
import sys, threading
from tracekit.recorder import collector
compress_whole, write_whole, written = collector.compress, collector.Collector._write_chunk, threading.Event()
def compress(chunk, hurried):
    if chunk.ordinal == 5:
        written.wait(30)  # what another worker has in hand is lost then: one chunk shall be in the trace
        raise RuntimeError("a worker dies")
    return compress_whole(chunk, hurried)
def write_chunk(self, chunk):
    write_whole(self, chunk)
    written.set()
collector.compress, collector.Collector._write_chunk = compress, write_chunk
from tracekit.__main__ import main
sys.exit(main())
"""


def test_a_worker_that_dies_cuts_the_trace_and_leaves_the_program_alone(tmp_path: Path, walk: Path) -> None:
    record(tmp_path, walk, options=("-o", "whole.zst", "--buffer-size", "16K"))
    run = subprocess.run(
        [sys.executable, "-c", FAILING, "record", "-o", "cut.zst", "--buffer-size", "16K", str(walk)],
        cwd=tmp_path,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (run.returncode, run.stdout) == (7, "done\n") and "a worker dies" in run.stderr, run.stderr
    with TraceReader(tmp_path / "cut.zst") as reader:
        assert reader.complete and reader.done is not None and "a worker dies" in reader.done["cut"]
    (ids, words, count), (all_ids, all_words, total) = paths(tmp_path / "cut.zst"), paths(tmp_path / "whole.zst")
    assert 0 < count < total and ids == all_ids[: len(ids)] and words == all_words[: len(words)]
