"""How large the tables of an analysis may be where address space is limited, as it seldom is.

A table has to be reserved whole, for kernels cannot move it. So where there is a limit (`ulimit -v`, or a system that
does not overcommit) the tables of all workers of a pass share what it leaves: each is reserved with so many *parts*,
all parts are counted, and have the same size.
"""

from __future__ import annotations

import ctypes
import os
import resource
import time
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, TypeVar

from tracekit.formats.errors import TracekitError

T = TypeVar("T")

STATM = Path("/proc/self/statm")
MEMINFO = Path("/proc/meminfo")
OVERCOMMIT = Path("/proc/sys/vm/overcommit_memory")

LIMITS = (("v", resource.RLIMIT_AS, 0), ("d", resource.RLIMIT_DATA, 5))
"""Option of ulimit, limit, and the field of STATM (pages) that is held against it."""

NEVER = 2
"""The overcommit_memory with which all that is reserved counts as if it were used."""

APART = 96 << 20
"""Bytes that tables leave at least: for threads' stacks, compiling, and making the profile."""

M_ARENA_MAX = -8
"""glibc's name for how many arenas malloc makes; each takes 64 MiB of address space, most of them unused."""

ALONE = 64
"""So many parts there are, where nobody counted them."""


ADDRESS_SPACE = "This process's address space is limited: lift that (`ulimit -{option} unlimited`)"


class Limit(NamedTuple):
    """A limit of address space."""

    left: int
    """Bytes that tables may take: the rest is for threads, compiling, and making the profile."""
    advice: str
    """What a user can do."""


@dataclass
class Division:
    """How the tables of a pass share what a limit leaves."""

    parts: int = 0
    """Of all tables."""
    size: int = 0
    """Bytes of a part; 0 while parts are counted."""


_division: ContextVar[Division | None] = ContextVar("_division", default=None)


def memory() -> int:
    """Bytes of the machine's memory: what no reservation needs to pass."""
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def limit() -> Limit | None:
    """The strictest limit of address space; None where there is none."""
    return min(_limits(), default=None)


def _limits() -> Iterator[Limit]:
    for option, which, field in LIMITS:
        most = resource.getrlimit(which)[0]
        if most != resource.RLIM_INFINITY and STATM.exists():  # elsewhere (macOS) the system ignores it
            left = most - int(STATM.read_text().split()[field]) * resource.getpagesize()
            yield Limit(
                max(min(left * 3 // 4, left - APART), 0),
                ADDRESS_SPACE.format(option=option),
            )
    if not overcommits():
        kib = _kibibytes()
        left = (kib["CommitLimit"] - kib["Committed_AS"]) << 10
        yield Limit(max(left, 0) // 2, "The system does not overcommit: let it (`sysctl vm.overcommit_memory=0`)")


def overcommits() -> bool:
    """Whether several processes may reserve more address space, all together, than there is memory."""
    return not (OVERCOMMIT.exists() and int(OVERCOMMIT.read_text()) == NEVER)


def advice() -> str:
    """Behind a sentence that says that memory ran out: what to do about a limit, if there is one."""
    try:
        bound = limit()
        text = bound.advice if bound else ""
    except MemoryError:  # not even to look
        text = ADDRESS_SPACE.format(option="v")
    return f" {text} or take fewer jobs (`-j 1`); only what is touched takes memory." if text else ""


class OutOfMemoryError(TracekitError):
    """Next to no memory is left: where another analysis takes some, this one may do without it."""


GROUPS = (
    ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current", "/sys/fs/cgroup/memory.stat"),
    (
        "/sys/fs/cgroup/memory/memory.limit_in_bytes",
        "/sys/fs/cgroup/memory/memory.usage_in_bytes",
        "/sys/fs/cgroup/memory/memory.stat",
    ),
)
"""Where a container says how much memory it may use, how much it uses, and for what."""
INTERVAL = 0.1
"""Seconds between two looks at how much memory is left: an analysis touches less than LEAST_LEFT in it."""
LEAST_LEFT = 256 << 20
"""With fewer bytes left an analysis stops, before the system ends it or another process without a word."""

_next_look = 0.0


def require_memory() -> None:
    """Raise OutOfMemoryError if next to no memory is left; it looks every INTERVAL seconds."""
    global _next_look
    now = time.monotonic()
    if now < _next_look:
        return
    _next_look = now + INTERVAL
    left = unused()
    if left is not None and left < min(LEAST_LEFT, memory() // 32):
        raise OutOfMemoryError(
            f"Ran out of memory: {left >> 20:,} MiB of it are left. Analyse a part of the run (`--function`, `--from`, "
            "`--to`), fewer modules at once, or use a machine or container with more memory."
        )


def unused() -> int | None:
    """Bytes of memory that this process can still get; None where the system does not tell."""
    found = [] if (available := _kibibytes().get("MemAvailable")) is None else [available << 10]
    for most, used, about in GROUPS:
        try:
            limit = int(Path(most).read_text())  # or "max"
            files = [line for line in Path(about).read_text().splitlines() if line.startswith("inactive_file ")]
            found.append(limit - int(Path(used).read_text()) + sum(int(line.split()[1]) for line in files))
        except (OSError, ValueError):
            pass
    return min(found, default=None)


def _kibibytes() -> dict[str, int]:
    """What MEMINFO says; nothing where there is none."""
    try:
        lines = MEMINFO.read_text().splitlines()
    except OSError:
        return {}
    return {name: int(rest.split()[0]) for name, rest in (line.split(":") for line in lines)}


def share(parts: int) -> int | None:
    """Bytes that a table of so many parts may have; None where there is no limit."""
    division = _division.get()
    if division is None:
        bound = limit()
        return bound and bound.left * parts // ALONE
    division.parts += parts
    return division.size * parts


def most(rows: int, row: int, beside: int = 0, parts: int = 1) -> int:
    """Of `rows` rows of `row` bytes as many as a table of so many parts may have: never more than the memory holds.

    `beside`: bytes of other tables for each row, which count where address space is limited.
    """
    limited = share(parts)
    return min(rows, memory() // row, rows if limited is None else limited // (row + beside))


def divided(make: Callable[[], T]) -> T:
    """What `make` returns, which reserves all tables of a pass; it is called twice where they have to be counted."""
    if limit() is None:
        return make()
    _share_malloc()
    division = Division()
    token = _division.set(division)
    try:
        make()
        bound = limit()
        division.size = bound.left // max(division.parts, 1) if bound else 0
        return make()
    finally:
        _division.reset(token)


def _share_malloc() -> None:
    """Let all threads that are still to be started use one arena of malloc, where the C library is glibc."""
    set_option = getattr(ctypes.CDLL(None), "mallopt", None)
    if set_option is not None:
        set_option(M_ARENA_MAX, 1)
