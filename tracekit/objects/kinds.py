"""What kinds of objects there are."""

from __future__ import annotations

from enum import IntEnum


class ObjectKind(IntEnum):
    """Field ``kind`` of ``objects``."""

    UNKNOWN = 0  # memory of no object that the trace knows; its site is NONE
    HEAP = 1
    STACK = 2
    GLOBAL = 3
