"""Levels of caches as an option says them, and an empty hierarchy of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from tracekit import sizes
from tracekit.caches.kernels.fields import COUNTS, RULES
from tracekit.caches.kernels.hierarchy import Hierarchy
from tracekit.caches.kernels.ways import EMPTY

POLICIES = ("lru", "plru", "srrip", "random")
"""By the number that kernels know them by."""

PREFETCHERS = ("none", "next-line", "stride")
"""By the number that kernels know them by."""

MOST_CORES = 256

MOST_LEVELS, MOST_WAYS, MOST_BYTES, MOST_ENTRIES = 8, 1024, 1 << 32, 1 << 20


@dataclass(frozen=True)
class Level:
    """A cache: `size` and `line` in bytes."""

    size: int
    ways: int
    line: int

    @property
    def sets(self) -> int:
        """How many sets it has."""
        return self.size // (self.ways * self.line)


def parsed(text: str) -> list[Level]:
    """The levels of ``32K:8:64,1M:16:64``: size, ways and line of each. Raises ValueError with a sentence."""
    levels = _each(text, _level)
    if len({level.line for level in levels}) > 1:
        raise ValueError("all levels have lines of the same size.")
    return levels


def parsed_entries(text: str, page: int) -> list[Level]:
    """The levels of ``64:4,1536:12``: entries and ways of each; `page` in bytes. Raises ValueError with a sentence."""
    _check_line(page, "a page")
    return _each(text, lambda part: _level_of_entries(part, page))


def check_rules(levels: Sequence[Level], policy: str, seed: int) -> None:
    """Raise ValueError, with a sentence, if the levels cannot have this policy or the generator this seed."""
    if policy == "plru" and any(level.ways & (level.ways - 1) or level.ways > 32 for level in levels):
        raise ValueError("with tree-PLRU the ways are a power of two of at most 32.")
    if not 0 <= seed < 1 << 63:
        raise ValueError(f"a seed is 0 to 2**63 - 1, not {seed}.")


def _each(text: str, level: Callable[[str], Level]) -> list[Level]:
    levels = [level(part.strip()) for part in text.split(",")]
    if len(levels) > MOST_LEVELS:
        raise ValueError(f"levels are at most {MOST_LEVELS}, not {len(levels)}.")
    return levels


def _level(text: str) -> Level:
    parts = text.split(":")
    if len(parts) != 3 or not all(part.isascii() and part.isdigit() for part in parts[1:]):
        raise ValueError(f"a level is SIZE:WAYS:LINE, as 32K:8:64, not {text!r}.")
    level = Level(sizes.parsed(parts[0]), int(parts[1]), int(parts[2]))
    _check_line(level.line, "a line")
    if level.size > MOST_BYTES:
        raise ValueError(f"a level has at most {sizes.shown(MOST_BYTES)}, not {sizes.shown(level.size)}.")
    _check_sets(level, text, "size / (ways * line)")
    return level


def _level_of_entries(text: str, page: int) -> Level:
    parts = text.split(":")
    if len(parts) != 2 or not all(part.isascii() and part.isdigit() for part in parts):
        raise ValueError(f"a level is ENTRIES:WAYS, as 64:4, not {text!r}.")
    entries, ways = map(int, parts)
    if entries > MOST_ENTRIES:
        raise ValueError(f"a level has at most {MOST_ENTRIES:,} entries, not {entries:,}.")
    level = Level(entries * page, ways, page)
    _check_sets(level, text, "entries / ways")
    return level


def _check_line(size: int, name: str) -> None:
    if size < 1 or size & (size - 1) or size > 1 << 30:
        raise ValueError(f"{name} is a power of two of at most 2**30, not {size}.")


def _check_sets(level: Level, text: str, quotient: str) -> None:
    if not 1 <= level.ways <= MOST_WAYS:
        raise ValueError(f"ways are 1 to {MOST_WAYS}, not {level.ways}.")
    if level.size % (level.ways * level.line) or level.sets & (level.sets - 1) or not level.sets:
        raise ValueError(
            f"the sets of a level, {quotient}, are a power of two: {text!r} has "
            f"{level.size / (level.ways * level.line):.6g}."
        )


def check_cores(levels: Sequence[Level], private: int, cores: int) -> None:
    """Raise ValueError, with a sentence, unless so many cores can have the first `private` levels each for itself."""
    if not 0 <= private <= len(levels):
        raise ValueError(f"private levels are 0 to {len(levels)}, as many as there are, not {private}.")
    if not 1 <= cores <= MOST_CORES:
        raise ValueError(f"cores are 1 to {MOST_CORES}, not {cores}.")
    if cores * sum(level.size // level.line for level in levels[:private]) > MOST_BYTES >> 6:
        raise ValueError(f"{cores} cores have more private lines than {MOST_BYTES >> 6:,}.")


def empty(
    levels: Sequence[Level],
    policy: str = "lru",
    *,
    through: bool = False,
    inclusive: bool = False,
    exclusive: bool = False,
    prefetch: str = "none",
    private: int = 0,
    cores: int = 1,
    seed: int = 1,
) -> Hierarchy:
    """A hierarchy without any line; `policy` is one of POLICIES, `prefetch` of PREFETCHERS, `seed` at least 0.

    private: how many of the first levels each of `cores` has for itself.
    """
    shape = np.zeros((cores if private else 1, len(levels), 3), np.int64)
    base = 0
    for number, level in enumerate(levels):
        for core in range(len(shape)):
            if core == 0 or number < private:
                shape[core, number] = level.sets - 1, level.ways, base
                base += level.sets * level.ways
            else:
                shape[core, number] = shape[0, number]
    rules = np.zeros(RULES, np.int64)
    rules[:] = POLICIES.index(policy), through, inclusive, exclusive, PREFETCHERS.index(prefetch), private
    return Hierarchy(
        np.full(base, EMPTY, np.int64),
        np.zeros(base if policy in ("plru", "srrip") else 1, np.int64),
        shape,
        rules,
        np.array([seed], np.uint64),
        np.zeros((len(levels) + 1, COUNTS), np.int64),
    )
