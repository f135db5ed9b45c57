"""Names for the lines of a fixture: the comments that mark them, so that tests speak of marks and not of numbers."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from tests.programs.running import FIXTURES

_MARK = re.compile(r"// ([A-Z][A-Z0-9]*(?:-[A-Z0-9]+)*)(?=$|[:\s])")


@cache
def marks(name: str) -> Mapping[int, str]:
    """Line -> mark, of the fixture `name`. A mark is a word in capitals that begins the line's comment."""
    found: dict[int, str] = {}
    for number, line in enumerate((FIXTURES / name).read_text().splitlines(), 1):
        match = _MARK.search(line)
        if match is not None and not line.startswith("//"):
            found[number] = match.group(1)
    assert len(set(found.values())) == len(found), f"{name} has a mark twice"
    return found


@dataclass(frozen=True)
class Found:
    """A dependence between two marked lines."""

    kind: str
    source: str
    destination: str
    contexts: tuple[int | None, int | None]
    levels: tuple[tuple[str, bool, bool], ...]
    """(mark of the loop's line, intra, inter), outermost first."""


def dependences(name: str, result: Mapping[str, Any]) -> list[Found]:
    """The dependences of a profile of fixture `name` between two marked lines."""
    names = marks(name)
    found = []
    for row in result["dependences"]:
        ends = [names.get(row[end]["line"]) for end in ("source", "destination")]
        if ends[0] is None or ends[1] is None:
            continue
        contexts = (_id(row["source_context"]), _id(row["destination_context"]))
        levels = tuple((_loop(names, level["loop"]), level["intra"], level["inter"]) for level in row["levels"])
        found.append(Found(row["kind"], ends[0], ends[1], contexts, levels))
    return found


def _id(context: Mapping[str, Any] | None) -> int | None:
    return None if context is None else context["id"]


def _loop(names: Mapping[int, str], loop: Mapping[str, Any]) -> str:
    if "recursion" in loop:
        return "recursion"
    return names.get(loop["line"], f"{loop['function']}:{loop['line']}")
