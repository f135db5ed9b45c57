"""What the naive reader keeps of an activation, and what it makes of recorded events (SPEC.md, "Recorded events")."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

NONE = 0xFFFFFFFF
THREAD_LOCAL = 2
STACK_ALLOC = 8

# Words of events of threads, signals, images and their like, by the column that they stand in.
SUBJECTS = ("stream", "signal", "image", "kind", "order", "window", "rank", "probe", "index")
ADDRESSES = ("address", "communicator", "number", "operation", "content", "bytes", "first")
OPENMP = {  # subject, address, size; of "call" the open call
    "parallel_begin": "call team threads",
    "parallel_end": "- team -",
    "implicit_begin": "index team task",
    "implicit_end": "- - task",
    "task_create": "call flags task",
    "task_schedule": "status next task",
    "task_dependence": "kind address task",
    "sync_begin": "kind team task",
    "sync_waited": "kind team task",
    "sync_end": "kind team task",
    "mutex_acquired": "kind address -",
    "mutex_released": "kind address -",
    "reduction_begin": "- team task",
    "reduction_end": "- team task",
    "work_begin": "kind count task",
    "work_end": "kind count task",
    "dispatch": "kind first count",
    "openmp_thread": "type - -",
}
SIZES = ("envelope", "peers", "process", "status", "abnormal", "thread", "count", "size", "time", "whole", "second")


@dataclass(eq=False)
class Object:
    """A stack object."""

    op: int
    address: int
    size: int
    alive: bool = True


@dataclass(eq=False)
class Activation:
    """A frame; function NONE is the bottom of a handler's run."""

    function: int
    call: int = NONE
    entered: bool = False
    tail: bool = False
    block: int = NONE
    loops: list[list[int]] = field(default_factory=list)  # [loop, iteration], outermost first
    registers: dict[int, int] = field(default_factory=dict)
    objects: list[Object] = field(default_factory=list)
    begun: dict[int, Object] = field(default_factory=dict)  # STACK_ALLOC -> the object it began last
    address: int = 0


class RecordedEvents:
    """The part of a stream that delivers recorded events."""

    process: Any
    tables: dict[str, list[dict[str, int]]]
    frames: list[Activation]

    def emit(self, name: str, subject: int = 0, address: int = 0, size: int = 0) -> None:
        raise NotImplementedError

    def pop(self, unwound: int) -> None:
        raise NotImplementedError

    def unwind_to(self, target: Activation) -> None:
        raise NotImplementedError

    def recorded(self, code: int, words: list[int]) -> None:
        name, fields = self.process.names[code]
        value = dict(zip(fields, words))
        call = self.frames[-1].call if self.frames else NONE
        if name in ("heap_alloc", "heap_free", "heap_realloc"):
            getattr(self, name)(call, **value)
        elif name == "resumed_return":
            self.return_to(value["address"])
        elif name.startswith("resumed_"):
            self.resume(name.removeprefix("resumed_"), words)
        elif name.startswith("library_"):
            if value["size"]:
                self.emit(name.removeprefix("library_"), call, value["address"], value["size"])
        elif name == "hand_over":
            self.emit(name, 0, value["time"], value["processor"])
        elif name in OPENMP:
            self.emit(name, *({"call": call, "-": 0, **value}[field] for field in OPENMP[name].split()))
        else:
            subject = next((value[word] for word in SUBJECTS if word in value), 0)
            size = next((value[word] for word in SIZES if word in value), 0)
            if name in ("mpi_send", "mpi_post", "mpi_receive", "mpi_collective") or name.startswith("resource_"):
                subject = call
            address = next((value[word] for word in ADDRESSES if word in value), 0)
            self.emit(name, subject & NONE, address, size)
            self.afterwards(name, value)

    def afterwards(self, name: str, value: dict[str, int]) -> None:
        trace = self.process.trace
        if name == "thread_create":
            self.process.created.add(value["stream"])
        elif name == "image_load":
            for row in trace.globals_of.get(value["image"], []):
                if trace.address[row] and not self.tables["globals"][row]["flags"] & THREAD_LOCAL:
                    self.emit("global_init", row, trace.address[row], self.tables["globals"][row]["size"])
        elif name in ("thread_exit", "window_begin", "window_end"):
            while self.frames:
                self.pop(1)
        elif name == "signal_enter":
            self.frames.append(Activation(NONE))
        elif name == "signal_leave":
            while self.frames and self.frames[-1].function != NONE:
                self.pop(1)
            self.frames[-1:] = []

    def resume(self, what: str, words: list[int]) -> None:
        """What of the top frame was there before the window."""
        if not self.frames or self.frames[-1].function == NONE:
            return
        frame = self.frames[-1]
        function = self.tables["functions"][frame.function]
        if what == "frame":
            frame.address = words[0]
        elif what == "register":
            if words[0] < function["registers"]:
                frame.registers[words[0]] = words[1]
        elif what == "loop":
            for loop in frame.loops:
                if loop[0] - function["first_loop"] == words[0]:
                    loop[1] = words[1]
        else:
            rows = range(function["first_op"], function["first_op"] + function["ops"])
            allocs = [row for row in rows if self.tables["ops"][row]["kind"] == STACK_ALLOC]
            if words[0] < len(allocs):
                self.begin_resumed(frame, allocs[words[0]], words[1], words[2])

    def return_to(self, address: int) -> None:
        """Control is back in an activation that the window found."""
        for frame in reversed(self.frames):
            if frame.function == NONE:
                break
            if frame.address == address:
                self.unwind_to(frame)
                break

    def begin_resumed(self, frame: Activation, op: int, address: int, size: int) -> None:
        item = frame.begun.get(op)
        if item is not None and item.alive:
            self.emit("stack_free", op, item.address, item.size)
            item.address, item.size = address, size
        else:
            frame.begun[op] = Object(op, address, size)
            frame.objects.append(frame.begun[op])
        self.emit("stack_alloc", op, address, size)

    def heap_alloc(self, call: int, ticket: int, address: int, size: int) -> None:
        self.emit("heap_alloc", call, address, size)
        if address:
            self.process.heap[address] = size

    def heap_free(self, call: int, ticket: int, address: int) -> None:
        self.emit("heap_free", call, address, self.process.heap.pop(address, 0))

    def heap_realloc(self, call: int, ticket: int, old_address: int, address: int, size: int) -> None:
        heap = self.process.heap
        before = heap.get(old_address, 0)
        if address == 0:
            if size == 0 and old_address:
                self.heap_free(call, ticket, old_address)
            return
        if address == old_address:
            if size < before:
                self.emit("heap_free", call, address + size, before - size)
            elif size > before:
                self.emit("heap_alloc", call, address + before, size - before)
        else:
            self.emit("heap_alloc", call, address, size)
            if kept := min(before, size):
                self.emit("load", call, old_address, kept)
                self.emit("store", call, address, kept)
            if old_address:
                self.heap_free(call, ticket, old_address)
        heap[address] = size
