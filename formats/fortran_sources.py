"""Which files are sources of Fortran, and of which form, by their names; FortranText.cpp has the same list."""

from __future__ import annotations

_FREE = (".f90", ".f95", ".f03", ".f08", ".f18")
_FIXED = (".f", ".for", ".ftn", ".fpp", ".f77")


def is_fortran(name: str) -> bool:
    """Is a file a source of Fortran, by its name?"""
    return name.lower().endswith((*_FREE, *_FIXED))


def is_fixed_form(name: str) -> bool:
    """Is a source of Fortran in fixed form, by its name?"""
    return name.lower().endswith(_FIXED)
