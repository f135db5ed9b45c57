"""The text of points_to and privateer on rows made up by hand: what a reader can tell objects and places by."""

from __future__ import annotations

from typing import Any

from tracekit.render.objects import CLASSES, object_name, patterns_text, points_to_text, privateer_text
from tracekit.render.text import Style

PLAIN = Style(False)


def instruction(line: int, column: int = 3, number: int = 0) -> dict[str, Any]:
    return {
        "id": f"0:{number or line}",
        "kind": "pointer",
        "function": "work",
        "file": "/src/app/a.c",
        "line": line,
        "column": column,
        "inlined_at": [],
    }


def heap(line: int, *path: str) -> dict[str, Any]:
    return {
        "kind": "heap",
        "site": {**instruction(line), "function": "xmalloc", "file": "/src/app/memory.c"},
        "context": {"id": 0, "root": "main", "path": list(path)},
    }


def pointer(line: int, *objects: dict[str, Any], number: int = 0, **classes: int) -> dict[str, Any]:
    counts = {name: classes.get(name, 0) for name in CLASSES}
    return {
        "instruction": instruction(line, number=number),
        "count": sum(counts.values()),
        **counts,
        "never_dereferenced": counts["elsewhere"],
        "objects": list(objects),
    }


def text(*rows: dict[str, Any]) -> str:
    return points_to_text({"module": "points_to", "trace": "0", "result": {"pointers": list(rows)}}, {}, 0, PLAIN)


def test_files_are_named_without_their_folder() -> None:
    shown = text(pointer(4, heap(9, "main:5:2"), start=1))
    assert "files below /src/app" in shown
    assert "\na.c:4:3 " in shown
    assert shown.rstrip().endswith("heap memory.c:9:3")


def test_a_place_without_a_line_is_its_function() -> None:
    assert "\na.c in work " in text(pointer(0, heap(9, "main:5:2"), start=1))


def test_blocks_of_one_allocation_function_are_told_apart_by_its_caller() -> None:
    shown = text(
        pointer(4, heap(9, "main:5:2", "loop main:6", "tree:7:1", "loop tree:8"), start=1),
        pointer(5, heap(9, "list:8:1"), start=1),
    )
    assert "heap memory.c:9:3 from tree:7:1" in shown
    assert "heap memory.c:9:3 from list:8:1" in shown


def test_blocks_made_in_a_recursion_are_told_apart_by_their_callers() -> None:
    def block(*callers: str) -> dict[str, Any]:
        return {**heap(9, "recursion main:5:2"), "callers": list(callers)}

    made = block("walk:3:1", "string:7:1"), block("walk:3:1", "table:8:1")
    shown = text(*(pointer(line, each, start=1) for line, each in enumerate(made, 4)))
    assert "heap memory.c:9:3 from walk:3:1 > string:7:1" in shown
    assert "heap memory.c:9:3 from walk:3:1 > table:8:1" in shown


def test_instructions_of_a_macro_are_one_row_if_they_are_alike() -> None:
    rows = [pointer(4, heap(9, "main:5:2"), number=number, start=number) for number in (1, 2, 3)]
    shown = text(*rows, pointer(4, number=4, null=5))
    assert "a.c:4:3 (3 instructions)      6" in shown
    assert shown.count("a.c:4:3") == 2


def test_only_columns_that_say_something_are_explained() -> None:
    assert "functions, labels" not in text(pointer(4, start=1))
    assert "functions, labels" in text(pointer(4, elsewhere=1))


def test_a_variable_without_a_name_is_its_functions() -> None:
    site = instruction(7)
    assert object_name({"kind": "stack", "name": "", "site": site}) == "stack variable in work /src/app/a.c:7:3"
    assert object_name({"kind": "stack", "name": "x", "site": site}) == "stack x /src/app/a.c:7:3"
    assert object_name({"kind": "stack", "name": "x", "site": {**site, "line": 0}}) == "stack x in work"
    assert object_name({"kind": "stack", "name": "", "site": None}) == "stack variable of a library"


def test_the_hottest_loop_comes_first() -> None:
    loops = [
        {
            "loop": {"file": "/src/app/a.c", "line": line, "column": 5, "depth": depth, "function": "work"},
            "accesses": accesses,
            "reads": [heap(9, "main:5:2")],
            "writes": [],
            "reductions": [],
            "short_lived": [],
        }
        for line, depth, accesses in ((3, 1, 10), (8, 1, 2000), (8, 2, 1500))
    ]
    result = {"loops": loops, "sites": [], "pointers": [], "instructions": []}
    shown = privateer_text({"module": "privateer", "trace": "0", "result": result}, {}, 0, PLAIN).splitlines()
    heads = [line for line in shown if line.startswith("loop ")]
    assert heads == [
        "loop a.c:8:5 (depth 1) work, 2,000 accesses",
        "loop a.c:8:5 (depth 2) work, 1,500 accesses",
        "loop a.c:3:5 work, 10 accesses",
    ]


def test_the_values_that_are_loaded_most_often_come_first() -> None:
    rows = [
        {"instruction": instruction(line), "count": count, "pattern": "constant", "value": line}
        for line, count in ((4, 1), (9, 5000), (0, 70))
    ]
    report = {"module": "value_pattern", "trace": "0", "result": {"instructions": rows}}
    shown = [" ".join(line.split()) for line in patterns_text(report, {}, 0, PLAIN).splitlines()]
    assert shown[-3:] == [
        "pointer a.c:9:3 5,000 constant 9",
        "pointer a.c in work 70 constant 0",
        "pointer a.c:4:3 1 constant 4",
    ]
    merged = {**{name: part for name, part in report.items() if name != "trace"}, "traces": ["0", "1"]}
    assert "merged of 2 traces" in patterns_text(merged, {}, 0, PLAIN)
