"""Accesses of which the program's text says the variable, and whether they are to its bytes.

A *group* is a global variable, or the local variables of one name in one function. The compiler has followed the
address of such an access to the variable, so wherever else it goes is out of bounds. memory_errors/variables.py makes
groups. Addresses and sizes, in bytes, are int64, groups int32 and int64.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tracekit.jit.kernel import inlined, kernel
from tracekit.objects.kernels.live import DEAD, GLOBAL, SITE_BITS, SITE_SHIFT, STACK, at, kind_of


class Named(NamedTuple):
    """The groups of a program, from 1 on; 0 is none."""

    of_access: NDArray[np.int32]  # by instruction: the group that it accesses
    of_local: NDArray[np.int32]  # by instruction: the group of the local variable that it begins
    of_global: NDArray[np.int32]  # by global variable
    low: NDArray[np.int64]  # by group: the bytes of the variable that began, or was accessed, last
    high: NDArray[np.int64]


@inlined
def is_elsewhere(named: Any, group: Any, address: Any, size: Any) -> Any:
    """Whether an access is not to the bytes where its group is expected."""
    return group != 0 and (address < named.low[np.uint64(group)] or address + size > named.high[np.uint64(group)])


@inlined
def begun(named: Any, group: Any, address: Any, size: Any) -> None:
    """Note where a variable of a group begins."""
    if group != 0:
        named.low[np.uint64(group)] = address
        named.high[np.uint64(group)] = address + size


@kernel
def group_of(live: Any, named: Named, owner: Any) -> Any:
    """The group (int64) of a live object; 0: it has none, or there is no such object."""
    if not 0 < owner < DEAD:
        return np.int64(0)
    key = live.sites.rows[live.objects.rows[owner].site].key
    number = (np.int64(key) >> SITE_SHIFT) & SITE_BITS
    group = np.int64(0)
    if kind_of(key) == STACK:
        group = np.int64(named.of_local[number])
    elif kind_of(key) == GLOBAL and number < named.of_global.size:
        group = np.int64(named.of_global[number])
    return group


@kernel
def passed(live: Any, named: Named, group: Any, address: Any, size: Any) -> Any:
    """The object (int64) of the variable whose bounds an access has passed; 0: none, or it is not known to live."""
    owner = np.int64(at(live, address))
    if group_of(live, named, owner) == group:
        found = live.objects.rows[owner]
        named.low[group], named.high[group] = found.start, found.end
        return owner if address + size > found.end else np.int64(0)
    own = np.int64(at(live, named.low[group]))
    if group_of(live, named, own) != group or live.objects.rows[own].start != named.low[group]:
        return np.int64(0)
    if owner >= DEAD:  # the memory of what has ended: it may be the variable, that has been called to an end too early
        return np.int64(0)
    return own
