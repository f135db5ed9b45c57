"""Work and span of random programs: of fork and join by recursion, of everything else by looking back at all events."""

from __future__ import annotations

import random
from collections.abc import Sequence
from functools import cache

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.naive import taskgraph as naive
from tests.naive.program_builder import ProgramBuilder
from tests.naive.taskgraph import Step
from tracekit.formats.events import BY_NAME
from tracekit.formats.image import BlockFlag, OpKind
from tracekit.program.program import Program
from tracekit.taskgraph.collector import StepCollector
from tracekit.taskgraph.profile import TaskGraphProfile

LOADS, STORES = 2, 1
"""Of the function that all work consists of."""


@cache
def program() -> tuple[Program, int]:
    """A program with one function of one block, and the record id of its path."""
    b = ProgramBuilder()
    block = b.block(b.function("work"), BlockFlag.ENTRY | BlockFlag.RETURNS)
    for kind in (OpKind.LOAD,) * LOADS + (OpKind.STORE,) * STORES:
        b.op(block, kind, size=4)
    path = b.path(block)
    layout = b.layout()
    return Program.from_images([layout.image()]), layout.path_number(path)


def words_of(step: Step, ticket: int) -> list[int]:
    """An event's words."""
    arity = len(BY_NAME[step.name].words)
    return [ticket, step.subject, step.other, step.stream][:arity]


def collected(steps: Sequence[Step], locks: bool = True) -> StepCollector:
    """The steps as records of streams; a step of the name "" is what a stream does before its first event."""
    made, path = program()
    collector = StepCollector(made, locks)
    for stream in sorted({step.stream for step in steps}):
        ids: list[int] = []
        words: list[int] = []
        for ticket, step in enumerate(steps):
            if step.stream == stream:
                if step.name:
                    ids.append(BY_NAME[step.name].code)
                    words += words_of(step, ticket + 1)
                ids += [path] * step.work
                words += [8] * (LOADS + STORES) * step.work
        half = len(ids) // 2
        split = sum(LOADS + STORES if identity == path else len(BY_CODE_WORDS[identity]) for identity in ids[:half])
        collector.add(stream, np.array(ids[:half], np.uint32), np.array(words[:split], np.uint64))
        collector.add(stream, np.array(ids[half:], np.uint32), np.array(words[split:], np.uint64))
    return collector


BY_CODE_WORDS = {event.code: event.words for event in BY_NAME.values()}


def profile(steps: Sequence[Step], work: str = "blocks", locks: bool = True) -> TaskGraphProfile:
    """What the module makes of it."""
    return TaskGraphProfile(program()[0], collected(steps, locks), work)


# -- fork and join -------------------------------------------------------------------------------------


class Tree:
    """A thread of a random fork-join program: work, threads that it creates, threads that it waits for."""

    def __init__(self, rng: random.Random, depth: int) -> None:
        self.parts: list[int | Tree | tuple[Tree]] = []
        running: list[Tree] = []
        for _ in range(rng.randrange(6)):
            choice = rng.random()
            if choice < 0.4 and depth:
                running.append(Tree(rng, depth - 1))
                self.parts.append(running[-1])
            elif choice < 0.6 and running:
                self.parts.append((running.pop(rng.randrange(len(running))),))
            else:
                self.parts.append(rng.randrange(5))
        rng.shuffle(running)
        self.parts += [(child,) for child in running if rng.random() < 0.8]

    def work(self) -> int:
        """All work below."""
        own = sum(part for part in self.parts if isinstance(part, int))
        return own + sum(part.work() for part in self.parts if isinstance(part, Tree))

    def times(self, begin: int) -> tuple[int, int]:
        """When the thread is over if it begins then and processors are many, and when the last of those below is."""
        now, latest = begin, begin
        over: dict[int, int] = {}
        for part in self.parts:
            if isinstance(part, int):
                now += part
            elif isinstance(part, Tree):
                over[id(part)], last = part.times(now)
                latest = max(latest, last)
            else:
                now = max(now, over[id(part[0])])
        return now, max(latest, now)


