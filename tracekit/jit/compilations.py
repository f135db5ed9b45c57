"""What goes along with each compilation: a step of the work (``tracekit.progress``), and less looking for garbage."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from threading import Lock

from tracekit import progress

YOUNG_OBJECTS = 100_000
"""Objects after which Python looks for garbage while it compiles. Its own 700 cost an eighth of the time."""


class _Compilations:
    """All that are under way: nested ones, and those of other threads and processes meanwhile, are one step."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._running = 0
        self._step = ExitStack()

    def begin(self) -> None:
        """Open the step with the first."""
        with self._lock:
            self._running += 1
            if self._running == 1:
                self._step.enter_context(progress.step("compiling kernels (first use)"))
                self._step.enter_context(_rare_collections())

    def end(self) -> None:
        """Close it after the last."""
        with self._lock:
            self._running -= 1
            if not self._running:
                self._step.close()


_compilations = _Compilations()


@contextmanager
def compiling() -> Iterator[None]:
    """While the block runs, something is compiled."""
    _compilations.begin()
    try:
        yield
    finally:
        _compilations.end()


@contextmanager
def _rare_collections() -> Iterator[None]:
    before = gc.get_threshold()
    gc.set_threshold(max(YOUNG_OBJECTS, before[0]) if before[0] else 0, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)


def announce() -> None:
    """Open a step for every compilation of Numba's in this process from now on; what comes from the cache is none."""
    from numba.core import event

    class Listener(event.Listener):
        """Notified by Numba."""

        def on_start(self, event: event.Event) -> None:
            """See Numba's."""
            _compilations.begin()

        def on_end(self, event: event.Event) -> None:
            """See Numba's."""
            _compilations.end()

    event.register("numba:compile", Listener())  # type: ignore[no-untyped-call]
