"""What threads are for: the function that each begins with, and the context that it was created in."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tracekit.containers.kernels.hash_table import HashTable, row_of
from tracekit.jit.kernel import inlined

ROLE_FIELDS = [("function", "<i8"), ("context", "<i8")]
"""Of a stream: its first function, and the context in which its thread was created, each plus 1; 0 is not known."""

WRAPPER, MAIN = 1, 2
"""Kinds of functions: one of the C++ library, or of its start-up code, that calls what a thread is for; main."""


class Roles(NamedTuple):
    """By stream."""

    rows: HashTable  # ROLE_FIELDS by stream
    kinds: NDArray[np.uint8]  # by function: WRAPPER, MAIN or 0


@inlined
def entered(roles: Any, function: Any, stream: Any) -> None:
    """A function begins; the first one of a stream is its role, but main comes before what is called for it."""
    role = roles.rows.rows[row_of(roles.rows, stream)]
    if role.function == 0 or roles.kinds[role.function - 1] == WRAPPER or roles.kinds[function] == MAIN:
        role.function = function + 1


@inlined
def created(roles: Any, stream: Any, context: Any) -> None:
    """The thread that writes `stream` is created in `context`."""
    roles.rows.rows[row_of(roles.rows, stream)].context = context + 1
