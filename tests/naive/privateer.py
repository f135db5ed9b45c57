"""The slow, obvious reference of the sets of the module ``privateer``."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any

from tests.naive.dependence import StreamState
from tests.naive.points_to import NaivePointsTo


class NaiveSets(NaivePointsTo):
    """``sets``: loop -> site (None: of no known object) -> names of its accesses, their operators (0: no update)."""

    def __init__(self, program: Any, calls: frozenset[int], operators: list[int]) -> None:
        super().__init__(program, calls)
        self.operators = operators
        self.sets: defaultdict[Any, dict[Any, tuple[set[str], set[int]]]] = defaultdict(dict)
        self.inside: Counter[Any] = Counter()  # loop: accesses while it was open

    def event(self, number: int, stream: StreamState, name: str, subject: int, address: int, size: int) -> None:
        super().event(number, stream, name, subject, address, size)
        if name in ("load", "store"):
            here = self.known(number, address)
            for loop in {self.place(level.node[-1][1]) for level in stream.levels if level.node[-1][0] == "loop"}:
                self.inside[loop] += 1
                names, operators = self.sets[loop].setdefault(here and here.site, (set(), set()))
                names.add(name)
                operators.add(self.operators[min(subject, len(self.program.ops))])

    def place(self, loop: int) -> Any:
        """Loops of one source location are one loop."""
        return tuple(self.program.loop(loop).items())
