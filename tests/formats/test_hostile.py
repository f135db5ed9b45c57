"""Forged payloads inside sound frames: a clear error or a sane result, in bounded time and memory."""

from __future__ import annotations

import io
import random
import struct
import time
import tracemalloc
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests.formats.traces import arities, payload_of
from tests.naive.walker import RandomProgram, Walk
from tracekit.formats.chunk_codec import encode
from tracekit.formats.errors import TracekitError
from tracekit.formats.image import DTYPES
from tracekit.formats.image_frame import Image
from tracekit.formats.limits import DEEPEST
from tracekit.formats.reader import TraceReader
from tracekit.formats.records import RecordSource
from tracekit.formats.sources import build_sources, parse_sources
from tracekit.formats.unit import Unit
from tracekit.formats.writer import TraceWriter
from tracekit.program.program import Program
from tracekit.replay.engine import batches
from tracekit.replay.kernels import layouts

MEMORY = 64 << 20
DEEP_MEMORY = MEMORY + DEEPEST * (8 + layouts.FRAME_ROW.itemsize) * 3 // 2
"""Where a stack is refused: its frames, and a register of each, are at their limit, and were copied when they grew."""
SECONDS = 20
MOST = 1 << 24


def wrap(images: list[bytes], chunks: list[tuple[int, int, bytes]]) -> bytes:
    """A sound container around payloads."""
    file = io.BytesIO()
    writer = TraceWriter(file)
    for number, payload in enumerate(images):
        writer.image(number, payload)
    for stream, records, payload in chunks:
        writer.chunk(stream, records, payload)
    writer.done({})
    writer.close()
    return file.getvalue()


def parts(seed: int) -> tuple[bytes, tuple[int, int, bytes]]:
    """A random program's image payload, and a chunk of a walk through it."""
    rng = random.Random(seed)
    made = RandomProgram(rng)
    walk = Walk(made, rng, [])
    walk.run()
    image, records = made.layout.image(), walk.records()
    words = np.array([word for _, values in records for word in values], np.uint64)
    chunk = encode(np.array([number for number, _ in records], np.uint32), words, arities([image]))
    return payload_of(image), (0, len(records), chunk.build())


def replay_all(data: bytes) -> int:
    """How many events there are; not all of a long run's, which takes the time that it claims, but no memory."""
    trace = TraceReader(data)
    program = Program.from_images(trace.images())
    events = 0
    for batch in batches(RecordSource(trace, program.arity), program):
        events += len(batch)
        if events > MOST:
            break
    return events


def bounded(data: bytes, run: Callable[[bytes], object] = replay_all) -> None:
    """Read and replay; only TracekitError may come of it, within bounds."""
    started = time.monotonic()
    tracemalloc.start()
    try:
        run(data)
    except TracekitError as error:
        message = str(error)
    else:
        message = ""
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert len(message) < 400
    assert peak < (DEEP_MEMORY if "never stops growing" in message else MEMORY)
    assert time.monotonic() - started < SECONDS


def damage(payload: bytes, rng: random.Random) -> bytes:
    """Overwrite a few whole fields, often with extreme values, or cut."""
    data = bytearray(payload)
    for _ in range(rng.choice((1, 1, 1, 2, 5))):
        width = rng.choice((1, 2, 4, 4, 4, 8))
        at = rng.randrange(0, max(len(data) - width, 1)) // width * width
        value = rng.choice(
            (
                0,
                1,
                (1 << 8 * width) - 1,
                1 << (8 * width - 1),
                rng.getrandbits(8 * width),
                rng.randrange(400) % (1 << 8 * width),
            )
        )
        data[at : at + width] = value.to_bytes(width, "little")
    return bytes(data[: rng.randrange(len(data))] if rng.random() < 0.1 else data)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.integers(0, 1 << 32), st.booleans())
@example(2674, True)
def test_forged_payloads(seed: int, in_image: bool) -> None:
    rng = random.Random(seed)
    image, (stream, records, chunk) = parts(rng.randrange(20))
    if in_image:
        image = damage(image, rng)
    else:
        chunk = damage(chunk, rng)
    bounded(wrap([image], [(stream, records, chunk)]))


def test_undamaged_parts_replay() -> None:
    image, chunk = parts(3)
    assert replay_all(wrap([image], [chunk])) > 0


def test_a_chunk_that_claims_other_records_than_its_frame_is_refused() -> None:
    image, (stream, records, chunk) = parts(3)
    with pytest.raises(TracekitError, match=r"frame 2 \(CHNK, offset \d+\)"):
        replay_all(wrap([image], [(stream, records + 1, chunk)]))


