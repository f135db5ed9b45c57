"""The map of live objects against a dict of bytes."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from tracekit.containers.arena import check
from tracekit.containers.kernels.arena import USED
from tracekit.translation.identities import empty_objects
from tracekit.translation.kernels import identities as kernel

BASE = 0x5000_0FF0
BIG = kernel.BIG


class Map:
    """The kernel's map."""

    def __init__(self) -> None:
        self.objects = empty_objects()

    def place(self, start: int, size: int, identity: int) -> None:
        kernel.place(self.objects, start, start + size, identity)
        check(self.objects.pages, self.objects.bytes, self.objects.bigs)

    def at(self, address: int) -> int:
        return int(kernel.identity_at(self.objects, address))


PLACES = st.lists(
    st.tuples(
        st.integers(0, 60), st.sampled_from([1, 3, 4, 8, 12, 16, 40, 5000, BIG, BIG + 24, 3 * BIG]), st.integers(-1, 4)
    ),
    max_size=12,
)


@settings(deadline=None, max_examples=80)
@given(PLACES)
def test_every_byte_belongs_to_the_latest_object(places: list[tuple[int, int, int]]) -> None:
    objects = Map()
    extents: list[tuple[int, int, int]] = []
    for offset, size, identity in places:
        start = BASE + offset * (1 if size < BIG else 4096)
        identity = identity if identity != 0 else -1  # 0 is unknown memory, which nobody places
        objects.place(start, size, identity)
        extents.append((start, start + size, max(identity, 0)))
        # Asked after each, for what is found is remembered by pages.
        edges = {edge + step for start, end, _ in extents for edge in (start, end) for step in (-1, 0, 1)}
        middles = {(start + end) // 2 for start, end, _ in extents}
        for address in edges | middles | set(range(BASE, BASE + 80, 3)):
            owners = [identity for start, end, identity in extents if start <= address < end]
            assert objects.at(address) == (owners[-1] if owners else 0)


def test_words_that_are_no_longer_shared_give_their_table_back() -> None:
    objects = Map()
    for turn in range(100):
        objects.place(BASE, 4, 1)
        objects.place(BASE + 4, 4, 2)
        assert (objects.at(BASE), objects.at(BASE + 7)) == (1, 2)
        objects.place(BASE, 8, -1 if turn % 2 else 3)
    assert objects.objects.bytes.control[USED] == 2
