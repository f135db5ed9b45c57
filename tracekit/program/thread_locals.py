"""Which functions use variables of which each thread has one of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tracekit.formats.image import FunctionFlag

if TYPE_CHECKING:
    from tracekit.program.program import Program


def uses_thread_locals(program: Program) -> NDArray[np.bool_]:
    """For each function whether its code, or what is inlined there, uses thread-local variables: (functions,)."""
    uses: NDArray[np.bool_] = program.functions["flags"] & int(FunctionFlag.THREAD_LOCAL) != 0
    return uses
