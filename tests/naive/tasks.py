"""Happens-before of OpenMP's logical tasks with a vector clock for every access, and all pairs of accesses.

An event is as in tests/naive/races.py; what each means is formats/SPEC.md, "Logical tasks". Every task has an element
of its own in vector clocks, also one that its creator waits for. Iterations of a loop that OpenMP shares out are beside
one another, and so is a `single` region beside all that its thread did before, unless a lock has ordered them since.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from tests.naive.races import Access, Clock, Event, join

BARRIERS = (1, 2, 3, 4, 8, 9, 10)
TASKWAIT, TASKGROUP = 5, 6
COMPLETE, CANCEL, TASKWAIT_COMPLETE = 1, 3, 8
UNDEFERRED, WAITS = 0x0800_0000, 0x10
IN, MUTEXINOUTSET, INOUTSET, ALL_MEMORY = 1, 4, 7, 34
SINGLE_EXECUTOR = 3


class Part(NamedTuple):
    """Which part of a shared loop an access belongs to, as in `Task`."""

    loop: tuple[int, int, int] | None
    single: int  # the number of the `single` region that it lies in, else 0
    learnt: int


@dataclass
class Task:
    number: int
    clock: Clock
    creator: Task | None = None
    team: Team | None = None
    undeferred: bool = False
    started: bool = False
    done: Clock | None = None  # when it is over
    children: list[Task] = field(default_factory=list)
    groups: list[list[Task]] = field(default_factory=list)  # the taskgroups that it is in, the innermost last
    depends: list[tuple[int, int]] = field(default_factory=list)
    rounds: int = 0  # barriers that it has left
    loop: tuple[int, int, int] | None = None  # the number of the shared loop in this run, its row, the iteration
    single: int = 0
    drew: bool = False  # it took a lock, or counted, outside of these: it may have a number of its own
    learnt: int = 0  # up to which time what it did itself is known to come before, by way of others


@dataclass
class Team:
    creator: Task | None
    clock: Clock
    implicit: list[Task] = field(default_factory=list)
    arrivals: defaultdict[int, Clock] = field(default_factory=lambda: defaultdict(dict))  # by the barrier's number
    reduction: Clock = field(default_factory=dict)


class Tasks:
    """What streams run, and what is known of it."""

    def __init__(self, telling: Collection[int] = (), counting: Collection[int] = ()) -> None:
        self.telling, self.counting = telling, counting
        self.now: dict[int, list[Task]] = {}  # the implicit tasks that a stream is in, in place of each what it runs
        self.implicit: dict[int, list[Task]] = {}
        self.known: dict[int, Task] = {}
        self.teams: dict[int, Team] = {}
        self.mutexes: defaultdict[int, Clock] = defaultdict(dict)
        self.accesses: list[Access] = []
        self.parts: list[Part] = []  # of each access
        self.know_their_number: set[int] = set()  # streams that know which one of their team they are
        self.loops = self.singles = 0
        self.made = 0

    def new(self, number: int, clock: Clock) -> Task:
        self.made += 1
        task = Task(self.made, {**clock, self.made: 1})
        self.known[number] = task
        return task

    def tick(self, task: Task) -> None:
        task.clock[task.number] += 1

    def event(self, place: int, event: Event) -> None:
        stream, name, subject, address, size = event
        if name in ("load", "store"):
            task = self.now[stream][-1]
            lives = dict.fromkeys(range(address, address + size), 0)
            time = task.clock[task.number]
            self.accesses.append(Access(place, task.number, name == "store", False, lives, time, dict(task.clock)))
            if place in self.telling:
                self.know_their_number.add(stream)
                task.loop, task.single = None, 0
            if place in self.counting:
                self.draw(task)
            self.parts.append(Part(task.loop, task.single, task.learnt))
        elif stream in self.now or name in ("program_start", "implicit_begin"):
            getattr(self, name, self.nothing)(stream, subject, address, size)

    def nothing(self, *_: int) -> None:
        """An event that orders nothing."""

    def program_start(self, stream: int, *_: int) -> None:
        self.now[stream] = [self.new(-1, {})]

    def parallel_begin(self, stream: int, _: int, team: int, __: int) -> None:
        task = self.now[stream][-1]
        self.teams[team] = Team(task, dict(task.clock))
        self.tick(task)

    def parallel_end(self, stream: int, _: int, number: int, __: int) -> None:
        team = self.teams[number]
        assert team.creator is not None
        for task in team.implicit:
            join(team.creator.clock, task.clock)
        for clock in team.arrivals.values():
            join(team.creator.clock, clock)
        self.tick(team.creator)

    def implicit_begin(self, stream: int, index: int, number: int, task_number: int) -> None:
        team = self.teams[number]
        task = self.new(task_number, team.clock)
        task.team, task.started = team, True
        assert team.creator is not None
        task.groups = list(team.creator.groups) if index == 0 else []
        team.implicit.append(task)
        self.now.setdefault(stream, []).append(task)
        self.implicit.setdefault(stream, []).append(task)

    def implicit_end(self, stream: int, *_: int) -> None:
        self.now[stream].pop()
        self.implicit[stream].pop()

    def task_create(self, stream: int, _: int, flags: int, number: int) -> None:
        creator = self.now[stream][-1]
        task = self.new(number, creator.clock)
        task.creator, task.team, task.undeferred = creator, creator.team, bool(flags & UNDEFERRED)
        task.groups = list(creator.groups)
        if not flags & WAITS:
            creator.children.append(task)
            for group in task.groups:
                group.append(task)
        else:
            creator.children.append(task)  # for those that depend on what it waits for
        self.tick(creator)

    def task_dependence(self, _: int, kind: int, address: int, number: int) -> None:
        self.known[number].depends.append((kind, address))

    def meet_siblings(self, task: Task, clock: Clock) -> None:
        """What earlier siblings did, if the task depends on them."""
        assert task.creator is not None
        for other in task.creator.children[: task.creator.children.index(task)]:
            if other.done is None:
                continue
            for kind, address in task.depends:
                for kind_before, address_before in other.depends:
                    everything = kind >= ALL_MEMORY or kind_before >= ALL_MEMORY
                    together = kind == kind_before and kind in (IN, INOUTSET)
                    if everything or (address == address_before and not together):
                        join(clock, other.done)
        # those of one mutexinoutset exclude one another, in the order in which they ran
        for other in task.creator.children:
            if other.done is not None and set(other.depends) & set(task.depends) & {
                (MUTEXINOUTSET, address) for _, address in task.depends
            }:
                join(clock, other.done)

    def task_schedule(self, stream: int, status: int, following: int, number: int) -> None:
        task = self.known[number]
        if status == TASKWAIT_COMPLETE:
            running = self.now[stream][-1]
            self.meet_siblings(task, running.clock)
            task.done = dict(running.clock)
            self.tick(running)
            return
        if status in (COMPLETE, CANCEL):
            task.done = dict(task.clock)
            assert task.creator is not None and task.team is not None
            if task.undeferred:
                join(task.creator.clock, task.clock)
                self.tick(task.creator)
            else:
                join(task.team.arrivals[self.implicit[stream][-1].rounds], task.clock)
        after = self.known[following]
        if not after.started:
            after.started = True
            if after.undeferred:
                assert after.creator is not None
                join(after.clock, after.creator.clock)
            self.meet_siblings(after, after.clock)
        self.now[stream][-1] = after

    def sync_begin(self, _: int, kind: int, __: int, number: int) -> None:
        task = self.known[number]
        if kind == TASKGROUP:
            task.groups.append([])
        elif kind in BARRIERS:
            assert task.team is not None
            join(task.team.arrivals[task.rounds], task.clock)
            self.tick(task)

    def sync_end(self, _: int, kind: int, __: int, number: int) -> None:
        task = self.known[number]
        if kind == TASKWAIT:
            waited = task.children
        elif kind == TASKGROUP:
            waited = task.groups.pop()
        else:
            assert task.team is not None
            for rounds in range(task.rounds + 1):
                self.learn(task, task.team.arrivals[rounds])
            task.rounds += 1
            return
        for child in waited:
            if child.done is not None:
                join(task.clock, child.done)

    def mutex_acquired(self, stream: int, _: int, address: int, __: int) -> None:
        self.learn(self.now[stream][-1], self.mutexes[address])
        self.draw(self.now[stream][-1])

    def draw(self, task: Task) -> None:
        task.drew |= task.team is not None and not task.loop and not task.single

    def mutex_released(self, stream: int, _: int, address: int, __: int) -> None:
        task = self.now[stream][-1]
        join(self.mutexes[address], task.clock)
        self.tick(task)

    def learn(self, task: Task, clock: Clock) -> None:
        task.learnt = max(task.learnt, clock.get(task.number, 0))
        join(task.clock, clock)

    def loop_invocation(self, stream: int, loop: int, *_: int) -> None:
        task = self.now[stream][-1]
        if task.team is not None and not self.has_own(task, stream) and not task.loop and not task.single:
            self.loops += 1
            self.tick(task)
            task.loop = (self.loops, loop, 0)

    def loop_iteration(self, stream: int, loop: int, *_: int) -> None:
        task = self.now[stream][-1]
        if task.loop and task.loop[1] == loop:
            self.tick(task)
            task.loop = (task.loop[0], loop, task.loop[2] + 1)

    def loop_exit(self, stream: int, loop: int, *_: int) -> None:
        task = self.now[stream][-1]
        if task.loop and task.loop[1] == loop:
            self.tick(task)
            task.loop = None

    def work_begin(self, stream: int, kind: int, *_: int) -> None:
        task = self.now[stream][-1]
        is_shared = task.team is not None and not self.has_own(task, stream) and not task.loop and not task.single
        if kind == SINGLE_EXECUTOR and is_shared:
            self.singles += 1
            self.tick(task)
            task.single = self.singles

    def has_own(self, task: Task, stream: int) -> bool:
        return task.drew or stream in self.know_their_number

    def work_end(self, stream: int, *_: int) -> None:
        self.now[stream][-1].single = 0


def are_beside(earlier: Access, part: Part, later_part: Part) -> bool:
    """Whether accesses of one task are parts that any thread might have run, and no lock has ordered them."""
    if earlier.time <= later_part.learnt:
        return False
    if later_part.loop is None:
        return later_part.single != 0 and part.single != later_part.single
    return part.loop is not None and part.loop[0] == later_part.loop[0] and part.loop[2] != later_part.loop[2]


def races(
    events: Sequence[Event], telling: Collection[int] = (), counting: Collection[int] = ()
) -> dict[tuple[int, int], set[int]]:
    """Pairs of places of events that race -> the bytes on which they do.

    `telling`: places of accesses by which a stream may know which one of its team it is; `counting`: of those by which
    a task may draw a number.
    """
    tasks = Tasks(telling, counting)
    for place, event in enumerate(events):
        tasks.event(place, event)
    found = {}
    for later_place, later in enumerate(tasks.accesses):
        for place, earlier in enumerate(tasks.accesses[:later_place]):
            common = earlier.bytes.keys() & later.bytes.keys()
            ordered = earlier.time <= later.clock.get(earlier.stream, 0)
            if earlier.stream == later.stream and are_beside(earlier, tasks.parts[place], tasks.parts[later_place]):
                ordered = False
            if common and (earlier.store or later.store) and not ordered:
                found[earlier.number, later.number] = set(common)
    return found
