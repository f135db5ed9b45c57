"""Whether a program brings a `malloc` whose blocks the recorder does not see."""

from __future__ import annotations

import struct
from collections.abc import Sequence

from tracekit.formats.allocators import PREFIX
from tracekit.formats.unit import Unit
from tracekit.recorder import elf

OPTION = f"{PREFIX}malloc:"
"""Begins an option of a unit that calls or defines a `malloc` which is seen."""


def is_unseen(executable: str, units: Sequence[Unit]) -> bool:
    """Whether an executable has a `malloc` of its own, of which none of its units tells.

    Such a function stands in front of the preloaded library's, and the dynamic linker sees it, for the C library
    allocates by it, too. So a file without symbols of that kind, or that cannot be read, has none.
    """
    try:
        if "malloc" not in elf.exported_functions(executable):
            return False
    except (OSError, StopIteration, struct.error, UnicodeDecodeError):
        return False
    options = ((unit, row) for unit in units for row in unit.tables["options"]["option"].tolist())
    return not any(unit.text(row).startswith(OPTION) for unit, row in options)
