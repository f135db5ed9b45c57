"""A heat map as text, SVG and PNG: memory downwards, time to the right, the colour how many accesses."""

from __future__ import annotations

import math
import struct
import zlib
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from pathlib import Path

from tracekit.counted import counted
from tracekit.formats.errors import TracekitError
from tracekit.render.picture import picture_head
from tracekit.render.text import Json, Style, traces_text

SHADES = " .:-=+*#%@"
COLUMNS = 72
"""Columns of time in text."""

COLOURS = ((255, 255, 255), (255, 237, 160), (254, 178, 76), (240, 59, 32), (128, 0, 38))
"""From no access to the most: yellow to red, dark where it is hot (ColorBrewer's YlOrRd: readable in grey, too)."""

CELL_WIDTH, CELL_HEIGHT, LABELS = 4, 12, 150


def heatmap_text(report: Json, facts: Mapping[str, int], limit: int, style: Style) -> str:
    """One line for each row of memory."""
    result = report["result"]
    summary, rows = result["summary"], result["rows"]
    slices = max(summary["slices"], 1)
    step = -(-slices // COLUMNS)
    key = (
        f"A row is {summary['bytes_per_row']:,} bytes, a column {_length(summary, step)}; "
        f"a shade is ten times the one before it, '{SHADES[-1]}' the most."
    )
    lines = [f"{report['module']}, {traces_text(report)}", "", key, *untimed(summary), ""]
    cells = [[sum(total[at : at + step]) for at in range(0, slices, step)] for total in map(_total, rows)]
    hottest = max((max(row) for row in cells), default=0)
    lines.append(style(f"{'address':>14}  {'loads':>13}  {'stores':>13}", "bold"))
    following = None
    for row, counts in zip(rows, cells):
        start = int(row["start"], 16)
        if following is not None and start != following:
            lines.append(f"{'...':>14}")
        following = start + summary["bytes_per_row"]
        shades = "".join(_shade(count, hottest) for count in counts)
        lines.append(f"{row['start']:>14}  {sum(row['loads']):13,}  {sum(row['stores']):13,}  |{shades}|")
    return "\n".join(lines) + "\n"


def _length(summary: Json, slices: int) -> str:
    """How long so many slices are: accesses, or time of the run."""
    if "nanoseconds_per_slice" in summary:
        return f"{slices * summary['nanoseconds_per_slice'] / 1e6:,.3f} ms"
    return counted(slices * summary["accesses_per_slice"], "access")


def untimed(summary: Json) -> list[str]:
    """A line about accesses that are not shown because their time is not known; none if there are none."""
    count = summary.get("untimed_accesses", 0)
    return [f"Left out: {counted(count, 'access')} before or behind the hand-overs of their thread."] if count else []


def _total(row: Json) -> list[int]:
    return [loads + stores for loads, stores in zip(row["loads"], row["stores"])]


def _shade(count: int, hottest: int) -> str:
    """The most accesses get the last shade, a tenth of them the one before, and so on; any at all get the first."""
    if count == 0:
        return SHADES[0]
    below = math.floor(math.log10(hottest / count))
    return SHADES[max(len(SHADES) - 1 - below, 1)]


def write_image(report: Json, path: str) -> None:
    """Write the map as the end of `path` says, .svg or .png. Raises TracekitError for another end, or a bad path."""
    kind = Path(path).suffix.lower()
    if kind not in (".svg", ".png"):
        raise TracekitError(f"--image writes FILE.svg or FILE.png, not {path}.")
    content = svg(report).encode() if kind == ".svg" else _png(report)
    try:
        Path(path).write_bytes(content)
    except OSError as error:
        raise TracekitError(f"Cannot write the picture to {path}: {error.strerror}.") from None


def _colour(count: int, hottest: int) -> tuple[int, int, int]:
    """On a scale of logarithms."""
    if count == 0:
        return COLOURS[0]
    heat = math.log1p(count) / math.log1p(hottest) * (len(COLOURS) - 1)
    step = min(int(heat), len(COLOURS) - 2)
    low, high = COLOURS[step], COLOURS[step + 1]
    red, green, blue = (round(a + (b - a) * (heat - step)) for a, b in zip(low, high))
    return red, green, blue


def _cells(report: Json) -> tuple[list[list[int]], int]:
    cells = [_total(row) for row in report["result"]["rows"]]
    return cells, max((max(row, default=0) for row in cells), default=0)


def svg(report: Json) -> str:
    """The map as an SVG element."""
    cells, hottest = _cells(report)
    summary = report["result"]["summary"]
    width = LABELS + CELL_WIDTH * max(summary["slices"], 1) + 10
    height = CELL_HEIGHT * (len(cells) + 3)
    title = (
        f"Accesses to memory over time: rows of {summary['bytes_per_row']:,} bytes, columns of {_length(summary, 1)}"
    )
    lines = [
        *picture_head(title, width, height, 'font-size="10" shape-rendering="crispEdges"'),
        f'<text x="4" y="{CELL_HEIGHT}">{escape(title)}</text>',
    ]
    for number, (row, counts) in enumerate(zip(report["result"]["rows"], cells)):
        top = CELL_HEIGHT * (number + 2)
        lines.append(f'<text x="{LABELS - 6}" y="{top + CELL_HEIGHT - 3}" text-anchor="end">{row["start"]}</text>')
        for left, length, count in _stretches(counts):
            red, green, blue = _colour(count, hottest)
            lines.append(
                f'<rect x="{LABELS + CELL_WIDTH * left}" y="{top}" width="{CELL_WIDTH * length}" '
                f'height="{CELL_HEIGHT}" fill="#{red:02x}{green:02x}{blue:02x}"/>'
            )
    return "\n".join([*lines, "</svg>", ""])


def _stretches(counts: Sequence[int]) -> Iterator[tuple[int, int, int]]:
    """Where equal counts other than 0 begin, how many they are, and the count."""
    start = 0
    while start < len(counts):
        end = start + 1
        while end < len(counts) and counts[end] == counts[start]:
            end += 1
        if counts[start]:
            yield start, end - start, counts[start]
        start = end


def _png(report: Json) -> bytes:
    """Without text, which PNG has none of: the rows and columns of the map, each cell a few pixels."""
    cells, hottest = _cells(report)
    slices = max(report["result"]["summary"]["slices"], 1)
    lines = bytearray()
    for counts in cells or [[0] * slices]:
        line = b"".join(bytes(_colour(count, hottest)) * CELL_WIDTH for count in counts)
        lines += (b"\0" + line) * CELL_HEIGHT
    size = struct.pack(">IIBBBBB", slices * CELL_WIDTH, max(len(cells), 1) * CELL_HEIGHT, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        _chunk(name, content)
        for name, content in ((b"IHDR", size), (b"IDAT", zlib.compress(bytes(lines), 9)), (b"IEND", b""))
    )


def _chunk(name: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))
