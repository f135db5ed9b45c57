"""Heat maps as text, SVG and PNG."""

from __future__ import annotations

import struct
import xml.etree.ElementTree as ET
import zlib
from pathlib import Path
from typing import Any

import pytest

from tracekit.formats.errors import TracekitError
from tracekit.render.heatmap import CELL_HEIGHT, CELL_WIDTH, heatmap_text, write_image
from tracekit.render.text import Style


def report(rows: list[Any], slices: int) -> dict[str, Any]:
    return {
        "module": "heatmap",
        "trace": "0",
        "options": {},
        "result": {"rows": rows, "summary": {"bytes_per_row": 4096, "slices": slices, "accesses_per_slice": 8}},
    }


ROWS = [
    {"start": "0x1000", "loads": [1000, 0, 0], "stores": [0, 0, 9]},
    {"start": "0x2000", "loads": [0, 1, 0], "stores": [99, 0, 0]},
    {"start": "0x9000", "loads": [0, 0, 0], "stores": [0, 0, 1]},
]


def test_text_shades_by_powers_of_ten_and_marks_gaps() -> None:
    lines = heatmap_text(report(ROWS, 3), {}, 0, Style(False)).splitlines()
    assert lines[-4:] == [
        "        0x1000          1,000              9  |@ #|",
        "        0x2000              1             99  |%* |",
        "           ...",
        "        0x9000              0              1  |  *|",
    ]


def test_an_empty_map_is_drawn(tmp_path: Path) -> None:
    assert "address" in heatmap_text(report([], 0), {}, 0, Style(False))
    for name in ("a.svg", "a.png"):
        write_image(report([], 0), str(tmp_path / name))


def test_svg_has_one_rectangle_for_each_stretch_of_equal_counts(tmp_path: Path) -> None:
    write_image(report(ROWS, 3), str(tmp_path / "map.svg"))
    root = ET.parse(tmp_path / "map.svg").getroot()
    cells = list(root.iter("{http://www.w3.org/2000/svg}rect"))[1:]  # the first is the background
    assert len(cells) == 5
    assert cells[0].get("fill") == "#800026" and cells[0].get("width") == str(CELL_WIDTH)
    assert [node.text for node in root.iter("{http://www.w3.org/2000/svg}text")][1:] == ["0x1000", "0x2000", "0x9000"]


def test_png_has_the_colours_of_the_cells(tmp_path: Path) -> None:
    write_image(report(ROWS, 3), str(tmp_path / "map.png"))
    data = (tmp_path / "map.png").read_bytes()
    width, height = struct.unpack(">II", data[16:24])
    assert (width, height) == (3 * CELL_WIDTH, 3 * CELL_HEIGHT)
    length = struct.unpack(">I", data[33:37])[0]
    lines = zlib.decompress(data[41 : 41 + length])
    assert len(lines) == height * (1 + 3 * width)
    assert tuple(lines[1:4]) == (128, 0, 38)  # the hottest cell
    assert tuple(lines[1 + 3 * CELL_WIDTH : 4 + 3 * CELL_WIDTH]) == (255, 255, 255)  # never touched


def test_a_picture_of_another_kind_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TracekitError, match=r"writes FILE.svg or FILE.png, not map.gif"):
        write_image(report(ROWS, 3), "map.gif")
    with pytest.raises(TracekitError, match="Cannot write the picture"):
        write_image(report(ROWS, 3), str(tmp_path / "none" / "map.svg"))