class Run:
    """One interleaving of a tree's threads."""

    def __init__(self, rng: random.Random, tree: Tree) -> None:
        self.steps = [Step(0, "program_start", 1, 0, 0)]
        self.numbers = {id(tree): 0}
        left = {0: list(tree.parts)}
        over: set[int] = set()
        while left:
            ready = [stream for stream, parts in left.items() if not parts or self.is_ready(parts[0], over)]
            stream = rng.choice(ready)
            if not left[stream]:
                del left[stream]
                over.add(stream)
                self.steps.append(Step(stream, "thread_exit" if stream else "program_end", stream, 0, 0))
                continue
            part = left[stream].pop(0)
            if isinstance(part, int):
                last = max(k for k, step in enumerate(self.steps) if step.stream == stream)
                self.steps[last] = self.steps[last]._replace(work=self.steps[last].work + part)
            elif isinstance(part, Tree):
                number = self.numbers[id(part)] = len(self.numbers)
                self.steps.append(Step(stream, "thread_create", number, 0, 0))
                self.steps.append(Step(number, "thread_start", number, 0, 0))
                left[number] = list(part.parts)
            else:
                self.steps.append(Step(stream, "thread_join", self.numbers[id(part[0])], 0, 0))

    def is_ready(self, part: object, over: set[int]) -> bool:
        return not isinstance(part, tuple) or self.numbers[id(part[0])] in over


