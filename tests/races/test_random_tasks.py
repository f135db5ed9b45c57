"""The module ``races`` against all pairs of accesses of logical tasks, on random runs of OpenMP teams."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.naive import tasks as naive
from tests.naive.races import Event, has_first_races
from tests.races.test_random import MEMORY, MOST_EVENTS, found_by_module
from tracekit.containers.kernels.arena import USED
from tracekit.formats.event_values import SyncRegion, TaskDependence, TaskFlag, TaskStatus
from tracekit.program.program import Program
from tracekit.races.kernels.state import State
from tracekit.races.state import empty_state

KINDS = (TaskDependence.IN, TaskDependence.INOUT, TaskDependence.MUTEXINOUTSET, TaskDependence.INOUTSET)
LOCK, ADDRESSES = 0x100, 0x500

STEPS = ("access", "create", "wait", "group", "barrier", "mutex", "yield")
WEIGHTS = ((10, 5, 1, 1, 1, 2, 1), (10, 5, 4, 2, 1, 0, 1), (10, 5, 4, 2, 1, 0.3, 1))
"""How often each comes: with locks, which let others know of a task that is not over; where tasks are mostly known by
those who wait for them; of that kind with a few locks."""


@dataclass(eq=False)
class Task:
    number: int
    creator: Task | None = None
    depends: list[tuple[int, int]] = field(default_factory=list)
    children: list[Task] = field(default_factory=list)
    groups: list[list[Task]] = field(default_factory=list)
    outer: list[Task] | None = None  # the innermost group that it did not begin itself
    left: int = 0  # steps
    running: bool = False
    over: bool = False
    waits: int = 0  # for what, of SyncRegion


class Run:
    """A team of a few streams that runs tasks, as libomp could: who waits runs others in the meantime."""

    def __init__(self, rng: random.Random, count: int, bytes_: int, weights: tuple[float, ...]) -> None:
        self.rng, self.count, self.bytes, self.weights = rng, count, bytes_, weights
        self.events: list[Event] = [(0, "program_start", 0, 0, 7)]
        self.numbers = 1
        for team in range(1, rng.choice((1, 2, 3)) + 1):
            self.team(team)

    def add(self, stream: int, name: str, subject: int = 0, address: int = 0, size: int = 0) -> None:
        self.events.append((stream, name, subject, address, size))

    def access(self, stream: int) -> None:
        name, place = self.rng.choice(("load", "load", "store")), MEMORY + 8 * self.rng.randrange(self.bytes // 8)
        self.add(stream, name, len(self.events), place, self.rng.choice((4, 8)))

    def number(self) -> int:
        self.numbers += 1
        return self.numbers

    def team(self, team: int) -> None:
        self.number_of_team, end = team, len(self.events) + self.count
        self.access(0)
        self.add(0, "parallel_begin", 0, team, 2)
        self.stacks: list[list[Task]] = []
        self.ready: list[Task] = []
        self.entered = 0
        for stream in range(self.rng.choice((1, 2, 3))):
            if stream and not any(event[:3] == (0, "thread_create", stream) for event in self.events):
                self.add(0, "thread_create", stream)
                self.add(stream, "thread_start", stream)
            task = Task(self.number(), left=self.rng.randrange(3, 30), running=True)
            self.add(stream, "implicit_begin", stream, team, task.number)
            self.stacks.append([task])
        while any(not stack[0].over for stack in self.stacks):
            streams = [stream for stream, stack in enumerate(self.stacks) if not stack[0].over]
            self.step(self.rng.choice(streams), len(self.events) >= end)
        for stream in range(len(self.stacks))[::-1]:
            self.add(stream, "implicit_end", 0, 0, self.stacks[stream][0].number)
        self.add(0, "parallel_end", 0, team)
        self.access(0)

    def step(self, stream: int, hurry: bool) -> None:
        stack, rng = self.stacks[stream], self.rng
        task = stack[-1]
        if task.waits:
            if not self.may_go_on(task) or rng.random() < 0.3:
                self.run_another(stream)
            else:
                self.go_on(stream, task)
            return
        task.left -= 1
        if hurry or task.left <= 0:
            self.finish(stream, task)
            return
        what = rng.choices(STEPS, self.weights)[0]
        if what == "access":
            self.access(stream)
        elif what == "create" and len(stack) < 5:
            self.create(stream, task)
        elif what == "wait":
            self.begin_wait(stream, task, SyncRegion.TASKWAIT)
        elif what == "group":
            if task.groups and task.groups[-1] is not task.outer:
                self.begin_wait(stream, task, SyncRegion.TASKGROUP)
            else:
                self.add(stream, "sync_begin", SyncRegion.TASKGROUP, self.number_of_team, task.number)
                task.groups.append([])
        elif what == "mutex":
            self.add(stream, "mutex_acquired", 5, LOCK)
            self.access(stream)
            self.add(stream, "mutex_released", 5, LOCK)
        elif what == "yield":
            self.run_another(stream)

    def create(self, stream: int, creator: Task) -> None:
        rng = self.rng
        task = Task(self.number(), creator, left=rng.randrange(1, 12), groups=list(creator.groups))
        task.outer = creator.groups[-1] if creator.groups else None
        undeferred = rng.random() < 0.15
        flags = TaskFlag.EXPLICIT | (TaskFlag.UNDEFERRED if undeferred else 0)
        self.add(stream, "task_create", 0, int(flags), task.number)
        creator.children.append(task)
        for group in task.groups:
            group.append(task)
        if undeferred:
            self.start(stream, task)
            return
        for address in rng.sample(range(3), rng.choice((0, 0, 1, 2))):
            kind = int(rng.choice(KINDS))
            task.depends.append((kind, address))
            self.add(stream, "task_dependence", kind, ADDRESSES + 8 * address, task.number)
        self.ready.append(task)

    def may_start(self, task: Task) -> bool:
        assert task.creator is not None
        siblings = task.creator.children
        before = siblings[: siblings.index(task)]
        for kind, address in task.depends:
            for other in siblings:
                for kind_before, address_before in other.depends:
                    if other is task or other.over or address != address_before:
                        continue
                    if kind == kind_before == TaskDependence.MUTEXINOUTSET:
                        if other.running:
                            return False
                    elif other in before and not (kind == kind_before and kind != TaskDependence.INOUT):
                        return False
        return True

    def run_another(self, stream: int) -> None:
        if len(self.stacks[stream]) < 6:
            able = [task for task in self.ready if self.may_start(task)]
            if able:
                task = self.rng.choice(able)
                self.ready.remove(task)
                self.start(stream, task)

    def start(self, stream: int, task: Task) -> None:
        left = self.stacks[stream][-1]
        task.running = True
        self.add(stream, "task_schedule", TaskStatus.SWITCH, task.number, left.number)
        self.stacks[stream].append(task)

    def begin_wait(self, stream: int, task: Task, kind: int) -> None:
        if kind != SyncRegion.TASKGROUP:
            self.add(stream, "sync_begin", kind, self.number_of_team, task.number)
        task.waits = int(kind)

    def may_go_on(self, task: Task) -> bool:
        if task.waits == SyncRegion.TASKWAIT:
            return all(child.over for child in task.children)
        if task.waits == SyncRegion.TASKGROUP:
            return all(other.over for other in task.groups[-1])
        arrived = all(stack[0].waits == SyncRegion.BARRIER_IMPLICIT_PARALLEL for stack in self.stacks)
        return arrived and not self.ready and all(len(stack) == 1 for stack in self.stacks)

    def go_on(self, stream: int, task: Task) -> None:
        self.add(stream, "sync_end", task.waits, self.number_of_team, task.number)
        if task.waits == SyncRegion.TASKGROUP:
            task.groups.pop()
        elif task.waits == SyncRegion.BARRIER_IMPLICIT_PARALLEL:
            for other, stack in enumerate(self.stacks):
                if other != stream:
                    self.add(other, "sync_end", task.waits, self.number_of_team, stack[0].number)
                    stack[0].waits = 0
                    stack[0].over = True
            task.over = True
        task.waits = 0

    def finish(self, stream: int, task: Task) -> None:
        if task.groups and task.groups[-1] is not task.outer:
            self.begin_wait(stream, task, SyncRegion.TASKGROUP)
        elif task.creator is None:
            self.begin_wait(stream, task, SyncRegion.BARRIER_IMPLICIT_PARALLEL)
        else:
            task.over, task.running = True, False
            self.stacks[stream].pop()
            back = self.stacks[stream][-1]
            self.add(stream, "task_schedule", TaskStatus.COMPLETE, back.number, task.number)


@settings(max_examples=300, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    count=st.sampled_from((10, 40, 100, 200)),
    bytes_=st.sampled_from((8, 32, 80)),
    weights=st.sampled_from(WEIGHTS),
)
@example(seed=3885350, count=200, bytes_=80, weights=WEIGHTS[1])  # mutexinoutset, the later sibling first
def test_every_byte_has_its_first_race_and_no_pair_is_ordered(
    seed: int, count: int, bytes_: int, weights: tuple[float, ...]
) -> None:
    events = Run(random.Random(seed), count, bytes_, weights).events
    if len(events) > MOST_EVENTS:
        return
    wanted = naive.races(events)
    found = found_by_module(events, frozenset(), 100)
    for earlier, later, address in found:
        assert (earlier, later) in wanted and events[later][3] <= address
    reported = {(earlier, later) for earlier, later, _ in found}
    assert has_first_races(reported, wanted)


def recursion(depth: int, wait: int) -> tuple[list[Event], int]:
    """What one thread of a team does that makes two tasks in each task and waits for them, the later one first; and how
    many tasks there are. Each task stores to bytes of its own, and its creator reads one of them behind the wait.
    """
    events: list[Event] = [
        (0, "program_start", 0, 0, 7),
        (0, "parallel_begin", 0, 1, 1),
        (0, "implicit_begin", 0, 1, 2),
    ]
    numbers = [2]

    def run(task: int, left: int) -> None:
        if left == 0:
            return
        if wait == SyncRegion.TASKGROUP:
            events.append((0, "sync_begin", wait, 1, task))
        children = []
        for _ in range(2):
            numbers[0] += 1
            children.append(numbers[0])
            events.append((0, "task_create", 0, int(TaskFlag.EXPLICIT), numbers[0]))
        if wait == SyncRegion.TASKWAIT:
            events.append((0, "sync_begin", wait, 1, task))
        for child in reversed(children):
            events.append((0, "task_schedule", TaskStatus.SWITCH, child, task))
            events.append((0, "store", 1, MEMORY + 8 * child, 2))
            run(child, left - 1)
            events.append((0, "task_schedule", TaskStatus.COMPLETE, task, child))
        events.append((0, "sync_end", wait, 1, task))
        events.extend((0, "load", 2, MEMORY + 8 * child, 1) for child in children)

    run(2, depth)
    return events, numbers[0] - 2


@pytest.mark.parametrize("wait", [SyncRegion.TASKWAIT, SyncRegion.TASKGROUP])
def test_tasks_that_are_waited_for_need_no_chains_of_their_own(monkeypatch: pytest.MonkeyPatch, wait: int) -> None:
    """There are some for each level of the recursion, not for each task; a race at its end is still found."""
    made: list[State] = []

    def kept(program: Program) -> State:
        made.append(empty_state(program))
        return made[-1]

    monkeypatch.setattr("tracekit.analyzers.races.empty_state", kept)
    events, tasks = recursion(12, int(wait))
    assert tasks == 2**13 - 2
    assert found_by_module(events, frozenset(), 1000) == []
    assert made[-1].chains.control[USED] <= 3 * 13
    # a task that nobody waits for stores where the last task did, and its creator reads that
    late = [(0, "task_create", 0, int(TaskFlag.EXPLICIT), tasks + 3), (0, "task_schedule", 7, tasks + 3, 2)]
    late += [(0, "store", 3, MEMORY + 8 * tasks, 1), (0, "task_schedule", TaskStatus.COMPLETE, 2, tasks + 3)]
    late += [(0, "load", 4, MEMORY + 8 * tasks, 1)]
    assert found_by_module([*events, *late], frozenset(), 1000) == [(3, 4, MEMORY + 8 * tasks)]
