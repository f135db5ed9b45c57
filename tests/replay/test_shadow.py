"""Shadow memory against a dict of bytes: words, granules, clearing, recycling."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tracekit.replay.kernels import shadow as kernel
from tracekit.replay.shadow import empty_shadow, grow_shadow, shadow_bytes

BASE = 0x7FFF_0000_0FC0
"""The last line of a page."""


class ShadowUser:
    """Writes and reads single bytes of the shadow through the kernels, growing it as the engine does."""

    def __init__(self, pages: int = 1) -> None:
        self.shadow = empty_shadow(pages)
        self.caches: dict[int, Any] = {}

    def store(self, stream: int, start: int, size: int, access: int) -> None:
        place = start
        while place < start + size:
            first = place & 7
            last = min(8, first + start + size - place)
            word, parts = self._granules(stream, place, first, last)
            shift, block = parts & 3, parts >> 2
            slots = self.shadow.slots["store"]
            slots[block + (first >> shift) : block + (last >> shift)] = access
            if shift < 3 and last - first == 8:
                kernel.join(self.shadow.slots, self.shadow.control, word)
            place += last - first

    def _granules(self, stream: int, place: int, first: int, last: int) -> tuple[int, int]:
        cache = self.caches.setdefault(stream, np.full(2 * kernel.CACHED_PAGES, kernel.NOT_CACHED, np.int64))
        while True:
            word = page = int(kernel.page_slots(self.shadow, cache, stream, place >> 12))
            if page >= 0:
                word += (place >> 3) & 511
                parts = int(kernel.granules(self.shadow, word, first, last))
                if parts >= 0:
                    return word, parts
            self.shadow = grow_shadow(self.shadow, -page if page < 0 else -parts)

    def clear(self, start: int, size: int) -> None:
        s = self.shadow
        while True:
            status = kernel.clear_range(s.page_index.cells, s.page_index.used, s.pages, s.slots, s.readers, s.control,
                                        start, start + size)
            if status == kernel.OK:
                return
            s = self.shadow = grow_shadow(s, status)

    def byte(self, stream: int, place: int) -> int:
        index = self.shadow.page_index
        slots = self.shadow.slots
        page = kernel.find_page(index.cells, index.used, self.shadow.pages, slots, self.shadow.control, stream,
                                place >> 12)
        if page < 0:
            return 0
        word = slots[page + ((place >> 3) & 511)]
        if word["store"] < kernel.SPLIT:
            return int(word["store"])
        return int(slots["store"][int(word["stamp"]) + ((place & 7) >> (int(word["store"]) & 3))])


ACTIONS = st.lists(
    st.tuples(st.sampled_from(["store", "store", "store", "clear"]), st.integers(0, 1), st.integers(0, 200),
              st.sampled_from([1, 2, 4, 8, 8, 16, 33, 64, 100, 5000])),
    max_size=25,
)


@settings(deadline=None, max_examples=60)
@given(ACTIONS)
def test_every_byte_has_its_last_store(actions: list[tuple[str, int, int, int]]) -> None:
    user = ShadowUser()
    bytes_: dict[tuple[int, int], int] = {}
    for number, (name, stream, offset, size) in enumerate(actions, 1):
        start = BASE + offset
        if name == "store":
            user.store(stream, start, size, number)
            bytes_.update({(stream, place): number for place in range(start, start + size)})
        else:
            user.clear(start, size)
            bytes_ = {key: value for key, value in bytes_.items() if not start <= key[1] < start + size}
    for stream in (0, 1):
        for place in range(BASE - 8, BASE + 320):
            assert user.byte(stream, place) == bytes_.get((stream, place), 0)


def test_freed_words_are_used_again() -> None:
    user = ShadowUser(pages=64)
    sizes = []
    for turn in range(50):
        start = BASE + 4096 * (turn % 7)
        user.store(0, start, 4096, turn + 1)
        for place in range(100):
            user.store(0, start + 8 * place, 1, turn + 1)
        user.clear(start, 4096)
        sizes.append(shadow_bytes(user.shadow))
    assert sizes[-1] == sizes[7]


def test_words_take_one_slot_until_an_access_splits_them() -> None:
    user = ShadowUser()
    user.store(0, BASE, 64, 1)
    before = int(user.shadow.control[kernel.SLOTS])
    user.store(0, BASE + 8, 8, 2)
    assert user.shadow.control[kernel.SLOTS] == before
    user.store(0, BASE + 3, 1, 3)
    assert user.shadow.control[kernel.SLOTS] == before + 8
    assert [user.byte(0, BASE + offset) for offset in (2, 3, 4, 8, 15, 16)] == [1, 3, 1, 2, 2, 1]
    user.store(0, BASE, 8, 4)  # joins the word again
    assert [user.byte(0, BASE + offset) for offset in (0, 3, 7)] == [4, 4, 4]
    user.store(0, BASE + 23, 1, 5)
    assert user.shadow.control[kernel.SLOTS] == before + 8
    assert [user.byte(0, BASE + offset) for offset in (22, 23)] == [1, 5]


def test_clearing_an_address_space_takes_no_longer_than_its_pages() -> None:
    user = ShadowUser()
    user.store(0, BASE, 8, 1)
    user.clear(0, 1 << 47)
    assert user.byte(0, BASE) == 0
