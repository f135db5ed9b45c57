"""Kinds of accesses that are left out of a trace: `record --only events=stores`, `--without events=values`.

The program writes its records as it was compiled. The collector drops words that belong to what is left out before it
encodes them, and writes image tables in which these operations are gone, so a reader knows of nothing else. An
operation whose word other addresses are based on stays as a BASE, which is no event.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tracekit.formats.events import CODE, NONE
from tracekit.formats.image import Base, OpFlag, OpKind, PathFlag
from tracekit.formats.unit import Unit
from tracekit.program.validation import op_words, runs, value_words
from tracekit.recorder.encoder import UNUSED
from tracekit.recorder.registered import RegisteredImage

Rows = NDArray[Any]


class Trimmed(NamedTuple):
    """What is left of a unit: its bytes, and of each path which words of its records.

    ``words``: u2, of each path how many words its records have in the program; ``kept``: u2, of each how many are left;
    ``which``: u2, path by path the places of these among its words, in the order of the new record.
    """

    unit: bytes
    words: NDArray[np.uint16]
    kept: NDArray[np.uint16]
    which: NDArray[np.uint16]


class ImageTrim(NamedTuple):
    """What :class:`Trimmed` says of units, by path numbers of an image, from its first; ``words`` UNUSED: no path."""

    units: list[bytes]
    words: NDArray[np.uint16]
    kept: NDArray[np.uint16]
    which: NDArray[np.uint16]


def trim_image(image: RegisteredImage, units: Sequence[Unit], left_out: Collection[str]) -> ImageTrim:
    """All units of an image, trimmed. Raises IndexError or ValueError if a row names what a unit does not have."""
    trimmed = [trim(unit, left_out) for unit in units]
    words, kept = np.full(image.span, UNUSED, np.uint16), np.zeros(image.span, np.uint16)
    begin = np.zeros(image.span, np.int64)
    before = 0
    for number, (unit, part) in enumerate(zip(units, trimmed, strict=True)):
        rows = image.functions[image.functions["unit"] == number]
        here = runs(unit.tables["functions"]["first_path"][rows["function"]], rows["paths"])
        there = runs(rows["first"], rows["paths"])
        words[there], kept[there] = part.words[here], part.kept[here]
        counts = part.kept.astype(np.int64)
        begin[there] = before + (np.cumsum(counts) - counts)[here]
        before += len(part.which)
    every = np.concatenate([np.zeros(0, np.uint16), *(part.which for part in trimmed)])
    return ImageTrim([part.unit for part in trimmed], words, kept, every[runs(begin, kept)])


def dropped_events(left_out: Collection[str]) -> list[int]:
    """The codes of recorded events that are left out as a whole: what library functions load and store."""
    names = {"loads": "library_load", "stores": "library_store"}
    return [CODE[event] for name, event in names.items() if name in left_out]


def trim(unit: Unit, left_out: Collection[str]) -> Trimmed:
    """``unit`` without the operations and values that are left out (names of window_filters.EVENTS)."""
    tables = dict(unit.tables)
    before = tables["ops"]
    ops = before.copy()
    first = np.concatenate([[0], np.cumsum(op_words(before))])[:-1]
    starts, counts = _segments(before, first)
    _leave_out(ops, before, starts, counts, left_out)
    source = runs(starts.ravel(), counts.ravel())
    kept_before = np.concatenate([[0], np.cumsum(counts.sum(axis=1))])
    paths = tables["paths"].copy()
    kept, which = _of_paths(tables, np.append(first, int(op_words(before).sum())), kept_before, source)
    words = paths["words"].astype(np.uint16)
    paths["words"] = kept
    tables["ops"], tables["paths"] = ops, paths
    tables["options"] = _options(unit, left_out)
    return Trimmed(Unit.build(tables), words, kept.astype(np.uint16), which.astype(np.uint16))


def _segments(ops: Rows, first: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Where the address, the size, the value and the ground truth of each operation begin, and how many words each."""
    values = value_words(ops)
    counts = np.zeros((len(ops), 4), np.int64)
    moving = op_words(ops) > 0
    addressed = moving & (ops["kind"] <= OpKind.POINTER)
    counts[:, 1] = addressed & (ops["flags"] & OpFlag.DYNAMIC_SIZE != 0)
    counts[:, 2] = values
    counts[:, 3] = addressed & (ops["flags"] & OpFlag.GROUND_TRUTH != 0)
    counts[:, 0] = op_words(ops) - counts.sum(axis=1)
    starts = first[:, None] + np.cumsum(counts, axis=1) - counts
    return starts, counts


