"""Messages of MPI as text: how much went between ranks, by which instructions, and what does not fit."""

from __future__ import annotations

from collections.abc import Mapping

from tracekit.counted import counted
from tracekit.render.places import code_text, without_folder
from tracekit.render.text import Json, Style, more, table, traces_text

MOST_RANKS = 16
"""Beyond that no table of ranks by ranks fits, and the greatest amounts are listed."""


def is_wrong(report: Json) -> bool:
    """Whether there are messages of one end alone, or ranks that do not take part alike."""
    return bool(report["result"]["unmatched"] or report["result"]["mismatches"])


def messages_text(report: Json, facts: Mapping[str, int], limit: int, style: Style) -> str:
    """Ranks, messages, collective operations, what does not fit."""
    result, folder = without_folder(report["result"], report)
    summary = result["summary"]
    below = f", files below {folder}" if folder else ""
    ranks = summary["ranks"]
    of = "no rank of MPI" if not ranks else f"{ranks_text(ranks)} of {summary['size']:,}"
    lines = [
        f"{report['module']}, {traces_text(report)}{below}",
        "",
        style(f"{of}: {counted(summary['messages'], 'message')}, {counted(summary['bytes'], 'byte')}", "bold"),
    ]
    if len(ranks) < summary["size"]:
        lines.append("sends and receives are matched where both ranks are there: name the traces of all ranks")
    lines += ranks_table(result["ranks"], limit, style)
    lines += messages_table(result["messages"], limit, style)
    lines += collectives_table(result["collectives"], limit, style)
    lines += unmatched_table(result["unmatched"], limit, style)
    lines += mismatch_lines(result["mismatches"], style)
    if summary["unfinished"]:
        lines += ["", f"note: {counted(summary['unfinished'], 'receive')} posted and never over."]
    return "\n".join(lines) + "\n"


def ranks_text(ranks: list[int]) -> str:
    """`rank 3`, `ranks 0 to 7`, `ranks 0, 2`."""
    if len(ranks) == 1:
        return f"rank {ranks[0]}"
    if ranks == list(range(ranks[0], ranks[-1] + 1)):
        return f"ranks {ranks[0]} to {ranks[-1]}"
    return f"ranks {', '.join(map(str, ranks))}"


def place(instruction: Json | None) -> str:
    """Where an operation stands in the source."""
    if instruction is None:
        return "none recorded"
    return code_text(instruction)


def ranks_table(rows: list[Json], limit: int, style: Style) -> list[str]:
    """Bytes from rank to rank: a square, or the greatest."""
    if not rows:
        return []
    known = sorted({row[end] for row in rows for end in ("source", "destination")})
    lines = ["", style("BYTES FROM RANK TO RANK", "bold")]
    if len(known) > MOST_RANKS:
        ordered = sorted(rows, key=lambda row: (-row["bytes"], row["source"], row["destination"]))[: limit or None]
        cells = [[f"{row['source']} -> {row['destination']}", *amounts(row)] for row in ordered]
        lines += table(["RANKS", "MESSAGES", "BYTES"], cells, frozenset({1, 2}), style)
        return lines + more(len(rows), len(cells), "pair of ranks", "pairs of ranks")
    amount = {(row["source"], row["destination"]): f"{row['bytes']:,}" for row in rows}
    cells = [[str(source), *(amount.get((source, to), "") for to in known)] for source in known]
    return lines + table(["FROM\\TO", *map(str, known)], cells, frozenset(range(1, len(known) + 1)), style)


def amounts(row: Json) -> list[str]:
    """Messages and bytes."""
    return [f"{row['messages']:,}", f"{row['bytes']:,}"]


def messages_table(rows: list[Json], limit: int, style: Style) -> list[str]:
    """By the instructions of both ends."""
    if not rows:
        return []
    shown = rows[: limit or None]
    cells = [[*amounts(row), f"{place(row['send'])}  ->  {place(row['receive'])}"] for row in shown]
    lines = ["", style(f"MESSAGES by bytes ({len(rows):,})", "bold")]
    lines += table(["MESSAGES", "BYTES", "SENT  ->  RECEIVED"], cells, frozenset({0, 1}), style)
    return lines + more(len(rows), len(shown), "row")


def collectives_table(rows: list[Json], limit: int, style: Style) -> list[str]:
    """By instruction."""
    if not rows:
        return []
    shown = rows[: limit or None]
    cells = [
        [f"{row['calls']:,}", f"{row['bytes']:,}", row["operation"], f"{place(row['instruction'])}, {of(row)}"]
        for row in shown
    ]
    lines = ["", style(f"COLLECTIVE OPERATIONS by bytes given ({len(rows):,})", "bold")]
    lines += table(["CALLS", "BYTES", "OPERATION", "AT"], cells, frozenset({0, 1}), style)
    return lines + more(len(rows), len(shown), "row")


def of(row: Json) -> str:
    """The ranks that took part, and the communicator."""
    return f"by {ranks_text(sorted(row['ranks']))}, communicator {row['communicator']}"


def unmatched_table(rows: list[Json], limit: int, style: Style) -> list[str]:
    """Messages of one end."""
    if not rows:
        return []
    shown = rows[: limit or None]
    what = {"send": "sent, never received", "receive": "received, never sent"}
    cells = [
        [
            *amounts(row),
            f"{row['source']} -> {row['destination']}",
            f"{row['tag']}",
            f"{what[row['kind']]}: {place(row['instruction'])}, communicator {row['communicator']}",
        ]
        for row in shown
    ]
    lines = ["", style(f"WITHOUT THEIR OTHER END ({len(rows):,})", "bold")]
    lines += table(["MESSAGES", "BYTES", "RANKS", "TAG", "WHAT"], cells, frozenset({0, 1, 3}), style)
    return lines + more(len(rows), len(shown), "row")


def mismatch_lines(rows: list[Json], style: Style) -> list[str]:
    """Where ranks take part in different operations."""
    lines = []
    for row in rows:
        head = f"ranks differ in operation {row['number']:,} of communicator {row['communicator']}"
        lines += ["", style(head, "bold")]
        for call in row["calls"]:
            root = f" with root {call['root']}" if call["root"] is not None else ""
            what = (
                f"{call['operation']}{root} at {place(call['instruction'])}" if call["operation"] else "none any more"
            )
            lines.append(f"  rank {call['rank']}: {what}")
    return lines
