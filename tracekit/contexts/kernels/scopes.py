"""The scopes that are open in a stream: calls, invocations of loops, iterations; and which of them hold a life.

Callbacks of modules keep them:

    open_scope(scopes, stream, node, is_loop)    # function_entry, loop_invocation; node: row of the context tree
    next_iteration(scopes, stream)               # loop_iteration
    close_loop(scopes, stream)                   # loop_exit
    close_call(scopes, stream)                   # function_exit

Each keeps the tick at which it opened and, of a loop, at which its present iteration began. What began at tick t lies
in a scope that is open if that opened at or before t: iterations are never counted, so none can be taken for another.
The way out from the innermost scope to the one that holds a life takes the logarithm of the depth: each scope knows
the one around it and one further out (skew-binary jumps), for recursions are deep and their objects may be old.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tracekit.containers.kernels.arena import Arena, take
from tracekit.jit.kernel import inlined

SCOPE = np.dtype(
    [
        ("opened", "<i8"),
        ("iteration", "<i8"),  # ticks; iteration is NEVER of a call
        ("around", "<u4"),
        ("jump", "<u4"),
        ("depth", "<u4"),
        ("node", "<i4"),
        ("region", "<u4"),  # for the module; a scope begins with that of the scope around it
    ]
)
NEVER = (1 << 63) - 1
# Elements of Scopes.control.
TICK = 0
"""Element of ``Scopes.control``: the time, which is how many scopes and iterations have begun."""
FREE = 1  # the first row that waits to be used again
CONTROL = 2
"""How many there are."""


class Scopes(NamedTuple):
    """The open scopes of all streams."""

    rows: Arena  # SCOPE
    top: NDArray[np.uint32]  # stream: its innermost scope, 0 if none is open
    control: NDArray[np.int64]


@inlined
def open_scope(scopes: Any, stream: Any, node: Any, is_loop: Any) -> Any:
    """A scope opens; returns its row."""
    row = np.int64(scopes.control[FREE])
    if row != 0:
        scopes.control[FREE] = scopes.rows.rows[row].around
    else:
        row = np.int64(take(scopes.rows, 1))
    scopes.control[TICK] += 1
    outer = np.int64(scopes.top[np.uint64(stream)])
    around = scopes.rows.rows[outer]
    new = scopes.rows.rows[row]
    new.opened = scopes.control[TICK]
    new.iteration = scopes.control[TICK] if is_loop else NEVER
    new.around = outer
    new.depth = around.depth + 1
    farther = scopes.rows.rows[around.jump]
    new.jump = (
        farther.jump if around.depth - farther.depth == farther.depth - scopes.rows.rows[farther.jump].depth else outer
    )
    new.node = node
    new.region = around.region
    scopes.top[np.uint64(stream)] = row
    return row


@inlined
def next_iteration(scopes: Any, stream: Any) -> None:
    """The innermost scope, a loop, begins its next iteration."""
    scope = scopes.rows.rows[scopes.top[np.uint64(stream)]]
    if scope.iteration != NEVER:
        scopes.control[TICK] += 1
        scope.iteration = scopes.control[TICK]


@inlined
def _close(scopes: Any, stream: Any) -> None:
    row = np.int64(scopes.top[np.uint64(stream)])
    scope = scopes.rows.rows[row]
    scopes.top[np.uint64(stream)] = scope.around
    scope.around = scopes.control[FREE]
    scopes.control[FREE] = row


@inlined
def close_loop(scopes: Any, stream: Any) -> None:
    """The innermost scope, a loop, closes."""
    if scopes.rows.rows[scopes.top[np.uint64(stream)]].iteration != NEVER:
        _close(scopes, stream)


@inlined
def close_call(scopes: Any, stream: Any) -> None:
    """The innermost call closes, and what is open inside."""
    inside = True
    while inside and scopes.top[np.uint64(stream)] != 0:
        inside = scopes.rows.rows[scopes.top[np.uint64(stream)]].iteration != NEVER
        _close(scopes, stream)


@inlined
def holder(scopes: Any, stream: Any, born: Any) -> Any:
    """The innermost open scope of the stream that was open at tick `born`: node << 1 | 1 if even its iteration was.

    0 if none was.
    """
    row = np.int64(scopes.top[np.uint64(stream)])
    while row != 0 and scopes.rows.rows[row].opened > born:
        scope = scopes.rows.rows[row]
        if scopes.rows.rows[scope.jump].opened > born:
            row = np.int64(scope.jump)
        else:
            row = np.int64(scope.around)
    scope = scopes.rows.rows[row]
    return (np.int64(scope.node) << 1) | np.int64(0 < scope.iteration <= born)
