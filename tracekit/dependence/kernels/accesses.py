"""The number of a load or store: of its instruction, in the present context where contexts are told apart."""

from __future__ import annotations

from typing import Any

import numpy as np

from tracekit.contexts.kernels.streams import CONTEXT, DEPTH
from tracekit.dependence.kernels.dependence_table import access_of
from tracekit.jit.kernel import inlined

KNOWN = np.dtype("<u4")
"""An access that was met lately, by a hash of instruction and context; its row says which they are."""
KNOWN_BITS = 17
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
    place = np.uint64(instruction + present * CONTEXT_STRIDE) & np.uint64((1 << KNOWN_BITS) - 1)
    access = np.uint64(state.known[place])
    if state.relations.accesses.rows[access].key != key or access == 0:
        access = np.uint64(access_of(state.relations, instruction, present, context, levels.control[DEPTH]))
        state.known[place] = access
    return np.int64(access)
