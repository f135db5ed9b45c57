"""The text of cache, of a made-up report."""

from __future__ import annotations

from typing import Any

from tracekit.render.registry import as_text
from tracekit.render.text import Style


def report() -> dict[str, Any]:
    place = {"id": "a:1", "file": "a.c", "line": 3, "column": 5, "function": "main", "kind": "load"}
    numbers = {"touches": 10, "misses": [5, 2]}
    level = {"ways": 8, "write_backs": 3, "prefetches": 0}
    return {
        "module": "cache",
        "trace": "0" * 32,
        "options": {},
        "result": {
            "summary": {"line": 64, "touches": 10, "memory_writes": 1},
            "levels": [
                {"name": "L1", "size": 32768, "hits": 5, "misses": 5, **level},
                {"name": "L2", "size": 1 << 20, "hits": 3, "misses": 2, **level},
            ],
            "instructions": [{"instruction": place, **numbers}],
            "objects": [{"object": {"kind": "global", "name": "table"}, **numbers}],
        },
    }


def test_text() -> None:
    text = as_text(report(), {}, 30, Style(False))
    rows = [line.split() for line in text.splitlines()]
    assert ["L1", "32", "KiB", "8", "5", "5", "3", "0", "50.0000%"] in rows
    assert ["L2", "1", "MiB", "8", "3", "2", "3", "0", "40.0000%"] in rows
    assert ["load", "a.c:3:5", "main", "10", "5", "2"] in rows
    assert ["global", "table", "10", "5", "2"] in rows


def test_a_profile_without_accesses() -> None:
    empty = report()
    empty["result"] |= {"instructions": [], "objects": []}
    empty["result"]["levels"][0] |= {"hits": 0, "misses": 0}
    assert "0.0000%" in as_text(empty, {}, 30, Style(False))
