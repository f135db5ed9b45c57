"""How profiles look: JSON that reads back, and text with aligned columns."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tracekit.profiles.json import as_json
from tracekit.program.sources import common_folder
from tracekit.render.dependence import context_text
from tracekit.render.places import instruction_text, place_text, without_folder
from tracekit.render.registry import as_text
from tracekit.render.text import Style, table

PLAIN = Style(colour=False)


def instruction(line: int, kind: str = "load", file: str = "/src/deep/a.c") -> dict[str, Any]:
    return {
        "id": f"u:{line}",
        "kind": kind,
        "function": "work",
        "file": file,
        "line": line,
        "column": 3,
        "inlined_at": [],
    }


def loop_row(line: int, verdict: str, accesses: int = 10, **changes: Any) -> dict[str, Any]:
    row = {
        "loop": {"function": "work", "file": "/src/deep/a.c", "line": line, "column": 1, "depth": 1},
        "context": {"id": 4, "root": "main", "path": ["loop main:23", "main:25:13", f"loop work:{line}"]},
        "invocations": 1,
        "iterations": 1000,
        "accesses": accesses,
        "carried": {"raw": 0, "war": 0, "waw": 0},
        "verdict": verdict,
        "recipe": [],
        "blocked_by": [],
    }
    return {**row, **changes}


def dependence_row(count: int, levels: list[Any]) -> dict[str, Any]:
    context = {"id": 5, "root": "main", "path": ["main:25:13"]}
    return {
        "kind": "RAW",
        "source": instruction(9, "store", "/src/b.c"),
        "destination": instruction(8),
        "source_context": context,
        "destination_context": context,
        "levels": levels,
        "count": count,
    }


def report(loops: list[Any], dependences: list[Any]) -> dict[str, Any]:
    summary = {
        "dependences": len(dependences),
        "contexts": 3,
        "contexts_without_id": 1,
        "parallel_loops_lamp": 0,
        "parallel_loops_camp": 1,
        "false_positive_share": 0.25,
    }
    return {
        "tracekit": "1",
        "module": "camp",
        "trace": "abc",
        "options": {"carried_by": ""},
        "result": {"dependences": dependences, "loops": loops, "summary": summary},
    }


def text(loops: list[Any], dependences: list[Any], limit: int = 30) -> list[str]:
    return as_text(report(loops, dependences), {"accesses": 40}, limit, PLAIN).splitlines()


def test_json_reads_back_as_it_was() -> None:
    one = report([loop_row(7, "doall")], [dependence_row(3, [])])
    one["result"]["dependences"][0]["source"]["function"] = 'naïve"\n'
    assert json.loads(as_json([one])) == one
    assert json.loads(as_json([one, one])) == [one, one]
    assert list(json.loads(as_json([one]))["result"]) == ["dependences", "loops", "summary"]


def test_each_row_of_a_table_stands_on_a_line_of_json() -> None:
    lines = as_json([report([loop_row(7, "doall")], [dependence_row(3, []), dependence_row(4, [])])]).splitlines()
    assert sum(line.startswith('{"kind": "RAW"') for line in lines) == 2


def test_columns_are_aligned() -> None:
    lines = table(("A", "COUNT", "LAST"), [("x", "1", "y"), ("longer", "1,000", "z")], frozenset((1,)), PLAIN)
    assert lines == ["A       COUNT  LAST", "x           1  y", "longer  1,000  z"]


def test_a_very_wide_cell_shifts_its_own_row_only() -> None:
    name = f"std::map<{'int, ' * 40}int>::find(int const&)"
    lines = table(("LOOP", "COUNT"), [("main", "1"), (name, "2")], frozenset((1,)), PLAIN)
    assert len(lines[0]) == len(lines[1]) <= 90 and lines[2] == f"{name}      2"


def test_code_that_has_a_line_but_no_column_has_no_column() -> None:
    assert place_text({"file": "a.c", "line": 3, "column": 0}) == "a.c:3"
    assert place_text({"file": "a.c", "line": 0, "column": 0}) == "a.c"
    assert place_text({"file": "", "line": 0, "column": 0}) == "(no line: compile with -g)"


def test_a_line_that_is_only_near_is_marked() -> None:
    assert place_text({"file": "a.c", "line": 3, "column": 0, "nearby": True}) == "a.c:~3"


def test_the_folders_of_headers_have_no_detours() -> None:
    header = {"file": "/usr/lib/gcc/12/../../../include/c++/12/map"}
    assert without_folder([header, {"file": "/src/app/a.cc"}], {})[0][0]["file"] == "map"
    assert (
        without_folder([header], {})[0][0]["file"] == "map" and without_folder([header], {})[1] == "/usr/include/c++/12"
    )


@pytest.mark.parametrize(
    ("file", "shown"),
    [
        ("/usr/include/stdio.h", "stdio.h"),
        ("/usr/include/x86_64-linux-gnu/bits/stdio2.h", "bits/stdio2.h"),
        ("/usr/include/x86_64-linux-gnu/c++/12/bits/gthr.h", "bits/gthr.h"),
        ("/usr/include/c++/12/bits/stl_vector.h", "bits/stl_vector.h"),
        ("/usr/lib/llvm-19/include/c++/v1/vector", "vector"),
        ("/usr/lib/gcc/x86_64-linux-gnu/12/include/xmmintrin.h", "xmmintrin.h"),
        ("/rustc/90b35a6239/library/core/src/iter/range.rs", "library/core/src/iter/range.rs"),
        ("/usr/src/rustc-1.63.0/library/alloc/src/vec/mod.rs", "library/alloc/src/vec/mod.rs"),
        ("/usr/src/rustc-1.63.0/vendor/hashbrown/src/raw/mod.rs", "hashbrown/src/raw/mod.rs"),
        ("/rust/deps/hashbrown-0.16.1/src/raw.rs", "hashbrown-0.16.1/src/raw.rs"),
        ("/root/.rustup/toolchains/1.95/lib/rustlib/src/rust/library/std/src/io.rs", "library/std/src/io.rs"),
        ("/root/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f/libc-0.2.1/src/lib.rs", "libc-0.2.1/src/lib.rs"),
        ("/usr/share/cargo/registry/petgraph-0.6.2/src/lib.rs", "petgraph-0.6.2/src/lib.rs"),
        ("/src/app/cargo/registry/lib.rs", "cargo/registry/lib.rs"),
        ("/usr/share/gen.c", "/usr/share/gen.c"),
        ("/opt/lib/include/a.h", "/opt/lib/include/a.h"),
    ],
)
def test_headers_of_the_system_are_named_as_they_are_included(file: str, shown: str) -> None:
    files = [{"file": file}, {"file": "/src/app/a.cc"}, {"file": "/src/app/b.cc"}]
    rows, folder = without_folder(files, {})
    assert rows[0]["file"] == shown
    assert folder == ("" if file.startswith("/opt/") else "/src/app")


def test_code_of_a_header_has_the_users_line_behind_it() -> None:
    def at(file: str, line: int, *users: dict[str, Any]) -> dict[str, Any]:
        return {"kind": "load", "file": file, "line": line, "column": 5, "function": "size", "inlined_at": list(users)}

    vector, user = "/usr/include/c++/12/bits/stl_vector.h", at("/src/app/main.cc", 12)
    rows, _ = without_folder(
        [
            at(vector, 1046, at(vector, 1100), user),
            at("/src/app/a.h", 7, user),
            at(vector, 3),
            at("/src/app/lib/b.cc", 1),
        ],
        {},
    )
    assert [instruction_text(row) for row in rows] == [
        "load bits/stl_vector.h:1046:5 (from main.cc:12:5) size",
        "load a.h:7:5 size",
        "load bits/stl_vector.h:3:5 size",
        "load lib/b.cc:1:5 size",
    ]
    report = {
        "module": "accesses",
        "trace": "0",
        "result": {"instructions": [{"instruction": at(vector, 1046, user)}, {"instruction": user}]},
    }
    shown = as_text(report, {}, 0, PLAIN)
    assert "files below /src/app" in shown
    assert "load bits/stl_vector.h:1046:5 (from main.cc:12:5) size" in shown


def test_loops_at_one_place_are_told_apart_by_their_depth() -> None:
    inner = {**loop_row(7, "")["loop"], "depth": 2}
    lines = text([loop_row(7, "doall", 30), loop_row(7, "doall", 10, loop=inner), loop_row(8, "doall", 1)], [])
    assert [line.partition(" work")[0].split()[1:] for line in lines if line.startswith("doall")] == [
        ["a.c:7:1", "(depth", "1)"],
        ["a.c:7:1", "(depth", "2)"],
        ["a.c:8:1"],
    ]


def test_the_hottest_loop_comes_first_with_its_share_and_its_callee() -> None:
    lines = text([loop_row(7, "doall", 10), loop_row(9, "sequential", 30)], [])
    first = next(number for number, line in enumerate(lines) if line.startswith("sequential"))
    assert lines[first].split() == ["sequential", "a.c:9:1", "work", "1,000", "1", "75.0%", "-"]
    assert lines[first + 1] == "    in main > loop main:23 > work@25  [4]"
    assert lines[first + 2].startswith("doall")
    assert lines[0] == "camp, trace abc, files below /src/deep"


def test_recipes_and_obstacles_are_sentences() -> None:
    steps = [
        {
            "kind": "reduction",
            "object": {"kind": "register", "name": "sum", "file": "", "line": 0, "column": 0},
            "operator": "+",
        },
        {"kind": "private", "object": {"kind": "global", "name": "scratch"}, "operator": None},
        {"kind": "lastprivate", "object": {"kind": "global", "name": "latest"}, "operator": None},
        {"kind": "private", "object": {"kind": "heap", "site": instruction(30, "library")}, "operator": None},
    ]
    blockers = [
        {"reason": "dependence", "source": instruction(8), "destination": instruction(line, "store")}
        for line in (9, 9, 10, 11, 12, 13)
    ]
    blockers += [
        {
            "reason": "exit",
            "source": {"kind": "exit", "file": "/src/deep/a.c", "line": 12, "column": 9},
            "destination": None,
        }
    ]
    rows = [loop_row(7, "doall-with", recipe=steps), loop_row(8, "pipeline", blocked_by=blockers)]
    shown = "\n".join(text(rows, []))
    for sentence in (
        "with reduction (+) of sum",
        "with a private copy of global scratch for each iteration\n",
        "with a private copy of global latest for each iteration, the last one's kept",
        "heap memory allocated at a.c:30:3",
        "blocked: load a.c:8:3 work -> store a.c:9:3 work",
        "... and 2 more of this kind",
        "may be left early at",
    ):
        assert sentence in shown


def test_levels_say_what_carries_and_how_far() -> None:
    loop = {"function": "work", "file": "/src/deep/a.c", "line": 7, "column": 1, "depth": 1}
    levels = [
        {"loop": {"recursion": "f:3:1"}, "intra": True, "inter": False, "min_distance": None, "max_distance": None},
        {"loop": loop, "intra": True, "inter": True, "min_distance": 1, "max_distance": 4000},
    ]
    lines = text([], [dependence_row(12345, levels)])
    assert "    carried by loop work:7, distance 1 to 4,000; within an iteration of loop work:7" in lines
    assert any(line.split()[:2] == ["RAW", "12,345"] and "store b.c:9:3 work" in line for line in lines)


def test_long_tables_are_limited_and_say_so() -> None:
    rows = [dependence_row(count, []) for count in range(50)]
    lines = text([], rows, limit=30)
    assert "... and 20 more dependences (--limit 0 shows all)" in lines
    assert sum(line.startswith("RAW") for line in lines) == 30
    assert sum(line.startswith("RAW") for line in text([], rows, limit=0)) == 50


def test_rows_with_a_weight_come_with_the_greatest_first() -> None:
    rows = [
        {"kind": "RAW", "source": instruction(line, "store"), "destination": instruction(8), "count": count}
        for line, count in ((3, 7), (4, 900), (5, 8))
    ]
    report = {
        "module": "dependence",
        "trace": "0",
        "options": {"carried_by": "/src/deep/b.c:9"},
        "result": {"dependences": rows},
    }
    shown = as_text(report, {}, 2, PLAIN).splitlines()
    assert shown[0] == "dependence, trace 0, carried by loop b.c:9, files below /src/deep"
    assert [line.split()[-1] for line in shown[4:6]] == ["900", "8"]
    assert shown[6] == "... and 1 more row (--limit 0 shows all)"


def test_lines_stay_narrow() -> None:
    lines = text([loop_row(7, "doall-with")], [dependence_row(5, [])])
    assert max(map(len, lines)) <= 120


def test_colour_is_for_terminals() -> None:
    assert Style(colour=True)("doall", "green") == "\x1b[32mdoall\x1b[0m"
    assert PLAIN("doall", "green") == "doall"


def test_a_deep_context_keeps_its_root_and_its_innermost_steps() -> None:
    path = [f"function_with_a_long_name_{depth}:{depth}:1" for depth in range(30)]
    shown = context_text({"id": 7, "root": "main", "path": path}, "leaf")
    assert shown.startswith("main > ... ") and shown.endswith("> leaf@29  [7]") and len(shown) <= 110


def test_names_of_cplusplus_keep_their_colons() -> None:
    context = {"id": None, "root": "main", "path": ["loop ns::f(int):12", "ns::f(int):13:7", "recursion ns::g():20:1"]}
    assert context_text(context, "ns::h()") == "main > loop ns::f(int):12 > ns::g()@13 > recursion ns::h()@20"


def test_a_module_without_a_text_of_its_own_shows_its_tables() -> None:
    place = {"kind": "load", "function": "f", "file": "a.c", "line": 3, "column": 7}
    rows = [{"instruction": place, "often": 1000, "share": 0.25}, {"instruction": place, "often": 2, "share": None}]
    result = {"hot_rows": rows, "total": 3, "summary": {"a_b": 1, "c": [1, 2]}}
    other = {"module": "other", "trace": "abc", "result": result}
    assert as_text(other, {}, 1, PLAIN).splitlines() == [
        "other, trace abc",
        "",
        "hot rows",
        "instruction     often  share",
        "load a.c:3:7 f  1,000   0.25",
        "... and 1 more row (--limit 0 shows all)",
        "",
        "total",
        "3",
        "",
        "summary",
        "a b  1",
        "c    1, 2",
    ]


def test_it_is_said_which_loop_carries_what_is_listed() -> None:
    report = {"module": "dependence", "trace": "0", "options": {"carried_by": "a.c:9"}, "result": {"dependences": []}}
    assert as_text(report, {}, 0, Style(False)).startswith("dependence, trace 0, carried by loop a.c:9\n")


def test_the_folder_of_a_program_is_found_beside_headers_of_the_system() -> None:
    assert common_folder(["/home/me/src/a.c", "/home/me/src/lib/b.c", "/usr/include/stdio.h"]) == "/home/me/src"
    assert common_folder(["/home/me/a.c", "/opt/b.c"]) == ""
    assert common_folder(["/usr/src/x/a.c", "/usr/src/x/b.c"]) == "/usr/src/x"
    assert common_folder(["a.c", "/home/me/b.c"]) == "" == common_folder([])
    rows, folder = without_folder([{"file": "/home/me/a.c"}, {"file": "/opt/b.c"}, {"file": ""}], {})
    assert (folder, [row["file"] for row in rows]) == ("", ["/home/me/a.c", "/opt/b.c", ""])
    files = ("/home/me/a.c", "/home/me/b/c.c", "/usr/include/stdio.h", "")
    rows, folder = without_folder([{"file": file} for file in files], {})
    assert (folder, [row["file"] for row in rows]) == ("/home/me", ["a.c", "b/c.c", "stdio.h", ""])
