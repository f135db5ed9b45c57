"""Programs made by hand, and machines that run them into event streams, for tests of the dependence engine."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from tests.naive.dependence import Event
from tests.naive.dependence_engine import DependenceEngine
from tests.naive.program_builder import ProgramBuilder
from tracekit.formats.events import CODE, NONE
from tracekit.formats.image import BlockFlag, CallFlag, FunctionFlag, OpKind
from tracekit.program.program import Program


@dataclass
class EventLog:
    """Collects events of one stream by name."""

    stream: int = 0
    events: list[Event] = field(default_factory=list)

    def add(self, name: str, subject: int = 0, address: int = 0, size: int = 0) -> None:
        self.events.append((self.stream, CODE[name], subject, address, size))

    def load(self, instruction: int, address: int, size: int = 8) -> None:
        self.add("load", instruction, address, size)

    def store(self, instruction: int, address: int, size: int = 8) -> None:
        self.add("store", instruction, address, size)

    def enter(self, function: int, call: int = NONE) -> None:
        self.add("function_entry", function, 0, call)

    def leave(self, function: int) -> None:
        self.add("function_exit", function)

    def loop(self, loop: int, iteration: int) -> None:
        """The loop's header is reached: the invocation at iteration 0, else an iteration."""
        self.add("loop_iteration" if iteration else "loop_invocation", loop)

    def exit(self, loop: int, partial: int = 0) -> None:
        self.add("loop_exit", loop, 0, partial)


def feed(engine: DependenceEngine, events: Iterable[Event], cuts: Iterable[int] = ()) -> None:
    """Feed events in order; batches end where the stream changes and before the positions `cuts`."""
    events = list(events)
    ends = set(cuts) | {place for place in range(1, len(events)) if events[place][0] != events[place - 1][0]}
    bounds = [0, *sorted(end for end in ends if 0 < end < len(events)), len(events)]
    for first, last in pairwise(bounds):
        rows = events[first:last]
        if rows:
            stream, kind, subject, address, size = zip(*rows)
            engine.feed_columns(
                stream[0],
                np.array(kind, np.uint8),
                np.array(subject, np.uint32),
                np.array(address, np.uint64),
                np.array(size, np.uint64),
            )


@dataclass
class Figure1:
    """The program of Fig. 1 of the CAMP paper; fields are rows of its tables."""

    program: Program
    ld1: int
    st1: int
    calls: dict[str, int]
    loops: dict[str, int]
    functions: dict[str, int]

    def run(self, outer: int, inner: int) -> list[Event]:
        """The events of main: sum[t] at 0x1000 + 8 t, nodes[i] at 0x2000 + 8 i."""
        log = EventLog()
        f, c = self.functions, self.calls

        def get(call: str, address: int) -> None:
            log.enter(f["getValue"], c[call])
            log.load(self.ld1, address)
            log.leave(f["getValue"])

        def put(call: str, address: int) -> None:
            log.enter(f["setValue"], c[call])
            log.enter(f["isValid"], c["CS7"])
            log.leave(f["isValid"])
            log.store(self.st1, address)
            log.leave(f["setValue"])

        log.enter(f["main"])
        for t in range(outer):
            log.loop(self.loops["L1"], t)
            for i in range(inner):
                log.loop(self.loops["L2"], i)
                get("CS1", 0x1000 + 8 * t)
                log.enter(f["work"], c["CS2"])
                get("CS4", 0x2000 + 8 * i)
                put("CS6", 0x2000 + 8 * i)
                log.leave(f["work"])
                put("CS3", 0x1000 + 8 * t)
            log.exit(self.loops["L2"])
        log.exit(self.loops["L1"])
        log.leave(f["main"])
        return log.events


def figure_1() -> Figure1:
    """Fig. 1: isValid is defined, update external; every call site is a node."""
    b = ProgramBuilder()
    names = ("getValue", "setValue", "isValid", "work", "main")
    functions = {name: b.function(name) for name in names}
    entry = {name: b.block(functions[name], BlockFlag.ENTRY) for name in names}
    ld1 = b.op(entry["getValue"], OpKind.LOAD, 8)
    calls = {"CS7": b.call(entry["setValue"], "isValid")}
    st1 = b.op(b.block(functions["setValue"], continues=calls["CS7"]), OpKind.STORE, 8)
    calls["CS4"] = b.call(entry["work"], "getValue")
    calls["CS5"] = b.call(b.block(functions["work"], continues=calls["CS4"]), "update")
    calls["CS6"] = b.call(b.block(functions["work"], continues=calls["CS5"]), "setValue")
    outer = b.loop(functions["main"])
    b.block(functions["main"], BlockFlag.LOOP_HEADER, outer)
    inner = b.loop(functions["main"], outer)
    body = b.block(functions["main"], BlockFlag.LOOP_HEADER, inner)
    for name, callee in (("CS1", "getValue"), ("CS2", "work"), ("CS3", "setValue")):
        calls[name] = b.call(body, callee)
        body = b.block(functions["main"], loop=inner, continues=calls[name])
    layout = b.layout()
    return Figure1(
        b.program(),
        layout.op[ld1],
        layout.op[st1],
        {name: layout.op[op] for name, op in calls.items()},
        {"L1": layout.loop[outer], "L2": layout.loop[inner]},
        functions,
    )


@dataclass
class Figure7:
    """The program of Fig. 7(a): mutual recursion, then an indirect call."""

    program: Program
    calls: dict[str, int]
    functions: dict[str, int]


def figure_7() -> Figure7:
    """Fig. 7: is_even and is_odd call each other; CS4 may enter inc or dec."""
    b = ProgramBuilder()
    unary = "int (int)"
    functions = {name: b.function(name, signature="bool (unsigned)") for name in ("is_even", "is_odd")}
    for name in ("inc", "dec"):
        functions[name] = b.function(name, flags=FunctionFlag.ADDRESS_TAKEN, signature=unary)
    functions["main"] = b.function("main")
    entry = {name: b.block(row, BlockFlag.ENTRY) for name, row in functions.items()}
    calls = {
        "CS1": b.call(entry["is_even"], "is_odd"),
        "CS2": b.call(entry["is_odd"], "is_even"),
        "CS3": b.call(entry["main"], "is_even"),
    }
    after = b.block(functions["main"], continues=calls["CS3"])
    calls["CS4"] = b.call(after, "", CallFlag.INDIRECT, unary)
    layout = b.layout()
    return Figure7(b.program(), {name: layout.op[op] for name, op in calls.items()}, functions)