def _leave_out(
    ops: Rows, before: Rows, starts: NDArray[np.int64], counts: NDArray[np.int64], left_out: Collection[str]
) -> None:
    """Change operations and the words that are kept of each, in place."""
    kind = before["kind"]
    loads, stores = "loads" in left_out, "stores" in left_out
    gone = np.zeros(len(ops), np.bool_)
    for is_out, kinds in (
        (loads, (OpKind.LOAD, OpKind.COPY_FROM)),
        (stores, (OpKind.STORE, OpKind.SET, OpKind.COPY_TO)),
        (loads and stores, (OpKind.ATOMIC,)),
        ("pointers" in left_out, (OpKind.POINTER,)),
    ):
        if is_out:
            gone |= np.isin(kind, kinds)
    if loads and not stores:
        _halve(ops, starts, counts, OpKind.STORE)
        _keep_destinations(ops, before, starts, counts)
    if stores and not loads:
        _halve(ops, starts, counts, OpKind.LOAD)
        ops["kind"][kind == OpKind.COPY_FROM] = int(OpKind.LOAD)
    if "values" in left_out:
        moved = ops["flags"] & OpFlag.VALUE != 0
        ops["size"][moved & (ops["flags"] & OpFlag.DYNAMIC_SIZE != 0)] = 0
        ops["flags"][moved] &= 0xFF ^ int(OpFlag.VALUE)
        counts[:, 2] = 0
    counts[gone, 1:] = 0
    defines = gone & (before["base_kind"] == Base.RECORDED) & (before["defines"] != NONE)
    ops["kind"][gone] = np.where(defines, int(OpKind.BASE), 0)[gone]
    counts[gone & ~defines, 0] = 0
    for field in ("flags", "terms", "use"):
        ops[field][gone] = 0
    ops["base_kind"][gone] = int(Base.NO_ADDRESS)
    ops["defines"][gone & ~defines] = NONE


def _halve(ops: Rows, starts: NDArray[np.int64], counts: NDArray[np.int64], kind: OpKind) -> None:
    """Of a read-modify-write one access is left, with the bytes before it (LOAD) or behind (STORE)."""
    atomic = ops["kind"] == OpKind.ATOMIC
    ops["kind"][atomic] = int(kind)
    counts[atomic, 2] //= 2
    if kind == OpKind.STORE:
        starts[atomic, 2] += counts[atomic, 2]


def _keep_destinations(ops: Rows, before: Rows, starts: NDArray[np.int64], counts: NDArray[np.int64]) -> None:
    """What is left of a copy is a SET; it may have had its size from the operation before."""
    kind = before["kind"]
    to = np.flatnonzero(kind == OpKind.COPY_TO)
    ops["kind"][to] = int(OpKind.SET)
    own = before["flags"][to] & OpFlag.DYNAMIC_SIZE != 0
    source = before["flags"][to - 1] & OpFlag.DYNAMIC_SIZE != 0
    borrowed = to[~own & source & (kind[to - 1] == OpKind.COPY_FROM)]
    ops["flags"][borrowed] |= int(OpFlag.DYNAMIC_SIZE)
    ops["size"][borrowed] = before["size"][borrowed - 1]
    starts[borrowed, 1], counts[borrowed, 1] = starts[borrowed - 1, 1], 1


def _of_paths(
    tables: dict[str, Rows], first: NDArray[np.int64], kept_before: NDArray[np.int64], source: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """How many words are left of each path's records, and which.

    ``first``, ``kept_before``: of each operation, and behind the last, how many words stand before it in the unit's
    operations, and how many of them are left; ``source``: these, by their places.
    """
    paths, blocks = tables["paths"], tables["blocks"]
    members = tables["path_blocks"]["block"][runs(paths["first"], paths["blocks"])]
    begin = blocks["first_op"][members].astype(np.int64)
    end = begin + blocks["ops"][members]
    raw, left = first[end] - first[begin], kept_before[end] - kept_before[begin]
    path = np.repeat(np.arange(len(paths)), paths["blocks"])
    run = paths["flags"] & PathFlag.RUN != 0
    raw[run[path]] = left[run[path]] = 0  # their only word is the number of iterations
    kept = np.bincount(path, left, len(paths)).astype(np.int64)
    per_path = np.bincount(path, raw, len(paths)).astype(np.int64)
    inside = np.cumsum(raw) - raw - np.repeat(np.cumsum(per_path) - per_path, paths["blocks"])
    which = source[runs(kept_before[begin], left)] - np.repeat(first[begin] - inside, left)
    return np.where(run, 1, kept), np.insert(which, (np.cumsum(kept) - kept)[run], 0)


def _options(unit: Unit, left_out: Collection[str]) -> Rows:
    """Without those that promise what is left out."""
    options = unit.tables["options"]
    gone = tuple(f"{name}=" for name in ("values", "pointers") if name in left_out)
    texts = [unit.text(int(row["option"])) for row in options]
    chosen: Rows = options[[not text.startswith(gone) if gone else True for text in texts]]
    return chosen
