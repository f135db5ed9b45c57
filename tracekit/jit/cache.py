"""Where compiled kernels are kept: a folder for each file with kernels, named after all that its code depends on.

Numba finds a kernel's compiled code by the path and the state of the kernel's own file, and does not see that a kernel
or a constant it uses, from another file, has changed. So the folder's name holds a hash over the file and every file of
tracekit that it imports, directly or not, and over the versions of what compiles them. A change then recompiles what it
can have changed, and nothing else.

A file of tracekit counts by its place within the package: a checkout, virtual environments and a tracekit that was
installed again share what they compile. Any other file counts by its path, for what it imports is not known.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import importlib.util
import os
import re
import shutil
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path

KEPT_DAYS = 30
"""Compiled kernels that nobody used for so long are removed."""

_IMPORT = re.compile(rb"^( *)from (tracekit[\w.]*) import (\([^)]*\)|[^\n]*)", re.MULTILINE)
_EXTENDS_NUMBA = re.compile(rb"^(from|import) numba\b|\bLate\(\"numba", re.MULTILINE)
"""A file that imports Numba is imported late, inside a function; compiled code depends on it all the same."""


_CHECKS = os.environ.get("TRACEKIT_CHECK_BOUNDS", "")
CHECKS_BOUNDS = _CHECKS not in ("", "0")
"""Whether callbacks of modules check indices: slower, for authors who look for a mistake."""
CHECKS_ALL_BOUNDS = _CHECKS == "all"
"""Whether tracekit's own kernels and compiled paths do so, too: much slower, for those who work on tracekit."""


def home() -> Path:
    """The folder that all others are in."""
    if numbas := os.environ.get("NUMBA_CACHE_DIR"):
        return Path(numbas)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tracekit" / "kernels"


@cache
def folder_for(file: Path) -> Path:
    """The folder for the kernels of a source file, made if it can be; those long unused are removed."""
    has_callbacks = home() in file.parents
    checked = "-checked" if CHECKS_ALL_BOUNDS or (CHECKS_BOUNDS and has_callbacks) else ""
    folder = home() / f"{file.stem}-{_with_versions(digest(file))}{checked}"
    try:
        if not folder.exists():
            oldest = time.time() - KEPT_DAYS * 86_400
            for other in home().glob("*"):
                if other.stat().st_mtime < oldest:
                    shutil.rmtree(other, ignore_errors=True)
        folder.mkdir(parents=True, exist_ok=True)
        os.utime(folder)
    except OSError:
        pass  # what is in it is used all the same, and the rest compiled for this process alone
    return folder


@cache
def versions() -> tuple[str, ...]:
    """Those of what takes part in compiling: Numba writes down its own alone. It is not imported for this."""
    return tuple(importlib.metadata.version(package) for package in ("numba", "llvmlite", "numpy"))


def _with_versions(digest: str) -> str:
    """A hash (hex) over `digest` and the versions."""
    return hashlib.blake2b("\0".join((digest, *versions())).encode(), digest_size=8).hexdigest()


def name_of(file: Path) -> str:
    """What tells a file from others: its place within tracekit, wherever that is installed, or its path."""
    root = _package("tracekit").parent
    return str(file.relative_to(root) if file.is_relative_to(root / "tracekit") else file)


@cache
def digest(file: Path) -> str:
    """A hash (hex) over `file` and every file of tracekit that it imports: their names and contents."""
    sources: dict[Path, bytes] = {}
    waiting = [file]
    while waiting:
        path = waiting.pop()
        if path not in sources:
            sources[path], imported = _source(path)
            waiting += imported
    combined = hashlib.blake2b(digest_size=8)
    for name, text in sorted((name_of(path), text) for path, text in sources.items()):
        combined.update(name.encode() + b"\0" + hashlib.blake2b(text).digest())
    return combined.hexdigest()


def stamp(file: Path) -> str:
    """A hash (hex) over a file as it is now; :func:`digest` is of what it was when this process first looked."""
    return hashlib.blake2b(file.read_bytes(), digest_size=16).hexdigest()


@cache
def _source(path: Path) -> tuple[bytes, tuple[Path, ...]]:
    """The contents of a file, and the files of tracekit that it imports."""
    text = path.read_bytes()
    return text, tuple(_imported(text))


def _imported(text: bytes) -> Iterator[Path]:
    for is_late, module, names in _IMPORT.findall(text):
        for name in ("", *(f".{name}" for name in re.findall(r"\w+", names.decode()))):
            for path in _file(module.decode() + name):
                if not is_late or _EXTENDS_NUMBA.search(path.read_bytes()):
                    yield path


@cache
def _file(module: str) -> tuple[Path, ...]:
    """The source file of a module; none if there is no module of that name."""
    top, *rest = module.split(".")
    path = _package(top).joinpath(*rest)
    return tuple(file for file in (path.with_suffix(".py"), path / "__init__.py") if file.is_file())


@cache
def _package(name: str) -> Path:
    specification = importlib.util.find_spec(name)
    assert specification is not None and specification.origin is not None
    return Path(specification.origin).parent
