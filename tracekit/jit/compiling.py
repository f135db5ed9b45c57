"""Says that kernels are being compiled, as a step of the work (``tracekit.progress``); imports Numba."""

from __future__ import annotations

from contextlib import ExitStack
from threading import Lock

from numba.core import event

from tracekit import progress


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

    def on_end(self, event: event.Event) -> None:
        """Close it after the last."""
        with self._lock:
            self._running -= 1
            if not self._running:
                self._step.close()


def announce() -> None:
    """Open a step for every compilation from now on; what comes from the cache is none."""
    event.register("numba:compile", _Compilations())  # type: ignore[no-untyped-call]
