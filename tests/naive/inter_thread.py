"""The slow, obvious reference of dependences between threads: every access since the last store of every byte."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from tests.naive.dependence import RAW, WAR, WAW, Event, NaiveDependence, Path
from tracekit.formats.events import BY_CODE

End = tuple[int, Path, int]
"""Instruction, context, who did it: a stream, or a task that was created and not waited for at once."""
UNDEFERRED = 1 << 27
FIRST_TASK = 1 << 24

CHANGING = ("heap_alloc", "heap_free", "stack_alloc", "stack_free", "global_init", "thread_memory", "task_memory")


@dataclass
class Byte:
    """The last store of a byte, whoever made it, and the loads since."""

    store: End | None = None
    loads: set[End] = field(default_factory=set)


def inter_thread(naive: NaiveDependence, events: Iterable[Event]) -> dict[tuple[int, End, End], int]:
    """(Kind, source, destination) -> executions of the destination; `naive` says which these are, and the contexts."""
    bytes_: dict[int, Byte] = defaultdict(Byte)
    found: dict[tuple[int, End, End], set[Any]] = defaultdict(set)
    agents: dict[int, int] = {}
    tasks: dict[int, int] = {}
    made = 0
    for event in events:
        naive.feed([event])
        number, kind, subject, address, size = event
        name = BY_CODE[kind].name
        agent = agents.get(number, number)
        if name == "task_create":  # subject: instruction, address: flags, size: number of the task
            tasks[size] = agent
            if not address & UNDEFERRED:
                tasks[size] = FIRST_TASK + made
                made += 1
        if name == "task_schedule" and address and subject not in (5, 6, 8):  # subject: status, address: the next task
            agents[number] = tasks.get(address, number)
        if name in CHANGING:
            for place in range(address, address + size):
                bytes_.pop(place, None)
        if name not in ("load", "store"):
            continue
        stream = naive.streams[number]
        now = (subject, stream.context, agent)
        for place in range(address, address + size):
            byte = bytes_[place]
            sources = {(WAW if name == "store" else RAW, byte.store)}
            if name == "store":
                sources |= {(WAR, load) for load in byte.loads}
                bytes_[place] = Byte(now)
            else:
                byte.loads.add(now)
            for kind, source in sources:
                if source is not None and source[2] != agent:
                    found[kind, source, now].add(stream.execution)
    return {key: len(executions) for key, executions in found.items()}
