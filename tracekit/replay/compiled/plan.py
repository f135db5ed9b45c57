"""Which paths of a program were hot, kept on disk, so that the next replay need not find out."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from tracekit.formats.events import NONE
from tracekit.formats.image import BlockFlag
from tracekit.jit import object_cache
from tracekit.jit.cache import home
from tracekit.replay.compiled.loop_chains import chain_of
from tracekit.replay.kernels import layouts

Share = Sequence[tuple[int, Sequence[int]]]
"""Paths that are compiled together: the record id of each, and the blocks that come before it."""
Shares = Sequence[Share]


class Plan:
    """The shares of a program, for modules that want certain events. `parts`: what tells both from others."""

    def __init__(self, parts: Sequence[bytes]) -> None:
        self._key = f"plan-{object_cache.key_of(parts)}"
        self.shares: list[Share] = []
        self._is_new = False
        with contextlib.suppress(ValueError, TypeError):
            read = json.loads(object_cache.read(self._key) or b"[]")
            self.shares = [[(int(number), [*map(int, before)]) for number, before in share] for share in read]

    def add(self, shares: Shares) -> None:
        """Note more of them."""
        self.shares += shares
        self._is_new = self._is_new or bool(shares)

    def keep(self) -> None:
        """Write it, if there is anything new; what is in the cache for nobody goes."""
        if self._is_new:
            object_cache.write(self._key, json.dumps(self.shares).encode())
            self._is_new = False
            _forget_unused(home())


@cache
def _forget_unused(folder: Path) -> None:
    """Once for each process and cache: it looks at every file there, as long as a short replay takes."""
    object_cache.forget_unused()


def possible(shares: Shares, tables: layouts.Tables) -> list[Share]:
    """The shares whose paths have templates, each going on at blocks from which its template tells the way."""
    return [share for share in shares if all(_is_possible(tables, number, before) for number, before in share)]


def _is_possible(tables: layouts.Tables, number: int, before: Sequence[int]) -> bool:
    if not 0 <= number < len(tables.templates) or tables.templates[number]["room"] == layouts.NEVER:
        return False
    return bool(before) and entries(tables, tables.templates[number], before) == [*before]


def _enters_well(path: Any) -> bool:
    """Whether a path that enters a function enters no loop beside its header."""
    return bool(path["loop"] == NONE or path["flags"] & layouts.TEMPLATE_HEADER)


def fitting(tables: layouts.Tables, path: Any, before: Sequence[int]) -> list[int]:
    """Those of the blocks that an activation may stand at before it goes on in `path`, by what its template tells.

    A tail call has closed the loops of its block, and a loop is entered at its header.
    """
    lasts = np.array([block for block in before if 0 <= block < len(tables.blocks)], np.int64)
    blocks = tables.blocks[lasts]
    fits = (blocks["function"] == path["function"]) & (blocks["call"] == path["continues"])
    fits &= blocks["flags"] & BlockFlag.TAIL_CALL == 0
    if path["loop"] != NONE and not path["flags"] & layouts.TEMPLATE_HEADER:
        fits &= np.array([path["loop"] in chain_of(tables.loops, int(loop)) for loop in blocks["loop"]], np.bool_)
    chosen: list[int] = lasts[fits].tolist()
    return chosen


def entries(tables: layouts.Tables, path: Any, candidates: Sequence[int]) -> list[int]:
    """The blocks among `candidates` before a path, or ENTERED for one that enters; none if no code can be made."""
    if not path["flags"] & layouts.TEMPLATE_ENTERS:
        return fitting(tables, path, candidates)
    return [ENTERED] if _enters_well(path) else []


ENTERED = 0
"""Stands for the block before a path that enters a function."""
