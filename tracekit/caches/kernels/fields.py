"""What stands where in the arrays of a hierarchy of caches."""

from __future__ import annotations

# Columns of Hierarchy.shape.
MASK, WAYS, BASE = range(3)  # sets - 1; ways of a set; the first word of the level, of a private one the core's

# Elements of Hierarchy.rules.
POLICY, THROUGH, INCLUSIVE, EXCLUSIVE, PREFETCH, PRIVATE = range(6)  # the last one: how many levels are private
RULES = 6
"""How many there are."""

NEXT_LINE, STRIDE = 1, 2
"""Of PREFETCH."""

# Columns of Hierarchy.counts.
WRITE_BACKS, PREFETCHES, WRITTEN, INVALIDATIONS, TRANSFERS = range(
    5
)  # the last three in the last row, of memory, alone
COUNTS = 5
"""How many there are."""
