"""What the recorder needs of an image's tables: the arity of each path, and what a record of it counts for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tracekit.formats.image import OpKind, PathFlag
from tracekit.formats.unit import Unit
from tracekit.recorder.encoder import UNUSED
from tracekit.recorder.registered import RegisteredImage

# An atomic operation and a copy are a load and a store.
_LOADS = [OpKind.LOAD, OpKind.ATOMIC, OpKind.COPY_FROM]
_STORES = [OpKind.STORE, OpKind.ATOMIC, OpKind.COPY_TO, OpKind.SET]


class PathFacts(NamedTuple):
    """One row for each path number of an image, from its first.

    ``words``: u2 (UNUSED: no path); ``run``: whether its word says how often its blocks ran; ``blocks``, ``loads``,
    ``stores``: how many there are each time (none of a ground-truth record, beside which they were recorded).
    """

    words: NDArray[np.uint16]
    run: NDArray[np.bool_]
    blocks: NDArray[np.int64]
    loads: NDArray[np.int64]
    stores: NDArray[np.int64]


def path_facts(image: RegisteredImage, units: Sequence[Unit]) -> PathFacts:
    """The facts of an image's paths; ``units`` are its units, parsed, in order."""
    facts = PathFacts(
        np.full(image.span, UNUSED, np.uint16),
        np.zeros(image.span, np.bool_),
        np.zeros(image.span, np.int64),
        np.zeros(image.span, np.int64),
        np.zeros(image.span, np.int64),
    )
    for number, unit in enumerate(units):
        rows = image.functions[image.functions["unit"] == number]
        first_path = unit.tables["functions"]["first_path"][rows["function"]]
        here = _ranges(first_path, rows["paths"])
        there = _ranges(rows["first"], rows["paths"])
        paths = unit.tables["paths"]
        flags = paths["flags"]
        facts.words[there] = paths["words"][here]
        facts.run[there] = (flags & PathFlag.RUN != 0)[here]
        own = ~((flags & PathFlag.RUN != 0) & (flags & PathFlag.GROUND_TRUTH != 0))
        facts.blocks[there] = (own * paths["blocks"])[here]
        facts.loads[there] = (own * _per_path(unit, _LOADS))[here]
        facts.stores[there] = (own * _per_path(unit, _STORES))[here]
    return facts


def _ranges(first: NDArray[Any], counts: NDArray[Any]) -> NDArray[np.int64]:
    """first[0] .. first[0] + counts[0] - 1, then the same of row 1, and so on."""
    counts = counts.astype(np.int64)
    before = np.cumsum(counts) - counts
    return np.repeat(first.astype(np.int64) - before, counts) + np.arange(int(counts.sum()))


def _per_path(unit: Unit, kinds: list[OpKind]) -> NDArray[np.int64]:
    """How many operations of these kinds each path of the unit holds."""
    blocks = unit.tables["blocks"]
    by_op = _running(np.isin(unit.tables["ops"]["kind"], kinds))
    first = blocks["first_op"].astype(np.int64)
    by_block = by_op[first + blocks["ops"]] - by_op[first]
    paths = unit.tables["paths"]
    along = _running(by_block[unit.tables["path_blocks"]["block"]])
    first = paths["first"].astype(np.int64)
    held: NDArray[np.int64] = along[first + paths["blocks"]] - along[first]
    return held


def _running(values: NDArray[Any]) -> NDArray[np.int64]:
    return np.concatenate([[0], np.cumsum(values, dtype=np.int64)])
