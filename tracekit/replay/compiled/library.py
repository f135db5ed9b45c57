"""The library around paths: the loop over records, and a function for each event that holds the modules' callbacks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from tracekit.formats.events import ACCESS_EVENTS, CODE
from tracekit.jit import cache as jit_cache
from tracekit.jit import machine_code, object_cache
from tracekit.replay.compiled import driver_code, machine
from tracekit.replay.compiled.driver_code import Handler
from tracekit.replay.compiled.functions import Constants, NumbaFunction, count
from tracekit.replay.compiled.handled_events import CONSTANT_SIZES, HandledEvents, handler_name
from tracekit.replay.compiled.machine import ARGUMENTS
from tracekit.replay.compiled.range_code import range_name
from tracekit.replay.kernels.derive import derive
from tracekit.replay.kernels.slow_paths import PREDICATES, SLOW_PATHS, Step

LARGE = 200_000
"""Bytes of bitcode of a module's function for an event from which on it is not copied for each size."""
EVENT = (np.int64(0), np.uint32(0), np.uint64(0), np.uint64(0), np.uint64(0))
"""Values like those of an event: stream, subject, address, size, value."""
MANY = (np.int64(0), np.uint32(0), *[np.int64(0)] * len(driver_code.RANGE))
"""... of many accesses of one instruction."""

ITERATED = (np.int64(0), np.uint32(0), np.int64(0))
"""... of iterations: stream, subject, count."""

Arguments = Sequence[Any]
"""Those of the derive kernel."""


class Sink(Protocol):
    """What takes events one by one: a module, alone with its state."""

    @property
    def handlers(self) -> Mapping[str, Any]:
        """Event -> kernel (state, contexts, levels, clock, stream, subject, address, size, value)."""

    @property
    def ranges(self) -> Mapping[str, Any]:
        """What it has for many accesses of one instruction (generated.Kernels.ranges): kernels with the same first
        arguments; empty if it takes events one by one.
        """

    def arguments(self, stream: int, events: int) -> tuple[Any, Any, Any, Any]:
        """The first four of them, with room for so many events of a stream; only the third ever moves."""

    def check(self) -> None:
        """Raise TracekitError if the module has run out of memory."""

    def failure(self, error: Exception, file: str, line: int) -> Exception | None:
        """What to raise for an error that comes from this place; None if the place is not in the module's code."""


@dataclass(frozen=True)
class Library:
    """The code around paths, loaded."""

    loaded: machine_code.Loaded
    handled: HandledEvents
    replay: Any


@dataclass
class Many:
    """What modules have for many accesses of one instruction: by event, and what all of them have beside it."""

    ranges: dict[int, list[Handler]]
    unordered: list[Handler]
    passed: list[Handler]
    iterated: list[Handler]
    ordered: bool = False
    """Whether there is a module to which the order may always matter."""
    loads_ordered: bool = False
    """... also that of loads: it looks at the open levels."""

    def handlers(self) -> list[Handler]:
        """All of them."""
        accesses = (handler for some in self.ranges.values() for handler in some)
        return [*accesses, *self.unordered, *self.passed, *self.iterated]


