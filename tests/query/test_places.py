"""Cells of instructions, loops, contexts and objects, as many tables have them: each column by itself."""

from __future__ import annotations

from typing import Any

import pytest

from tracekit.query import places
from tracekit.query.schema import Column

LOAD = {"kind": "load", "function": "f", "file": "a.c", "line": 3, "column": 7, "id": "u:1", "inlined_at": []}
CONTEXT = {"id": 4, "root": "main", "path": ["main:2:1", "loop f:3"]}
LOOP = {"function": "f", "file": "a.c", "line": 3, "column": 5, "depth": 2}


def named(columns: tuple[Column, ...], cells: tuple[Any, ...]) -> dict[str, Any]:
    assert len(columns) == len(cells)
    return {column.name: cell for column, cell in zip(columns, cells)}


def test_an_instruction() -> None:
    cells = named(places.instruction_columns(), places.instruction_cells(LOAD))
    assert cells == {
        "kind": "load",
        "function": "f",
        "file": "a.c",
        "line": 3,
        "column": 7,
        "outer_function": "f",
        "id": "u:1",
    }
    assert [column.name for column in places.instruction_columns("source_")] == [f"source_{name}" for name in cells]


def test_an_inlined_instruction_has_the_outermost_function() -> None:
    inlined = {**LOAD, "inlined_at": [{"function": "g"}, {"function": "main"}]}
    assert named(places.instruction_columns(), places.instruction_cells(inlined))["outer_function"] == "main"


@pytest.mark.parametrize("instruction", [None, {}, {"line": 0, "column": 0}])
def test_what_is_not_known_of_an_instruction_is_null(instruction: dict[str, Any] | None) -> None:
    assert set(named(places.instruction_columns(), places.instruction_cells(instruction)).values()) == {None}


def test_a_loop() -> None:
    assert named(places.loop_columns(), places.loop_cells(LOOP)) == LOOP
    assert [column.name for column in places.loop_columns("outer_")] == [f"outer_{name}" for name in LOOP]


def test_what_is_not_known_of_a_loop_is_null() -> None:
    unknown = {"function": "f", "file": "a.c", "line": 0, "column": 0}
    cells = named(places.loop_columns(), places.loop_cells(unknown))
    assert cells == {**unknown, "line": None, "column": None, "depth": None}
    assert set(named(places.loop_columns(), places.loop_cells(None)).values()) == {None}


def test_of_a_recursion_the_function_is_known() -> None:
    cells = named(places.loop_columns(), places.loop_cells({"recursion": "f"}))
    assert cells == {**dict.fromkeys(LOOP), "function": "f"}


def test_a_context_is_its_root_and_steps() -> None:
    assert places.context_cell(CONTEXT) == "main > main:2:1 > loop f:3"
    assert places.context_cell({"root": "main", "path": []}) == "main"
    assert places.context_cell(None) is None


def test_a_block_of_heap_memory() -> None:
    block = {"kind": "heap", "name": "", "site": LOAD, "context": CONTEXT}
    assert named(places.OBJECT_COLUMNS, places.object_cells(block)) == {
        "kind": "heap",
        "name": None,
        "function": "f",
        "file": "a.c",
        "line": 3,
        "column": 7,
        "id": "u:1",
        "context": "main > main:2:1 > loop f:3",
    }


def test_a_global_variable_has_a_name_alone() -> None:
    cells = named(places.OBJECT_COLUMNS, places.object_cells({"kind": "global", "name": "total"}))
    assert {name: cell for name, cell in cells.items() if cell is not None} == {"kind": "global", "name": "total"}
