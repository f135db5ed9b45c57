"""One pass over the events of a trace for all modules: in one thread, or decoding in one and modules in others.

Every worker is given all batches, in their order, so what it computes does not depend on the number of threads.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterable, Sequence

from tracekit.modules.contract import EventBatch
from tracekit.modules.runner import Runner

AHEAD = 6
"""Batches that decoding may be ahead of the slowest worker; each takes less than a megabyte."""

KEPT = AHEAD + 2
"""Batches that have to stay as they are: one more is being worked on, and one being filled."""


def run(batches: Iterable[EventBatch], runners: Sequence[Runner], jobs: int) -> None:
    """Feed every batch to every worker of every runner.

    With `jobs` above 1 in threads beside this one, at most that many; KEPT batches have to stay as they are then.
    """
    tasks = [(runner, worker) for runner in runners for worker in range(runner.workers)]
    if jobs == 1:
        for batch in batches:
            for runner, worker in tasks:
                runner.feed(batch, worker)
        return
    shares = [tasks[number::jobs] for number in range(min(jobs, len(tasks)))]
    pool = _Pool([_Thread(share) for share in shares])
    try:
        for batch in batches:
            pool.give(batch)
    finally:
        pool.end()


class _Thread(threading.Thread):
    """Runs some of the workers."""

    def __init__(self, share: Sequence[tuple[Runner, int]]) -> None:
        super().__init__(daemon=True)
        self.share = share
        self.batches: queue.Queue[EventBatch | None] = queue.Queue(AHEAD)
        self.error: BaseException | None = None

    def run(self) -> None:
        """Feed the batches until None comes."""
        while (batch := self.batches.get()) is not None:
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
            thread.batches.put(batch)

    def end(self) -> None:
        """Wait until all that was given is done; raises what a thread has failed with."""
        for thread in self.threads:
            thread.batches.put(None)
        for thread in self.threads:
            thread.join()
        for thread in self.threads:
            if thread.error is not None:
                raise thread.error
