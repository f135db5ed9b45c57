"""The text and the drawing of reuse, of a made-up report."""

from __future__ import annotations

from typing import Any

from tracekit.render.registry import as_text
from tracekit.render.reuse import svg
from tracekit.render.text import Style


def report() -> dict[str, Any]:
    place = {"id": "a:1", "file": "a.c", "line": 3, "column": 5, "function": "main", "kind": "load"}
    numbers = {"touches": 10, "cold": 2, "misses": [5, 2], "distances": [[0, 5], [600, 3]]}
    return {
        "module": "reuse",
        "trace": "0" * 32,
        "options": {},
        "result": {
            "summary": {"line": 64, "sizes": [32768, 65536], "touches": 10, "lines": 2},
            "curve": [
                {"size": 64, "misses": 5, "miss_ratio": 0.5},
                {"size": 80, "misses": 5, "miss_ratio": 0.5},
                {"size": 65536, "misses": 2, "miss_ratio": 0.2},
            ],
            "instructions": [{"instruction": place, **numbers}],
            "objects": [{"object": {"kind": "global", "name": "table"}, **numbers}],
        },
    }


def test_text() -> None:
    text = as_text(report(), {}, 30, Style(False))
    rows = [line.split() for line in text.splitlines()]
    assert ["64", "B", "5", "50.0000%", "#" * 25] in rows
    assert ["64", "KiB", "2", "20.0000%", "#" * 10] in rows
    assert not any(row[:2] == ["80", "B"] for row in rows)
    assert "load a.c:3:5 main" in text and "global table" in text
    assert "misses 32 KiB" in text


def test_drawing() -> None:
    drawn = svg(report()["result"]["curve"])
    assert drawn.count("<polyline") == 1 and "64 B" in drawn


def test_a_profile_without_accesses() -> None:
    empty = report()
    empty["result"] |= {"curve": [], "instructions": [], "objects": []}
    assert "0 more" not in as_text(empty, {}, 30, Style(False))
