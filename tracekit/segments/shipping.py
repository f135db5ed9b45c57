"""States as bytes, for other processes: pickled, and of reserved address space only what is in use.

The bytes are of this version of tracekit, and go between processes that trust one another.
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import zstandard
from numpy.typing import NDArray

from tracekit.containers import arena, shadow
from tracekit.containers.hash_table import hash_table, used_rows
from tracekit.containers.kernels.arena import SPARE, USED, Arena
from tracekit.containers.kernels.hash_table import CELLS, HashTable
from tracekit.containers.kernels.shadow import EACH, PAGES, STREAM, STREAMS, WORDS, Shadow, enter, make_pages
from tracekit.contexts.kernels.contexts import Contexts
from tracekit.contexts.kernels.streams import Stream
from tracekit.contexts.state import nodes_of

LEVEL = 1
"""Of zstd: tables of counts become a third of themselves."""

LARGEST = 1 << 32
"""Bytes of an array at most: one with more is reserved address space, of which nobody said what is in use."""


def shipped(content: Any) -> bytes:
    """As bytes; :func:`unpacked` reads them. Raises pickle.PicklingError for what cannot be taken elsewhere."""
    file = io.BytesIO()
    _Pickler(file, pickle.HIGHEST_PROTOCOL).dump(content)
    return zstandard.ZstdCompressor(level=LEVEL).compress(file.getbuffer())


def unpacked(data: bytes) -> Any:
    """What :func:`shipped` was given; tables, arenas and shadow memories go on growing."""
    return pickle.loads(zstandard.ZstdDecompressor().decompress(data))


class _Pickler(pickle.Pickler):
    """Knows the structures in reserved address space."""

    def reducer_override(self, obj: Any) -> Any:
        """What makes an object, and of what."""
        kind = type(obj)
        if kind is HashTable:
            count = int(obj.control[CELLS])
            return _table, (used_rows(obj).copy(), obj.cells[count : 2 * count].copy(), obj.control)
        if kind is Arena:
            return _arena, (obj.rows[: obj.control[USED]].copy(), obj.control)
        if kind is Shadow:
            return _shadow, _of_shadow(obj)
        if kind is np.ndarray and obj.nbytes > LARGEST:
            raise pickle.PicklingError(f"an array of {obj.nbytes} bytes")
        return NotImplemented


def _table(rows: NDArray[Any], cells: NDArray[np.uint32], control: NDArray[np.int64]) -> HashTable:
    fields = [(name, *kind) for name, *kind in rows.dtype.descr if name != "key"]
    table = hash_table(fields)
    table.rows[: len(rows)] = rows
    table.cells[len(cells) : 2 * len(cells)] = cells
    table.control[:] = control
    return table


def _arena(rows: NDArray[Any], control: NDArray[np.int64]) -> Arena:
    made = arena.arena(rows.dtype, spare=max(SPARE, len(rows)))
    made.rows[: len(rows)] = rows
    made.control[:] = control
    return made


def _of_shadow(memory: Shadow) -> tuple[Any, ...]:
    """The pages that were made, and of each word the rows in as many parts as it has."""
    if memory.before is not None:
        raise pickle.PicklingError("a shadow memory that begins with other pages")
    control = memory.control
    granules = memory.granules[: WORDS * control[PAGES]].copy()
    rows = [memory.rows[_rows_of(memory, granules, divided)] for divided in range(4)]
    pages = memory.pages[: control[PAGES]].copy()
    return rows, granules, pages, memory.streams[: control[STREAMS]].copy(), control, len(memory.table) > control[EACH]


def _rows_of(memory: Shadow, granules: NDArray[np.uint8], divided: int) -> NDArray[np.int64]:
    """The rows of all words in 1 << `divided` parts: [word, part]."""
    words = np.flatnonzero(granules == divided)
    return ((len(memory.granules) + words) << divided)[:, None] + np.arange(1 << divided)


def _shadow(
    rows: Sequence[NDArray[Any]],
    granules: NDArray[np.uint8],
    pages: NDArray[Any],
    streams: NDArray[np.int64],
    control: NDArray[np.int64],
    per_stream: bool,
) -> Shadow:
    memory = shadow.empty(rows[0].dtype, per_stream=per_stream)
    first = int(memory.control[PAGES])
    for stream in streams.tolist():
        enter(memory, stream)
    make_pages(memory.table, memory.pages, memory.far, memory.control, pages["number"][first:], pages["stream"][first:])
    memory.granules[: len(granules)] = granules
    for divided, own in enumerate(rows):
        memory.rows[_rows_of(memory, granules, divided)] = own
    if control[STREAM] >= 0:
        enter(memory, int(control[STREAM]))
    return memory


# -- streams ---------------------------------------------------------------------------------------


def trimmed(contexts: Contexts | None, levels: Mapping[int, Stream]) -> dict[int, Stream]:
    """Streams whose levels are open at contexts that there are: they have room for any."""
    known = 0 if contexts is None else len(nodes_of(contexts))
    return {number: stream._replace(open=stream.open[:known].copy()) for number, stream in levels.items()}


def with_room_for_all(contexts: Contexts | None, levels: Mapping[int, Stream]) -> dict[int, Stream]:
    """The other way."""
    return {number: _with_room(stream, contexts) for number, stream in levels.items()}


def _with_room(stream: Stream, contexts: Contexts | None) -> Stream:
    room = arena.reserve("i4", len(stream.open) if contexts is None else len(contexts.tree.rows))
    room[: len(stream.open)] = stream.open
    return stream._replace(open=room)
