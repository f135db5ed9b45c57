"""A second reader of traces, written from formats/SPEC.md alone: slow, plain Python, sharing no code with tracekit.

trace = read(Path("trace.zst").read_bytes())
for stream, name, subject, address, size in trace.events(): ...
"""

from __future__ import annotations

import hashlib
import io
import json
import struct
import sys
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any

import zstandard

from tests.naive.tables import FOLDER, RECORDED, TABLES

if TYPE_CHECKING:
    from tests.naive.deriver import Process

NONE = 0xFFFFFFFF
MASK = (1 << 64) - 1
VERSION = 3

Row = dict[str, int]
Record = tuple[int, list[int]]


class DamagedTraceError(Exception):
    """The file is no trace, or a damaged one."""


@dataclass
class Frame:
    """A typed frame."""

    offset: int
    type: str
    stream: int
    items: int
    payload: bytes
    header: bytes


@dataclass
class Image:
    """An image: unit bytes, rows (unit, function, first) and (address, unit, global)."""

    number: int
    first_path: int
    span: int
    name: str
    units: list[bytes]
    functions: list[tuple[int, int, int]]
    placed: list[tuple[int, int, int]]


@dataclass
class Snapshot:
    """Where replay can begin: the streams by their numbers, and the heap."""

    accesses: int
    begun: int
    running: int
    limit: int
    heap: dict[int, int]
    streams: dict[int, StreamState]


@dataclass
class StreamState:
    """A stream of a snapshot; the rows of its arrays as tuples."""

    flags: int
    records: int
    equal: tuple[int, ...]
    frames: list[tuple[int, ...]]
    iterations: list[int]
    registers: list[int]
    objects: list[tuple[int, ...]]
    broken: list[tuple[int, ...]]


@dataclass
class Trace:
    """What a file holds; `tables` are those of all units with global rows; `strings[u]` is that of unit u."""

    complete: bool
    version: int
    content_hash: str
    frames: list[Frame]
    meta: dict[str, Any] = field(default_factory=dict)
    done: dict[str, Any] | None = None
    sources: dict[str, bytes] = field(default_factory=dict)
    images: list[Image] = field(default_factory=list)
    tables: dict[str, list[Row]] = field(default_factory=dict)
    strings: list[bytes] = field(default_factory=list)
    unit_of: dict[str, list[int]] = field(default_factory=dict)
    path_row: dict[int, int] = field(default_factory=dict)
    address: dict[int, int] = field(default_factory=dict)  # of rows of globals
    globals_of: dict[int, list[int]] = field(default_factory=dict)  # image -> rows placed, ascending
    streams: dict[int, list[Record]] = field(default_factory=dict)
    snapshots: list[Snapshot] = field(default_factory=list)

    def text(self, unit: int, offset: int) -> str:
        data = self.strings[unit]
        return data[offset : data.index(b"\0", offset)].decode()

    def events(self) -> list[tuple[int, str, int, int, int]]:
        """All events in the order of delivery: (stream, name, subject, address, size)."""
        return self.process().events

    def values(self) -> list[int | None]:
        """Beside the events: the bytes that each load or store moved, as a number, where they were recorded."""
        return self.process().values

    def process(self) -> Process:
        """The streams' process after all of them ran: its events, and how its ground-truth records compared."""
        from tests.naive.deriver import Process

        process = Process(self)
        process.run()
        return process


# -- container ---------------------------------------------------------------------------------------
def read(data: bytes) -> Trace:
    """Read a trace. Raises DamagedTraceError for anything but a trace, whole or cut short."""
    frames, complete = _frames(data)
    head = frames[0]
    if head.type != "HEAD" or head.payload[:8] != b"TRACEKIT":
        raise DamagedTraceError("no trace")
    version, oldest = struct.unpack_from("<II", head.payload, 8)
    if oldest > VERSION:
        raise DamagedTraceError(f"version {version} needs a newer reader")
    hashed = b"".join(f.header[8:16] + f.header[20:44] for f in frames if f.type != "SNAP")
    digest = hashlib.blake2b(hashed, digest_size=16)
    trace = Trace(complete, version, digest.hexdigest(), frames)
    for frame in frames:
        if frame.type == "META":
            trace.meta.update(json.loads(frame.payload))
        elif frame.type == "DONE":
            trace.done = json.loads(frame.payload)
        elif frame.type == "SRCS":
            trace.sources.update(_sources(frame.payload))
        elif frame.type == "IMAG":
            trace.images.append(_image(frame.payload))
    _join(trace)
    for frame in frames:
        if frame.type == "CHNK":
            trace.streams.setdefault(frame.stream, []).extend(_chunk(frame, _arities(trace)))
    _snapshots(trace)
    return trace