@settings(max_examples=200, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_work_and_span_of_fork_and_join_are_those_of_the_recursion(seed: int) -> None:
    rng = random.Random(seed)
    tree = Tree(rng, 4)
    made = profile(Run(rng, tree).steps)
    summary = made.result((), 1000)["summary"]
    assert summary["work"] == tree.work()
    assert summary["span"] == tree.times(0)[1]
    assert summary["span_without_locks"] == summary["span"]
    assert summary["loads"] == LOADS * tree.work() and summary["stores"] == STORES * tree.work()
    if tree.work():
        assert 4 * (LOADS + STORES) * summary["span"] == profile(Run(rng, tree).steps, "bytes").span


# -- everything that orders threads --------------------------------------------------------------------


class Schedule:
    """Events of a few threads, one of which runs at a time."""

    def __init__(self, rng: random.Random, count: int) -> None:
        self.rng = rng
        self.steps = [Step(0, "program_start", 1, 0, rng.randrange(4))]
        self.threads, self.next = [0], 1
        self.held: dict[int, list[tuple[str, int]]] = {0: []}
        self.inside: dict[int, int] = {}
        self.waiting: dict[int, dict[int, int]] = {}
        for barrier in range(2):
            self.add(0, "barrier_init", 0x200 + barrier, rng.choice((1, 2, 3)))
        while len(self.steps) < count and self.threads:
            self.step(rng.choice(self.threads))

    def add(self, stream: int, name: str, subject: int, other: int = 0) -> None:
        work = 0 if name == "barrier_enter" else self.rng.choice((0, 0, 1, 2, 5))  # it does nothing else but wait
        self.steps.append(Step(stream, name, subject, other, work))

    def step(self, stream: int) -> None:
        if stream in self.inside:
            self.add(stream, "barrier_leave", self.inside.pop(stream))
            return
        getattr(self, self.rng.choices(("lock", "object", "barrier", "thread"), (5, 3, 2, 2))[0])(stream)

    def lock(self, stream: int) -> None:
        held = self.held[stream]
        if held and self.rng.random() < 0.6:
            self.add(stream, "unlock", held.pop(self.rng.randrange(len(held)))[1])
            return
        wanted = self.rng.choice(("lock", "lock", "lock_shared")), 0x100 + self.rng.randrange(3)
        if all(self.goes_with(wanted, hold, other == stream) for other in self.held for hold in self.held[other]):
            held.append(wanted)
            self.add(stream, *wanted)

    @staticmethod
    def goes_with(wanted: tuple[str, int], hold: tuple[str, int], is_own: bool) -> bool:
        """Whether a lock can be got while it is held so: by others for reading, by the same thread in the same way."""
        return wanted[1] != hold[1] or (wanted == hold and (is_own or wanted[0] == "lock_shared"))

    def object(self, stream: int) -> None:
        kind = self.rng.choice((1, 2, 3))
        self.add(stream, self.rng.choice(("release", "acquire")), 0x300 + 2 * kind + self.rng.randrange(2), kind)

    def barrier(self, stream: int) -> None:
        if self.rng.random() < 0.1:
            self.add(stream, "barrier_init", 0x200 + self.rng.randrange(2), self.rng.choice((1, 2, 3)))
            return
        at = 0x200 + self.rng.randrange(2)
        last = max((k for k, step in enumerate(self.steps) if step[1:3] == ("barrier_init", at)), default=0)
        arrived = sum(step[1:3] == ("barrier_enter", at) for step in self.steps[last:])
        count = self.steps[last].other
        self.add(stream, "barrier_enter", at)
        if (arrived + 1) % count == 0:  # the round is full: all may go
            self.inside[stream] = at
            for other, waited in list(self.waiting.get(at, {}).items()):
                if waited == last:
                    self.inside[other] = at
            self.waiting[at] = {}
        else:
            self.waiting.setdefault(at, {})[stream] = last
        self.threads = [thread for thread in self.threads if thread != stream or stream in self.inside]
        self.threads += [thread for thread in self.inside if thread not in self.threads]

    def thread(self, stream: int) -> None:
        others = [other for other in self.threads if other not in (0, stream) and other not in self.inside]
        if len(self.threads) < 4 or not others:
            self.new_thread(stream)
            return
        over = self.rng.choice(others)
        self.add(over, "thread_exit", over)
        self.add(stream, "thread_join", over)
        self.threads.remove(over)

    def new_thread(self, stream: int) -> None:
        self.add(stream, "thread_create", self.next)
        self.add(self.next, "thread_start", self.next)
        self.held[self.next] = []
        self.threads.append(self.next)
        self.next += 1


@settings(max_examples=200, deadline=None)
@given(seed=st.integers(0, 2**32), locks=st.booleans())
def test_span_is_that_of_looking_back_at_all_events(seed: int, locks: bool) -> None:
    rng = random.Random(seed)
    steps = Schedule(rng, 90).steps
    made = profile(steps, locks=locks)
    assert int(made.weights.sum()) == sum(step.work for step in steps)
    assert made.span == naive.span_of(steps, naive.edges_of(steps, locks))
    without, _ = made.graph.span(made.weights, locks=False)
    assert without == naive.span_of(steps, naive.edges_of(steps, locks=False))
    assert int(made.weights[made.on_path != 0].sum()) == made.span


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_tables_add_up_and_what_is_faster_is_shorter(seed: int) -> None:
    rng = random.Random(seed)
    made = profile(Schedule(rng, 60).steps)
    result = made.result([("work", 4.0)], 1000)
    summary = result["summary"]
    for table in ("groups", "lines", "functions"):
        assert sum(row["work"] for row in result[table]) == summary["work"]
        assert sum(row["critical_work"] for row in result[table]) == summary["span"]
    assert sum(row["count"] for row in result["groups"]) == sum(summary["nodes"].values())
    assert sum(row["count"] for row in result["group_edges"]) == sum(summary["edges"].values())
    [row] = result["what_if"]  # all work is in one function, so the path stays the longest
    assert row["work"] == round(summary["work"] / 4) and row["span"] == round(summary["span"] / 4)
    graph = result["graph"]
    assert all(edge["source"] < edge["destination"] for edge in graph["edges"])
    assert sum(node["work"] for node in graph["nodes"] if node["critical"]) == summary["span"]


class AtomicSchedule(Schedule):
    """With atomic operations and fences of all orders, too."""

    def step(self, stream: int) -> None:
        if stream in self.inside or self.rng.random() < 0.4:
            super().step(stream)
        elif self.rng.random() < 0.2:
            self.add(stream, "fence", self.rng.choice((4, 8, 12)))
        else:
            does = self.rng.choice((1, 1, 2, 2, 3))
            order = (4 if does & 1 and self.rng.random() < 0.6 else 0) | (
                8 if does & 2 and self.rng.random() < 0.6 else 0
            )
            size = self.rng.randrange(4)
            self.add(stream, "atomic", 0x200 + (self.rng.randrange(8) >> size << size), does | order | (size + 1) * 16)


@settings(max_examples=200, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_span_with_atomics_is_that_of_looking_back_at_all_events(seed: int) -> None:
    steps = AtomicSchedule(random.Random(seed), 90).steps
    made = profile(steps)
    assert made.span == naive.span_of(steps, naive.edges_of(steps))
