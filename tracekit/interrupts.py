"""Ctrl-C that no library swallows: code in C may drop the KeyboardInterrupt that is raised while it calls Python."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

_Each = TypeVar("_Each")

_heard = threading.Event()
"""Ctrl-C has come since the outermost block of :func:`remembered` began."""


@contextmanager
def remembered() -> Iterator[None]:
    """Ctrl-C raises KeyboardInterrupt in the block as ever, and if that goes nowhere, again when the block ends.

    Where somebody else handles or ignores Ctrl-C, and beside the main thread, nothing changes.
    """
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return
    _heard.clear()
    signal.signal(signal.SIGINT, _hear)
    try:
        yield
        check()
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        _heard.clear()


def check() -> None:
    """Raise KeyboardInterrupt if Ctrl-C has come: before what cannot be undone, and now and then in long work."""
    if _heard.is_set():
        raise KeyboardInterrupt


def checked(parts: Iterable[_Each]) -> Iterator[_Each]:
    """The same parts, with a :func:`check` before each."""
    for part in parts:
        check()
        yield part


def _hear(number: int, frame: Any) -> None:
    _heard.set()
    signal.default_int_handler(number, frame)
