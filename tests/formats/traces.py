"""Makes traces in memory from images made by hand and lists of records."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tests.naive.program_builder import HandImage
from tracekit.formats.chunk_codec import encode
from tracekit.formats.events import BY_CODE, NONE, RECORDED
from tracekit.formats.image_frame import build_image
from tracekit.formats.unit import Unit
from tracekit.formats.writer import TraceWriter

Record = tuple[int, Sequence[int]]


def arities(images: Sequence[HandImage]) -> np.ndarray:
    """Words of each record id, NONE where there is none."""
    arity = np.full(max([256] + [image.first_path + image.span for image in images]), NONE, np.uint32)
    for code in RECORDED:
        arity[code] = len(BY_CODE[code].words)
    for image in images:
        for unit, function, first in image.functions.tolist():
            tables = image.units[unit].tables
            row = tables["functions"][function]
            paths = tables["paths"][row["first_path"] : row["first_path"] + row["paths"]]
            arity[image.first_path + first : image.first_path + first + len(paths)] = paths["words"]
    return arity


def payload_of(image: HandImage) -> bytes:
    units = [Unit.build(unit.tables) for unit in image.units]
    return build_image(image.number, image.first_path, image.span, image.name, units, image.functions, image.globals)


def some_predictors(ids: np.ndarray, arity: np.ndarray) -> np.ndarray:
    """Predictors of all kinds for the slots of these ids, whether or not they predict anything."""
    slot = np.arange(int(arity[np.unique(ids)].sum()))
    return (5 * slot % 8 | slot % 4 << 4).astype(np.uint8)


def build_trace(
    images: Sequence[HandImage],
    streams: Mapping[int, Sequence[Record]],
    chunk: int = 1000,
    meta: Mapping[str, Any] | None = None,
) -> bytes:
    """A complete trace; `chunk`: records of a chunk."""
    file = io.BytesIO()
    writer = TraceWriter(file)
    writer.meta(meta or {"command": ["app"], "tracekit": "test"})
    for image in images:
        writer.image(image.number, payload_of(image))
    arity = arities(images)
    for stream, records in streams.items():
        for first in range(0, len(records), chunk):
            part = records[first : first + chunk]
            ids = np.array([number for number, _ in part], np.uint32)
            words = np.array([word for _, values in part for word in values], np.uint64)
            writer.chunk(stream, len(part), encode(ids, words, arity, stream, 0, some_predictors(ids, arity)).build())
    writer.done({"status": 0})
    writer.close()
    return file.getvalue()
