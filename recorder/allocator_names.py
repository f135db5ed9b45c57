"""What `tracekit cc --allocator` is given: allocators of the program's own, as the pass reads them (pass/Allocators.h).

It is imported for each file of a build: keep it light.
"""

from __future__ import annotations

import re

from tracekit.formats.allocators import FAMILY
from tracekit.formats.errors import TracekitError

ROLES = {"size": "s", "count": "c", "block": "b", "out": "o", "_": "_"}
_ITEM = re.compile(r"\s*([^\s(),;:=*]*\*|[^\s(),;:=*]+)\s*(?:\(([^()]*)\))?\s*(?:,|$)")


def read(text: str) -> list[str]:
    """The allocators that the value of one option names, separated by commas.

    Quotes around it are left out: CC="tracekit cc --allocator='je_*'" is read by make's shell, which takes them away,
    and by configure scripts, which do not. Raises TracekitError for one that is none.
    """
    text = text.strip("'\"")
    found: list[str] = []
    position = 0
    while position < len(text) or not text:
        item = _ITEM.match(text, position)
        if item is None:
            raise TracekitError(
                f"--allocator takes names such as je_malloc, 'je_*', or 'palloc(_, size)', not {text[position:]!r}."
            )
        found.append(_allocator(*item.groups()))
        position = item.end()
    return found


def _allocator(name: str, parameters: str | None) -> str:
    if parameters is not None and not name.endswith("*"):
        return f"{name}:{_roles(name, parameters)}"
    if parameters is not None or (not name.endswith("*") and not name.lower().endswith(FAMILY)):
        raise TracekitError(
            f"--allocator {name}: its parameters are not known by the name; say them, "
            f"as in '{name.rstrip('*')}(_, size)'."
        )
    return name


def _roles(name: str, parameters: str) -> str:
    words = [word.strip() for word in parameters.split(",")]
    if unknown := [word for word in words if word not in ROLES]:
        raise TracekitError(f"--allocator {name}: a parameter is size, count, block, out or _, not {unknown[0]!r}.")
    roles = "".join(ROLES[word] for word in words)
    if not {"s", "b"} & set(roles) or any(roles.count(role) > 1 for role in "scbo"):
        raise TracekitError(f"--allocator {name}: it has a size, a block that it frees, or one of each.")
    return roles
