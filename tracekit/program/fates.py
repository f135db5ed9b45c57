"""What the optimiser has made of loops of the source that the program does not have (image table ``loop_fates``)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tracekit.formats.events import NONE
from tracekit.formats.image import LoopFate
from tracekit.program.sources import is_meant

if TYPE_CHECKING:
    from tracekit.program.program import Program

Fate = Mapping[str, Any]
"""``loop``: function, file, line, column, end_line. ``fate``: a LoopFate, in small letters. ``into``: the place of the
innermost loop that what is left of it runs in, or None."""

WORDS = {
    LoopFate.UNROLLED: "the optimiser has unrolled it or joined it with other code",
    LoopFate.COMPUTED: "the optimiser computes what it leaves without it",
    LoopFate.SET: "the optimiser has made a call of memset of it",
    LoopFate.COPY: "the optimiser has made a call of memcpy or memmove of it",
    LoopFate.DELETED: "the optimiser has deleted it, for nothing uses what it does, or that is known beforehand",
}


def fates(program: Program) -> list[Fate]:
    """The loops of the source that are no loops of the program, or run inside out, by place.

    A loop of a header counts as there if any unit has it.
    """
    there = {_place(program, int(location)) for location in program.loops["location"]}
    found: dict[tuple[str, int, int], Fate] = {}
    for row in program.loop_fates:
        fate = LoopFate(int(row["fate"]))
        place = _place(program, int(row["location"]))
        if fate is LoopFate.INTERCHANGED or place not in there:
            loop = _shown(program, int(row["location"])) | {"end_line": int(row["end_line"])}
            into = _shown(program, int(row["into"])) if row["into"] != NONE else None
            found.setdefault(place, {"loop": loop, "fate": fate.name.lower(), "into": into})
    return [found[place] for place in sorted(found)]


def fate_at(program: Program, place: tuple[str, int]) -> Fate | None:
    """What became of the loop at FILE:LINE, or of the innermost around that line.

    Nothing if that one is a loop of the program in its place, or if loops of several files may be meant.
    """
    file, line = place
    compilation = program.source_names.compilation
    around = [
        each
        for each in fates(program)
        if each["loop"]["line"] <= line <= each["loop"]["end_line"]
        and is_meant(file, each["loop"]["file"], compilation)
    ]
    files = {each["loop"]["file"] for each in around}
    if file in files:
        around = [each for each in around if each["loop"]["file"] == file]
    elif len(files) > 1:
        return None
    if not around:
        return None
    inner = max(around, key=lambda each: (each["loop"]["line"], each["loop"]["column"]))
    is_there = inner["fate"] == LoopFate.INTERCHANGED.name.lower()
    return None if _begins_later(program, inner["loop"], line, is_there) else inner


def _begins_later(program: Program, loop: Mapping[str, Any], line: int, is_there: bool) -> bool:
    """Is there a loop of the program around a line that begins in the same line as `loop`, or behind it?"""
    for row in range(len(program.loops)):
        file, begin, column = _place(program, int(program.loops["location"][row]))
        is_it = is_there and (begin, column) == (loop["line"], loop["column"])
        inside = loop["line"] <= begin <= line <= int(program.loops["end_line"][row])
        if file == loop["file"] and inside and not is_it:
            return True
    return False


def fate_text(fate: Fate) -> str:
    """Sentences: ``The loop at a.c:9 is not in the program as compiled: ...``."""
    loop = f"{fate['loop']['file']}:{fate['loop']['line']}"
    into = f"{fate['into']['file']}:{fate['into']['line']}" if fate["into"] else ""
    if fate["fate"] == LoopFate.INTERCHANGED.name.lower():
        return f"The loops at {loop} and {into} are interchanged in the program as compiled."
    text = f"The loop at {loop} is not in the program as compiled: {WORDS[LoopFate[fate['fate'].upper()]]}"
    if into:
        text += f"; what is left of it runs in the loop at {into}"
    return f"{text}. Built with -O0 it is a loop of its own."


def _place(program: Program, location: int) -> tuple[str, int, int]:
    place = program.place(location)
    return place["file"], place["line"], place["column"]


def _shown(program: Program, location: int) -> dict[str, Any]:
    return {"function": program.text(int(program.locations["function"][location])), **program.place(location)}
