"""Known faults of the systems in use, each as a program with a known answer (fixtures/known_*)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.programs.listing import Found, dependences, marks
from tests.programs.running import FIXTURES, Recording, compile_program, profiles, record

Flags = tuple[tuple[bool, bool], ...]
Ends = dict[str, set[tuple[str, str, Flags]]]
INTRA, INTER = (True, False), (False, True)


@pytest.fixture(params=["camp", "lamp"])
def found(request: pytest.FixtureRequest, recording: Callable[..., Recording]) -> Ends:
    """Kind -> (source mark, destination mark, flags of the levels), of both programs as compiled with -O0."""
    result: Ends = {"RAW": set(), "WAR": set(), "WAW": set()}
    for name in ("known_dependences.c", "known_unwinding.cpp"):
        profile = profiles(recording(name, 0).trace, request.param)[request.param]
        for row in dependences(name, profile):
            result[row.kind].add((row.source, row.destination, _flags(row)))
    return result


def _flags(row: Found) -> Flags:
    return tuple((intra, inter) for _, intra, inter in row.levels)


def into(rows: set[tuple[str, str, Flags]], destination: str) -> set[tuple[str, Flags]]:
    """Where the dependences into a marked line come from."""
    return {(source, flags) for source, to, flags in rows if to == destination}


def test_write_after_read_of_initialised_globals(found: Ends) -> None:
    assert into(found["WAR"], "WAR-INITIALISED") == {("WAR-INITIALISED", (INTER,))}
    assert into(found["RAW"], "WAR-INITIALISED") == set()


def test_write_after_read_has_all_readers(found: Ends) -> None:
    assert into(found["WAR"], "WAR-ALL-READERS") == {("READER-1", ()), ("READER-2", ()), ("READER-3", ())}


def test_stores_depend_on_stores_in_no_other_way(found: Ends) -> None:
    assert into(found["WAW"], "OUTPUT-FIRST") == {("OUTPUT-AGAIN", (INTER,))}
    assert into(found["WAW"], "OUTPUT-AGAIN") == {("OUTPUT-FIRST", (INTRA,))}
    for kind in ("RAW", "WAR"):
        assert not {rows for rows in into(found[kind], "OUTPUT-FIRST") if rows[0].startswith("OUTPUT")}
        assert not {rows for rows in into(found[kind], "OUTPUT-AGAIN") if rows[0].startswith("OUTPUT")}


def test_copies_carry_dependences(found: Ends) -> None:
    assert ("COPY-SOURCE", ()) in into(found["RAW"], "COPY")
    assert into(found["RAW"], "COPY-READ") == {("COPY", ())}


def test_accesses_that_overlap_in_part(found: Ends) -> None:
    assert into(found["RAW"], "OVERLAP-LAST") == {("OVERLAP-STORE", ())}
    assert ("OVERLAP-STORE", ()) in into(found["WAW"], "OVERLAP-PATCH")
    assert into(found["RAW"], "OVERLAP-BOTH") == {("OVERLAP-STORE", ()), ("OVERLAP-PATCH", ())}
    assert into(found["RAW"], "OVERLAP-NOTHING") == set()


def test_a_freed_block_has_no_history(found: Ends) -> None:
    assert into(found["RAW"], "FREED-LOAD") == {("FREED-STORE", (INTRA,))}
    assert into(found["WAR"], "FREED-STORE") == set()
    assert into(found["WAW"], "FREED-STORE") == set()


def test_a_returned_frame_has_no_history(found: Ends) -> None:
    assert into(found["RAW"], "FRAME-LOAD") == {("FRAME-STORE", (INTRA,))}
    assert into(found["WAR"], "FRAME-STORE") == set()
    assert into(found["WAW"], "FRAME-STORE") == set()


def test_one_past_the_end_is_another_object(found: Ends) -> None:
    assert into(found["RAW"], "PAST-NEIGHBOUR") == set()
    assert {source for source, _ in into(found["WAW"], "PAST-NEXT")} <= {"PAST-NEIGHBOUR"}  # through `sink`


@pytest.mark.parametrize("module", ["camp", "lamp"])
@pytest.mark.parametrize("mark, distance", [("FAR-SAME-LOW-BITS", 65_536), ("FAR-LOAD", 69_999)])
def test_iterations_far_apart(module: str, mark: str, distance: int, recording: Callable[..., Recording]) -> None:
    names = marks("known_dependences.c")
    result = profiles(recording("known_dependences.c", 0).trace, module)[module]
    [row] = [
        row for row in result["dependences"] if row["kind"] == "RAW" and names.get(row["destination"]["line"]) == mark
    ]
    assert names[row["source"]["line"]] == "FAR-STORE"
    [level] = row["levels"]
    assert (level["intra"], level["inter"]) == INTER
    assert level["min_distance"] == level["max_distance"] == distance


def test_unwinding_leaves_the_loops_inside(found: Ends) -> None:
    assert ("THROW-STORE", (INTRA,)) in into(found["RAW"], "THROW-LOAD")
    assert into(found["RAW"], "JUMP-LOAD") == {("JUMP-STORE", (INTRA,))}
    for mark in ("AFTER-THROW", "AFTER-JUMP"):
        assert (mark, (INTER,)) in into(found["WAW"], mark)


@pytest.mark.parametrize("module", ["camp", "lamp"])
def test_optimised_code_has_no_dependence_through_reused_memory(
    module: str, recording: Callable[..., Recording]
) -> None:
    rows = dependences("known_dependences.c", profiles(recording("known_dependences.c", 2).trace, module)[module])
    assert any(row.destination == "FRAME-LOAD" for row in rows)
    assert not [row for row in rows if row.destination in ("FREED-STORE", "FRAME-STORE")]
    assert not [
        row
        for row in rows
        if row.kind == "RAW"
        and any(inter for _, _, inter in row.levels)
        and row.destination in ("FREED-LOAD", "FRAME-LOAD")
    ]


def test_values_of_any_width(tmp_path: Path) -> None:
    source = FIXTURES / "known_values.c"
    program = compile_program([source], tmp_path / "values", ["-O0", "--values"], instrumented=True)
    lines = source.read_text().splitlines()
    expected = {
        number: line.partition("// CONSTANT ")[2]
        for number, line in enumerate(lines, 1)
        if "; " in line and "// CONSTANT " in line
    }
    rows = profiles(record(program).trace, "value_pattern")["value_pattern"]["instructions"]
    found = {row["instruction"]["line"]: (row["pattern"], row["count"], str(row["value"])) for row in rows}
    assert len(expected) == 9
    assert {line: found.get(line) for line in expected} == {
        line: None if value == "nothing" else ("constant", 8, value) for line, value in expected.items()
    }


def test_large_numbers(recording: Callable[..., Recording]) -> None:
    found = profiles(recording("known_limits.c", 1).trace, "camp", "object_lifetime")
    names = marks("known_limits.c")
    for mark, source, distance in (("LOAD", "STORE", 1 << 28), ("NEXT", "NEXT", 1)):
        [row] = [
            row
            for row in found["camp"]["dependences"]
            if row["kind"] == "RAW"
            and names.get(row["source"]["line"]) == source
            and names.get(row["destination"]["line"]) == mark
        ]
        [level] = row["levels"]
        assert (level["intra"], level["inter"]) == INTER
        assert level["min_distance"] == level["max_distance"] == distance
    [site] = [
        row
        for row in found["object_lifetime"]["sites"]
        if row["object"]["kind"] == "heap" and names.get(row["object"]["site"]["line"]) == "BLOCK"
    ]
    assert (site["objects"], site["never_freed"], site["scope"]["kind"]) == (1, 0, "invocation")