def test_damage_in_a_chunk_names_frame_offset_and_record() -> None:
    image, (stream, records, chunk) = parts(3)
    literals, count = struct.unpack_from("<2I", chunk, 20)
    symbols = 64 + 4 * literals
    last = max(k for k in range(count) if chunk[symbols + k] >> 6 == 3)  # the record of the last literal
    forged = chunk[: symbols - 4] + b"\xff\xff\xff\x7f" + chunk[symbols:]
    with pytest.raises(TracekitError, match=rf"frame 2 \(CHNK, offset \d+\): record {last} has an id that no image"):
        replay_all(wrap([image], [(stream, records, forged)]))


def test_claims_of_a_small_file_cost_nothing() -> None:
    image, chunk = parts(3)
    for at in range(0, 28, 4):  # the counts in the header of an image
        bounded(wrap([image[:at] + b"\xff\xff\xff\x7f" + image[at + 4 :]], [chunk]))
    for at in range(12, 36, 4):  # those of a chunk
        bounded(wrap([image], [(*chunk[:2], chunk[2][:at] + b"\xff\xff\x7f\0" + chunk[2][at + 4 :])]))


def test_images_are_counted() -> None:
    image, _ = parts(3)
    with pytest.raises(TracekitError, match="not image 1"):
        TraceReader(wrap([image, image], [])).images()


# -- units -------------------------------------------------------------------------------------------
def tables() -> dict[str, np.ndarray]:
    return dict(RandomProgram(random.Random(5)).layout.unit().tables)


def test_units_come_back() -> None:
    given_tables = tables()
    unit = Unit.parse(Unit.build(given_tables))
    assert list(unit.tables) == list(DTYPES)
    for name, rows in given_tables.items():
        np.testing.assert_array_equal(unit.tables[name], rows)
    assert unit.text(int(unit.tables["functions"]["name"][0])) == "f0"
    assert Unit.parse(Unit.build(given_tables)).hash == unit.hash


def test_longer_rows_unknown_tables_and_missing_tables_are_read() -> None:
    """What a later version may add."""
    given_tables = tables()
    longer = np.zeros(len(given_tables["ops"]), [*DTYPES["ops"].descr, ("later", "<u8")])
    for name in DTYPES["ops"].names or ():
        longer[name] = given_tables["ops"][name]
    blob = bytearray(Unit.build({**given_tables, "ops": longer}))
    assert struct.unpack_from("<I", blob, 24 + 24 * list(given_tables).index("phis"))[0] == list(DTYPES).index("phis")
    struct.pack_into("<I", blob, 24 + 24 * list(given_tables).index("phis"), 77)
    unit = Unit.parse(bytes(blob))
    np.testing.assert_array_equal(unit.tables["ops"], given_tables["ops"])
    assert len(unit.tables["phis"]) == 0


@pytest.mark.parametrize(
    "at, layout, value, message",
    [
        (0, "<Q", 0, "magic"),
        (8, "<I", 3, "version 3"),
        (12, "<I", 1 << 30, "header"),
        (16, "<Q", 8, "header"),
        (48, "<I", 0, "twice"),
        (28, "<I", 0, "outside"),
        (32, "<Q", 1 << 60, "outside"),
        (40, "<Q", 3, "outside"),
        (40, "<Q", 1 << 62, "outside"),
        (32, "<Q", 0, "terminated"),
        (32, "<Q", 3, "terminated"),
    ],
)
def test_a_damaged_unit_is_refused(at: int, layout: str, value: int, message: str) -> None:
    given_tables = {name: tables()[name] for name in ("strings", *(name for name in DTYPES if name != "strings"))}
    blob = bytearray(Unit.build(given_tables))
    struct.pack_into(layout, blob, at, value)
    with pytest.raises(TracekitError, match=message):
        Unit.parse(bytes(blob))


def test_every_cut_of_an_image_is_refused() -> None:
    image, _ = parts(3)
    for size in range(0, len(image), 8):
        with pytest.raises(TracekitError):
            Image.parse(image[:size])


# -- source files ------------------------------------------------------------------------------------
@given(st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), st.binary()))
def test_source_files_come_back(files: dict[str, bytes]) -> None:
    merged: dict[str, bytes] = {}
    for payload in build_sources(files):
        merged.update(parse_sources(payload))
    assert merged == files


@given(st.binary(max_size=40))
def test_forged_source_files_are_refused_or_read(payload: bytes) -> None:
    try:
        files = parse_sources(payload)
    except TracekitError:
        return
    assert sum(12 + len(contents) for contents in files.values()) <= len(payload)
