"""Errors of memory as text: each with its place, its object, and where that was freed; leaks; what is not decided."""

from __future__ import annotations

from collections.abc import Mapping

from tracekit.counted import counted
from tracekit.render.objects import context_name, object_name
from tracekit.render.places import instruction_text, without_folder
from tracekit.render.text import Json, Style, more, table, traces_text

HEADINGS = {
    "unwritten_read": "memory that was never written decides something",
    "read_after_free": "read after free",
    "write_after_free": "write after free",
    "read_out_of_bounds": "read out of bounds",
    "write_out_of_bounds": "write out of bounds",
    "double_free": "freed twice",
    "invalid_free": "free of what is no block",
    "mismatched_free": "freed by another family of functions than allocated",
}
"""What each kind of error is called."""

REASONS = {
    "unknown_effects": ("read", "reads", "of memory that a call of unknown effect may have written"),
    "unknown_order": ("access", "accesses", "of threads or signal handlers whose order is not known"),
    "partly_written": ("read", "reads", "of bytes only some of which were written"),
    "unseen_allocation": ("free", "frees", "of a block whose allocation was not seen"),
}
"""What is not decided, and why."""
OWN_MALLOC = "errors and leaks of heap blocks: the program defines malloc itself, and no event tells of its blocks"


def has_errors(report: Json) -> bool:
    """Whether there is an error; leaks are none."""
    return bool(report["result"]["errors"])


def error_line(row: Json) -> str:
    """`write of 4 bytes, 0 bytes behind the end of heap a.c:5:12 (40 bytes)`: what was done to what, the first time."""
    where = object_name(row["object"])
    if row["object_size"] is None:
        return f"{_bytes(row['size'])} of {where}" if row["size"] else where
    offset, size = row["offset"], row["object_size"]
    if row["kind"] in ("unwritten_read", "invalid_free", "mismatched_free"):
        at = f"{_bytes(offset)} into"
    elif offset < 0:
        at = f"{counted(-offset, 'byte')} in front of"
    elif offset >= size:
        at = f"{counted(offset - size, 'byte')} behind the end of"
    else:
        at = f"{counted(offset + row['size'] - size, 'byte')} beyond the end of"
    amount = f"{_bytes(row['size'])}, " if row["size"] else ""
    return f"{amount}{at} {where} ({_bytes(size)})"


def _bytes(number: int) -> str:
    return counted(number, "byte")


def _in(context: Json) -> str:
    return context_name({"context": context})


def errors_text(report: Json, facts: Mapping[str, int], limit: int, style: Style) -> str:
    """Each error in a few lines, those of one kind together; then leaks."""
    result = report["result"]
    shown, folder = without_folder({name: result[name][: limit or None] for name in ("errors", "leaks")}, report)
    below = f", files below {folder}" if folder else ""
    lines = [f"{report['module']}, {traces_text(report)}{below}"]
    kind = ""
    for row in shown["errors"]:
        if row["kind"] != kind:
            kind = row["kind"]
            lines += ["", style(HEADINGS[kind], "bold")]
        lines.append(f"  {instruction_text(row['instruction'])}, {counted(row['count'], 'time')}: {error_line(row)}")
        lines.append(style(f"    in {_in(row['context'])}", "dim"))
        if "context" in row["object"]:
            lines.append(style(f"    made in {context_name(row['object'])}", "dim"))
        if row["freed"] is not None:
            freed = f"{instruction_text(row['freed']['instruction'])} in {_in(row['freed']['context'])}"
            lines.append(style(f"    freed by {freed}", "dim"))
    if not result["errors"]:
        lines += ["", "no errors"]
    lines += more(len(result["errors"]), len(shown["errors"]), "error")
    lines += _leaks(result, shown["leaks"], style)
    if undecided := not_decided(result):
        lines += ["", style("not decided", "bold"), *(f"  {line}" for line in undecided)]
    if result["summary"]["suppressed"]:
        lines += ["", f"{counted(result['summary']['suppressed'], 'row')} suppressed"]
    return "\n".join(lines) + "\n"


def not_decided(result: Json) -> list[str]:
    """`2 reads of bytes only some of which were written`: how much is not decided, by the reason."""
    counts = result["summary"]["undecided"].items()
    said = [(count, *REASONS[name]) for name, count in counts if count]
    lines = [f"{counted(count, noun, plural)} {which}" for count, noun, plural, which in said]
    return lines + [OWN_MALLOC] * bool(result["summary"].get("own_malloc"))


def _leaks(result: Json, shown: list[Json], style: Style) -> list[str]:
    if not result["leaks"]:
        left = [] if result["summary"].get("own_malloc") else ["", "no heap block was left"]
        return left + [f"  {line}" for line in doubts(result)]
    blocks, size = (sum(row[name] for row in result["leaks"]) for name in ("blocks", "bytes"))
    end = "at the end of the run" if result["summary"]["ended"] else "where the trace ends"
    lines = ["", style(f"never freed: {counted(blocks, 'block')}, {_bytes(size)}, {end}", "bold")]
    known = any(row.get("reach") for row in result["leaks"])
    cells = [
        [
            object_name(row["object"]),
            f"{row['blocks']:,}",
            f"{row['bytes']:,}",
            *([reach_of(row)] if known else []),
            row["allocated_by"],
            _made_in(row),
        ]
        for row in shown
    ]
    heads = ["object", "blocks", "bytes", *(["reached"] if known else []), "allocated by", "made in"]
    lines += table(heads, cells, frozenset({1, 2}), style)
    return lines + more(len(result["leaks"]), len(shown), "site") + [f"  {line}" for line in doubts(result)]


def doubts(result: Json) -> list[str]:
    """What may be wrong about how blocks are reached, and what is left out, a sentence each."""
    unsure = sum(row.get("unsure", 0) for row in result["leaks"])
    open_calls = result["summary"].get("open_calls")
    said = []
    if unsure and open_calls:
        theirs = "its" if open_calls == 1 else "their"
        said.append(
            f"The run ended inside {counted(open_calls, 'call')}: {theirs} local variables and registers may point to "
            "blocks that are called lost, and no event tells of these."
        )
    elif unsure:
        said.append(f"Of {counted(unsure, 'lost block')} a pointer may be where no event tells of it.")
    released = result["summary"].get("released", {})
    if released.get("blocks"):
        amount = f"{counted(released['blocks'], 'block')}, {_bytes(released['bytes'])}"
        said.append(
            f"Left out: {amount} that libraries keep for themselves (buffers of streams, locales, OpenMP's threads)."
        )
    return said


def reach_of(row: Json) -> str:
    """`definitely lost`, `still reachable`: how blocks are reached at the end; `(unsure)` where this may be wrong."""
    unsure = row.get("unsure", 0)
    doubt = "" if not unsure else " (unsure)" if unsure == row["blocks"] else f" ({unsure:,} unsure)"
    return (row.get("reach") or "").replace("_", " ") + doubt


def _made_in(row: Json) -> str:
    return context_name(row["object"])
