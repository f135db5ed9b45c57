"""What a trace says of allocators of the program's own: SPEC, "options"."""

from __future__ import annotations

PREFIX = "allocator="
"""Of an option of a unit: the linkage name and the roles of the parameters follow, with a colon between."""

FAMILY = (
    *("malloc", "calloc", "realloc", "reallocarray", "free", "cfree", "aligned_alloc", "posix_memalign", "memalign"),
    *("valloc", "pvalloc"),
)
"""Names whose parameters are known, in any case, alone and at the end of longer ones: MallocsFamily of the pass."""
