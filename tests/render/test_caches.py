"""The text and the section of cache and tlb, of made-up reports."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from tests.commands.test_merge import CHAINED, record
from tracekit.cli import main
from tracekit.render.misses import joined
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


def tlb_report() -> dict[str, Any]:
    made = report()
    made["module"] = "tlb"
    made["result"]["summary"] = {"page": 4096, "touches": 10, "walks": 2}
    made["result"]["levels"] = [
        {"name": "L1", "entries": 64, "ways": 4, "hits": 5, "misses": 5},
        {"name": "L2", "entries": 1536, "ways": 12, "hits": 3, "misses": 2},
    ]
    return made


def test_copies_of_one_instruction_are_one_row() -> None:
    made = report()
    (row,) = made["result"]["instructions"]
    place, header = row["instruction"], {**row["instruction"], "file": "/usr/include/c++/12/bits/stl_vector.h"}
    other = {**place, "column": 9}
    made["result"]["instructions"] = [
        row,
        {"instruction": other, "touches": 1, "misses": [9, 0]},
        {"instruction": {**place, "id": "a:2", "inlined_at": [other]}, "touches": 7, "misses": [1, 1]},
        *(
            {"instruction": {**header, "id": name, "inlined_at": [user]}, "touches": 1, "misses": [0, 0]}
            for name, user in (("a:3", place), ("a:4", other), ("a:5", place))
        ),
    ]
    text = as_text(made, {}, 2, Style(False))
    assert [line.split("  ")[0] for line in text.splitlines() if line.startswith("load")] == [
        "load a.c:3:9 main",
        "load a.c:3:5 main (2 copies)",
    ]
    assert "(2 copies)       17          6          3" in text
    assert "... and 2 more instructions" in text
    assert [row["copies"] for row in joined(made["result"]["instructions"])] == [1, 2, 2, 1]


def test_text_of_tlbs() -> None:
    text = as_text(tlb_report(), {}, 30, Style(False))
    assert "10 touches of pages of 4 KiB, 2 page walks" in text
    rows = [line.split() for line in text.splitlines()]
    assert ["level", "entries", "ways", "hits", "misses", "miss", "ratio"] in rows
    assert ["L2", "1,536", "12", "3", "2", "40.0000%"] in rows


def test_the_sections_of_the_page(tmp_path: Path) -> None:
    trace, profile, page = record(tmp_path / "trace.zst", CHAINED), str(tmp_path / "profile"), tmp_path / "page.html"
    assert main(["analyze", "-m", "cache", "-m", "tlb", "-o", profile, str(trace)]) == 0
    assert main(["report", profile, "-o", str(page)]) == 0
    html = page.read_text()
    for module, size in (("cache", "Size"), ("tlb", "Entries")):
        head = html.partition(f'id="{module}-levels"')[2].partition("</thead>")[0]
        assert re.findall(r">([^<]+)</th>", head)[:3] == ["Level", size, "Ways"], head
        assert f'id="{module}-instructions"' in html and f'id="{module}-objects"' in html
