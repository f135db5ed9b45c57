"""Calls of a kernel from inside another one, by its machine code: many calls whose arguments Python prepares once.

A kernel that another calls by its name becomes a part of that one, for the same types of arguments. Here the caller is
told addresses, so the same small kernel calls any other one again and again, each time with a row of words that was
made for it (values.py), some of which it may replace.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tracekit.jit.kernel import Instruction, Kernel
from tracekit.jit.values import UnknownTypeError, kind_and_words

Described = tuple[Hashable, NDArray[np.int64]]

RESULTS = 8
"""Words that are kept for what a call returns."""

# Words of an array among the arguments, from its first word on.
ARRAY_ITEMS = 2
ARRAY_ADDRESS = 4
ARRAY_LENGTH = 5  # of one dimension


def _call(typing: Any, code: Any, words: Any, first: Any, results: Any) -> Any:
    from llvmlite import ir
    from numba.core import types
    from numba.np import arrayobj

    arrays: Any = arrayobj

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer = ir.IntType(64).as_pointer()
        data = [arrays.make_array(signature.args[k])(context, builder, arguments[k]).data for k in (1, 3)]
        given = [builder.bitcast(builder.gep(data[0], [arguments[2]]), pointer), builder.bitcast(data[1], pointer)]
        kind = ir.FunctionType(ir.IntType(64), [pointer, pointer])
        return builder.call(builder.inttoptr(arguments[0], kind.as_pointer()), given)

    return types.int64(types.int64, words, types.int64, results), generate


if TYPE_CHECKING:

    def call(code: Any, words: Any, first: Any, results: Any) -> Any:
        """Call the code at an address (i8) with the arguments in `words` (i8) from word number `first` of all rows on.

        Returns 0, or what it raised (native.raise_problem); what the kernel returned is in `results` (i8).
        """
else:
    call = Instruction(_call)


class CallTable:
    """The arguments of a kernel, a row for each of several callers.

    ``codes`` (rows) i8: addresses of its code; ``words`` (rows, width) i8; ``results`` (RESULTS) i8. What the arguments
    are is kept alive. An array's shape and memory must stay what they were when it was set, and an argument has equally
    many words in all rows.
    """

    def __init__(self, kernel: Any) -> None:
        self._kernel: Kernel[..., Any] = kernel
        self._set: list[tuple[Any, ...]] = []
        self._kinds: list[list[Hashable]] = []
        self._loaded: list[Any] = []
        self._known: dict[int, tuple[Any, Described]] = {}
        self.places: list[int] = []
        """The first word of each argument; the width behind the last."""
        self.codes = np.zeros(0, np.int64)
        self.words = np.zeros((0, 0), np.int64)
        self.results = np.zeros(RESULTS, np.int64)

    def set(self, row: int, *arguments: Any) -> bool:
        """Set the arguments of a row, of which most are what they were; False if only Numba can call the kernel."""
        while row >= len(self._set):
            self._add_row(len(arguments))
        before, kinds = self._set[row], self._kinds[row]
        is_same = self._loaded[row] is not None
        for number, argument in enumerate(arguments):
            if argument is not before[number]:
                try:
                    kind, words = self._described(number, argument)
                except UnknownTypeError:
                    return False
                self._make_room(number, len(words))
                self.words[row, self.places[number] : self.places[number + 1]] = words
                is_same &= kinds[number] == kind
                kinds[number] = kind
        self._set[row] = arguments
        return is_same or self._find(row, arguments)

    def _add_row(self, arguments: int) -> None:
        self._set.append((_NOTHING,) * arguments)
        self._kinds.append([_NOTHING] * arguments)
        self._loaded.append(None)
        if len(self._set) > len(self.codes):
            more = max(len(self.codes), 4)
            self.codes = np.concatenate([self.codes, np.zeros(more, np.int64)])
            self.words = np.concatenate([self.words, np.zeros((more, self.words.shape[1]), np.int64)])

    def _described(self, number: int, argument: Any) -> Described:
        """The kind of an argument and its words: rows have many of them in common."""
        last, described = self._known.get(number, (_NOTHING, None))
        if described is None or last is not argument:
            kind, words = kind_and_words(argument)
            described = kind, np.frombuffer(words, np.int64)
            self._known[number] = argument, described
        return described

    def _make_room(self, number: int, words: int) -> None:
        """Find the place of an argument that has not been set in any row."""
        if number + 1 >= len(self.places):
            self.places = self.places or [0]
            self.places.append(self.places[-1] + words)
            self.words = np.concatenate([self.words, np.zeros((len(self.words), words), np.int64)], axis=1)

    def _find(self, row: int, arguments: tuple[Any, ...]) -> bool:
        self._loaded[row] = None
        if self._kernel.is_native:
            self._loaded[row] = code = self._kernel.native.code_for(tuple(self._kinds[row]), arguments)
            if code is not None:
                self.codes[row] = code.address
        return self._loaded[row] is not None


_NOTHING = object()
"""What no argument is, and no type."""
