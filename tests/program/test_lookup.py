"""Functions by name and loops by place, as users name them on the command line."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tracekit.formats.errors import TracekitError
from tracekit.program.lookup import functions_named, loop_around, loops_at, one_place
from tracekit.program.source_names import SourceNames

LOOPS = [("src/a.c", 7, 20), ("src/a.c", 7, 20), ("lib/a.c", 9, 12), ("src/a.c", 12, 14), ("lib/b.c", 7, 8)]
"""File, first line and last line."""


class Names:
    """The names of a program of C++."""

    def __init__(self) -> None:
        self.functions = np.zeros(4, [("name", "u4")])
        self.functions["name"] = range(4)
        self.loops = np.zeros(len(LOOPS), [("location", "u4"), ("end_line", "u4")])
        self.loops["end_line"] = [end for *_, end in LOOPS]
        self.loop_fates = np.zeros(0, [("location", "u4")])
        self.source_names = SourceNames(["src/a.c", "lib/a.c"], ["/home/me", "/home/me"])

    def function_name(self, row: int) -> str:
        return ("main", "list::insert(int)", "list::insert(long)", "list::erase(int)")[row]

    def text(self, offset: int) -> str:
        return ("main", "_ZN4list6insertEi", "_ZN4list6insertEl", "_ZN4list5eraseEi")[offset]

    def place(self, location: int) -> dict[str, Any]:
        return self.loop(location)

    def loop(self, row: int) -> dict[str, Any]:
        return {"file": LOOPS[row][0], "line": LOOPS[row][1], "column": 1}


@pytest.mark.parametrize(
    ("name", "rows"),
    [("main", [0]), ("list::insert(int)", [1]), ("list::insert", [1, 2]), ("_ZN4list6insertEl", [2])],
)
def test_functions_by_any_of_their_names(name: str, rows: list[int]) -> None:
    assert np.flatnonzero(functions_named(Names(), name)).tolist() == rows  # type: ignore[arg-type]


def test_a_name_that_is_none_is_told_those_near_it() -> None:
    with pytest.raises(TracekitError, match=r"no function 'insert'; there is list::insert, .*list::insert\(int\)"):
        functions_named(Names(), "insert")  # type: ignore[arg-type]
    with pytest.raises(TracekitError, match="no function 'mian'; there is main"):
        functions_named(Names(), "mian")  # type: ignore[arg-type]
    with pytest.raises(TracekitError, match=r"no loop at a.c:10; there is a.c:9, a.c:12, a.c:7\."):
        loops_at(Names(), ("a.c", 10))  # type: ignore[arg-type]
    with pytest.raises(TracekitError, match=r"no loop at c.c:7; there is (src|lib)/[ab].c:[79]"):
        loops_at(Names(), ("c.c", 7))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("place", "rows"),
    [(("a.c", 7), [0, 1]), (("lib/a.c", 9), [2]), (("src/a.c", 7), [0, 1]), (("/home/me/src/a.c", 7), [0, 1])],
)
def test_loops_by_the_end_of_their_path(place: tuple[str, int], rows: list[int]) -> None:
    assert np.flatnonzero(loops_at(Names(), place)).tolist() == rows  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("place", "whole"), [(("src/a.c", 7), ("src/a.c", 7)), (("a.c", 9), ("lib/a.c", 9)), (("b.c", 7), ("lib/b.c", 7))]
)
def test_the_place_of_loops_has_the_whole_name_of_their_file(place: tuple[str, int], whole: tuple[str, int]) -> None:
    assert one_place(Names(), place) == whole  # type: ignore[arg-type]


@pytest.mark.parametrize(("line", "begin"), [(7, 7), (9, 7), (11, 7), (12, 12), (13, 12), (14, 12), (15, 7), (20, 7)])
def test_a_line_stands_for_the_innermost_loop_around_it(line: int, begin: int) -> None:
    assert loop_around(Names(), ("src/a.c", line)) == ("src/a.c", begin)  # type: ignore[arg-type]


def test_a_line_of_a_file_that_may_be_several_has_to_begin_a_loop() -> None:
    assert loop_around(Names(), ("b.c", 8)) == ("lib/b.c", 7)  # type: ignore[arg-type]
    assert loop_around(Names(), ("a.c", 9)) == ("lib/a.c", 9)  # type: ignore[arg-type]
    for place in (("a.c", 11), ("src/a.c", 21), ("src/a.c", 6)):
        with pytest.raises(TracekitError, match=f"no loop at {place[0]}:{place[1]}; there is"):
            loop_around(Names(), place)  # type: ignore[arg-type]
    LOOPS.append(("lib/a.c", 7, 8))
    try:
        with pytest.raises(TracekitError, match=r"a\.c:7 may be lib/a\.c:7, src/a\.c:7\."):
            one_place(Names(), ("a.c", 7))  # type: ignore[arg-type]
    finally:
        LOOPS.pop()
