"""When one pass uses threads: each worker is given all batches in their order, whoever feeds it."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from tracekit.modules import scheduler

BATCHES = 5 * scheduler.SAMPLE


class Recording:
    """A runner that notes what it is fed, and where; it works `seconds` for each batch."""

    def __init__(self, workers: int, seconds: float, fails_at: int = -1) -> None:
        self.workers = workers
        self.seconds = seconds
        self.fails_at = fails_at
        self.fed: list[list[int]] = [[] for _ in range(workers)]
        self.here = 0

    def feed(self, batch: Any, worker: int) -> None:
        if batch == self.fails_at:
            raise ValueError("cannot")
        work(self.seconds)
        self.fed[worker].append(batch)
        self.here += threading.current_thread() is threading.main_thread()


def work(seconds: float) -> None:
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


def batches(seconds: float) -> Iterator[Any]:
    for number in range(BATCHES):
        work(seconds)
        yield number


def run(runners: list[Recording], jobs: int, making: float = 0.0) -> None:
    scheduler.run(batches(making), runners, jobs)  # type: ignore[arg-type]
    for runner in runners:
        assert runner.fed == [list(range(BATCHES))] * runner.workers


def test_one_job_is_one_thread() -> None:
    runners = [Recording(1, 1e-4), Recording(1, 0)]
    run(runners, 1, 1e-4)
    assert [runner.here for runner in runners] == [BATCHES, BATCHES]


def test_threads_wait_until_they_pay() -> None:
    cheap = Recording(1, 0)
    run([cheap], 2, 1e-3)
    assert cheap.here == BATCHES
    dear = Recording(1, 1e-3)
    run([dear], 2, 1e-3)
    assert dear.here == scheduler.SAMPLE
    pair = [Recording(1, 1e-3), Recording(1, 1e-3)]
    run(pair, 2)
    assert [runner.here for runner in pair] == [scheduler.SAMPLE] * 2


def test_what_is_shared_among_workers_is_so_from_the_start() -> None:
    shared, nobody = Recording(2, 0), Recording(0, 0)
    run([shared, nobody], 2)
    assert shared.here == 0


@pytest.mark.parametrize("jobs", [1, 2])
@pytest.mark.parametrize("fails_at", [0, BATCHES - 1])
def test_what_a_worker_fails_with_is_raised(jobs: int, fails_at: int) -> None:
    with pytest.raises(ValueError, match="cannot"):
        run([Recording(1, 1e-3, fails_at)], jobs, 1e-3)


def test_there_may_be_no_batch_and_no_worker() -> None:
    scheduler.run([], [Recording(1, 0), Recording(2, 0)], 2)  # type: ignore[list-item]
    scheduler.run(batches(0), [Recording(0, 0)], 2)  # type: ignore[list-item]
