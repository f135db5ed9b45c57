"""The block of words through which Python and compiled paths see one stream: where its arrays lie, how far it is.

Arrays grow between calls, so compiled code finds them here. What never moves (the state of modules) stands in it as a
constant instead (functions.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracekit.jit.values import leaves
from tracekit.replay.kernels import layouts

# Words of the block.
FRAME = 0  # address of the top frame; 0: there is none
FRAMES_END = 1  # one past the last row that a frame may have
OPEN_LOOPS = 2
ITERATIONS = 3
LOOPS_ROOM = 4  # elements of both
REGISTERS = 5
REGISTERS_ROOM = 6
OBJECTS_ROOM = 7
SCALARS = 8  # address of Stream.scalars
CURSOR = 9  # address of the cursor
FRAMES = 10
IDS = 11  # addresses of the records at hand
WORDS = 12
RECORDS = 13  # how many there are
WORDS_END = 14  # address one past their words
STREAM = 15  # its number
BUDGET = 16  # how many more events there is room for in what modules keep of a stream
KIND = 17  # the columns
SUBJECT = 18
ADDRESS = 19
SIZE = 20
VALUE = 21
ROOM = 22  # rows of them
COMPILED = 23  # records that compiled paths replayed
RAISED = 24  # address of what a module has raised, as Numba describes it; 0: nothing
OUTSIDE = 25  # which path has left which table (bounds.py); 0: none, or not checked
ARGUMENTS = 26  # behind these: the leaves of the arguments of the derive kernel, then those of the modules

IDS_ARGUMENT = 4
"""Arguments of the derive kernel before the records."""
ALL_BITS = (1 << 64) - 1


class Machine:
    """The block of one stream."""

    def __init__(self, number: int) -> None:
        self.words: NDArray[np.int64] = np.zeros(ARGUMENTS, np.int64)
        self.words[STREAM] = number
        self._ids = ARGUMENTS
        self._lasting: tuple[Any, ...] = ()  # what was described last; it lives on
        self._kept: Any = ()

    @property
    def address(self) -> int:
        """Where it lies."""
        return self.words.ctypes.data

    def describe(self, arguments: Sequence[Any], moving: Sequence[Any]) -> None:
        """Note where everything lies now: the `arguments` of the derive kernel, and the `moving` ones of modules.

        Between most calls only the records are others, and all else is known by its identity.
        """
        lasting = (*arguments[:IDS_ARGUMENT], *moving)
        if len(lasting) != len(self._lasting) or not all(map(_is_same, lasting, self._lasting)):
            self._describe_all(arguments, moving)
        _, stream, _, _, ids, words, cursor, limit = arguments
        described = [(leaf or 0) & ALL_BITS for part in (ids, words, cursor, limit) for leaf in leaves(part)]
        self.words[self._ids : self._ids + len(described)] = np.array(described, np.uint64).view(np.int64)
        top = int(stream.scalars[layouts.TOP])
        self.words[FRAME] = self.words[FRAMES] + top * stream.frames.itemsize if top >= 0 else 0
        self.words[[IDS, WORDS, RECORDS]] = _address(ids), _address(words), len(ids)
        self.words[WORDS_END] = self.words[WORDS] + words.nbytes
        self._kept = (ids, words)

    def _describe_all(self, arguments: Sequence[Any], moving: Sequence[Any]) -> None:
        described = [(leaf or 0) & ALL_BITS for part in (*arguments, *moving) for leaf in leaves(part)]
        if len(described) + ARGUMENTS != len(self.words):
            self.words = np.concatenate([self.words[:ARGUMENTS], np.zeros(len(described), np.int64)])
        self.words[ARGUMENTS:] = np.array(described, np.uint64).view(np.int64)
        self._ids = ARGUMENTS + sum(1 for part in arguments[:IDS_ARGUMENT] for _ in leaves(part))
        _, stream, _, out, _, _, cursor, _ = arguments
        own = {
            FRAMES: _address(stream.frames),
            FRAMES_END: _address(stream.frames) + stream.frames.nbytes,
            OPEN_LOOPS: _address(stream.open_loops),
            ITERATIONS: _address(stream.iterations),
            LOOPS_ROOM: len(stream.open_loops),
            REGISTERS: _address(stream.registers),
            REGISTERS_ROOM: len(stream.registers),
            OBJECTS_ROOM: len(stream.objects),
            SCALARS: _address(stream.scalars),
            CURSOR: _address(cursor),
            KIND: _address(out.kind),
            SUBJECT: _address(out.subject),
            ADDRESS: _address(out.address),
            SIZE: _address(out.size),
            VALUE: _address(out.value),
            ROOM: len(out.kind),
        }
        self.words[list(own)] = list(own.values())
        self._lasting = (*arguments[:IDS_ARGUMENT], *moving)


def _is_same(one: Any, other: Any) -> bool:
    return one is other


def _address(array: Any) -> int:
    return 0 if array is None else int(array.ctypes.data)
