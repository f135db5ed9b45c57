"""The slow, obvious reference of the contexts that fold recursion where it happens (``--contexts dynamic``).

A path has the entries ("root", function), ("call", instruction, function), ("loop", loop), and ("left out", loop) for a
loop inside a call that was one too many. A call of a function that
has a call entry on the path goes back to that entry. Every activation of a function that may call itself is a level.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from tests.naive.dependence import Level, Levels, NaiveDependence, Node, Path, StreamState
from tracekit.contexts.nodes import ContextKind
from tracekit.formats.events import NONE


@dataclass
class FoldingState(StreamState):
    """``left_out``: of each frame, whether its call was one too many, and all inside with it."""

    left_out: list[bool] = field(default_factory=list)


class NaiveFolding(NaiveDependence):
    """From `most` nodes on, a call below a recursive function makes no new one."""

    def __init__(self, program: Any, most: int = 1 << 16) -> None:
        super().__init__(program, context=True)
        self.most = most
        self.recursing = {function for function, callees in enumerate(self.reach) if function in callees}
        self.folded: set[Path] = set()
        self.leaves: set[Path] = set()
        self.one_too_many: dict[Path, Path] = {}

    def stream(self) -> StreamState:
        return FoldingState()

    def _enter(self, stream: StreamState, function: int, call: int) -> None:
        assert isinstance(stream, FoldingState)
        before, opened = stream.context, False
        left_out = bool(stream.left_out) and stream.left_out[-1]
        if not left_out:
            if call == NONE or not stream.frames:
                stream.context = (("root", function),)
            else:
                stream.context, left_out = self._called(before, call, function)
                opened = not left_out and function in self.recursing
        stream.left_out.append(left_out)
        stream.frames.append((before, 0, opened))
        self.nodes.setdefault(stream.context, Node())
        if opened:
            self._open_activation(stream, before)

    def _called(self, path: Path, call: int, function: int) -> tuple[Path, bool]:
        """The path that a call leads to, and whether it is one too many."""
        for place, entry in enumerate(path):
            if entry[0] == "call" and entry[2] == function:
                self.recursing.add(function)
                self._fold(path, path[: place + 1])
                return path[: place + 1], False
        made = (*path, ("call", call, function))
        leaves = [place for place, entry in enumerate(path) if entry[0] == "call" and entry[2] in self.recursing]
        if made not in self.nodes and made not in self.one_too_many and leaves and len(self.nodes) >= self.most:
            self.one_too_many[made] = path[: leaves[0] + 1]
            self._fold(path, path[: leaves[0] + 1])
            self.leaves.add(path[: leaves[0] + 1])
        return self.one_too_many.get(made, made), made in self.one_too_many

    def _fold(self, path: Path, back: Path) -> None:
        self.folded.add(back)
        self.folded |= {
            path[:length] for length in range(len(back) + 1, len(path) + 1) if path[length - 1][0] == "loop"
        }

    def _open_activation(self, stream: StreamState, around: Path) -> None:
        self.invocations += 1
        open_here = [level for level in stream.levels if level.node == stream.context]
        if open_here:
            open_here[0].activations += 1
            self.folded.add(stream.context)
        else:
            self.nodes[stream.context].invocations += 1
        stream.levels.append(Level(stream.context, self.invocations, 1, stream.accesses, around))

    def _leave(self, stream: StreamState) -> None:
        assert isinstance(stream, FoldingState)
        context, _, opened = stream.frames.pop()
        stream.left_out.pop()
        if opened:
            level = stream.levels[-1]
            assert level.node[-1][0] == "call"
            if any(outer.node == level.node for outer in stream.levels[:-1]):
                stream.levels.pop()
            else:
                level.iteration = level.activations
                self._close(stream, 0)
        stream.context = context

    def finish(self) -> None:
        for stream in self.streams.values():
            for place in range(len(stream.levels) - 1, -1, -1):
                level = stream.levels[place]
                if level.node[-1][0] == "call":
                    level.iteration = level.activations
                    if any(outer.node == level.node for outer in stream.levels[:place]):
                        del stream.levels[place]
        super().finish()

    def _loop(self, stream: StreamState, loop: int) -> None:
        assert isinstance(stream, FoldingState)
        if stream.left_out and stream.left_out[-1]:
            self._open(stream, (*stream.context, ("left out", loop)), stream.context)
        else:
            super()._loop(stream, loop)

    # -- memory --------------------------------------------------------------------------------

    def shared(self, source: Levels, now: Levels) -> Iterator[tuple[Path, bool, int]]:
        common = 0
        for node, is_carried, distance in super().shared(source, now):
            common += 1
            if self.is_recorded(node):
                yield node, is_carried, distance
            if is_carried:
                return
        inside = [node for node, _, _ in now[:common]]
        for node, _, _ in now[common:]:
            if not self.is_recorded(node) and node in inside:
                yield node, True, sum(other == node for other, _, _ in now[common:])
                return

    def is_recorded(self, node: Path) -> bool:
        """Of activations nothing is told but what they carry."""
        return node[-1][0] != "call"

    # -- nodes ---------------------------------------------------------------------------------

    def camp_id(self, node: Path) -> int:
        is_leaf = [entry[0] == "call" and entry[2] in self.reach[entry[2]] for entry in node]
        return super().camp_id(
            tuple(("recursion", *entry[1:]) if leaf else entry for entry, leaf in zip(node, is_leaf))
        )

    def kind(self, node: Path) -> ContextKind:
        """What became of a node."""
        if node[-1:] == () or node[-1][0] == "root":
            return ContextKind.ROOT
        if node[-1][0] == "left out":
            return ContextKind.RECURSION_LOOP
        if node[-1][0] == "loop":
            return ContextKind.RECURSIVE_LOOP if node in self.folded else ContextKind.LOOP
        if node in self.leaves:
            return ContextKind.RECURSION
        return ContextKind.RECURSIVE_CALL if node in self.folded else ContextKind.CALL
