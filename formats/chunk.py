"""CHNK payloads: the header and the five columns of a piece of a stream (SPEC.md, "CHNK").

Records are decoded from the columns in chunk_codec.py.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from tracekit.formats.errors import TracekitError

MAX_RECORDS = 1 << 23
"""Records of a chunk, and words of a chunk, at most."""

MAX_ARITY = 65_534
"""Words of a record at most."""

THREAD, SIGNAL_HANDLER = 0, 1
"""Kinds of streams."""

_HEADER = struct.Struct("<16I")
_VERSION = 1


PADDING = 8
"""Zero bytes at the end of the residuals, so that eight bytes may be read wherever one of them begins."""


WINDOW = 8
"""Words before a word's own that its predictor may name."""

SHIFT_AT = 4
"""The bit of a predictor where its shift (0 to 3) begins; below stands how far back its word is (0 to 7)."""

PREDICTOR_BITS = 0x37


class Columns(NamedTuple):
    """The columns of a chunk in the order of the payload."""

    literals: NDArray[np.uint32]
    symbols: NDArray[np.uint8]
    codes: NDArray[np.uint8]
    residuals: NDArray[np.uint8]
    predictors: NDArray[np.uint8]


COLUMN_TYPES: tuple[np.dtype[Any], ...] = tuple(map(np.dtype, ("<u4", "u1", "u1", "u1", "u1")))
"""The dtype of each of the Columns."""


@dataclass(frozen=True)
class Chunk:
    """A piece of one stream: header fields, and columns that are read-only views of the payload."""

    thread: int
    kind: int
    records: int
    words: int
    columns: Columns

    @classmethod
    def parse(cls, payload: bytes) -> Chunk:
        """Read a CHNK payload. Raises TracekitError unless its counts agree with each other and with its length."""
        if len(payload) < _HEADER.size:
            raise _damaged("its header is cut short")
        version, thread, kind, records, words, *counts = _HEADER.unpack_from(payload)[:10]
        if version != _VERSION:
            raise TracekitError(f"the chunk has version {version}; this tracekit reads version {_VERSION}")
        if records > MAX_RECORDS or words > MAX_RECORDS:
            raise _damaged(f"it claims {records} records and {words} words")
        at, columns = _HEADER.size, []
        if at + sum(count * dtype.itemsize for count, dtype in zip(counts, COLUMN_TYPES)) != len(payload):
            raise _damaged("its columns do not fill it")
        for count, dtype in zip(counts, COLUMN_TYPES):
            columns.append(np.frombuffer(payload, dtype, count, at))
            at += count * dtype.itemsize
        chunk = cls(thread, kind, records, words, Columns(*columns))
        literals, symbols, codes, residuals, predictors = counts
        if (
            symbols != records
            or literals > records
            or max(codes, predictors) > words
            or not PADDING <= residuals <= 8 * words + PADDING
        ):
            raise _damaged("its counts contradict each other")
        if bool(np.any(chunk.columns.predictors & ~np.uint8(PREDICTOR_BITS))):
            raise _damaged("it has a predictor that this version does not know")
        return chunk

    def build(self) -> bytes:
        """The payload."""
        counts = [len(column) for column in self.columns]
        header = _HEADER.pack(_VERSION, self.thread, self.kind, self.records, self.words, *counts, *[0] * 6)
        columns = cast(tuple[NDArray[Any], ...], self.columns)
        return header + b"".join(column.astype(dtype).tobytes() for column, dtype in zip(columns, COLUMN_TYPES))


def _damaged(what: str) -> TracekitError:
    return TracekitError(f"the chunk contradicts itself ({what})")