def _frames(data: bytes) -> tuple[list[Frame], bool]:
    frames: list[Frame] = []
    entries = b""
    at = 0
    while len(data) - at >= 48 and not (frames and frames[-1].type == "DONE"):
        header = data[at : at + 48]
        magic, content, kind, stream, sequence, items, size, compressed, crc, header_crc = struct.unpack(
            "<II4sIIIQQII", header
        )
        if magic != 0x184D2A50 or content != 40 or zlib.crc32(header[8:44]) != header_crc or sequence != len(frames):
            raise DamagedTraceError(f"no frame at {at}")
        if at + 48 + compressed > len(data):
            break
        body = data[at + 48 : at + 48 + compressed]
        frames.append(Frame(at, kind.decode("ascii", "replace"), stream, items, _payload(body, size, crc, at), header))
        entries += struct.pack("<IIII", 48, 0, compressed, size)
        at += 48 + compressed
    if not frames:
        raise DamagedTraceError("no whole frame")
    if frames[-1].type != "DONE":
        return frames, False
    footer = struct.pack("<IBI", 2 * len(frames), 0, 0x8F92EAB1)
    table = struct.pack("<II", 0x184D2A5E, len(entries) + len(footer)) + entries + footer
    if not table.startswith(data[at:]):
        raise DamagedTraceError("bytes after DONE")
    return frames, data[at:] == table


def _payload(body: bytes, size: int, crc: int, at: int) -> bytes:
    if zlib.crc32(body) != crc or size > 256 << 20 or size > len(body) // 3 * (128 << 10):
        raise DamagedTraceError(f"damaged frame at {at}")
    try:
        if zstandard.frame_content_size(body) != size:
            raise DamagedTraceError(f"damaged frame at {at}")
        return zstandard.ZstdDecompressor().decompress(body)
    except zstandard.ZstdError as error:
        raise DamagedTraceError(f"damaged frame at {at}") from error


def _sources(payload: bytes) -> dict[str, bytes]:
    files, at = {}, 0
    while at < len(payload):
        path, contents = struct.unpack_from("<IQ", payload, at)
        at += 12
        files[payload[at : at + path].decode()] = payload[at + path : at + path + contents]
        at += path + contents
    return files


# -- snapshots ---------------------------------------------------------------------------------------
def _snapshots(trace: Trace) -> None:
    blocks: list[dict[int, int]] = []
    for frame in trace.frames:
        if frame.type != "SNAP" or frame.payload[:4] != b"\1\0\0\0":
            continue
        layout = "<8IQqQ16s"
        _, count, first, own, heap, begun, running, _, _, limit, accesses, name = _fields(layout, frame.payload, 0)
        if name.hex() != trace.content_hash:
            continue
        if first != len(blocks):
            raise DamagedTraceError("blocks are missing")
        at = struct.calcsize(layout)
        objects = _fields(f"<{own}I", frame.payload, at)
        numbers = _fields(f"<{heap}I", frame.payload, at + 4 * own)
        at = _padded(at + 4 * (own + heap))
        rows = [_fields("<8I4Q", frame.payload, at + 64 * k) for k in range(count)]
        at += 64 * count
        streams = {}
        for number, flags, *counts, _, records, addresses, equal_blocks, runs in rows:
            arrays = []
            for layout, rows_there in zip(("<Q6I", "<Q", "<Q", "<2Q4I", "<2Q2I"), counts):
                size = struct.calcsize(layout)
                arrays.append([_fields(layout, frame.payload, at + size * k) for k in range(rows_there)])
                at += size * rows_there
            frames, iterations, registers, items, broken = arrays
            streams[number] = StreamState(
                flags,
                records,
                (addresses, equal_blocks, runs),
                frames,
                [row[0] for row in iterations],
                [row[0] for row in registers],
                items,
                broken,
            )
        for size in objects:
            steps, sizes = (_fields(f"<{size}Q", frame.payload, at + 8 * size * k) for k in range(2))
            blocks.append(dict(zip(accumulate(steps), sizes)))
            at += 16 * size
        if at != len(frame.payload):
            raise DamagedTraceError("a snapshot of another size")
        if count:
            live = {address: size for number in numbers for address, size in blocks[number].items()}
            trace.snapshots.append(Snapshot(accesses, begun, running, limit, live, streams))


def _fields(layout: str, data: bytes, at: int) -> tuple[Any, ...]:
    return struct.unpack_from(layout, data, at)


