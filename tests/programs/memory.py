"""Memory as a trace's values tell it: each load must find what was stored last, wherever the history is known."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tracekit.formats.events import NONE
from tracekit.formats.image import CallFlag

Valued = tuple[int, str, int, int, int, int | None]
"""Stream, event, subject, address, size, value (all its bytes as a number, the first one lowest)."""

FORGETS = {"heap_alloc", "heap_free", "stack_alloc", "stack_free", "global_init"}


class Memory:
    """The bytes of a program of one thread. `program`: the trace's tables (program/program.py).

    What happens outside of instrumented code may change anything that it can reach: then all is forgotten.
    """

    def __init__(self, program: Any) -> None:
        self.program = program
        self.bytes: dict[int, int] = {}
        self.entries: list[bool] = []
        self.compared = 0
        self.wrong: list[str] = []

    def feed(self, events: Iterable[Valued]) -> None:
        """Follow events in order."""
        for _, name, subject, address, size, value in events:
            if name == "load":
                self.load(subject, address, size, value)
            elif name == "store":
                self.store(address, size, value)
            elif name in FORGETS:
                self.store(address, size, None)
            elif name == "external_call":
                self.bytes.clear()
            elif name == "function_entry":
                self.entries.append(size == NONE or self.from_outside(size))
                self.forget_if(self.entries[-1])
            elif name == "function_exit":
                self.forget_if(self.entries.pop() or bool(size))

    def forget_if(self, outside: bool) -> None:
        if outside:
            self.bytes.clear()

    def from_outside(self, call: int) -> bool:
        """Whether other code stands between a call and the function that it enters."""
        return bool(self.program.calls["flags"][self.program.ops["base"][call]] & CallFlag.MAY_CALL_BACK)

    def load(self, subject: int, address: int, size: int, value: int | None) -> None:
        if value is None:
            return
        for k in range(size):
            byte = value >> 8 * k & 255
            known = self.bytes.get(address + k)
            self.compared += known is not None
            if known not in (None, byte) and len(self.wrong) < 20:
                place = self.program.instruction(subject)
                self.wrong.append(
                    f"{place['function']}:{place['line']}:{place['column']}: byte {k} of the {size} at "
                    f"{address:#x} is {byte:#x}, not {known:#x}"
                )
            self.bytes[address + k] = byte

    def store(self, address: int, size: int, value: int | None) -> None:
        if value is None and size > len(self.bytes):
            for known in [known for known in self.bytes if address <= known < address + size]:
                del self.bytes[known]
        elif value is None:
            for k in range(size):
                self.bytes.pop(address + k, None)
        else:
            for k in range(size):
                self.bytes[address + k] = value >> 8 * k & 255
