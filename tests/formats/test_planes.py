"""Units in planes: back to the same bytes by both readers, whatever tables hold, and no surprise in damaged ones."""

from __future__ import annotations

import struct
from collections.abc import Mapping

import numpy as np
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from tests.formats.test_hostile import tables
from tests.naive.reader import _in_rows
from tracekit.formats.errors import TracekitError
from tracekit.formats.image import DTYPES, UNIT_IN_PLANES
from tracekit.formats.planes import HEADER, in_planes, in_rows
from tracekit.formats.unit import Rows, Unit

NAMES = st.sampled_from([name for name in DTYPES if name not in ("strings", "unit")])
STEPS = st.sampled_from([0, 1, 3, 255, 256, 70_000, 1 << 31])


def filled(name: str, rows: int, seed: int, step: int) -> Rows:
    """Rows of which some columns grow, others are random."""
    random = np.random.default_rng(seed)
    table = np.frombuffer(random.bytes(rows * DTYPES[name].itemsize), DTYPES[name]).copy()
    for column in (DTYPES[name].names or ())[::2]:
        if np.issubdtype(table[column].dtype, np.integer):
            table[column] = (np.arange(rows) * step + seed).astype(table[column].dtype)
    return table


@st.composite
def given_tables(draw: st.DrawFn) -> Mapping[str, Rows]:
    made = tables()
    for name in draw(st.lists(NAMES, max_size=6, unique=True)):
        rows, seed = draw(st.integers(0, 40)), draw(st.integers(0, 1 << 30))
        made[name] = filled(name, rows, seed, draw(STEPS))
    return made


@given(given_tables())
def test_units_come_back_from_planes(made: Mapping[str, Rows]) -> None:
    rows = Unit.build(made)
    planes = in_planes(rows)
    assert len(planes) == len(rows) and planes != rows
    assert in_rows(planes) == _in_rows(planes) == rows
    assert in_rows(rows) == _in_rows(rows) == rows and in_planes(planes) == planes
    assert Unit.parse(planes).hash == Unit.parse(rows).hash
    for name, table in Unit.parse(planes).tables.items():
        np.testing.assert_array_equal(table, made.get(name, table))


def test_words_that_grow_stand_as_differences() -> None:
    growing = np.zeros(1000, DTYPES["paths"])
    growing["first"] = np.arange(1000) * 70_001
    blob = Unit.build({**tables(), "paths": growing})
    at = HEADER.size + 24 * list(tables()).index("paths")
    assert struct.unpack_from("<IHHQ", in_planes(blob), at)[1:] == (growing.dtype.itemsize, 1, 1000)
    sizes = [len(zstandard.ZstdCompressor().compress(unit)) for unit in (blob, in_planes(blob))]
    assert 2 * sizes[1] < sizes[0]


@given(given_tables(), st.data())
def test_damaged_units_in_planes_are_refused_or_read(made: Mapping[str, Rows], data: st.DataObject) -> None:
    planes = bytearray(in_planes(Unit.build(made)))
    assert planes[8] == UNIT_IN_PLANES
    for _ in range(data.draw(st.integers(1, 4))):
        planes[data.draw(st.integers(0, HEADER.size + 24 * len(made) - 1))] = data.draw(st.integers(0, 255))
    cut = data.draw(st.sampled_from([0, 1, 8]))
    try:
        Unit.parse(bytes(planes[: len(planes) - cut]))
    except TracekitError:
        pass


def test_what_is_no_unit_stays_as_it_is() -> None:
    for text in (b"", b"TKUNIT", bytes(24), b"TKUNIT\0\0" + struct.pack("<IIQ", 1, 1 << 30, 24)):
        assert in_planes(text) == text and in_rows(text) == text
