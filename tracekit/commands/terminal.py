"""Whether text for standard output may have colours."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tracekit.render.text import Style


def terminal_style() -> Style:
    """The emphasis of text on standard output: none if it is no terminal, or if the user has set NO_COLOR."""
    from tracekit.render.text import Style

    return Style(sys.stdout.isatty() and "NO_COLOR" not in os.environ)
