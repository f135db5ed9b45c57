"""The code of a run's accesses, instruction by instruction instead of iteration by iteration, where that is exact.

A run tells n iterations of a loop's path, whose addresses move by a constant step. Before the first of them its code
finds out what holds of all n: do they stay inside their objects (then no access is checked by itself), and which
instructions touch bytes that others store? If all modules have callbacks for many accesses (modules/ranges.py), each
instruction's accesses are handed on by one call: first loads, then stores, then the other loads, so that any two
accesses of a byte, one of them a store, stay in order. If instructions have the same step, that follows from how far
they are apart: in ``a[i] = a[i + 1] + a[i - 1]`` what ``a[i + 1]`` loads is stored later, and what ``a[i - 1]`` loads
was stored before. Where no order is right, iterations are replayed one by one.

To modules that look at the open levels the order of loads matters, too (``HandledEvents.loads_ordered``). Then what is
handed on is one sequence, in which of the instructions that move alike those come first that are ahead.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from tracekit.formats.events import CODE
from tracekit.replay.compiled.code import Code
from tracekit.replay.compiled.handled_events import HandledEvents
from tracekit.replay.kernels import layouts

LOAD, STORE = CODE["load"], CODE["store"]
LEAST = 4
"""Iterations from which on it is worth it to look."""
LEAST_WITH_LEVELS = 12
"""... if modules look at the open levels: the first accesses of each instruction go the long way."""
ADDRESSES = 1 << 56
"""Addresses below it can be compared without a thought of overflow, the first and the last of an access."""
LONGEST_STEP = 1 << 28
LARGEST = 1 << 12
"""Bytes of an access, at most, that is handed on so."""
MOST_PAIRS = 64
"""Pairs of instructions, one of them a store, at most."""

INSIDE = "%inside"
"""Where code keeps whether the accesses stay inside their objects."""
RANGED = "%ranged"
"""... whether they are handed on instruction by instruction: 1, and bit k + 1 if the k-th comes after the stores; or 0.
"""
MOST = 60
"""Loads and stores in an iteration at most."""

TERMS = range(1, layouts.MOST_TERMS + 1)

Span = tuple[str, str]
"""The first byte of an instruction's accesses, and the one behind the last."""


@dataclass(frozen=True)
class Access:
    """A load or store of a run's path."""

    event: int
    subject: int
    base: int
    offset: int
    strides: Any
    size: int
    step: int
    """How far it moves from one iteration to the next."""
    dynamic: Any
    """The dynamic step that it is (layouts.DYNAMIC_STEP), if it is one."""

    @property
    def way(self) -> tuple[int, ...]:
        """Where it begins, and how it moves: of two with the same, the distance is that of their offsets."""
        return self.base, *(int(self.strides[f"{name}{number}"]) for number in TERMS for name in ("level", "stride"))

    def may_precede(self, other: Access, *, stands_before: bool) -> bool:
        """As Meetings.may_precede, of one that begins and moves alike."""
        one, another = (self, other) if self.step >= 0 else (other, self)
        ahead = _signed(another.offset - one.offset) + another.size
        if self.step == 0:
            return ahead <= 0 or _signed(one.offset - another.offset) + one.size <= 0
        return ahead <= (abs(self.step) if stands_before else 0)

    @property
    def is_checked(self) -> bool:
        """Whether it has to lie in a known object."""
        return self.dynamic is not None and bool(self.dynamic["flags"] & (layouts.STEP_GLOBAL | layouts.STEP_STACK))


def _events(tables: layouts.Tables, part: Any, level: int) -> Iterator[Access]:
    """The template events of a part of a run's path."""
    first, count = int(part["first_template_event"]), int(part["template_events"])
    for number in range(count):
        group, place = first + number // layouts.GROUP, number % layouts.GROUP
        events, strides = tables.template_events[group], tables.strides[group * layouts.GROUP + place]
        kind, subject, base, offset, size = (
            int(events[name][place]) for name in ("kind", "subject", "base", "offset", "size")
        )
        yield Access(kind, subject, base, offset, strides, size, _step(strides, level), None)


