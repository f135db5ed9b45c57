"""Calls one kernel again and again, and describes to its machine code only the arguments that have changed."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Any

from tracekit.jit.native import Code, raise_problem
from tracekit.jit.values import UnknownTypeError, kind_and_words

if TYPE_CHECKING:
    from tracekit.jit.kernel import Kernel

KindAndWords = tuple[Hashable, bytes]


class Caller:
    """Calls a kernel again and again: a tuple, array or number that stays the same is described once.

    It keeps the arguments of the last call alive. An array's shape and memory must stay what they were then.
    """

    def __init__(self, kernel: Any) -> None:
        self._kernel: Kernel[..., Any] = kernel
        self._last: list[Any] = []
        self._known: list[KindAndWords] = []
        self._code: Code | None = None
        self._results: Any = None

    def __call__(self, *arguments: Any) -> Any:
        """Run the kernel."""
        if len(arguments) != len(self._last):
            self._last, self._known = [_NOTHING] * len(arguments), [(_NOTHING, b"")] * len(arguments)
            self._code = None
        last, known = self._last, self._known
        for number, argument in enumerate(arguments):
            if argument is not last[number]:
                try:
                    described = kind_and_words(argument)
                except UnknownTypeError:
                    return self._kernel.dispatcher(*arguments)
                if described[0] != known[number][0]:
                    self._code = None
                known[number], last[number] = described, argument
        code = self._code
        if code is None:
            code = self._find(arguments)
            if code is None:
                return self._kernel(*arguments)
        problem = code.run(b"".join([words for _, words in known]), self._results)
        if problem:
            raise_problem(problem)
        return code.result(self._results)

    def _find(self, arguments: Sequence[Any]) -> Code | None:
        """The code for arguments that have been described; None if only Numba can call it."""
        if self._kernel.is_native:
            self._code = self._kernel.native.code_for(tuple(kind for kind, _ in self._known), arguments)
            self._results = self._code and self._code.room()
        return self._code


_NOTHING = object()
"""What no argument is, and no type."""
