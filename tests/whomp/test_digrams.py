"""The table of digrams is a dictionary, however many of its entries belong into one bucket."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tracekit.jit.kernel import kernel
from tracekit.whomp.grammar import empty_grammar
from tracekit.whomp.kernels.digrams import (
    BUCKETS,
    ENTRIES,
    FIRST_BUCKETS,
    LINE,
    find,
    has_room,
    insert,
    key_of,
    line_of,
    place_at,
    remove,
    set_place,
)

FIND, ENTER, REMOVE = range(3)


@kernel
def follow(table: Any, steps: Any, found: Any) -> None:
    """Each of (what, first, second, place); `found`: where the digram stood before, 0 if nowhere."""
    for number in range(len(steps)):
        what, first, second, place = steps[number]
        key = key_of(np.uint32(first), np.uint32(second))
        if not has_room(table):
            return
        slot = find(table, key)
        found[number] = place_at(table, slot) if slot >= 0 else 0
        if what == ENTER and slot < 0:
            insert(table, key, np.uint32(place))
        elif what == ENTER:
            set_place(table, slot, np.uint32(place))
        elif what == REMOVE and slot >= 0:
            remove(table, key, slot)


def of_few_buckets() -> list[tuple[int, int]]:
    """Digrams of the last bucket, and of the first two, in tables of any size up to 8 times the first.

    So many that counts of those that went on to the next bucket come to their most.
    """
    first, second = (each.astype(np.uint64) for each in np.divmod(np.arange(1 << 20, 1 << 23), 1 << 12))
    key = (first << np.uint64(32)) | second
    mixed = ((key ^ (key >> np.uint64(29))) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(32)
    buckets = mixed % np.uint64(8 * FIRST_BUCKETS)
    chosen = [np.flatnonzero(buckets == wanted)[:100] for wanted in (8 * FIRST_BUCKETS - 1, 0, 1)]
    return [(int(first[each]), int(second[each])) for each in np.concatenate(chosen)]


CROWD = of_few_buckets()


def test_the_crowd_is_one() -> None:
    lines = np.zeros(len(CROWD), np.int64)
    fill_lines(np.array(CROWD, np.uint32), lines)
    assert len(CROWD) == 300 and set(lines.tolist()) == {(FIRST_BUCKETS - 1) * LINE, 0, LINE}


@kernel
def fill_lines(digrams: Any, lines: Any) -> None:
    """The first table's buckets."""
    for number in range(len(digrams)):
        lines[number] = line_of(key_of(digrams[number, 0], digrams[number, 1]), FIRST_BUCKETS)


@settings(deadline=None, max_examples=200)
@given(
    st.lists(st.tuples(st.integers(FIND, REMOVE), st.sampled_from(CROWD), st.integers(1, 1 << 31)), max_size=200),
    st.lists(st.tuples(st.integers(0, 200), st.sampled_from([10, 3000, 7000, 20_000])), max_size=2),
    st.booleans(),
)
def test_it_is_a_dictionary(
    chosen: list[tuple[int, tuple[int, int], int]], more: list[tuple[int, int]], all_first: bool
) -> None:
    steps = [(ENTER, *digram, 7) for digram in CROWD if all_first]
    steps += [(what, *digram, place) for what, digram, place in chosen]
    for number, (at, count) in enumerate(more):
        steps[at:at] = [(ENTER, 1 + number, 2 + each, 1 + each) for each in range(count)]
    table = empty_grammar().digrams
    found = np.zeros(len(steps), np.int64)
    follow(table, np.array(steps, np.int64).reshape(-1, 4), found)
    wanted, naive = [], dict[tuple[int, int], int]()
    for what, first, second, place in steps:
        wanted.append(naive.get((first, second), 0))
        if what == ENTER:
            naive[first, second] = place
        elif what == REMOVE:
            naive.pop((first, second), None)
    assert found.tolist() == wanted
    assert table.control[ENTRIES] == len(naive)
    assert table.control[BUCKETS] >= FIRST_BUCKETS
    last = [(FIND, *digram, 0) for digram in naive]
    again = np.zeros(len(last), np.int64)
    follow(table, np.array(last, np.int64).reshape(-1, 4), again)
    assert again.tolist() == list(naive.values())
