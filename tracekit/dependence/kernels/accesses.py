"""The number of a load or store: of its instruction, in the present context where contexts are told apart."""

from __future__ import annotations

from typing import Any

import numpy as np

from tracekit.contexts.kernels.streams import CONTEXT, DEPTH
from tracekit.dependence.kernels.dependence_table import access_of
from tracekit.jit.kernel import inlined

KNOWN = np.dtype([("key", "<u8"), ("access", "<i8")])
"""An instruction << 32 | context that was met lately, and its access."""
KNOWN_BITS = 16
CONTEXT_STRIDE = 0x9E3779B1
"""Accesses of one context lie side by side, those of two contexts far apart."""


@inlined
def access_in(state: Any, levels: Any, instruction: Any, context: Any) -> Any:
    """The access of an instruction in the present context, which a profile shows as `context`; None: in any."""
    if context is None:  # Numba compiles one of the two
        return _access_of_instruction(state, instruction)
    return _access_in_context(state, levels, instruction, context)


@inlined
def _access_of_instruction(state: Any, instruction: Any) -> Any:
    access = np.int64(state.access[np.uint64(instruction)])
    if access == 0:
        access = access_of(state.relations, instruction, 0, 0, 0)
        state.access[np.uint64(instruction)] = access
    return access


@inlined
def _access_in_context(state: Any, levels: Any, instruction: Any, context: Any) -> Any:
    present = levels.control[CONTEXT]
    key = np.uint64((instruction << 32) | present)
    known = state.known[np.uint64(instruction + present * CONTEXT_STRIDE) & np.uint64((1 << KNOWN_BITS) - 1)]
    if known.key != key or known.access == 0:
        known.access = access_of(state.relations, instruction, present, context, levels.control[DEPTH])
        known.key = key
    return np.int64(known.access)
