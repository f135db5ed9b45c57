"""WHOMP: all accesses of a run as grammars, one for each dimension (Wu et al., CGO 2004, section 3).

What ``tracekit analyze -m whomp --grammars FILE`` writes is read back here:

    for values in tracekit.whomp.expand("run.whomp", "offset"): ...
    for instruction, group, object, offset in tracekit.whomp.accesses("run.whomp"): ...
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

DIMENSIONS = ("instruction", "group", "object", "offset")
"""Those of an object-relative profile (OMSG); the conventional one (RASG) is of ``address``."""
ALL = (*DIMENSIONS, "address")


def expand(path: str | Path, dimension: str) -> Iterator[Any]:
    """The stream of one of ALL in the order of the run, as int64 arrays of at most 65,536 values each.

    Raises TracekitError if the file is not one of grammars, or has no such dimension.
    """
    from tracekit.whomp.file import load

    return load(path, (dimension,))[0].expanded()


def accesses(path: str | Path) -> Iterator[tuple[Any, Any, Any, Any]]:
    """All accesses of the run: (instruction, group, object, offset), int64 arrays of one length each.

    Raises TracekitError if the file is not one of grammars.
    """
    from tracekit.whomp.file import load

    streams = [grammar.expanded() for grammar in load(path, DIMENSIONS)]
    return zip(*streams, strict=True)


def groups(path: str | Path) -> list[dict[str, Any]]:
    """What the numbers of groups mean, as profiles show them."""
    from tracekit.whomp.file import load_groups

    return load_groups(path)
