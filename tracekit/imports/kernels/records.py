"""Records of accesses: each is of the path that stands for its program counter, its kind and its size.

Paths are numbered in the order of their first use. Sizes that no instruction of a processor has are recorded words.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tracekit.containers.kernels.hash_table import HashTable, row_of
from tracekit.formats.events import FIRST_PATH
from tracekit.jit.kernel import inlined

LOAD, STORE, BOTH = 1, 2, 3
"""Kinds of accesses; BOTH: an instruction loads and stores one place."""

UNKNOWN = 0
"""The row of counters that an access without a program counter has."""

LARGEST = 64
"""Bytes of the largest access that has a path of its own size."""

WORDS = 3
"""Words of a record at most: address, size, and the size again of what is stored."""

KIND_AT, COUNTER_AT = 8, 16
"""Bits of a path's key: its size stands below (0: a recorded word), the row of its counter above."""

# Elements of Records.filled.
RECORDS, USED_WORDS = 0, 1


class Instructions(NamedTuple):
    """What has been met so far."""

    counters: HashTable  # key: program counter
    paths: HashTable  # key: row of counters << 16 | kind << 8 | size


class Records(NamedTuple):
    """Records of one stream that no chunk holds yet."""

    ids: NDArray[np.uint32]
    words: NDArray[np.uint64]
    filled: NDArray[np.int64]  # RECORDS, USED_WORDS


@inlined
def has_room(out: Any, records: Any) -> Any:
    """Whether so many records fit still."""
    return out.filled[RECORDS] + records <= out.ids.size and out.filled[USED_WORDS] + WORDS * records <= out.words.size


@inlined
def put(met: Any, out: Any, counter: Any, kind: Any, address: Any, size: Any) -> None:
    """Add the record of an access of `size` bytes (at least 1); `counter` is a row of ``met.counters``, or UNKNOWN."""
    size = np.uint64(size)
    fixed = size if size <= np.uint64(LARGEST) else np.uint64(0)
    key = np.uint64(counter) << np.uint64(COUNTER_AT) | np.uint64(kind) << np.uint64(KIND_AT) | fixed
    record, word = out.filled[RECORDS], out.filled[USED_WORDS]
    out.ids[record] = FIRST_PATH + row_of(met.paths, key)
    out.words[word] = address
    word += 1
    if fixed == 0:
        out.words[word] = size
        word += 1
        if kind == BOTH:
            out.words[word] = size
            word += 1
    out.filled[RECORDS], out.filled[USED_WORDS] = record + 1, word


@inlined
def counter_of(met: Any, address: Any) -> Any:
    """The row of a program counter."""
    return row_of(met.counters, address)
