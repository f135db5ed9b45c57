"""The drawing and the section of bandwidth."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from tests.commands.test_merge import CHAINED, record
from tracekit.cli import main
from tracekit.render.bandwidth import HEIGHT, LEFT, TOP, WIDTH, svg


def row(first: int, accesses: int, read: int, written: int) -> dict[str, Any]:
    return {"first_access": first, "accesses": accesses, "memory_read_bytes": read, "memory_written_bytes": written}


def points(drawn: str) -> list[list[tuple[float, float]]]:
    lines = [line.get("points", "") for line in ElementTree.fromstring(drawn) if line.tag.endswith("polyline")]
    return [[(float(x), float(y)) for x, y in (point.split(",") for point in line.split())] for line in lines]


def test_the_lines_step_from_slice_to_slice() -> None:
    read, written = points(svg([row(0, 100, 800, 0), row(100, 100, 400, 200)]))
    middle, end, low = LEFT + WIDTH / 2, LEFT + WIDTH, TOP + HEIGHT
    assert read == [(LEFT, TOP), (middle, TOP), (middle, TOP + HEIGHT / 2), (end, TOP + HEIGHT / 2)]
    assert written == [(LEFT, low), (middle, low), (middle, TOP + HEIGHT * 0.75), (end, TOP + HEIGHT * 0.75)]


def test_a_run_without_traffic_lies_at_the_bottom() -> None:
    assert {y for line in points(svg([row(0, 7, 0, 0)])) for _, y in line} == {TOP + HEIGHT}


def test_the_section_of_the_page(tmp_path: Path) -> None:
    profile, page = str(tmp_path / "profile"), tmp_path / "page.html"
    assert main(["analyze", "-m", "bandwidth", "-o", profile, str(record(tmp_path / "trace.zst", CHAINED))]) == 0
    assert main(["report", profile, "-o", str(page)]) == 0
    html = page.read_text()
    assert 'aria-label="Bytes between caches and memory for each access, over the run"' in html
    head = html.partition('id="bandwidth-slices"')[2].partition("</thead>")[0]
    assert re.findall(r">([^<]+)</th>", head)[:3] == ["First access", "Accesses", "Loaded bytes"]
