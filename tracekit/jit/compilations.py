"""What goes along with each compilation: a step of the work (``tracekit.progress``), and less looking for garbage.

Imports Numba.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from threading import Lock

from numba.core import event

from tracekit import progress

YOUNG_OBJECTS = 100_000
"""Objects after which Python looks for garbage while it compiles. Its own 700 cost an eighth of the time."""


@contextmanager
def _rare_collections() -> Iterator[None]:
    before = gc.get_threshold()
    gc.set_threshold(max(YOUNG_OBJECTS, before[0]) if before[0] else 0, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)


class _Compilations(event.Listener):
    """Notified by Numba of each compilation; nested ones, and those of other threads meanwhile, are one step."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._running = 0
        self._step = ExitStack()

    def on_start(self, event: event.Event) -> None:
        """Open the step."""
        with self._lock:
            self._running += 1
            if self._running == 1:
                self._step.enter_context(progress.step("compiling kernels (first use)"))
                self._step.enter_context(_rare_collections())

    def on_end(self, event: event.Event) -> None:
        """Close it after the last."""
        with self._lock:
            self._running -= 1
            if not self._running:
                self._step.close()


def announce() -> None:
    """Open a step for every compilation from now on; what comes from the cache is none."""
    event.register("numba:compile", _Compilations())  # type: ignore[no-untyped-call]
