"""Work in a thread beside the caller's: compressing and writing, while the replay goes on."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

AHEAD = 1
"""Calls that may wait while one is made."""
IN_USE = AHEAD + 2
"""Parts in memory: those of calls that wait or are made, and the one that the caller fills."""


@contextmanager
def background_thread() -> Iterator[Callable[..., None]]:
    """A function that takes a function and its arguments, and calls it in the thread, one call after another.

    It waits while AHEAD calls wait. What a call raises is raised by a later hand-over, or when the block ends; by then
    all calls have been made.
    """
    with ThreadPoolExecutor(1) as thread:
        waiting: deque[Future[Any]] = deque()

        def hand_over(function: Callable[..., Any], *arguments: Any) -> None:
            if len(waiting) > AHEAD:
                waiting.popleft().result()
            waiting.append(thread.submit(function, *arguments))

        yield hand_over
        for call in waiting:
            call.result()
