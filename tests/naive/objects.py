"""The slow, obvious references of the modules that look at objects: every byte of memory knows what it belongs to."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from tests.naive.dependence import Event, NaiveDependence, Path, StreamState
from tracekit.formats.events import BY_CODE, NONE

HEAP, STACK, GLOBAL = 1, 2, 3
KINDS = {"heap_alloc": HEAP, "stack_alloc": STACK, "global_init": GLOBAL}

Site = tuple[int, int, Path, tuple[int, ...]]
"""Kind, instruction or global, context, and of a heap block in a recursion the innermost calls."""
CALLERS = 4
Scope = tuple[Path, bool]
"""A node of the context tree, and whether an iteration of it is meant; ((), False) is the run."""
RUN: Scope = ((), False)


@dataclass(eq=False)
class Frame:
    """What an activation is known to own of its stack: the bytes from `low` to `high` - 1."""

    depth: int
    low: int
    high: int


@dataclass(eq=False)
class Object:
    """One object; ``born``: the scopes that were open, each with the numbers of its opening and iteration."""

    site: Site
    start: int
    end: int
    stream: int
    born: list[tuple[Path, int, int]]
    alive: bool = True
    size: int = 0
    """All bytes that it ever had."""
    frame: Frame | None = None
    """Of a local variable."""


class NaiveObjects(NaiveDependence):
    """Feed events; then ``objects`` are all that there were, ``lives`` the innermost scopes that held those that ended.

    `fresh`: calls that never let an object grow in place.
    """

    def __init__(self, program: Any, fresh: frozenset[int] = frozenset()) -> None:
        super().__init__(program, context=True)
        self.fresh = fresh
        self.bytes: dict[int, Object] = {}
        self.all: list[Object] = []
        self.taken_back: list[Object] = []
        self.open: defaultdict[int, list[list[Any]]] = defaultdict(list)  # [node, number, iteration or None]
        self.calls_inside: defaultdict[int, list[int | None]] = defaultdict(list)  # calls; None: no further recursion's
        self.numbers = 0
        self.lives: dict[Object, Scope] = {}

    def feed(self, events: Iterable[Event]) -> None:
        for number, code, subject, address, size in events:
            self.event(
                number, self.streams.setdefault(number, StreamState()), BY_CODE[code].name, subject, address, size
            )

    def event(self, number: int, stream: StreamState, name: str, subject: int, address: int, size: int) -> None:
        scopes = self.open[number]
        self.numbers += 1
        if name == "function_entry":
            recursive = self._leaf(stream) is not None
            self._enter(stream, subject, size)
            self.calls_inside[number].append(size if recursive else None)
            scopes.append([stream.context, self.numbers, None])
        elif name == "function_exit":
            self._leave(stream)
            self.calls_inside[number].pop()
            while scopes.pop()[2] is not None:
                pass
        elif name == "loop_invocation":
            self._loop(stream, subject)
            scopes.append([stream.levels[-1].node, self.numbers, self.numbers])
        elif name == "loop_iteration":
            stream.levels[-1].iteration += 1
            scopes[-1][2] = self.numbers
        elif name == "loop_exit":
            self._close(stream, size)
            scopes.pop()
        elif name in KINDS:
            self.begin(number, stream, name, subject, address, size)
        elif name in ("heap_free", "stack_free"):
            self.end(number, address, size)

    def growing(self, subject: int, address: int, size: int) -> Object | None:
        """The heap object that an allocation lets grow: one that is there without bytes, else one that ends there."""
        if size == 0:
            return None
        here, before = self.bytes.get(address), self.bytes.get(address - 1)
        if here is not None and here.start == here.end == address and here.alive:
            return here if here.site[0] == HEAP else None
        if subject in self.fresh or before is None or not before.alive or before.end != address:
            return None
        return before if before.site[0] == HEAP else None

    def begin(self, number: int, stream: StreamState, name: str, subject: int, address: int, size: int) -> None:
        kind = KINDS[name]
        if address == 0:
            return
        if kind == HEAP and (grows := self.growing(subject, address, size)):
            grows.end += size
            grows.size += size
            self.paint(address, size, grows)
            return
        old = self.bytes.get(address)
        if old is not None and old.alive and old.start == address:
            if kind != HEAP and old.site[0] == kind:
                self.taken_back.append(old)
                self.finish_object(old)
            else:
                self.end(number, address, 0)
        subject = min(subject, len(self.program.ops)) if kind != GLOBAL else subject
        calls = [call for call in self.calls_inside[number] if call is not None][-CALLERS:] if kind == HEAP else []
        site = (
            kind,
            subject,
            () if kind == GLOBAL else stream.context,
            tuple(call for call in calls if call != NONE),
        )  # NONE: no instruction made it
        born = [(node, opened, iteration) for node, opened, iteration in self.open[number]]
        made = Object(site, address, address + size, number, born, size=size)
        if kind == STACK:
            made.frame = self.frame(number, made)
        self.all.append(made)
        self.paint(address, max(size, 1), made)

    def paint(self, address: int, size: int, made: Object) -> None:
        for byte in range(address, address + size):
            self.bytes[byte] = made

    def end(self, number: int, address: int, size: int) -> None:
        old = self.bytes.get(address)
        if old is None or not old.alive:
            return
        if old.start == address:
            self.lives[old] = self.holder(number, old)
            self.finish_object(old)
        elif size > 0 and address + size == old.end and old.site[0] == HEAP:
            old.end = address
            self.paint(address, size, Object(old.site, old.start, old.end, old.stream, [], alive=False))

    def finish_object(self, old: Object) -> None:
        old.alive = False
        ended = Object(old.site, old.start, old.end, old.stream, [], alive=False)
        self.paint(old.start, max(old.end - old.start, 1), ended)

    def function_of(self, site: Site) -> int:
        return int([*self.program.op_function, -1][site[1]])

    def locals_of(self, number: int) -> list[Object]:
        """The live local variables of a stream, in the order in which they began."""
        return [each for each in self.all if each.alive and each.site[0] == STACK and each.stream == number]

    def frame(self, number: int, made: Object) -> Frame:
        """That of the newest local variable, if no call has begun or ended since, or a new one."""
        depth = sum(iteration is None for _, _, iteration in self.open[number])
        for newest in self.locals_of(number)[-1:]:
            if newest.frame is not None and newest.frame.depth == depth:
                newest.frame.low = min(newest.frame.low, made.start)
                newest.frame.high = max(newest.frame.high, made.end)
                return newest.frame
        return Frame(depth, made.start, made.end)

    def known(self, number: int, address: int) -> Object | None:
        """The object of a byte; None if it was a local variable and a later call's frame covers it."""
        here = self.bytes.get(address)
        if here is None or here.alive or here.site[0] != STACK:
            return here
        live = self.locals_of(number)
        ends = [each.end for each in self.all if each.site[0] == STACK and each.stream == number]
        if not live or not live[-1].start < address < max(ends):
            return here
        for each in reversed(live):
            assert each.frame is not None
            if each.frame.low > address:  # nothing that was entered before is below
                return None
            if address < each.frame.high and self.function_of(each.site) == self.function_of(here.site):
                return here
        return None

    def holder(self, number: int, old: Object) -> Scope:
        """The innermost scope that was open when the object began and has been open since."""
        if number != old.stream:
            return RUN
        still = {opened: iteration for _, opened, iteration in self.open[number]}
        held = [
            (node, iteration is not None and still[opened] == iteration)
            for node, opened, iteration in old.born
            if opened in still
        ]
        return held[-1] if held else RUN

    # -- what the module object_lifetime says ------------------------------------------------------

    def lifetimes(self) -> dict[Site, tuple[int, int, int, Scope, dict[Scope, int]]]:
        """Site -> objects, their bytes, never freed, innermost scope, objects by scope."""
        found: dict[Site, tuple[int, int, int, Scope, dict[Scope, int]]] = {}
        counted = [each for each in self.all if each not in self.taken_back]
        for site in {each.site for each in counted}:
            here = [each for each in counted if each.site == site]
            scopes = Counter(self.lives.get(each, RUN) for each in here)
            never = sum(each not in self.lives for each in here)
            found[site] = len(here), sum(each.size for each in here), never, join(scopes), dict(scopes)
        return found


def around(scope: Scope) -> list[Scope]:
    """The scopes around one, from the run inwards, and itself; those of a path stand inside each other."""
    node, iteration = scope
    chain = [RUN]
    for length in range(1, len(node) + 1):
        chain.append((node[:length], False))
        if node[length - 1][0] == "loop" and (length < len(node) or iteration):
            chain.append((node[:length], True))
    return chain


def join(scopes: Iterable[Scope]) -> Scope:
    """The innermost scope around all of them."""
    common = set.intersection(*(set(around(scope)) for scope in scopes))
    return max(common, key=lambda scope: (len(scope[0]), scope[1]))
