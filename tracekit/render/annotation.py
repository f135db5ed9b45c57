"""The text of `tracekit annotate`: the source, and beside each line what happened there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tracekit.counted import counted
from tracekit.profiles.annotation import Annotations, LineNote, shown_lines
from tracekit.program.sources import plain_path
from tracekit.render.dependence import VERDICT_COLOUR, unseen_lines
from tracekit.render.folding import GAP, HANGING, NARROWEST, fold, fold_lines
from tracekit.render.places import file_names
from tracekit.render.text import Style, table

Row = tuple[str, str, str, str, str, str]
"""The cells of a line of the source, below HEADER."""

LEGEND = (
    "CARRIED: dependences that a loop carries, by the line of the other end.",
    "VERDICT: of the loops that begin in the line, each the worst of all its contexts.",
)
LEGEND_BELOW = (
    "carried: dependences that a loop carries, by the line of the other end.",
    "loop: the verdict of the loops that begin in the line, each the worst of all its contexts.",
)
HEADER = ("LOADS", "STORES", "CARRIED", "VERDICT", "LINE", "SOURCE")
SOURCE_ROOM = 60
"""Columns that source wants beside its notes. Where it has fewer, and is longer, the notes are below its lines."""
ENDS_SHOWN = 3
CARRIED_WIDTH = 34
NO_ACCESSES = "The profile has no loads and stores of lines: analyze with -m accesses, too."


def files_text(
    notes: Annotations, readable: Sequence[str], folders: Mapping[str, str], limit: int, style: Style
) -> str:
    """The files with their shares, hottest first; `found` are those whose source is there."""
    total = sum(sum(notes.totals(file)) for file in notes.files)
    files = notes.hottest()
    names = file_names(files, folders)
    rows = []
    for file in files[: limit or None]:
        loads, stores = notes.totals(file)
        loops = [loop for note in notes.files[file].values() for loop in note.loops]
        name = names.short(file) if file else "(no debug information)"
        share = f"{100 * (loads + stores) / total:.1f}%" if total else "-"
        counts = (f"{loads:,}", f"{stores:,}") if notes.has_accesses else ("-", "-")
        rows.append((name, *counts, share, f"{len(loops):,}", "found" if file in readable else "-"))
    lines = [f"files below {names.folder}"] if names.folder else []
    lines += table(("FILE", "LOADS", "STORES", "SHARE", "LOOPS", "SOURCE"), rows, frozenset((1, 2, 3, 4)), style)
    if len(files) > len(rows):
        lines.append(f"... and {len(files) - len(rows):,} more files (--limit 0 shows all)")
    if not notes.has_accesses:
        lines.append(NO_ACCESSES)
    return "\n".join(lines) + "\n"


def source_text(
    notes: Annotations,
    file: str,
    text: Sequence[str],
    around: int | None,
    style: Style,
    within: tuple[int, int] | None = None,
) -> str:
    """A file's lines with their notes; lines farther than `around` from any note are left out (None: none are).

    `within`: the first and the last line that may be shown.
    """
    here = notes.files[file]
    stretches = [(1, len(text))] if around is None else shown_lines(here, len(text), around)
    if within is not None:
        cut = [(max(first, within[0]), min(last, within[1])) for first, last in stretches]
        stretches = [(first, last) for first, last in cut if first <= last]
    rows = _rows(here, file, text, stretches)
    is_beside = _has_room(rows, style.width)
    lines = [style(plain_path(file), "bold")]
    lines += _notes_beside(rows, style) if is_beside else _notes_below(rows, style)
    beyond = sum(number > len(text) for number in here)
    if beyond:
        lines.append(
            f"{counted(beyond, 'line with notes lies', 'lines with notes lie')} beyond the file's end: "
            "it is not what was compiled."
        )
    if not notes.has_accesses:
        lines.append(NO_ACCESSES)
    if notes.loops_from:
        legend = (fold_lines(each, style.width) for each in (LEGEND if is_beside else LEGEND_BELOW))
        lines += ["", *legend, *unseen_lines(threads=False, width=style.width)]
    else:
        lines.append("The profile has no verdicts of loops: analyze with -m camp, too.")
    return "\n".join(lines) + "\n"


def _rows(
    here: Mapping[int, LineNote], file: str, text: Sequence[str], stretches: Sequence[tuple[int, int]]
) -> list[Row]:
    """The lines of these stretches, by first and last line, with `...` between two."""
    rows: list[Row] = []
    for first, last in stretches:
        if rows:
            rows.append(("", "", "", "", "...", ""))
        rows += [
            source_row(here.get(number, LineNote()), file, number, text[number - 1])
            for number in range(first, last + 1)
        ]
    return rows


def _has_room(rows: Sequence[Row], width: int) -> bool:
    """Whether a terminal of that width (0: any) shows source beside its notes in lines that can be read."""
    *notes, source = (max(map(len, column)) for column in zip(HEADER, *rows))
    return not width or width - sum(notes) - GAP * len(notes) >= min(source, SOURCE_ROOM)


def _notes_beside(rows: Sequence[Row], style: Style) -> list[str]:
    head, *body = table(HEADER, rows, frozenset((0, 1, 4)), style)
    return [head, *(_coloured(line, row[3], style) for line, row in zip(body, rows))]


def _notes_below(rows: Sequence[Row], style: Style) -> list[str]:
    """A line of the source with its number, and below it what there is to say of it."""
    before = max(len(row[4]) for row in rows) + GAP if rows else 0
    room = max(style.width - before, NARROWEST)
    lines = []
    for loads, stores, ends, verdict, number, source in rows:
        first, *others = fold(source, room, max(room - HANGING, NARROWEST))
        lines.append(f"{number:>{before - GAP}}{' ' * GAP}{first}".rstrip())
        lines += [" " * (before + HANGING) + part for part in others]
        counts = [counted(int(n.replace(",", "")), what) for n, what in ((loads, "load"), (stores, "store")) if n]
        said = [*counts, *([f"carried {ends}"] if ends else []), *([f"loop {verdict}"] if verdict else [])]
        for part in fold(f"^ {'; '.join(said)}", room, room - 2) if said else ():
            lines.append(_coloured(" " * (before + 2 * (part[0] != "^")) + part, verdict, style))
    return lines


def _coloured(line: str, verdict: str, style: Style) -> str:
    return line.replace(verdict, style(verdict, VERDICT_COLOUR[verdict.split()[0]]), 1) if verdict else line


def source_row(note: LineNote, file: str, number: int, text: str) -> Row:
    """The cells of a line, below HEADER."""
    return (
        _count(note.loads),
        _count(note.stores),
        carried(note, file),
        _verdict(note),
        str(number),
        text.expandtabs(4),
    )


def _count(number: int) -> str:
    return f"{number:,}" if number else ""


def _verdict(note: LineNote) -> str:
    """The loops' verdicts; most lines begin one loop at most."""
    return " ".join(dict.fromkeys(loop.verdict for loop in note.loops))


def carried(note: LineNote, file: str) -> str:
    """`RAW to 9, WAR from b.c:12`: the ends of carried dependences, the most frequent first."""
    texts = [
        f"{kind} {way} {_place(other, line, file)}"
        for (kind, way, other, line), _ in sorted(note.ends.items(), key=lambda end: (-end[1], end[0]))
    ]
    shown = texts[:ENDS_SHOWN]
    while len(shown) > 1 and len(", ".join(shown)) > CARRIED_WIDTH:
        shown.pop()
    return ", ".join(shown) + (f", +{len(texts) - len(shown)}" if len(texts) > len(shown) else "")


def _place(other: str, line: int, file: str) -> str:
    """A line of another file, too; of code without any line its file, or a dash."""
    name = "" if other == file else other.rpartition("/")[2]
    if not line:
        return name or "-"
    return f"{name}:{line}" if name else str(line)
