"""The slow, obvious reference of the module ``dependence``: that of camp and lamp, with histograms of distances."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any

from tests.naive.dependence import RAW, WAR, WAW, Access, Byte, NaiveDependence, Path, StreamState
from tests.naive.folding import NaiveFolding


class NaiveLadder(NaiveDependence):
    """The contexts are CAMP's. Each execution counts once for a dependence at a level that carries it.

    It counts at the distance of the first byte, in order of addresses, that has it there; of several loads of the
    byte by one source, the last one counts.
    """

    def __init__(self, program: Any, context: bool) -> None:
        NaiveDependence.__init__(self, program, context)
        self.histograms: defaultdict[tuple[Any, Path], Counter[int]] = defaultdict(Counter)
        self.counted: set[tuple[int, Any, Path]] = set()

    def _access(self, number: int, stream: StreamState, name: str, instruction: int, address: int, size: int) -> None:
        levels = tuple((level.node, level.invocation, level.iteration) for level in stream.levels)
        now = Access(instruction, stream.context, stream.execution, levels)
        for place in range(address, address + size):
            byte = self.history.setdefault((number, place), Byte())
            if byte.store is not None:
                self._relate(stream, RAW if name == "load" else WAW, byte.store, now, address)
            if name == "load":
                byte.loads.append(now)
                continue
            for load in reversed(byte.loads):
                if load.execution != now.execution:
                    self._relate(stream, WAR, load, now, address)
            byte.store, byte.loads = now, []

    def _relate(self, stream: StreamState, kind: int, source: Access, now: Access, address: int) -> None:
        super()._relate(stream, kind, source, now, address)
        key = (kind, source.instruction, source.node, now.instruction, now.node)
        for node, is_carried, distance in self.shared(source.levels, now.levels):
            if is_carried and (now.execution, key, node) not in self.counted:
                self.counted.add((now.execution, key, node))
                self.histograms[key, node][distance] += 1


class FoldingLadder(NaiveLadder, NaiveFolding):
    """The same in the contexts that fold recursion where it happens."""

    def __init__(self, program: Any) -> None:
        NaiveFolding.__init__(self, program)
        self.histograms = defaultdict(Counter)
        self.counted = set()
