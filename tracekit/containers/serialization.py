"""States as bytes, for other processes: pickled, and of reserved address space only what is in use.

The bytes are of this version of tracekit, and go between processes that trust one another.
"""

from __future__ import annotations

import ctypes
import io
import pickle
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import zstandard
from numpy.typing import NDArray

from tracekit.containers import arena, shadow
from tracekit.containers.hash_table import hash_table, used_rows
from tracekit.containers.initial_pages import Pages, blocks_with, contents, empty_blocks
from tracekit.containers.kernels.arena import SPARE, USED, Arena
from tracekit.containers.kernels.hash_table import CELLS, HashTable
from tracekit.containers.kernels.initial_pages import BLOCK, InitialPages
from tracekit.containers.kernels.shadow import EACH, PAGES, STREAM, STREAMS, WORDS, Shadow, enter, make_pages
from tracekit.containers.maps import kinds
from tracekit.containers.maps.exact import ROWS_ADDRESS, ROWS_SIZE
from tracekit.containers.maps.table import ADDRESS, SIZE
from tracekit.containers.maps.tables import cells_control

LEVEL = 1
"""Of zstd: tables of counts become a third of themselves."""

LARGEST = 1 << 32
"""Bytes of an array at most: one with more is reserved address space, of which nobody said what is in use."""


SPARSE = 1 << 16
"""Bytes of an array from which on it is looked at whether its end is all zeros."""
CHUNK = 1 << 12

Reduced = tuple[Callable[..., Any], tuple[Any, ...]]
"""What makes an object again, and of what."""

_REDUCERS: dict[type, Callable[[Any], Reduced]] = {}


def register_reducer(kind: type, how: Callable[[Any], Reduced]) -> None:
    """Structures of this kind are taken elsewhere so: for those with arrays in reserved address space of their own."""
    _REDUCERS[kind] = how


def serialized(content: Any) -> bytes:
    """As bytes; :func:`deserialized` reads them. Raises pickle.PicklingError for what cannot be taken elsewhere."""
    return zstandard.ZstdCompressor(level=LEVEL).compress(_pickled(content))


def deserialized(data: bytes) -> Any:
    """What :func:`serialized` was given; tables, maps, arenas and shadow memories go on growing."""
    return pickle.loads(zstandard.ZstdDecompressor().decompress(data))


class Frozen:
    """A state as it is at one moment, to be gone on with more than once, here or elsewhere."""

    def __init__(self, content: Any) -> None:
        self._data = bytes(_pickled(content))

    def thawed(self) -> Any:
        """A copy that goes on by itself."""
        return pickle.loads(self._data)


def _pickled(content: Any) -> memoryview:
    file = io.BytesIO()
    _Pickler(file, pickle.HIGHEST_PROTOCOL).dump(content)
    return file.getbuffer()


class _Pickler(pickle.Pickler):
    """Knows the structures in reserved address space."""

    def reducer_override(self, obj: Any) -> Any:
        """What makes an object, and of what."""
        kind = type(obj)
        if (how := _REDUCERS.get(kind)) is not None:
            return how(obj)
        if kind is np.ndarray and obj.nbytes > LARGEST:
            raise pickle.PicklingError(f"an array of {obj.nbytes} bytes")
        if kind is np.ndarray and obj.nbytes > SPARSE and obj.ndim == 1 and obj.flags.c_contiguous:
            return _of_array(obj)
        return NotImplemented


def _of_array(array: NDArray[Any]) -> Reduced:
    """Without the zeros at its end: many are for all that there could be."""
    words = array.view("u1")
    step = len(words) - len(words) % 8
    end = len(words) if words[step:].any() else 8 * _behind_last(words[:step].view("u8"))
    return _array, (words[:end].tobytes(), len(words), array.dtype)


def _behind_last(words: NDArray[np.uint64]) -> int:
    """The place behind the last that is not zero."""
    end = len(words)
    while end and not words[max(end - CHUNK, 0) : end].any():
        end = max(end - CHUNK, 0)
    return end


def _array(words: bytes, size: int, dtype: np.dtype[Any]) -> NDArray[Any]:
    made = np.zeros(size, np.uint8)
    made[: len(words)] = np.frombuffer(words, np.uint8)
    return made.view(dtype)


# -- tables, arenas --------------------------------------------------------------------------------


def _of_table(table: HashTable) -> Reduced:
    count = int(table.control[CELLS])
    return _table, (used_rows(table).copy(), table.cells[count : 2 * count].copy(), table.control, len(table.rows))


def _table(rows: NDArray[Any], cells: NDArray[np.uint32], control: NDArray[np.int64], most: int) -> HashTable:
    fields = [(name, *kind) for name, *kind in rows.dtype.descr if name != "key"]
    table = hash_table(fields, max(most, len(rows), 1 << 10))
    table.rows[: len(rows)] = rows
    table.cells[len(cells) : 2 * len(cells)] = cells
    table.control[:] = control
    return table


