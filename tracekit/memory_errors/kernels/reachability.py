"""Which blocks are reachable from other memory; memory_errors/reachability.py makes a graph of the pointers."""

from __future__ import annotations

from typing import Any

from tracekit.jit.kernel import inlined, kernel

# How a block is reached: memory_errors.reach.REACHES.
DEFINITELY = 0  # by nothing
INDIRECTLY = 1  # from blocks that are lost, too
POSSIBLY = 2  # by a way on which a pointer is to the inside of a block
STILL = 3  # by pointers to the first bytes of blocks
NOT_KNOWN = 4  # from nothing, but it is a library's, or from such a block
NEW = 5  # not yet decided


@inlined
def _spread(first: Any, targets: Any, exact: Any, found: Any, waiting: Any, source: Any, reach: Any, any_: Any) -> None:
    """Blocks that are not decided and that `source` leads to are reached so; `any_`: not by exact pointers alone.

    A block that was found to be lost DEFINITELY before is lost INDIRECTLY if `source`, a lost one, leads to it.
    """
    waiting[0] = source
    count = 1
    while count > 0:
        count -= 1
        here = waiting[count]
        for edge in range(first[here], first[here + 1]):
            target = targets[edge]
            if found[target] == NEW and (any_ or exact[edge]):
                found[target] = reach
                waiting[count] = target
                count += 1
            elif reach == INDIRECTLY and found[target] == DEFINITELY and target != source:
                found[target] = reach


@kernel
def reach(first: Any, targets: Any, exact: Any, libraries: Any, found: Any, waiting: Any) -> None:
    """Decide how each of n blocks is reached; they are numbered in the order of their addresses.

    first: i8 (n + 2), targets: i8; pointers in block k lead to ``targets[first[k] : first[k + 1]]``, those elsewhere
    are block n's. exact: bool for each pointer, whether it is to a first byte. libraries: bool (n), blocks the pointers
    to which may be where nobody saw them. found: u1 (n), all NEW, gets the result. waiting: i8 (n + 1), scratch.
    """
    blocks = found.size
    _spread(first, targets, exact, found, waiting, blocks, STILL, False)
    _spread(first, targets, exact, found, waiting, blocks, POSSIBLY, True)
    for block in range(blocks):
        if found[block] == STILL:
            _spread(first, targets, exact, found, waiting, block, POSSIBLY, True)
    for block in range(blocks):
        if found[block] == NEW and libraries[block]:
            found[block] = NOT_KNOWN
            _spread(first, targets, exact, found, waiting, block, NOT_KNOWN, True)
    for block in range(blocks):
        if found[block] == NEW:
            found[block] = DEFINITELY
            _spread(first, targets, exact, found, waiting, block, INDIRECTLY, True)
