"""The slow, obvious reference of the module ``dependence``: that of camp and lamp, with histograms of distances."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any

from tests.naive.dependence import RAW, WAR, WAW, Access, Byte, NaiveDependence, Path, StreamState


class NaiveLadder(NaiveDependence):
    """Each execution counts once for a dependence at a level that carries it.

    It counts at the distance of the first byte, in order of addresses, that has it there; of several loads of the
    byte by one source, the last one counts.
    """

    def __init__(self, program: Any, context: bool) -> None:
        super().__init__(program, context)
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
        for (node, invocation, iteration), (other, its_invocation, its_iteration) in zip(source.levels, now.levels):
            if (node, invocation) != (other, its_invocation):
                break
            if iteration != its_iteration:
                if (now.execution, key, node) not in self.counted:
                    self.counted.add((now.execution, key, node))
                    self.histograms[key, node][abs(its_iteration - iteration)] += 1
                break