def _of_arena(table: Arena) -> Reduced:
    return _arena, (table.rows[: table.control[USED]].copy(), table.control, len(table.rows))


def _arena(rows: NDArray[Any], control: NDArray[np.int64], most: int) -> Arena:
    made = arena.arena(rows.dtype, max(most, len(rows)), spare=max(SPARE, len(rows)))
    made.rows[: len(rows)] = rows
    made.control[:] = control
    return made


# -- shadow memory ---------------------------------------------------------------------------------


def _of_shadow(memory: Shadow) -> Reduced:
    """The pages that were made, and of each word the rows in as many parts as it has."""
    control = memory.control
    granules = memory.granules[: WORDS * control[PAGES]].copy()
    rows = [memory.rows[_rows_of(memory, granules, divided)] for divided in range(4)]
    pages = memory.pages[: control[PAGES]].copy()
    streams = memory.streams[: control[STREAMS]].copy()
    return _shadow, (rows, granules, pages, streams, control, len(memory.table) > control[EACH], memory.initial)


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
    initial: InitialPages | None,
) -> Shadow:
    memory = shadow.empty(rows[0].dtype, per_stream=per_stream, direct=int(control[EACH]))
    first = int(memory.control[PAGES])
    for stream in streams.tolist():
        enter(memory, stream)
    make_pages(memory.table, memory.pages, memory.far, memory.control, pages["number"][first:], pages["stream"][first:])
    memory.granules[: len(granules)] = granules
    for divided, own in enumerate(rows):
        memory.rows[_rows_of(memory, granules, divided)] = own
    if control[STREAM] >= 0:
        enter(memory, int(control[STREAM]))
    return memory._replace(initial=initial)


def _of_initial_pages(initial: InitialPages) -> Reduced:
    """For a segment that is over: what it began with serves no more, but for which pages were emptied."""
    return _initial_pages, (initial.blocks is not None, initial.streams, initial.emptied, initial.ranges, initial.open)


def _initial_pages(
    has_blocks: bool, streams: NDArray[np.uint8], emptied: HashTable, ranges: Arena, opened: Any
) -> InitialPages:
    return InitialPages(empty_blocks() if has_blocks else None, hash_table(BLOCK), streams, emptied, ranges, opened)


def _of_pages(pages: Pages) -> Reduced:
    """With the contents of its own pages alone."""
    used, block = np.unique(pages.block, return_inverse=True)
    block += int(used[0] != 0) if len(used) else 0  # number 0 stays: none
    return _pages, (*contents(pages.blocks, used[used != 0]), pages.numbers, pages.streams, block, pages.known)


def _pages(rows: NDArray[Any], granules: NDArray[np.uint8], *columns: NDArray[np.int64]) -> Pages:
    return Pages(blocks_with(rows, granules), *columns)


# -- maps ------------------------------------------------------------------------------------------


def _of_map(table: Any) -> Reduced:
    """The cells, and the rows of exact sums, as words: they lie in memory of the C library."""
    places = ((ADDRESS, SIZE), (ROWS_ADDRESS, ROWS_SIZE))
    words = [_words(int(table.control[address]), int(table.control[size])).copy() for address, size in places]
    return _map, (type(table), table.control.copy(), table.buffer.copy(), table.key, table.value, *words)


def _map(
    kind: Any, control: NDArray[np.uint64], buffer: NDArray[np.uint64], key: Any, value: Any, *words: NDArray[np.uint64]
) -> Any:
    made = kind(cells_control(), buffer, key, value)
    for place, part in zip((ADDRESS, ROWS_ADDRESS), words):
        control[place] = _allocated(part) if len(part) else 0
    made.control[:] = control
    return made


def _words(address: int, count: int) -> NDArray[np.uint64]:
    if not count:
        return np.zeros(0, np.uint64)
    return np.ctypeslib.as_array((ctypes.c_uint64 * count).from_address(address))


def _allocated(words: NDArray[np.uint64]) -> int:
    """The address of a copy of some words, which whoever has it gives back."""
    library = ctypes.CDLL(None)
    library.calloc.restype = ctypes.c_void_p
    address = library.calloc(ctypes.c_size_t(len(words)), ctypes.c_size_t(8))
    if address is None:
        raise MemoryError("No memory is left for the table of a reduction map.")
    _words(address, len(words))[:] = words
    return int(address)


register_reducer(HashTable, _of_table)
register_reducer(Arena, _of_arena)
register_reducer(Shadow, _of_shadow)
register_reducer(InitialPages, _of_initial_pages)
register_reducer(Pages, _of_pages)
for _kind in kinds.KINDS.values():
    if _kind is not kinds.SetTable:  # two of the others
        register_reducer(_kind, _of_map)
