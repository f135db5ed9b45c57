"""Loop-aware memory profiling: dependences and the loops that carry them, whatever the calling context.

The baseline that the CAMP paper compares itself with (LAMP; Fig. 2a shows its profile, at all levels).
"""

from __future__ import annotations

from tracekit.replay.family import DependenceModule


class Lamp(DependenceModule):
    """One row for each pair of instructions and kind; loops are judged without regard to who called them."""

    context = False


MODULE = Lamp
