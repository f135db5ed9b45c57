"""Reduction maps against plain dicts: every kind, keys of one and more words, workers, buffers, reads in between."""

from __future__ import annotations

import gc
import math
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numba.core.errors import TypingError

from tests.naive.maps import WORD, NaiveMap
from tracekit.containers import maps
from tracekit.containers.maps.exact import ADDITIONS, CARRY_AFTER, ROWS_ADDRESS, ROWS_SIZE
from tracekit.containers.maps.keys import GOLDEN, OFFSET, UNGOLDEN
from tracekit.containers.maps.memory import words_at
from tracekit.jit.kernel import kernel


@dataclass(frozen=True)
class Kind:
    """One specialisation of the maps."""

    name: str
    dtype: str
    key_words: int
    limit: int | None = None

    def table(self, buffer: int) -> Any:
        if self.name == "count":
            return maps.count_map(self.key_words, buffer=buffer)
        if self.name == "set":
            return maps.set_map(self.key_words, limit=self.limit, buffer=buffer)
        made = {"sum": maps.sum_map, "min": maps.min_map, "max": maps.max_map, "constant": maps.constant_map}[self.name]
        return made(self.key_words, dtype=self.dtype, buffer=buffer)


KINDS = [
    Kind("count", "int64", 1),
    Kind("sum", "int64", 1),
    Kind("sum", "uint64", 1),
    Kind("sum", "float64", 1),
    Kind("min", "int64", 1),
    Kind("min", "uint64", 1),
    Kind("max", "int64", 1),
    Kind("max", "uint64", 1),
    Kind("constant", "uint64", 1),
    Kind("constant", "int64", 1),
    Kind("set", "uint64", 1, None),
    Kind("set", "uint64", 1, 0),
    Kind("set", "uint64", 1, 2),
    Kind("count", "int64", 2),
    Kind("sum", "int64", 2),
    Kind("sum", "float64", 2),
    Kind("min", "int64", 2),
    Kind("max", "uint64", 2),
    Kind("constant", "uint64", 2),
    Kind("set", "uint64", 2, 3),
    Kind("count", "int64", 3),
]


def key_of_tag(tag: int) -> int:
    """The single word that is mixed to `tag`."""
    return (tag - int(OFFSET)) * int(UNGOLDEN) % WORD


def twins(first: int) -> tuple[int, int]:
    """A key of two words that begins with `first` and has the tag that (0, 0) has."""
    mixed = first * int(GOLDEN) % WORD
    return first, mixed >> 32 ^ mixed


