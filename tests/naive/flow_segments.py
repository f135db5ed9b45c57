"""The slow, obvious reference of flow dependences in segments: what a segment knows by itself, and two that are joined.

Of each byte: who loaded it before it was stored in the segment, by stream, and who stored it last, by stream.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

from tests.naive.dependence import Event
from tracekit.formats.events import CODE, OBJECT_EVENTS

Byte = tuple[int, int]
OBJECTS = {CODE[name] for name in OBJECT_EVENTS}


@dataclass
class Summary:
    """Of a segment, or of several that follow each other.

    loads: (stream, byte) -> instructions; stored: byte -> stream -> instruction, since it was cleared last, in all
    streams, if it was.
    """

    loads: dict[Byte, set[int]] = field(default_factory=lambda: defaultdict(set))
    stored: dict[int, dict[int, int]] = field(default_factory=lambda: defaultdict(dict))
    cleared: list[range] = field(default_factory=list)
    pairs: set[tuple[int, int]] = field(default_factory=set)

    def load(self, byte: Byte, instruction: int) -> None:
        """An instruction loads a byte."""
        stream, address = byte
        stored = self.stored.get(address, {})
        if stream in stored:
            self.pairs.add((stored[stream], instruction))
        elif not any(address in cleared for cleared in self.cleared):
            self.loads[byte].add(instruction)

    def clear(self, addresses: range) -> None:
        """Bytes are nobody's any more."""
        self.cleared.append(addresses)
        for address in [address for address in self.stored if address in addresses]:
            del self.stored[address]


def summary(events: Iterable[Event]) -> Summary:
    """What a segment with these events knows."""
    made = Summary()
    for stream, kind, subject, address, size in events:
        if kind in OBJECTS:
            made.clear(range(address, address + size))
        elif kind == CODE["load"]:
            for byte in range(address, address + size):
                made.load((stream, byte), subject)
        elif kind == CODE["store"]:
            for byte in range(address, address + size):
                made.stored[byte][stream] = subject
    return made


def combine(left: Summary, right: Summary) -> Summary:
    """What the two segments know as one."""
    made = Summary(
        defaultdict(set, {byte: set(loads) for byte, loads in left.loads.items()}),
        defaultdict(dict, {byte: dict(stored) for byte, stored in left.stored.items()}),
        list(left.cleared),
        left.pairs | right.pairs,
    )
    for byte, loads in right.loads.items():
        for instruction in loads:
            made.load(byte, instruction)
    for addresses in right.cleared:
        made.clear(addresses)
    for address, stored in right.stored.items():
        made.stored[address].update(stored)
    return made