def accesses_of(tables: layouts.Tables, path: Any, level: int) -> list[Access]:
    """What a run's iteration does, in order: events, loads and stores or others. `level`: that of its loop."""
    found = [*_events(tables, path, level)]
    first = int(path["first_dynamic_step"])
    for step in tables.dynamic_steps[first : first + int(path["dynamic_steps"])]:
        subject, base, offset, size = (int(step[name]) for name in ("subject", "base", "offset", "size"))
        kinds = [LOAD] if step["flags"] & layouts.STEP_LOADS_TOO else []
        for kind in (*kinds, int(step["kind"])):
            found.append(Access(kind, subject, base, offset, step, size, _step(step, level), step))
        found += _events(tables, step, level)
    return [access for access in found if access.event not in (LOAD, STORE) or access.size]


def _step(strides: Any, level: int) -> int:
    numbers = [number for number in TERMS if int(strides[f"level{number}"]) == level]
    return _signed(sum(int(strides[f"stride{number}"]) for number in numbers))


def _signed(number: int) -> int:
    return int(np.uint64(number % (1 << 64)).astype(np.int64))


class Ranges:
    """Writes what a run needs beside its loop."""

    def __init__(
        self,
        code: Code,
        loop: int,
        accesses: Sequence[Access],
        handled: HandledEvents,
        address_of: Callable[[int, int, Any], str],
    ) -> None:
        """address_of: writes the code that computes an address from base, offset and strides."""
        self._code, self._loop, self._address_of = code, loop, address_of
        self._limited, self._timed = handled.limited, handled.timed
        self._checked = [access for access in accesses if access.is_checked]
        self._accesses = [access for access in accesses if access.event in handled.codes]
        self._iterated = handled.iterated
        self._sequence = _sequence(self._accesses) if handled.loads_ordered else None
        stores = sum(access.event == STORE for access in self._accesses)
        self.may_be_used = (
            bool(self._accesses)
            and handled.ranges.issuperset(access.event for access in self._accesses)
            and all(_is_plain(access) for access in self._accesses)
            and len(self._accesses) <= MOST
        )
        """Whether accesses may be handed on instruction by instruction."""
        self._unsure: list[tuple[int, int]] = []
        if self.may_be_used and self._sequence is not None:
            self._unsure = [*self._pairs(self._sequence)]
            self.may_be_used = len(self._unsure) <= MOST_PAIRS and _are_different(self._accesses)
        else:
            self.may_be_used &= stores * len(self._accesses) <= MOST_PAIRS
        self._order_matters = self._sequence is None and handled.ordered and stores > 0
        self.looks = self.may_be_used or bool(self._checked and all(_is_plain(access) for access in self._checked))
        """Whether there is anything to find out before the first iteration."""

    # -- what holds of all iterations ------------------------------------------------------------

    def look(self) -> None:
        """Find it out; INSIDE and RANGED say it."""
        code = self._code
        code.store(INSIDE, 0, 0, "i8")
        code.store(RANGED, 0, 0)
        measure, behind = code.label("measure"), code.label("known")
        code.branch(code.test("uge", "%iterations", LEAST_WITH_LEVELS if self._iterated else LEAST), measure, behind)
        code.place(measure)
        more = code.set("sub i64 %iterations, 1")
        named = self._accesses if self.may_be_used else []
        spans = [self._span(access, more) for access in named]
        checked = [self._span(access, more) for access in self._checked]
        either = "0"
        for low, high in (*spans, *checked):
            either = code.set(f"or i64 {code.set(f'or i64 {low}, {high}')}, {either}")
        code.require(code.test("ult", either, ADDRESSES), behind)
        for access, (low, high) in zip(self._checked, checked):
            code.require(self._lies_inside(access, low, high), behind)
        code.store(INSIDE, 0, 1, "i8")
        if self.may_be_used:
            if self._unsure:
                meetings = Meetings(code, self._accesses, spans)
                for one, other in self._unsure:
                    code.require(meetings.may_precede(one, other), behind)
            code.store(RANGED, 0, self._order(spans, behind) if self._order_matters else 1)
        code.jump(behind)
        code.place(behind)

    def _span(self, access: Access, more: str) -> Span:
        """The first byte of all iterations' accesses, and the one behind the last."""
        code = self._code
        first = self._address_of(access.base, access.offset, access.strides)
        last = code.add(code.set(f"mul i64 {more}, {access.step}"), first)
        low, high = (last, first) if access.step < 0 else (first, last)
        return low, code.add(high, access.size)

    def _lies_inside(self, access: Access, low: str, high: str) -> str:
        code, step = self._code, access.dynamic
        size = code.set(f"sub i64 {high}, {low}")
        fields = ", ".join(
            f"{kind} {int(step[name])}"
            for kind, name in (("i32", "subject"), ("i32", "object"), ("i32", "base"), ("i8", "flags"))
        )
        return code.set(f"call i1 @is_inside(ptr %machine, {fields}, i64 {low}, i64 {size})")

    def _order(self, spans: Sequence[Span], otherwise: str) -> str:
        """What RANGED says of an order that is right; goes to `otherwise` if there is none."""
        code, meetings = self._code, Meetings(self._code, self._accesses, spans)
        stores = self._places(STORE)
        for one, other in combinations(stores, 2):
            code.require(meetings.may_precede(one, other), otherwise)
        order = "1"
        for load in self._places(LOAD):
            early = late = "true"
            for store in stores:
                early = code.set(f"and i1 {early}, {meetings.may_precede(load, store)}")
                late = code.set(f"and i1 {late}, {meetings.may_precede(store, load)}")
            code.require(code.set(f"or i1 {early}, {late}"), otherwise)
            order = code.set(f"or i64 {order}, {code.set(f'select i1 {early}, i64 0, i64 {2 << load}')}")
        return order

    def _pairs(self, sequence: Sequence[int]) -> Iterator[tuple[int, int]]:
        """Of a sequence what has to be tested while the program is replayed: that the one may precede the other."""
        for one, other in combinations(sequence, 2):
            access, later = self._accesses[one], self._accesses[other]
            if access.way != later.way or not access.may_precede(later, stands_before=one < other):
                yield one, other

    def _places(self, event: int) -> list[int]:
        return [place for place, access in enumerate(self._accesses) if access.event == event]

    # -- handing on ------------------------------------------------------------------------------

    def choose(self, counter: Callable[[], str], again: str, once: str, done: str) -> None:
        """Hand on what iterations are left, as many as may be; go on at `again`, or at `done` if none are left then.

        Where that may not be, one iteration is replayed by itself, at `once`. counter: gives the address of the count
        of the loop's iterations.
        """
        code = self._code
        some, go = code.label("some"), code.label("go")
        order = code.load(RANGED, 0)
        code.branch(code.test("ne", order, 0), some, once)
        code.place(some)
        count = left = code.load("%left", 0)
        period = len(self._accesses)
        if self._limited:
            free = code.set("call i64 @unordered(ptr %machine)")
            free = code.set(f"sdiv i64 {free}, {period}")
            count = code.set(f"call i64 @llvm.smin.i64(i64 {free}, i64 {left})")
            code.branch(code.test("sgt", count, 0), go, once)
        else:
            code.jump(go)
        code.place(go)
        if self._sequence is not None:
            for access in self._sequence:
                self._hand_on(access, count)
        else:
            for load in self._places(LOAD):
                self._hand_on(load, count, order if self._order_matters else None, late=False)
            for store in self._places(STORE):
                self._hand_on(store, count)
            if self._order_matters:
                for load in self._places(LOAD):
                    self._hand_on(load, count, order, late=True)
        if self._timed:
            code.line(f"call void @passed(ptr %machine, i64 {code.set(f'mul i64 {count}, {period}')})")
        place = counter()
        moved = code.set(f"sub i64 {count}, 1")
        if self._iterated:
            code.line(f"call void @iterated(ptr %machine, i32 {self._loop}, i64 {moved})")
        code.store(place, 0, code.set(f"add i64 {code.load(place, 0)}, {moved}"))
        rest = code.set(f"sub i64 {left}, {count}")
        code.store("%left", 0, rest)
        code.branch(code.test("eq", rest, 0), done, again)

    def _hand_on(self, place: int, count: str, order: str | None = None, *, late: bool = False) -> None:
        """One instruction's accesses; with `order` only if by that they come `late`, or not."""
        code, access = self._code, self._accesses[place]
        behind = code.label("behind")
        if order is not None:
            now = code.label("now")
            is_late = code.test("ne", code.set(f"and i64 {order}, {2 << place}"), 0)
            code.branch(is_late, now if late else behind, behind if late else now)
            code.place(now)
        address = self._address_of(access.base, access.offset, access.strides)
        code.line(
            f"call void @{range_name(access.event)}(ptr %machine, i32 {access.subject}, i64 {address}, "
            f"i64 {access.size}, i64 {access.step}, i64 {count}, i64 {place}, i64 {len(self._accesses)})"
        )
        code.jump(behind)
        code.place(behind)