SPECIAL = [0, 1, 2, 8, 16, 4096, WORD - 1, WORD - 2, WORD // 2, int(GOLDEN)]
COLLIDING = [key_of_tag(tag) for tag in (0, 1, 2, 3, 1 << 20, WORD - 1, WORD - 2, WORD - 3)]
WORDS = st.one_of(st.sampled_from(SPECIAL), st.sampled_from(COLLIDING), st.integers(0, WORD - 1))
VALUES = {
    "int64": st.one_of(st.sampled_from([0, 1, -1, 2**63 - 1, -(2**63)]), st.integers(-(2**63), 2**63 - 1)),
    "uint64": st.one_of(st.integers(0, 4), st.sampled_from([2**63, 2**64 - 1]), st.integers(0, 2**64 - 1)),
    "float64": st.floats(),
}
Row = tuple[tuple[int, ...], Any]


@st.composite
def insertions(draw: st.DrawFn, kind: Kind) -> list[Row]:
    """Keys that repeat, collide and are many, with values."""
    word_lists = st.tuples(*[WORDS] * kind.key_words)
    if kind.key_words == 2:
        word_lists = st.one_of(word_lists, WORDS.map(twins))
    pool = draw(st.lists(word_lists, min_size=1, max_size=12))
    value = st.just(1) if kind.name == "count" else VALUES[kind.dtype]
    rows = draw(st.lists(st.tuples(st.sampled_from(pool), value), max_size=60))
    many, stride = draw(st.sampled_from([0, 0, 33, 700])), draw(st.sampled_from([1, 8, 4096, 1 << 32, 1 << 56]))
    some = draw(value)
    rows += [((i * stride % WORD,) * kind.key_words, some) for i in range(many)]
    return rows * draw(st.sampled_from([1, 1, 2]))


def insert(kind: Kind, tables: Sequence[Any], naive: NaiveMap, rows: Sequence[Row]) -> None:
    keys = np.array([key for key, _ in rows], np.uint64).reshape(-1, kind.key_words)
    maps.insert_columns(
        tables, keys if kind.key_words > 1 else keys[:, 0], np.array([value for _, value in rows], kind.dtype)
    )
    for key, value in rows:
        naive.insert(key, value)


def same(kind: Kind, table: Any, naive: NaiveMap) -> None:
    """Compare what is read, twice, with the reference."""
    for _ in range(2):
        rows = maps.rows(table)
        keys = [tuple(key) for key in rows["key"].reshape(len(rows), kind.key_words).tolist()]
        columns = [rows[name].tolist() for name in rows.dtype.names[1:]]
        assert [repr(row) for row in zip(keys, *columns)] == [repr(positive_zero(row)) for row in naive.rows()]
        if kind.name == "set":
            found = maps.members(table)
            keys = [tuple(key) for key in found["key"].reshape(len(found), kind.key_words).tolist()]
            assert list(zip(keys, found["value"].tolist())) == naive.members()


def positive_zero(row: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(0.0 if isinstance(item, float) and item == 0 else item for item in row)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: f"{kind.name}-{kind.dtype}-{kind.key_words}-{kind.limit}")
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(data=st.data())
def test_is_a_dict_for_any_number_of_workers_and_any_buffer(kind: Kind, data: st.DataObject) -> None:
    workers, buffer = data.draw(st.sampled_from([1, 2, 3, 5])), data.draw(st.sampled_from([1, 2, 7, 32, 256]))
    tables = [kind.table(buffer) for _ in range(workers)]
    naive = NaiveMap(kind.name, kind.dtype, kind.limit)
    for part in data.draw(st.lists(insertions(kind), min_size=1, max_size=3)):
        turned = data.draw(st.integers(0, workers - 1))
        insert(kind, tables[turned:] + tables[:turned], naive, part)
        if data.draw(st.booleans()):
            same(kind, maps.reduce(tables), naive)
    reduced = maps.reduce(tables)
    same(kind, reduced, naive)
    if workers == 1:
        same(kind, tables[0], naive)
    insert(kind, [reduced], naive, [((7,) * kind.key_words, 1)])
    same(kind, reduced, naive)


@pytest.mark.parametrize("rows", [255, 256, 257, 512, 768, 1000])
@pytest.mark.parametrize("workers", [1, 2, 3])
def test_neither_loses_nor_doubles_where_buffers_and_workers_do_not_divide(rows: int, workers: int) -> None:
    tables = [maps.count_map() for _ in range(workers)]
    maps.insert_columns(tables, np.arange(rows) % 10)
    for _ in range(3):
        assert maps.rows(maps.reduce(tables))["value"].sum() == rows
    maps.insert_columns(tables, np.zeros(rows, np.int64))
    counts = maps.rows(maps.reduce(tables))
    assert counts["value"].sum() == 2 * rows
    assert counts["value"][0] == rows + len(range(0, rows, 10))


def test_a_million_keys_come_back_from_two_workers() -> None:
    keys = np.random.default_rng(3).permutation(np.arange(1_000_000, dtype=np.uint64) * np.uint64(0x10001))
    tables = [maps.sum_map(), maps.sum_map()]
    maps.insert_columns(tables, keys, keys.astype(np.int64) * 3)
    maps.insert_columns(tables[::-1], keys[::-1], -1)
    rows = maps.rows(maps.reduce(tables))
    assert np.array_equal(rows["key"], np.sort(keys))
    assert np.array_equal(rows["value"], rows["key"].astype(np.int64) * 3 - 1)
    assert maps.nbytes(tables[0]) < 200e6


def test_floats_that_cancel_are_summed_exactly() -> None:
    big = [1e308, 1e308, -1e308, -1e308, 1e-320, 0.1, -5e-324, 2.0**53, 1.0, -(2.0**53)]
    tables = [maps.sum_map(dtype=np.float64) for _ in range(2)]
    for values in (big, [-value for value in big] + [1e-310]):
        maps.insert_columns(tables, np.zeros(len(values), np.int64), values)
    assert maps.rows(maps.reduce(tables))["value"].tolist() == [1e-310]
    many = np.full(100_000, 0.1)
    table = maps.sum_map(dtype=np.float64)
    maps.insert_columns([table], np.zeros(len(many), np.int64), many)
    assert maps.rows(table)["value"].tolist() == [math.fsum(many)]


@kernel
def pretend_additions(control: Any, additions: Any) -> None:
    """Let the only sum of a map believe that it had so many additions since carries were passed on."""
    words_at(control[ROWS_ADDRESS], control[ROWS_SIZE])[ADDITIONS] = additions


def test_carries_of_float_sums_are_passed_on_in_time() -> None:
    table, values = maps.sum_map(dtype=np.float64, buffer=1), [1.5, 2.0**40, -0.1, 3e-300, 7e-320, -1e22]
    for number, value in enumerate(values):
        maps.insert_columns([table], [5], [value])
        pretend_additions(table.control, CARRY_AFTER - np.uint64(1 + number % 2))
    assert maps.rows(table)["value"].tolist() == [math.fsum(values)]


def test_floats_are_rounded_to_nearest_even_everywhere() -> None:
    random = np.random.default_rng(5)
    bits = random.integers(0, 2**64, (3000, 3), np.uint64)
    near = random.integers(1000, 1060, (1500, 1)).astype(np.uint64) << np.uint64(52)
    bits[::2] = bits[::2] & ~np.uint64(0x7FF << 52) | near
    bits[1::8] &= np.uint64(0x803FFFFFFFFFFFFF)  # subnormal and barely normal
    values = bits.view(np.float64)
    values[~np.isfinite(values)] = 2.0**-1074
    values[::3, 1] = np.spacing(values[::3, 0]) / 2  # ties
    table = maps.sum_map(dtype=np.float64)
    maps.insert_columns([table], np.repeat(np.arange(3000), 3), values.ravel())
    naive = NaiveMap("sum", "float64")
    for key, row in enumerate(values.tolist()):
        for value in row:
            naive.insert((key,), value)
    assert maps.rows(table)["value"].tolist() == [value for _, value in naive.rows()]


@kernel
def callback(counts: Any, sums: Any, lows: Any, highs: Any, values: Any, targets: Any, row: Any, number: Any) -> None:
    small = np.uint32(number)
    maps.count(counts, small)
    maps.add(counts, -number, 5)
    maps.add(sums, (small, -number, number == 1), -number)
    maps.minimum(lows, row, -number)
    maps.maximum(highs, (number, small), small)
    maps.constant(values, number, row[0])
    maps.member(targets, number > 1, number)


def test_every_insertion_from_a_callback_with_integers_of_every_type() -> None:
    counts, sums, lows, highs = maps.count_map(), maps.sum_map(3), maps.min_map(2), maps.max_map(2, np.uint64)
    values, targets = maps.constant_map(), maps.set_map(limit=1)
    for number in (1, 2, 3):
        callback(counts, sums, lows, highs, values, targets, np.array([[-1, 0], [9, 9]], np.int16)[:, 0], number)
    minus = [WORD - 3, WORD - 2, WORD - 1]
    assert maps.rows(counts).tolist() == [(1, 1), (2, 1), (3, 1), *[(key, 5) for key in minus]]
    assert [(list(key), value) for key, value in maps.rows(sums)] == [
        ([1, WORD - 1, 1], -1),
        ([2, WORD - 2, 0], -2),
        ([3, WORD - 3, 0], -3),
    ]
    assert [(list(key), value) for key, value in maps.rows(lows)] == [([WORD - 1, 9], -3)]
    assert maps.rows(highs)["value"].tolist() == [1, 2, 3]
    assert maps.rows(values).tolist() == [(number, WORD - 1, True) for number in (1, 2, 3)]
    assert maps.rows(targets).tolist() == [(0, 1), (1, -1)]
    assert maps.members(targets).tolist() == [(0, 1)]


@kernel
def miscount(table: Any) -> None:
    maps.count(table, 1)


@kernel
def pair(table: Any) -> None:
    maps.count(table, (1, 2, 3))


@kernel
def fraction(table: Any, value: Any) -> None:
    maps.add(table, 1, value)


@kernel
def float_key(table: Any, key: Any) -> None:
    maps.count(table, key)


def test_says_what_does_not_fit() -> None:
    with pytest.raises(TypingError, match=r"maps\.count does not fit a min map"):
        miscount(maps.min_map())
    with pytest.raises(TypingError, match="The map's keys have 2 words, this one has 3"):
        pair(maps.count_map(2))
    with pytest.raises(TypingError, match="takes no value of type float64"):
        fraction(maps.sum_map(), 1.5)
    with pytest.raises(TypingError, match="words of a map's key are integers, not float64"):
        float_key(maps.count_map(), 1.5)
    with pytest.raises(ValueError, match="int64 or uint64, not float32"):
        maps.min_map(dtype=np.float32)
    with pytest.raises(ValueError, match="only maps of one kind"):
        maps.reduce([maps.min_map(), maps.max_map()])
    with pytest.raises(ValueError, match="only maps of one kind"):
        maps.reduce([maps.set_map(limit=1), maps.set_map(limit=2)])


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs Linux's /proc")
def test_memory_goes_with_the_table_and_stays_with_its_arrays() -> None:
    keys = np.arange(300_000)
    kept = []
    for number in range(30):
        table = maps.count_map()
        maps.insert_columns([table], keys)
        assert maps.nbytes(table) > 8e6
        if number == 2:
            before = resident_bytes()
            kept.append(maps.CountTable(table.control[:], *table[1:]))
        del table
        gc.collect()
    assert resident_bytes() < before + 60e6
    assert maps.rows(kept[0])["value"].sum() == len(keys)


GENERATED = """
from typing import NamedTuple
from numba import njit
from tracekit.jit.kernel import kernel
from tracekit.containers import maps

class State(NamedTuple):
    executions: maps.CountTable
    targets: maps.SetTable

@njit
def load(state, instruction, address):
    maps.count(state.executions, (instruction, address))
    maps.member(state.targets, address, instruction)

@kernel
def consume(state):
    for i in range(1000):
        load(state, i % 7, i)

state = State(maps.count_map(2), maps.set_map(limit=3))
consume(state)
print(len(maps.rows(state.executions)), len(maps.members(state.targets)), int(not consume.was_compiled))
"""


def test_a_generated_kernel_that_inserts_is_cached_between_processes(tmp_path: Path) -> None:
    (tmp_path / "generated.py").write_text(GENERATED)
    path = os.pathsep.join([str(tmp_path), *sys.path])
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache"), "PYTHONPATH": path}
    said = [
        subprocess.run(
            [sys.executable, "-c", "import generated"], env=environment, check=True, capture_output=True, text=True
        ).stdout.split()
        for _ in range(2)
    ]
    assert said == [["1000", "1000", "0"], ["1000", "1000", "1"]]


def test_the_old_name_of_reduce_still_works_and_says_the_new_one() -> None:
    tables = [maps.count_map() for _ in range(2)]
    maps.insert_columns(tables, np.arange(10))
    with pytest.warns(FutureWarning, match=r"^maps\.merge is called reduce now: rename it\.$") as shown:
        merge = maps.merge
    assert shown[0].filename == __file__
    assert np.array_equal(maps.rows(merge(tables)), maps.rows(maps.reduce(tables)))
