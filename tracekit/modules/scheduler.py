"""One pass over the events of a trace for all modules: in one thread, or decoding in one and modules in others.

Every worker is given all batches, in their order, so what it computes does not depend on the number of threads.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Iterable, Iterator, Sequence

from tracekit.modules.contract import EventBatch
from tracekit.modules.runner import Runner

AHEAD = 6
"""Batches that decoding may be ahead of the slowest worker; each takes less than a megabyte."""

KEPT = AHEAD + 2
"""Batches that have to stay as they are: one more is being worked on, and one being filled."""


SAMPLE = 16
"""Batches after which it is looked anew whether threads would pay."""

WORTH = 60e-6
"""Seconds that threads have to save for each batch: handing one over takes some thirty microseconds."""


def run(batches: Iterable[EventBatch], runners: Sequence[Runner], jobs: int) -> None:
    """Feed every batch to every worker of every runner.

    With `jobs` above 1 in threads beside this one, at most that many, as soon as that pays; KEPT batches have to stay
    as they are then.
    """
    tasks = [(runner, worker) for runner in runners for worker in range(runner.workers)]
    coming = iter(batches)
    if jobs == 1 or all(runner.workers <= 1 for runner in runners):
        _feed_here(coming, tasks, jobs)
    shares = [tasks[number::jobs] for number in range(min(jobs, len(tasks)))]
    batch = next(coming, None)
    if batch is None:
        return
    pool = _Pool([_Thread(share) for share in shares])
    try:
        pool.give(batch)
        for batch in coming:
            pool.give(batch)
    finally:
        pool.end()


def _feed_here(batches: Iterator[EventBatch], tasks: Sequence[tuple[Runner, int]], jobs: int) -> None:
    """Feed batches in this thread: all with one job, else until threads would save enough."""
    while True:
        making, feeding = 0.0, [0.0] * len(tasks)
        for _ in range(SAMPLE):
            begun = time.thread_time()
            batch = next(batches, None)
            if batch is None:
                return
            made = time.thread_time()
            making += made - begun
            for number, (runner, worker) in enumerate(tasks):
                runner.feed(batch, worker)
                begun, made = made, time.thread_time()
                feeding[number] += made - begun
        longest = max([making, *(sum(feeding[number::jobs]) for number in range(jobs))])
        if jobs > 1 and making + sum(feeding) - longest > WORTH * SAMPLE:
            return


class _Thread(threading.Thread):
    """Runs some of the workers.

    Python's queue with a bound takes locks that a short batch of a cheap module costs less than; those without one are
    written in C. So room is handed back and forth, too.
    """

    def __init__(self, share: Sequence[tuple[Runner, int]]) -> None:
        super().__init__(daemon=True)
        self.share = share
        self.batches: queue.SimpleQueue[EventBatch | None] = queue.SimpleQueue()
        self.room: queue.SimpleQueue[None] = queue.SimpleQueue()
        for _ in range(AHEAD):
            self.room.put(None)
        self.error: BaseException | None = None

    def give(self, batch: EventBatch | None) -> None:
        """Hand over a batch, or None after the last one; waits while the thread is AHEAD batches behind."""
        self.room.get()
        self.batches.put(batch)

    def run(self) -> None:
        """Feed the batches until None comes."""
        while (batch := self.batches.get()) is not None:
            self.room.put(None)
            if self.error is None:
                try:
                    for runner, worker in self.share:
                        runner.feed(batch, worker)
                except BaseException as error:  # handed to the thread that decodes
                    self.error = error


class _Pool:
    """The threads of one pass."""

    def __init__(self, threads: Sequence[_Thread]) -> None:
        self.threads = threads
        try:
            for thread in threads:
                thread.start()
        except RuntimeError as error:  # it has no room for a stack
            raise MemoryError from error

    def give(self, batch: EventBatch) -> None:
        """Hand `batch` to every thread; raises what a thread has failed with."""
        for thread in self.threads:
            if thread.error is not None:
                raise thread.error
            thread.give(batch)

    def end(self) -> None:
        """Wait until all that was given is done; raises what a thread has failed with."""
        for thread in self.threads:
            thread.give(None)
        for thread in self.threads:
            thread.join()
        for thread in self.threads:
            if thread.error is not None:
                raise thread.error