# -- images ------------------------------------------------------------------------------------------
def _image(payload: bytes) -> Image:
    number, first_path, span, units, functions, placed, name_bytes, _ = struct.unpack_from("<8I", payload)
    at = 32
    sizes = struct.unpack_from(f"<{units}Q", payload, at)
    at += 8 * units
    function_rows = list(struct.iter_unpack("<3I", payload[at : at + 12 * functions]))
    at = _padded(at + 12 * functions)
    placed_rows = list(struct.iter_unpack("<Q2I", payload[at : at + 16 * placed]))
    at += 16 * placed
    name = payload[at : at + name_bytes].decode()
    at = _padded(at + name_bytes)
    blobs = []
    for size in sizes:
        blobs.append(_in_rows(payload[at : at + size]))
        at = _padded(at + size)
    if at != len(payload):
        raise DamagedTraceError("image of another size")
    return Image(number, first_path, span, name, blobs, function_rows, placed_rows)  # type: ignore[arg-type]


def _padded(size: int) -> int:
    return (size + 7) // 8 * 8


def _in_rows(blob: bytes) -> bytes:
    """A unit with its tables row by row."""
    if struct.unpack_from("<I", blob, 8)[0] != 2:
        return blob
    made = bytearray(blob)
    made[8] = 1
    for at in range(24, 24 + 24 * struct.unpack_from("<I", blob, 12)[0], 24):
        _, width, differences, rows, offset = struct.unpack_from("<IHHQQ", blob, at)
        made[at + 6 : at + 8] = bytes(2)
        if width < 2 or rows < 2:
            continue
        sums = dict.fromkeys(range(16), 0)
        for row in range(rows):
            cells = bytearray(blob[offset + k * rows + row] for k in range(width))
            for word in range(16):
                if differences >> word & 1:
                    sums[word] = (sums[word] + int.from_bytes(cells[4 * word : 4 * word + 4], "little")) % 2**32
                    cells[4 * word : 4 * word + 4] = sums[word].to_bytes(4, "little")
            made[offset + row * width : offset + (row + 1) * width] = cells
    return bytes(made)


def _unit(blob: bytes) -> tuple[dict[str, list[Row]], bytes]:
    """The tables of a unit, without strings, and its strings."""
    magic, version, count, size = struct.unpack_from("<8sIIQ", blob)
    if magic != b"TKUNIT\0\0" or version != 1 or size != len(blob):
        raise DamagedTraceError("no unit")
    tables: dict[str, list[Row]] = {name: [] for name, _ in TABLES}
    strings = b""
    for k in range(count):
        number, row_bytes, rows, offset = struct.unpack_from("<IIQQ", blob, 24 + 24 * k)
        if number >= len(TABLES):
            continue
        if number == 0:
            strings = blob[offset : offset + rows]
            continue
        name, layout = TABLES[number]
        for row in range(rows):
            tables[name].append(_row(blob, offset + row * row_bytes, layout))
    return tables, strings


def unit_hash(blob: bytes) -> str:
    """The hash of a unit: over all of it, or, if it has a table of its folder, over what stands before that."""
    for at in range(24, 24 + 24 * struct.unpack_from("<I", blob, 12)[0], 24):
        number, _, _, offset = struct.unpack_from("<IIQQ", blob, at)
        if number == FOLDER:
            blob = blob[:16] + bytes(8) + blob[24:at] + bytes(24) + blob[at + 24 : offset]
            break
    return hashlib.blake2b(blob, digest_size=8).hexdigest()


def unit_folder(blob: bytes) -> str:
    """The folder that relative paths of the unit's sources start from, or nothing."""
    return bytes(row["byte"] for row in _unit(blob)[0]["folder"]).decode()


def _row(blob: bytes, at: int, layout: str) -> Row:
    row = {}
    for item in layout.split():
        name, _, width = item.partition(":")
        size = abs(int(width or 4))
        row[name] = int.from_bytes(blob[at : at + size], "little", signed=width.startswith("-"))
        at += size
    return row


REFERENCES = {
    "path_blocks": {"block": "blocks"},
    "lines": {"block": "blocks"},
    "blocks": {"function": "functions", "loop": "loops", "first_op": "ops", "call": "ops", "continues": "ops"},
    "functions": {"first_path": "paths", "first_block": "blocks"},
    "paths": {"first": "path_blocks"},
    "ops": {"first_term": "terms"},
    "terms": {"loop": "loops"},
    "loops": {"function": "functions", "header": "blocks", "parent": "loops"},
}
OP_BASES = {2: "globals", 3: "ops"}


