"""Folders of the user's cache that are built once: under a lock, and seen only when complete.

``make -j`` starts many compilers at once on a fresh machine. The first one takes the lock and
builds in a folder of its own; the others wait; a rename makes the result visible. This module is
imported for every file that ``tracekit cc`` compiles, so what is not needed then (fcntl, shutil)
is imported where it is used.
"""

from __future__ import annotations

import os
import sys
from _blake2 import blake2b
from collections.abc import Callable, Iterable

from tracekit.formats.errors import TracekitError


def cache_folder() -> str:
    """``$XDG_CACHE_HOME/tracekit``, by default ``~/.cache/tracekit``; it need not exist yet."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    if not os.path.isabs(base):  # the XDG specification: a relative path is to be ignored
        base = os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(base, "tracekit")


def digest(parts: Iterable[bytes]) -> str:
    """A key of 16 hexadecimal digits for a sequence of byte strings."""
    state = blake2b(digest_size=8)
    for part in parts:
        state.update(len(part).to_bytes(8, "little"))
        state.update(part)
    return state.hexdigest()


def remember(name: str, text: str) -> None:
    """Leave a note in the cache, atomically; if that fails the answer is only asked for again."""
    path = os.path.join(cache_folder(), name)
    try:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        temporary = f"{path}.{os.getpid()}"
        with open(temporary, "w") as file:
            file.write(text)
        os.rename(temporary, path)
    except OSError:
        pass


def recall(name: str) -> str:
    """The note of that name, empty if there is none."""
    try:
        with open(os.path.join(cache_folder(), name)) as file:
            return file.read()
    except OSError:
        return ""


def build_once(name: str, what: str, build: Callable[[str], None]) -> str:
    """The path of the cache's folder ``name``; if it is missing, ``build(path)`` fills it first.

    ``what`` names the thing in the line that the user sees on stderr. Raises TracekitError if the
    cache cannot be written, and whatever ``build`` raises; then nothing is left behind.
    """
    folder = os.path.join(cache_folder(), name)
    if not os.path.isdir(folder):
        try:
            _build_under_lock(folder, what, build)
        except OSError as error:
            raise TracekitError(
                f"the cache {cache_folder()} cannot be written ({error.strerror}); "
                "set XDG_CACHE_HOME to a folder that can be"
            ) from None
    return folder


def _build_under_lock(folder: str, what: str, build: Callable[[str], None]) -> None:
    import fcntl
    import shutil

    os.makedirs(os.path.dirname(folder), exist_ok=True)
    with open(f"{folder}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if os.path.isdir(folder):
            return
        print(f"tracekit: building {what} (once, into {os.path.dirname(folder)})", file=sys.stderr, flush=True)
        partial = f"{folder}.partial"
        shutil.rmtree(partial, ignore_errors=True)  # of a build that was killed
        os.mkdir(partial)
        try:
            build(partial)
            os.rename(partial, folder)
        finally:
            shutil.rmtree(partial, ignore_errors=True)
