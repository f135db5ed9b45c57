"""Renders the parts of SPEC.md that the Python tables define: the events, and the values of enumerated fields.

``python -m tracekit.formats.spec`` rewrites them in place; a test fails if they are stale.
"""

from __future__ import annotations

import inspect
import re
from enum import IntEnum, IntFlag
from pathlib import Path

from tracekit.formats import events, image

SPEC = Path(__file__).resolve().parent / "SPEC.md"

ENUMS: tuple[type[IntEnum | IntFlag], ...] = (
    image.OpKind,
    image.OpFlag,
    image.OpUse,
    image.Base,
    image.TypeClass,
    image.PathFlag,
    image.BlockFlag,
    image.FunctionFlag,
    image.CallFlag,
    image.LoopFlag,
    image.PhiKind,
    image.CauseOf,
    image.CauseKind,
    image.CauseFlag,
    image.PartKind,
    image.VariableFlag,
    image.LoopFate,
    image.EdgeKind,
    image.NodeKind,
    image.StructureKind,
    image.TypedKind,
    image.GlobalFlag,
)

_SECTION = "<!-- {0}: python -m tracekit.formats.spec -->\n{1}<!-- end of {0} -->"
_COMMENT = re.compile(r"^    (\w+) = \d+  # (.*)$", re.MULTILINE)


def render_enums() -> str:
    """Every enumeration as a list of its members; the comments beside the members say what they mean."""
    lines: list[str] = []
    for kind in ENUMS:
        meanings = dict(_COMMENT.findall(inspect.getsource(kind)))
        summary = (kind.__doc__ or "").splitlines()[0]
        lines += [f"**{kind.__name__}**: {summary[0].lower()}{summary[1:]}", ""]
        for member in kind:
            meaning = f": {meanings[member.name]}" if member.name in meanings else ""
            lines.append(f"* {member.value} {member.name}{meaning}")
        lines.append("")
    return "\n".join(lines)


def render_events() -> str:
    """The event table."""
    lines = ["| code | event | since | recorded words | subject | address | size | value | |", "|" + "---|" * 9]
    for event in events.EVENTS:
        words = ", ".join(event.words) or "none"
        cells = (
            str(event.code),
            event.name,
            str(event.since),
            words if event.code in events.RECORDED else "",
            event.subject,
            event.address,
            event.size,
            event.value,
            event.doc,
        )
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def render(text: str) -> str:
    """SPEC.md's `text` with both parts as they should be."""
    for name, part in (("enums", render_enums()), ("events", render_events())):
        pattern = _SECTION.format(name, "(?:.*\n)*?")
        replacement = _SECTION.format(name, "\n" + part + "\n")
        text, count = re.subn(pattern, lambda _, to=replacement: to, text)  # type: ignore[misc]
        if count != 1:
            raise ValueError(f"SPEC.md has {count} places for {name}")
    return text


def main() -> None:
    """Rewrite SPEC.md."""
    SPEC.write_text(render(SPEC.read_text()))


if __name__ == "__main__":
    main()
