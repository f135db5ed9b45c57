"""Which files are sources of Fortran, and of which form, by their names and texts; FortranText.cpp does the same."""

from __future__ import annotations

import re

_FREE = (".f90", ".f95", ".f03", ".f08", ".f18")
_FIXED = (".f", ".for", ".ftn", ".fpp", ".f77")


def is_fortran(name: str) -> bool:
    """Is a file a source of Fortran, by its name?"""
    return name.lower().endswith((*_FREE, *_FIXED))


_STATEMENT_AHEAD = re.compile(r"^(?![c*d!#])[ 0-9]{0,4}[a-z]", re.IGNORECASE | re.MULTILINE)
"""A letter in the first five columns, where fixed form has labels, but for lines that are comments there."""


def is_fixed_form(name: str, text: str) -> bool:
    """Is a source of Fortran in fixed form: by its name, and no text that compilers take in free form alone?

    An option (`-ffree-form`) has them read `solver.F` in free form.
    """
    return name.lower().endswith(_FIXED) and not _STATEMENT_AHEAD.search(text)