def _join(trace: Trace) -> None:
    """Number the rows of all units through, as events name them."""
    trace.tables = {name: [] for name, _ in TABLES}
    trace.unit_of = {name: [] for name, _ in TABLES}
    for image in trace.images:
        starts = []
        for blob in image.units:
            tables, strings = _unit(blob)
            start = {name: len(rows) for name, rows in trace.tables.items()}
            starts.append(start)
            for name, rows in tables.items():
                for row in rows:
                    _shift(name, row, start)
                trace.tables[name] += rows
                trace.unit_of[name] += [len(trace.strings)] * len(rows)
            trace.strings.append(strings)
        for unit, function, first in image.functions:
            row = trace.tables["functions"][starts[unit]["functions"] + function]
            for k in range(row["paths"]):
                trace.path_row[image.first_path + first + k] = row["first_path"] + k
        trace.globals_of[image.number] = []
        for address, unit, variable in image.placed:
            trace.address[starts[unit]["globals"] + variable] = address
            trace.globals_of[image.number].append(starts[unit]["globals"] + variable)
        trace.globals_of[image.number].sort()


def _shift(name: str, row: Row, start: dict[str, int]) -> None:
    for column, target in REFERENCES.get(name, {}).items():
        if row[column] != NONE:
            row[column] += start[target]
    if name == "ops":
        target = "calls" if row["kind"] == 7 else OP_BASES.get(row["base_kind"], "")
        if target:
            row["base"] += start[target]


def _arities(trace: Trace) -> dict[int, int]:
    arity = {code: len(words.split()) for code, (_, words) in RECORDED.items()}
    for number, row in trace.path_row.items():
        arity[number] = trace.tables["paths"][row]["words"]
    return arity


# -- chunks ------------------------------------------------------------------------------------------
RESIDUAL_BYTES = {2: 1, 3: 2, 4: 3, 5: 4, 6: 6, 7: 8}
"""Bytes of the residual of a code."""


def _chunk(frame: Frame, arity: dict[int, int]) -> list[Record]:
    version, _, _, records, words, *counts = struct.unpack_from("<10I", frame.payload)
    literals, symbols, codes, residuals, predictors = counts
    size = 64 + 4 * literals + symbols + codes + residuals + predictors
    if version != 1 or not records == frame.items == symbols or size != len(frame.payload):
        raise DamagedTraceError("damaged chunk")
    rows = io.BytesIO(frame.payload[64:])
    parts = [io.BytesIO(rows.read(length)) for length in (4 * literals, symbols, codes, residuals, predictors)]
    try:
        decoded = list(_records(*parts, arity))
    except (IndexError, KeyError, struct.error) as error:
        raise DamagedTraceError("damaged chunk") from error
    rest = [part.read() for part in parts]
    if sum(len(values) for _, values in decoded) != words or rest != [b"", b"", b"", bytes(8), b""]:
        raise DamagedTraceError("damaged chunk")
    return decoded


def _records(
    literals: io.BytesIO,
    symbols: io.BytesIO,
    codes: io.BytesIO,
    residuals: io.BytesIO,
    predictors: io.BytesIO,
    arity: dict[int, int],
) -> Iterator[Record]:
    successors: dict[int, list[int]] = {}
    slots: dict[tuple[int, int], tuple[int, int, int]] = {}  # (id, word) -> last, stride, reference
    predictor: dict[tuple[int, int], int] = {}
    before = [0] * 8
    previous_id = 0
    for symbol in symbols.read():
        followed = successors.setdefault(previous_id, [0, 0, 0])
        rank = symbol >> 6
        number = struct.unpack("<I", literals.read(4))[0] if rank == 3 else followed.pop(rank)
        followed.insert(0, number)
        del followed[3:]
        pairs = [symbol & 63, *codes.read(max(0, arity[number] - 1) // 2)]
        words = []
        for k in range(arity[number]):
            if (number, k) not in slots:
                predictor[number, k] = int.from_bytes(predictors.read(1), "little")
                if predictor[number, k] & 0xC8:
                    raise DamagedTraceError("unknown predictor")
            last, stride, old_reference = slots.get((number, k), (0, 0, 0))
            reference = before[-1 - predictor[number, k] % 8]
            code = pairs[k // 2] & 7
            pairs[k // 2] >>= 3
            if code == 0:
                word = last + stride
            elif code == 1:
                word = last + ((reference - old_reference) << (predictor[number, k] >> 4))
            else:
                residual = residuals.read(RESIDUAL_BYTES[code])
                if len(residual) < RESIDUAL_BYTES[code]:
                    raise DamagedTraceError("too few residuals")
                word = last + int.from_bytes(residual, "little", signed=True)
            word &= MASK
            slots[number, k] = word, (word - last) & MASK, reference
            before = [*before[1:], word]
            words.append(word)
        if any(pairs):
            raise DamagedTraceError("more codes than words")
        yield number, words
        previous_id = number


if __name__ == "__main__":
    for event in read(Path(sys.argv[1]).read_bytes()).events():
        print(*event)