class LibraryMaker:
    """Makes the library of some sinks."""

    def __init__(
        self,
        sinks: Sequence[Sink],
        linkable: Callable[[Any, Arguments], NumbaFunction],
        object_of: Callable[..., bytes],
    ) -> None:
        """`linkable`: a kernel's bitcode, for such arguments; `object_of`: as machine_code.object_of."""
        self._sinks, self._linkable, self._object_of = sinks, linkable, object_of

    def make(self, arguments: Arguments, given: Sequence[tuple[Any, Any, Any, Any]]) -> Library:
        """The library, for these arguments of the derive kernel and those of the sinks."""
        handlers = self._handlers(given)
        many = self._ranges(given)
        handled = _handled(handlers, many, any(levels is not None for _, _, levels, _ in given))
        example = (*arguments[:2], arguments[3], Step(np.uint32(0), np.uint32(0), np.uint32(0), np.uint8(0)))
        example += (np.uint64(0), np.uint64(0))
        slow_paths, predicates = (
            {kernel.__name__: self._linkable(kernel, example) for kernel in some} for some in (SLOW_PATHS, PREDICATES)
        )
        derived = self._linkable(derive, arguments)
        constants = Constants(tuple((state, contexts, clock) for state, contexts, _, clock in given))
        places = np.cumsum([ARGUMENTS, *(count(argument) for argument in arguments)]).tolist()
        every = [handler for some in (*handlers.values(), many.handlers()) for handler in some]
        others = {name: (function, example) for name, function in (slow_paths | predicates).items()}
        own = (places[0], places[1], places[3])
        text = [
            driver_code.declarations(every, others | {"d": (derived, arguments)}),
            *self._event_functions(handlers, many, handled, constants, places[-1]),
            driver_code.drain_function(handled, _columns(arguments[3])),
            *(driver_code.predicate_function(name, each, example[:3], own) for name, each in predicates.items()),
            *(driver_code.slow_path_function(name, each, example[:3], own) for name, each in slow_paths.items()),
            driver_code.derive_function(derived, arguments),
            "!0 = !{}",
            driver_code.REPLAY,
        ]
        names = ["replay", *others, *(handler_name(event) for event in handled.codes)]
        names += ["unordered", "passed", "iterated"]
        names += [range_name(event) for event in many.ranges]
        names += [handler_name(event, size) for event in handled.sized for size in CONSTANT_SIZES]
        symbols = {**constants.addresses}
        linked = {handler.function.name: handler.function.code for handler in every}
        linked |= {function.name: function.code for function in (*slow_paths.values(), *predicates.values(), derived)}
        whole = "\n\n".join([machine_code.externals(symbols), *text])
        key = key_of(handled, whole.encode(), *(code for _, code in sorted(linked.items())))
        code, _ = object_cache.kept(key, lambda: self._object_of(whole, linked.values(), names, bool(many.ranges)))
        loaded = machine_code.Loaded(code, symbols, names)
        return Library(loaded, handled, machine_code.callable_at(loaded.functions["replay"]))

    def _event_functions(
        self,
        handlers: Mapping[int, list[Handler]],
        many: Many,
        handled: HandledEvents,
        constants: Constants,
        place: int,
    ) -> list[str]:
        """The functions for events, one by one and many at once. `place`: where the sinks' arguments begin."""
        return [
            *(driver_code.event_function(event, some, constants, place) for event, some in handlers.items()),
            *(
                driver_code.sized_function(event, size, _is_large(handlers[event]))
                for event in sorted(handled.sized)
                for size in CONSTANT_SIZES
            ),
            *(driver_code.range_function(event, some, constants, place) for event, some in many.ranges.items()),
            driver_code.unordered_function(many.unordered, constants, place),
            driver_code.passed_function(many.passed, constants, place),
            driver_code.iterated_function(many.iterated, constants, place),
        ]

    def _handlers(self, given: Sequence[tuple[Any, Any, Any, Any]]) -> dict[int, list[Handler]]:
        """Event -> what modules do for it, in their order."""
        handlers: dict[int, list[Handler]] = {}
        at = 0
        for sink, arguments in zip(self._sinks, given):
            for name, kernel in sink.handlers.items():
                handlers.setdefault(CODE[name], []).append(self._handler(kernel, arguments, at, EVENT))
            at += count(arguments[2])
        return handlers

    def _ranges(self, given: Sequence[tuple[Any, Any, Any, Any]]) -> Many:
        """What modules have for many accesses, if all that want an access have it, and all that want iterations."""
        many = Many({}, [], [], [])
        one_by_one = set()
        at = 0
        for sink, arguments in zip(self._sinks, given):
            for name in ACCESS_EVENTS:
                if name in sink.ranges:
                    handler = self._handler(sink.ranges[name], arguments, at, MANY)
                    many.ranges.setdefault(CODE[name], []).append(handler)
                elif name in sink.handlers:
                    one_by_one.add(CODE[name])
            if "unordered" in sink.ranges:
                many.unordered.append(self._handler(sink.ranges["unordered"], arguments, at, ()))
            elif sink.handlers.keys() & set(ACCESS_EVENTS):
                many.ordered = True
            if "passed" in sink.ranges:
                many.passed.append(self._handler(sink.ranges["passed"], arguments, at, MANY[:1]))
            if "iterated" in sink.ranges:
                many.iterated.append(self._handler(sink.ranges["iterated"], arguments, at, ITERATED))
                many.loads_ordered = True
            elif "loop_iteration" in sink.handlers:  # it wants each
                return Many({}, [], [], [])
            at += count(arguments[2])
        for event in one_by_one:
            many.ranges.pop(event, None)
        return many

    def _handler(
        self, kernel: Any, arguments: tuple[Any, Any, Any, Any], levels_at: int, event: Sequence[Any]
    ) -> Handler:
        """A module's kernel; `levels_at`: the leaf of all modules' where its levels begin."""
        state, contexts, levels, clock = arguments
        return Handler(self._linkable(kernel, (*arguments, *event)), state, contexts, levels, levels_at, clock, event)


def _is_large(handlers: Sequence[Handler]) -> bool:
    """Whether what modules do for an event is too much for a copy for each size."""
    return sum(len(handler.function.code) for handler in handlers) > LARGE


def _handled(handlers: Mapping[int, list[Handler]], many: Many, has_budget: bool) -> HandledEvents:
    """The events that sinks with these functions handle."""
    return HandledEvents(
        frozenset(handlers),
        frozenset({CODE["load"], CODE["store"]} & handlers.keys()),
        has_budget,
        frozenset(many.ranges),
        many.ordered,
        many.loads_ordered,
        bool(many.unordered),
        bool(many.iterated),
        bool(many.passed),
    )


def _columns(out: Any) -> dict[int, bool]:
    """By the word of each column of events, whether there is one."""
    names = ("subject", "address", "size", "value")
    return {getattr(machine, name.upper()): getattr(out, name) is not None for name in names}


def key_of(handled: HandledEvents, *parts: bytes) -> str:
    """The key of machine code made of these parts, for modules that want these events."""
    sets = (handled.codes, handled.sized, handled.ranges)
    ordered = (handled.ordered, handled.loads_ordered)
    truths = (handled.has_budget, *ordered, handled.limited, handled.iterated, handled.timed)
    events = repr((*map(sorted, sets), *truths)).encode()
    return object_cache.key_of([sources(), machine_code.target(), events, *parts])


@cache
def sources() -> bytes:
    """What the text of paths depends on: this package, and the layouts of the replay kernels."""
    here = Path(__file__).parent
    return "".join(jit_cache.digest(path) for path in sorted(here.glob("*.py"))).encode()
