"""Work and span of random programs of OpenMP tasks, by recursion: that one thread runs them all orders nothing."""

from __future__ import annotations

import os
import random
import subprocess
from pathlib import Path

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import tracekit
from tests.needs import needs
from tests.programs.running import FIXTURES, TRACEKIT, compile_program
from tests.taskgraph.test_random import LOADS, STORES, program
from tracekit.formats.event_values import SyncRegion, TaskStatus
from tracekit.formats.events import CODE
from tracekit.taskgraph.collector import StepCollector
from tracekit.taskgraph.profile import TaskGraphProfile

TEAM, IMPLICIT = 2, 2
WAIT = "wait"


class Task:
    """A random task: work, children, waits for all children so far; its children are over when a group of it is."""

    def __init__(self, rng: random.Random, depth: int) -> None:
        self.number = 0
        self.group = rng.random() < 0.3
        self.parts: list[int | Task | str] = []
        for _ in range(rng.randrange(1, 6)):
            choice = rng.random()
            part = Task(rng, depth - 1) if choice < 0.45 and depth else WAIT if choice < 0.6 else rng.randrange(5)
            self.parts.append(part)

    def work(self) -> int:
        return sum(
            part if isinstance(part, int) else part.work() if isinstance(part, Task) else 0 for part in self.parts
        )

    def times(self, begin: int) -> tuple[int, int]:
        """When the task is over, and when the last below it is."""
        now, children, latest = begin, begin, begin
        for part in self.parts:
            if isinstance(part, int):
                now += part
            elif isinstance(part, Task):
                over, last = part.times(now)
                children, latest = max(children, over), max(latest, last)
            else:
                now = max(now, children)
        if self.group:
            now = max(now, latest)
        return now, max(now, latest)


class Run:
    """One thread that runs a task's region: children when they are waited for, or at the end, in any order."""

    def __init__(self, rng: random.Random, root: Task) -> None:
        self.rng = rng
        self.events: list[tuple[str, list[int], int]] = []
        self.next = IMPLICIT + 1
        self.waiting: list[tuple[Task, Task]] = []  # parent, task
        root.number = IMPLICIT
        self.add("program_start", 1)
        self.add("parallel_begin", TEAM, 1)
        self.add("implicit_begin", 0, TEAM, IMPLICIT)
        self.run(root)
        self.add("sync_begin", int(SyncRegion.BARRIER_IMPLICIT_PARALLEL), TEAM, IMPLICIT)
        while self.waiting:
            self.start(root, self.waiting[self.rng.randrange(len(self.waiting))])
        self.add("sync_end", int(SyncRegion.BARRIER_IMPLICIT_PARALLEL), 0, IMPLICIT)
        self.add("implicit_end", IMPLICIT)
        self.add("parallel_end", TEAM)

    def add(self, name: str, *words: int) -> None:
        self.events.append((name, [len(self.events) + 1, *words], 0))

    def run(self, task: Task) -> None:
        if task.group:
            self.add("sync_begin", int(SyncRegion.TASKGROUP), TEAM, task.number)
        for part in task.parts:
            if isinstance(part, int):
                name, words, work = self.events[-1]
                self.events[-1] = name, words, work + part
            elif isinstance(part, Task):
                part.number = self.next
                self.next += 1
                self.add("task_create", 4, part.number)
                self.waiting.append((task, part))
            else:
                self.add("sync_begin", int(SyncRegion.TASKWAIT), TEAM, task.number)
                self.run_all(task)
                self.add("sync_end", int(SyncRegion.TASKWAIT), TEAM, task.number)
        if task.group:
            self.run_all(task)
            self.add("sync_end", int(SyncRegion.TASKGROUP), TEAM, task.number)

    def run_all(self, task: Task) -> None:
        """Run what waits for a thread below a task, and by chance others, too (a thread may take any)."""
        first = {id(part) for part in self.all_below(task)}
        while True:
            ready = [pair for pair in self.waiting if id(pair[1]) in first]
            if not ready:
                return
            self.start(task, self.rng.choice(ready if self.rng.random() < 0.8 else self.waiting))

    def all_below(self, task: Task) -> list[Task]:
        children = [part for part in task.parts if isinstance(part, Task)]
        return children + [each for child in children for each in self.all_below(child)]

    def start(self, within: Task, pair: tuple[Task, Task]) -> None:
        self.waiting.remove(pair)
        self.add("task_schedule", int(TaskStatus.SWITCH), pair[1].number, within.number)
        self.run(pair[1])
        self.add("task_schedule", int(TaskStatus.COMPLETE), within.number, pair[1].number)


@settings(max_examples=150, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_work_and_span_of_tasks_are_those_of_the_recursion(seed: int) -> None:
    rng = random.Random(seed)
    root = Task(rng, 4)
    made, path = program()
    ids: list[int] = []
    words: list[int] = []
    for name, given_words, work in Run(rng, root).events:
        ids += [CODE[name], *[path] * work]
        words += [*given_words, *[8] * ((LOADS + STORES) * work)]
    collector = StepCollector(made, locks=True)
    collector.add(0, np.array(ids, np.uint32), np.array(words, np.uint64))
    profile = TaskGraphProfile(made, collector, "blocks")
    assert int(profile.weights.sum()) == root.work()
    assert profile.span == root.times(0)[1]


@needs("libomp")
def test_span_of_tasks_does_not_depend_on_threads(tmp_path: Path) -> None:
    flags = ["-O1", "-g", "-fopenmp"]
    app = compile_program([FIXTURES / "task_tree.c"], tmp_path / "app", flags, instrumented=True)
    found = []
    for threads in ("2", "4", "4"):
        trace = tmp_path / f"{len(found)}.zst"
        environment = {**os.environ, "OMP_NUM_THREADS": threads}
        command = [*TRACEKIT, "record", "-o", trace, "--", app, "9"]
        subprocess.run(command, env=environment, check=True, capture_output=True, timeout=120)
        result = tracekit.analyze(trace, "taskgraph").result
        (work,) = [row["work"] for row in result["functions"] if row["function"]["function"] == "fib"]
        found.append((work, result["summary"]["span"]))
        contexts = [row["group"][name] for row in result["groups"] for name in ("begins", "created")]
        paths = [context["path"] for context in contexts if context is not None]
        # Where a thread waits in one task and runs another one, the latter's contexts begin with it.
        assert not any(step.startswith(".omp") for path in paths for step in path[1:])
        assert len(result["groups"]) < 80
    assert found[0] == found[1] == found[2]
    assert found[0][0] > 5 * found[0][1] / 2
