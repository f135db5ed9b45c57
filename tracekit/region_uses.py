"""What a region of the address space is for, as snapshots and their profiles say it."""

from __future__ import annotations

HEAP, STACK, IMAGE, FILE = "heap", "stack", "image", "file"
ANONYMOUS, KERNEL, OWN = "anonymous", "kernel", "tracekit"
USES = (HEAP, STACK, IMAGE, FILE, ANONYMOUS, KERNEL, OWN)
"""In the order of columns, and of areas from below in a picture."""
