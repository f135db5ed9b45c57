"""The slow, obvious reference of the module ``points_to``."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any

from tests.naive.dependence import StreamState
from tests.naive.objects import NaiveObjects, Site


class NaivePointsTo(NaiveObjects):
    """``found``: (instruction, site, class) -> how many; ``plain``: (instruction, class), without a site."""

    def __init__(self, program: Any, fresh: frozenset[int]) -> None:
        super().__init__(program, fresh)
        self.found: Counter[tuple[int, Site, str]] = Counter()
        self.plain: Counter[tuple[int, str]] = Counter()
        self.unfollowed: list[tuple[int, int]] = []  # instruction, address

    def event(self, number: int, stream: StreamState, name: str, subject: int, address: int, size: int) -> None:
        if name == "pointer_creation":
            self.pointer(number, min(subject, len(self.program.ops)), address)
        elif name in ("load", "store"):
            self.access(number, min(subject, len(self.program.ops)), address, size)
        else:
            super().event(number, stream, name, subject, address, size)

    def pointer(self, number: int, instruction: int, address: int) -> None:
        here, before = self.known(number, address), self.bytes.get(address - 1)
        if before is not None and not (before.alive and before.end == address):
            before = None
        if address == 0:
            self.plain[instruction, "null"] += 1
        elif here is not None and here.alive and here.start != address:
            self.found[instruction, here.site, "interior"] += 1
        elif here is not None and here.alive:
            self.found[instruction, here.site, "boundary" if before else "start"] += 1
            if before:
                self.found[instruction, before.site, "boundary"] += 1
        elif before:
            self.found[instruction, before.site, "past_end"] += 1
        elif here is not None:
            self.found[instruction, here.site, "dangling"] += 1
        else:
            self.plain[instruction, "elsewhere"] += 1
            self.unfollowed.append((instruction, address))

    def access(self, number: int, instruction: int, address: int, size: int) -> None:
        self.unfollowed = [each for each in self.unfollowed if not address <= each[1] < address + size]
        here = self.known(number, address)
        if here is None:
            self.plain[instruction, "unknown"] += 1
        else:
            self.found[instruction, here.site, "accesses" if here.alive else "dead"] += 1

    def never_dereferenced(self) -> Counter[int]:
        return Counter(instruction for instruction, _ in self.unfollowed)

    def sites_of(self, instruction: int) -> set[Site]:
        return {site for each, site, what in self.found if each == instruction and what not in ("accesses", "dead")}


def grouped(found: Counter[tuple[int, Site, str]]) -> dict[int, dict[Site, dict[str, int]]]:
    """Instruction -> site -> class -> count."""
    rows: defaultdict[int, dict[Site, dict[str, int]]] = defaultdict(dict)
    for (instruction, site, what), count in found.items():
        rows[instruction].setdefault(site, {})[what] = count
    return dict(rows)
