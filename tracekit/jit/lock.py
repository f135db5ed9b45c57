"""Processes that need the same kernel at once compile it once: the first does, the others wait and load its code."""

from __future__ import annotations

import fcntl
import hashlib
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager

from tracekit.jit.cache import home

PATIENCE = 300.0
"""Seconds after which a process compiles for itself: the one that has the lock may have been stopped."""
PAUSE = 0.05
"""Seconds between two looks."""


@contextmanager
def one_process(*key: str) -> Iterator[None]:
    """Hold what at most one process and thread holds at a time, for each `key`; a process that ends lets go of it.

    Nobody waits where the cache's folder cannot be written, for nothing would be found there afterwards, nor longer
    than PATIENCE.
    """
    name = hashlib.blake2b("\0".join(key).encode(), digest_size=8).hexdigest()
    folder = home() / "locks"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        file = os.open(folder / name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    except OSError:
        yield
        return
    try:
        _wait_for(file)
        yield
    finally:
        os.close(file)


def _wait_for(file: int) -> None:
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(PAUSE)
        except OSError:  # a file system without locks
            return
        else:
            return
