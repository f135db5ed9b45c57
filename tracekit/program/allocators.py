"""What a program's own allocators do, in the C library's terms (`tracekit cc --allocator`)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from tracekit.formats.allocators import FAMILY, PREFIX

if TYPE_CHECKING:
    from tracekit.program.tables import Tables


def own_allocators(requested: Iterable[str]) -> dict[str, str]:
    """The program's own allocators: linkage name -> the function of the C library that does the same.

    ``requested``: the options of its units. A name that ends with one of malloc's family is that one, in any case. Of
    others nobody says whether their blocks have contents, so these count as calloc's.
    """
    texts = sorted(option.removeprefix(PREFIX) for option in requested if option.startswith(PREFIX))
    return {name: _like(name, roles) for name, _, roles in (text.rpartition(":") for text in texts)}


def _like(name: str, roles: str) -> str:
    if "b" in roles:
        return "realloc" if "s" in roles else "free"
    return max((each for each in FAMILY if name.lower().endswith(each)), key=len, default="calloc")


def standard_name(program: Tables, call: int) -> str:
    """The linkage name of what a call site calls; of an allocator of the program's own what the C library calls it."""
    name = program.text(int(program.calls["callee"][call]))
    return program.own_allocators.get(name, name)
