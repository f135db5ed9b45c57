"""Machine code on disk, of kernels and of paths: written whole or not at all, read only if it is whole."""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
import time
from collections.abc import Callable, Sequence

from tracekit.jit.cache import KEPT_DAYS, home

DIGEST = 16


def key_of(parts: Sequence[bytes]) -> str:
    """The name of what is made of these parts."""
    digest = hashlib.blake2b(digest_size=DIGEST)
    for part in parts:
        digest.update(len(part).to_bytes(8, "little") + part)
    return digest.hexdigest()


def kept(key: str, make: Callable[[], bytes]) -> tuple[bytes, bool]:
    """The bytes that an earlier process made under this key, or those of `make`; whether they were there."""
    found = read(key)
    if found is not None:
        return found, True
    made = make()
    write(key, made)
    return made, False


def has(key: str) -> bool:
    """Whether something was written under this key."""
    return (home() / "code" / key).exists()


def read(key: str) -> bytes | None:
    """What was written under this key; None if nothing was, or not all of it is there."""
    path = home() / "code" / key
    with contextlib.suppress(OSError):
        whole = path.read_bytes()
        if hashlib.blake2b(whole[DIGEST:], digest_size=DIGEST).digest() == whole[:DIGEST]:
            os.utime(path)
            return whole[DIGEST:]
    return None


def write(key: str, contents: bytes) -> None:
    """Write it, if the folder can be written."""
    folder = home() / "code"
    with contextlib.suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=folder, delete=False) as file:
            file.write(hashlib.blake2b(contents, digest_size=DIGEST).digest() + contents)
        os.replace(file.name, folder / key)


def forget_unused() -> None:
    """Remove what nobody has read or written for as long as compiled kernels are kept."""
    oldest = time.time() - KEPT_DAYS * 86_400
    with contextlib.suppress(OSError):
        for path in (home() / "code").iterdir():
            if path.stat().st_mtime < oldest:
                path.unlink(missing_ok=True)
