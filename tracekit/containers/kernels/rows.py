"""Makes functions that kernels can loop over: rows of a shadow, found word by word.

Numba does not inline generators (a loop over one takes three times as long), so this is an iterator of our own, like
Numba's range: its four numbers become registers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tracekit.jit.kernel import Instruction


def rows_of(step: Callable[..., Any]) -> Any:
    """Make a function (memory, address, size) for kernels that gives the rows of an access, each once, in order.

    `step(memory, address, left)`, inlined, gives the first and the last row of the first word of the `left` bytes at
    `address`, and how many of them lie in it.
    """

    def rows(typing: Any, memory: Any, address: Any, size: Any) -> Any:
        from tracekit.containers.kernels.rowtypes import RowsType, generator

        return generator(RowsType(memory, step))

    return Instruction(rows)
