"""Initial pages of the shadow memory of a segment, which a pass ahead has kept (kernels/initial_pages.py)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tracekit.containers import arena
from tracekit.containers.hash_table import hash_table
from tracekit.containers.kernels import initial_pages as kernels
from tracekit.containers.kernels.arena import USED
from tracekit.containers.kernels.hash_table import HashTable
from tracekit.containers.kernels.initial_pages import BLOCK, MOST_STREAMS, RANGE, STORED, WORDS, Blocks, InitialPages
from tracekit.containers.kernels.shadow import PAGES, SCRATCH, STREAMS, Shadow, enter


class Pages(NamedTuple):
    """The pages of a shadow at one moment, and where their contents are kept."""

    blocks: Blocks
    numbers: NDArray[np.int64]  # (pages): address >> PAGE_BITS
    streams: NDArray[np.int64]  # (pages)
    block: NDArray[np.int64]  # (pages): of `blocks`; 0: none
    known: NDArray[np.int64]  # (streams): those that had begun


def empty_blocks() -> Blocks:
    """Room for blocks, of which there are none yet."""
    first = arena.arena("i8", 1 << 28, spare=1, beside=WORDS)
    return Blocks(arena.arena(STORED, spare=WORDS * 8), arena.reserve("u1", WORDS * len(first.rows)), first)


def contents(blocks: Blocks, numbers: NDArray[np.int64]) -> tuple[NDArray[Any], NDArray[np.uint8]]:
    """The rows (STORED) of the blocks `numbers`, one after another, and their granules, u1 (blocks, WORDS)."""
    granules = blocks.granules.reshape(-1, WORDS)[numbers]
    counts = (1 << granules.astype(np.int64)).sum(axis=1)
    first = blocks.first.rows[numbers] - np.concatenate([[0], np.cumsum(counts)[:-1]])[: len(counts)]
    places = np.repeat(first, counts) + np.arange(counts.sum())
    return blocks.rows.rows[places], granules


def blocks_with(rows: NDArray[Any], granules: NDArray[np.uint8]) -> Blocks:
    """Blocks number 1, 2, ... of what :func:`contents` returned."""
    blocks, count = empty_blocks(), len(granules)
    counts = (1 << granules.astype(np.int64)).sum(axis=1)
    begun = int(blocks.rows.control[USED])
    blocks.rows.rows[begun : begun + len(rows)] = rows
    blocks.rows.control[USED] += len(rows)
    blocks.granules[WORDS : WORDS * (count + 1)] = granules.reshape(-1)
    blocks.first.rows[1 : count + 1] = begun + np.cumsum(counts) - counts
    blocks.first.control[USED] += count
    return blocks


def keep_pages(
    shadow: Shadow, dirty: NDArray[np.uint8], blocks: Blocks, last: Pages | None, streams: NDArray[np.int64]
) -> Pages:
    """Keep the pages of a shadow of STORED that have changed, and return all as they are now.

    dirty: u1 by page, 1 if it has changed since the last call; becomes 0. last: what that call returned. streams: those
    that have begun. Raises TracekitError if memory runs out.
    """
    count = int(shadow.control[PAGES])
    block = np.zeros(count, np.int64)
    if last is not None:
        block[: len(last.block)] = last.block
    changed = np.flatnonzero(dirty[:count])
    kernels.keep_pages(blocks, shadow.rows, shadow.granules, changed[changed > SCRATCH], block)
    dirty[:count] = 0
    arena.check(blocks.rows, blocks.first)
    pages = shadow.pages[:count]
    return Pages(blocks, pages["number"].copy(), pages["stream"].copy(), block, streams)


def with_initial_pages(shadow: Shadow, pages: Pages) -> Shadow:
    """A new shadow, of rows that have the fields of STORED, that begins with these pages."""
    table = hash_table(BLOCK)
    kernels.index_pages(table, pages.numbers, pages.streams, pages.block)
    return _begun(shadow, pages.known, pages.blocks, table)


def without_history(shadow: Shadow, streams: Sequence[int], opened: int) -> Shadow:
    """A new shadow of integers that begins with `opened` in every row of these streams: nothing is known of them."""
    row = np.full(1, opened, shadow.rows.dtype)
    return _begun(shadow, np.array(streams, np.int64), None, hash_table(BLOCK), row)


def _begun(
    shadow: Shadow, known: NDArray[np.int64], blocks: Blocks | None, table: HashTable, opened: Any = None
) -> Shadow:
    """The shadow of a segment; these streams had begun before."""
    streams = np.zeros(MOST_STREAMS, np.uint8)
    streams[known] = 1
    for stream in known.tolist():
        enter(shadow, stream)
    assert shadow.control[STREAMS] == len(known)
    initial = InitialPages(blocks, table, streams, hash_table([]), arena.arena(RANGE, 1 << 24, spare=1), opened)
    return shadow._replace(initial=initial)
