"""Heap blocks as text and on the page, of a made-up report."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.render.html.test_page import instruction, page_of
from tracekit.objects.profile import MEASURES
from tracekit.profiles.profile import Profile
from tracekit.render.registry import as_text
from tracekit.render.text import Style


def site(line: int, blocks: int, size: int) -> dict[str, Any]:
    context = {"id": 1, "root": "main", "path": ["main:7:5"]}
    numbers = {f"{how}{name}": 0 for name in MEASURES for how in ("", "least_", "most_")}
    return {
        "object": {"kind": "heap", "site": instruction(line, "library"), "context": context},
        **numbers,
        "blocks": blocks,
        "bytes": size,
        "accesses": 600,
        "lifetime": 9000,
        "stack": [],
    }


def report(*sites: dict[str, Any]) -> dict[str, Any]:
    return {"module": "memprof", "trace": "0" * 32, "options": {"rate": 1}, "result": {"sites": list(sites)}}


def test_text() -> None:
    text = as_text(report(site(3, 2, 100), site(5, 3, 1200)), {}, 30, Style(False))
    rows = [line.split() for line in text.splitlines()]
    first = rows.index(["heap", "app.c:5:3", "3", "1,200", "600", "0.50", "3,000", "main", ">", "main:7:5"])
    assert rows[first + 1] == ["heap", "app.c:3:3", "2", "100", "600", "6.00", "4,500", "main", ">", "main:7:5"]
    assert "1 more site" in as_text(report(site(3, 2, 100), site(5, 3, 1200)), {}, 1, Style(False))


def test_sites_of_one_recursion_are_told_apart() -> None:
    within, other = site(3, 2, 100), site(3, 1, 50)
    within["object"]["callers"], other["object"]["callers"] = ["visit:4:2", "grow:9:1"], ["visit:4:2"]
    text = as_text(report(within, other), {}, 30, Style(False))
    assert [line.split("  ")[-1] for line in text.splitlines() if "heap" in line] == [
        "main > main:7:5 > visit:4:2 > grow:9:1",
        "main > main:7:5 > visit:4:2",
    ]


def test_page(tmp_path: Path) -> None:
    page = page_of(tmp_path, Profile(report(site(3, 2, 100), site(5, 3, 1200)), {}, True))
    assert "Heap blocks, most bytes first" in page
    assert page.index("app.c:5:3") < page.index("app.c:3:3")
    assert "memprof-sites" not in page_of(tmp_path, Profile(report(), {}, True))
