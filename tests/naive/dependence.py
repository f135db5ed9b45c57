"""The slow, obvious reference of ``camp`` and ``lamp``.

Every earlier access of every byte is kept, with a copy of the whole stack of levels that was open when it was
made: (node, number of the invocation, iteration). A dependence is found by comparing two such stacks as in
CAMP's Algorithm 1, while both stand in the same invocation. Nodes are paths, written out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from tracekit.formats.events import BY_CODE, NONE
from tracekit.formats.image import CallFlag, OpKind

Path = tuple[tuple[Any, ...], ...]
Levels = tuple[tuple[Path, int, int], ...]
"""Node, number of the invocation, iteration; the outermost first."""
Event = tuple[int, int, int, int, int]
"""stream, kind, subject, address, size"""

RAW, WAR, WAW = 0, 1, 2
LARGEST_TREE = 20_000


@dataclass
class Level:
    """An open loop, or the open recursion leaf; ``iteration`` is the depth there."""

    node: Path
    invocation: int
    iteration: int
    accesses: int
    context: Path
    activations: int = 1


@dataclass
class Access:
    """One past access of a byte."""

    instruction: int
    node: Path
    execution: int
    levels: Levels


@dataclass
class Byte:
    """The history of one byte in one stream."""

    store: Access | None = None
    loads: list[Access] = field(default_factory=list)


@dataclass
class Dependence:
    """What is known of one dependence. ``levels``: node -> ([intra, inter, executions that it carries], distances)."""

    count: int = 0
    levels: dict[Path, tuple[list[int], list[int]]] = field(default_factory=dict)
    objects: list[tuple[int, int]] = field(default_factory=list)


@dataclass
class Node:
    """Statistics of one node."""

    invocations: int = 0
    iterations: list[int] = field(default_factory=list)
    accesses: int = 0
    external: int = NONE


@dataclass
class StreamState:
    """Where a stream stands."""

    context: Path = ()
    frames: list[tuple[Path, int, bool]] = field(default_factory=list)
    calls: list[int] = field(default_factory=list)
    levels: list[Level] = field(default_factory=list)
    accesses: int = 0
    run: tuple[int, str] | None = None
    execution: int = 0
    found: set[Any] = field(default_factory=set)


class NaiveDependence:
    """Feed events one by one, then read ``dependences``, ``exposed``, ``accesses`` and ``nodes``."""

    def __init__(self, program: Any, context: bool) -> None:
        self.program = program
        self.context = context
        self.reach = reachable(program)
        self.in_wrapper = {int(call["op"]) for call in program.calls if call["flags"] & CallFlag.HANDED_ON}
        self.tree: dict[Path, int] = {}
        self.streams: dict[int, StreamState] = {}
        self.history: dict[tuple[int, int], Byte] = {}
        self.objects: dict[int, tuple[int, int]] = {}
        self.dependences: dict[tuple[Any, ...], Dependence] = {}
        self.exposed: set[tuple[int, Path, Path]] = set()
        self.accesses: Counter[tuple[int, Path]] = Counter()
        self.nodes: dict[Path, Node] = {}
        self.invocations = 0
        self.executions = 0

    def feed(self, events: Iterable[Event]) -> None:
        for number, kind, subject, address, size in events:
            stream = self.streams.setdefault(number, self.stream())
            name = BY_CODE[kind].name
            if name in ("load", "store"):
                self._begin_execution(stream, name, subject)
                self._access(number, stream, name, subject, address, size)
                continue
            stream.run = None
            if name == "function_entry":
                stream.calls.append(size)
                self._enter(stream, subject, size)
            elif name == "function_exit":
                stream.calls.pop()
                self._leave(stream)
            elif name == "loop_invocation":
                self._loop(stream, subject)
            elif name == "loop_iteration":
                stream.levels[-1].iteration += 1
            elif name == "loop_exit":
                self._close(stream, size)
            elif name == "external_call":
                for level in stream.levels:
                    node = self.nodes[level.node]
                    node.external = subject if node.external == NONE else node.external
            elif name in ("heap_alloc", "heap_free", "stack_alloc", "stack_free", "global_init"):
                self._object(name, self._site(stream, subject) if name == "heap_alloc" else subject, address, size)

    def stream(self) -> StreamState:
        """A stream before its first event."""
        return StreamState()

    def finish(self) -> None:
        """Count what loops that are still open have done."""
        for stream in self.streams.values():
            while stream.levels:
                self._close(stream, 0)

    # -- contexts ------------------------------------------------------------------------------

    def _leaf(self, stream: StreamState) -> Level | None:
        return next((level for level in stream.levels if level.node[-1][0] == "recursion"), None)

    def _enter(self, stream: StreamState, function: int, call: int) -> None:
        if not self.context:
            return
        leaf = self._leaf(stream)
        before = (stream.context, leaf.iteration if leaf else 0)
        opened = False
        if leaf is not None:
            if self._same_recursion(function, leaf.node[-1][2]):
                leaf.iteration += 1
                leaf.activations += 1
        elif call == NONE or not stream.frames:
            stream.context = (("root", function),)
        else:
            around = [entry[-1] for entry in stream.context if entry[0] in ("root", "call")]
            opened = function in self.reach[function] or function in around
            stream.context += (("recursion" if opened else "call", call, function),)
        stream.frames.append((*before, opened))
        self.nodes.setdefault(stream.context, Node())
        if opened:
            self._open(stream, stream.context, before[0])

    def _same_recursion(self, one: int, other: int) -> bool:
        return one == other or (other in self.reach[one] and one in self.reach[other])

    def _leave(self, stream: StreamState) -> None:
        if not self.context:
            return
        context, depth, opened = stream.frames.pop()
        if opened:
            assert stream.levels[-1].node == stream.context
            self._close(stream, 0)
        leaf = self._leaf(stream)
        if leaf is not None:
            leaf.iteration = depth
        stream.context = context

    def _loop(self, stream: StreamState, loop: int) -> None:
        leaf = self._leaf(stream)
        if not self.context:
            self._open(stream, (("loop", loop),), ())
        elif leaf is not None:
            self._open(stream, (*leaf.node, ("loop", loop)), stream.context)
        else:
            around = stream.context
            stream.context = (*around, ("loop", loop))
            self._open(stream, stream.context, around)

    def _open(self, stream: StreamState, node: Path, around: Path) -> None:
        self.invocations += 1
        stream.levels.append(Level(node, self.invocations, 1, stream.accesses, around))
        self.nodes.setdefault(node, Node()).invocations += 1

    def _close(self, stream: StreamState, partial: int) -> None:
        level = stream.levels.pop()
        node = self.nodes[level.node]
        is_leaf = level.node[-1][0] == "recursion"
        node.iterations.append((level.activations if is_leaf else level.iteration) - partial)
        if all(outer.node != level.node for outer in stream.levels):
            node.accesses += stream.accesses - level.accesses
        stream.context = level.context

    # -- memory --------------------------------------------------------------------------------

    def _site(self, stream: StreamState, call: int) -> int:
        """The allocation site: `call`, or as long as its function hands on what it returns, the call of that."""
        calls = list(stream.calls)
        while call in self.in_wrapper and calls and calls[-1] != NONE:
            call = calls.pop()
        return call

    def _object(self, name: str, subject: int, address: int, size: int) -> None:
        for byte in range(address, address + size):
            for number in self.streams:
                self.history.pop((number, byte), None)
            self.objects.pop(byte, None)
            if name in ("heap_alloc", "stack_alloc", "global_init"):
                kind = {"heap_alloc": 1, "stack_alloc": 2, "global_init": 3}[name]
                self.objects[byte] = (kind, subject)

    def _begin_execution(self, stream: StreamState, name: str, instruction: int) -> None:
        """Consecutive loads, then stores, of an atomic, copy or library call are one execution."""
        kinds = (OpKind.ATOMIC, OpKind.COPY_FROM, OpKind.COPY_TO, OpKind.CALL)
        updates = instruction == NONE or self.program.ops["kind"][instruction] in kinds
        again = stream.run is not None and stream.run[0] == instruction and (name, stream.run[1]) != ("load", "store")
        if not (updates and again):
            self.executions += 1
            stream.execution = self.executions
            stream.found = set()
        stream.run = (instruction, name) if updates else None

    def _access(self, number: int, stream: StreamState, name: str, instruction: int, address: int, size: int) -> None:
        levels = tuple((level.node, level.invocation, level.iteration) for level in stream.levels)
        now = Access(instruction, stream.context, stream.execution, levels)
        stream.accesses += 1
        self.accesses[instruction, now.node] += 1
        for place in range(address, address + size):
            byte = self.history.setdefault((number, place), Byte())
            if name == "load":
                if byte.store is not None:
                    self._relate(stream, RAW, byte.store, now, address)
                if byte.store is not None or not self._is_partly_stored(number, address, size):
                    self._expose(byte.store, now)
                byte.loads.append(now)
            else:
                if byte.store is not None:
                    self._relate(stream, WAW, byte.store, now, address)
                for load in byte.loads:
                    if load.execution != now.execution:
                        self._relate(stream, WAR, load, now, address)
                byte.store, byte.loads = now, []

    def _is_partly_stored(self, number: int, address: int, size: int) -> bool:
        """Was any byte of an access ever stored?"""
        places = range(address, address + size)
        return any((known := self.history.get((number, each))) and known.store is not None for each in places)

    def _relate(self, stream: StreamState, kind: int, source: Access, now: Access, address: int) -> None:
        key = (kind, source.instruction, source.node, now.instruction, now.node)
        found = self.dependences.setdefault(key, Dependence())
        if key not in stream.found:
            stream.found.add(key)
            found.count += 1
            place = self.objects.get(address, (0, NONE))
            if place not in found.objects:
                found.objects.append(place)
        for node, is_carried, distance in self.shared(source.levels, now.levels):
            flags, distances = found.levels.setdefault(node, ([False, False, 0], []))
            if not is_carried:
                flags[0] = True
            else:
                flags[1] = True
                flags[2] += (key, node) not in stream.found
                stream.found.add((key, node))
                distances.append(distance)

    def shared(self, source: Levels, now: Levels) -> Iterator[tuple[Path, bool, int]]:
        """The nodes of the levels in one iteration of which both ends lie; of what carries it last, the distance."""
        for (node, invocation, iteration), (other, its_invocation, its_iteration) in zip(source, now):
            if (node, invocation) != (other, its_invocation):
                break
            yield node, iteration != its_iteration, abs(its_iteration - iteration)
            if iteration != its_iteration:
                break

    def _expose(self, store: Access | None, now: Access) -> None:
        before = store.levels if store is not None else ()
        inside = True
        for place, level in enumerate(now.levels):
            inside = inside and place < len(before) and before[place] == level
            if not inside and self.is_recorded(level[0]):
                self.exposed.add((now.instruction, now.node, level[0]))

    def is_recorded(self, node: Path) -> bool:
        """Whether it is told of a level what happens inside an iteration of it."""
        return True

    # -- ids -----------------------------------------------------------------------------------

    def camp_id(self, node: Path) -> int:
        """The id of a node in the written-out tree of its root; -1 if it is not in it."""
        root = node[:1]
        if not root or root[0][0] != "root":
            return -1
        if root not in self.tree:
            write_out(self.program, self.reach, root, root[0][1], self.tree)
        return self.tree.get(node, -1)


def reachable(program: Any) -> list[set[int]]:
    """For each function, those that it may enter by one or more calls."""
    direct: list[set[int]] = [set() for _ in range(len(program.functions))]
    for row in range(len(program.calls)):
        caller = int(program.blocks["function"][program.calls["block"][row]])
        direct[caller] |= {int(function) for function in program.call_callees(row)}
    reach = [set(functions) for functions in direct]
    changed = True
    while changed:
        changed = False
        for functions in reach:
            more = set().union(*(reach[function] for function in functions), functions)
            changed |= more != functions
            functions |= more
    return reach


def write_out(program: Any, reach: list[set[int]], root: Path, function: int, tree: dict[Path, int]) -> None:
    """Write out the context tree below `root` in pre-order: path -> id. Call sites without a known callee count."""
    counter = 0

    def visit(path: Path) -> None:
        nonlocal counter
        assert counter < LARGEST_TREE
        tree[path] = counter
        counter += 1

    def body(path: Path, function: int, loop: int) -> None:
        items = []
        for row, rows in enumerate(program.loops):
            if rows["function"] == function and rows["parent"] == loop:
                items.append((int(rows["header"]), -1, "loop", row))
        for row, rows in enumerate(program.calls):
            block = program.blocks[rows["block"]]
            if block["function"] == function and block["loop"] == loop:
                items.append((int(rows["block"]), int(rows["op"]), "call", row))
        for _, op, kind, row in sorted(items):
            if kind == "loop":
                visit((*path, ("loop", row)))
                body((*path, ("loop", row)), function, row)
                continue
            targets = [int(target) for target in program.call_callees(row)]
            for target in targets:
                recursive = target in reach[target]
                child = (*path, ("recursion" if recursive else "call", op, target))
                visit(child)
                if not recursive:
                    body(child, target, NONE)
            if not targets:
                visit((*path, ("external", op)))

    visit(root)
    body(root, function, NONE)
