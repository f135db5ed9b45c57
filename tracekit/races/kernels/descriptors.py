"""Numbers of file descriptors: whoever opens one may get the number of one that another task has closed.

The kernel orders the two calls, which no event shows to be meant: they are counted where nothing else orders them, and
with BY_NUMBER that is an order like the one of a lock's release and acquisition.
"""

from __future__ import annotations

from typing import Any

from tracekit.containers.kernels.hash_table import row_of
from tracekit.jit.kernel import kernel
from tracekit.races.kernels.accesses import access_at, is_before, site_of
from tracekit.races.kernels.order import acquire_object, release_object, running
from tracekit.races.kernels.resources import is_descriptor
from tracekit.races.kernels.state import BY_NUMBER, END, REUSED, WRITE, State


@kernel
def number_is_taken(state: State, stream: Any, address: Any) -> None:
    """A stream (int64) has opened a descriptor, if `address` is one's. Call it before the descriptor begins."""
    if not is_descriptor(address) or running(state, stream) == 0:
        return
    closed = state.closed.rows[row_of(state.closed, address)].access
    state.now[REUSED] += closed != 0 and not is_before(state, closed)
    if state.now[BY_NUMBER]:
        acquire_object(state, stream, stream, address)


@kernel
def number_is_given_up(state: State, instruction: Any, context: Any, stream: Any, address: Any) -> None:
    """A stream closes a descriptor, at an instruction (u4) in a context (u4). Call it once the descriptor has ended."""
    if not is_descriptor(address) or running(state, stream) == 0:
        return
    closed = access_at(state, site_of(state, instruction, context, END), WRITE)
    state.closed.rows[row_of(state.closed, address)].access = closed
    if state.now[BY_NUMBER]:
        release_object(state, stream, stream, address)