class Meetings:
    """Where the accesses of two instructions touch the same bytes."""

    def __init__(self, code: Code, accesses: Sequence[Access], spans: Sequence[Span]) -> None:
        self._code, self._accesses, self._spans = code, accesses, spans
        self._more = code.set("sub i64 %iterations, 1")

    def may_precede(self, one: int, other: int) -> str:
        """Whether all accesses of the place `one` in the path may come before all of `other`.

        They have no byte in common; or they have one step, and `one` touches no byte in an iteration that `other` has
        touched in an earlier one, nor in the same iteration if it stands behind `other`.
        """
        code = self._code
        (low, high), (other_low, other_high) = self._spans[one], self._spans[other]
        apart = code.set(f"or i1 {code.test('sle', high, other_low)}, {code.test('sle', other_high, low)}")
        step = self._accesses[one].step
        if step != self._accesses[other].step or not step:
            return apart
        # Of the bytes of one iteration, how far the end of `other` is ahead of the beginning of `one`, in the direction
        # of the step. If no further than a step, `one` touches nothing of an earlier `other`; if not at all, nothing
        # of the same iteration either.
        end, begin = (other_high, low) if step > 0 else (high, other_low)
        travelled = code.set(f"mul i64 {self._more}, {abs(step)}")
        ahead = code.set(f"sub i64 {code.set(f'sub i64 {end}, {begin}')}, {travelled}")
        meets_later = code.test("sle", ahead, abs(step) if one < other else 0)
        return code.set(f"or i1 {apart}, {meets_later}")


def range_name(event: int) -> str:
    """The function for many accesses of an instruction:
    ``(machine, subject, address, size, step, count, passed, period)``.
    """
    return f"range_{event}"


def _is_plain(access: Access) -> bool:
    return abs(access.step) < LONGEST_STEP and access.size <= LARGEST


def _sequence(accesses: Sequence[Access]) -> list[int]:
    """The places of accesses in an order in which each byte is most likely reached in the order of time."""
    ways: dict[tuple[int, ...], list[int]] = {}
    for place, access in enumerate(accesses):
        ways.setdefault(access.way, []).append(place)
    return [
        place
        for places in ways.values()
        for place in sorted(
            places, key=lambda place: (-1 if accesses[place].step > 0 else 1) * _signed(accesses[place].offset)
        )
    ]


def _are_different(accesses: Sequence[Access]) -> bool:
    """Whether no instruction stands there twice: then each access is an execution of its own."""
    return len({access.subject for access in accesses}) == len(accesses)
