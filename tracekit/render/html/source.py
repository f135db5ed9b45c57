"""The section of the source: files, hottest first, with what happened beside each line."""

from __future__ import annotations

from tracekit.counted import counted
from tracekit.profiles.annotation import LineNote
from tracekit.render.annotation import carried as carried_ends
from tracekit.render.html.data import Shown, SourceFile
from tracekit.render.html.elements import number_class, text

OPEN_LINES = 1500
"""A file of more lines is not unfolded at first, since a long table takes time to lay out."""


def source_section(shown: Shown) -> str:
    """All files; each folds."""
    return "\n".join(_file(shown, number, file) for number, file in enumerate(shown.files))


def _file(shown: Shown, number: int, file: SourceFile) -> str:
    assert file.lines is not None
    notes = shown.notes.files[file.name]
    loads, stores = shown.notes.totals(file.name)
    rows: list[str] = []
    following = 1
    for first, last in file.stretches:
        if first > following:
            left_out = counted(first - following, "line")
            rows.append(f'<tr class="gap"><td colspan="6">{left_out} left out</td></tr>\n')
        following = last + 1
        rows += [
            _line(number, line, file.lines[line - 1], notes.get(line), file.name) for line in range(first, last + 1)
        ]
    name = shown.names.short(file.name)
    head = "".join(
        f'<th scope="col"{number_class(heading in ("Line", "Loads", "Stores"))}>{heading}</th>'
        for heading in ("Line", "Loads", "Stores", "Source", "Verdict", "Carried")
    )
    shares = f"{counted(loads, 'load')}, {counted(stores, 'store')}"
    counts = f' <span class="dim">{shares}</span>' if shown.notes.has_accesses else ""
    unfolded = number == 0 and len(rows) <= OPEN_LINES
    return (
        f'<details class="file"{" open" if unfolded else ""}><summary>{text(name)}{counts}</summary>'
        f'<div class="scroll" role="region" aria-label="{text(name)}" tabindex="0"><table class="code">'
        f'<caption class="visually-hidden">{text(name)}</caption>'
        f'<caption class="visually-hidden">{text(name)}</caption><thead><tr>{head}</tr></thead>\n'
        f"<tbody>{''.join(rows)}</tbody></table></div></details>"
    )


def _line(file: int, number: int, source: str, note: LineNote | None, name: str) -> str:
    note = note or LineNote()
    verdicts = " ".join(
        f'<span class="verdict {text(verdict)}">{text(verdict)}</span>'
        for verdict in dict.fromkeys(loop.verdict for loop in note.loops)
    )
    return (
        f'<tr id="f{file}l{number}"><td class="number">{number}</td><td class="number">{_count(note.loads)}</td>'
        f'<td class="number">{_count(note.stores)}</td><td><code>{text(source.expandtabs(4))}</code></td>'
        f"<td>{verdicts}</td><td>{text(carried_ends(note, name))}</td></tr>\n"
    )


def _count(number: int) -> str:
    return f"{number:,}" if number else ""


def has_line(shown: Shown, name: str, line: int) -> bool:
    """Whether the page shows a line of a file (by its short name)."""
    return any(
        shown.names.short(file.name) == name and any(first <= line <= last for first, last in file.stretches)
        for file in shown.files
    )


def line_id(shown: Shown, name: str, line: int) -> str:
    """The id of a line that the page shows."""
    number = next(number for number, file in enumerate(shown.files) if shown.names.short(file.name) == name)
    return f"f{number}l{line}"
