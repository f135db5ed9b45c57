"""What text for standard output may have: colours, and how long its lines may be."""

from __future__ import annotations

import os
import shutil
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tracekit.render.text import Style


NARROWEST = 40
"""Lines are not made shorter than this, however narrow the terminal is."""


def terminal_style() -> Style:
    """The style of text on standard output.

    It has colours on a terminal, unless the user has set NO_COLOR; lines are as long as the terminal is wide, or as
    COLUMNS says, and else as long as they are, because they are for other programs.
    """
    from tracekit.render.text import Style

    terminal = sys.stdout.isatty()
    has_width = terminal or "COLUMNS" in os.environ
    width = max(shutil.get_terminal_size().columns, NARROWEST) if has_width else 0
    return Style(terminal and "NO_COLOR" not in os.environ, width)
