"""advise's text on rows made up by hand: what is left out of it, and what is said instead."""

from __future__ import annotations

from typing import Any

from tracekit.render.advise import advise_text
from tracekit.render.dependence import transformation_text
from tracekit.render.text import Style

PLAIN = Style(False)


def place(line: int) -> dict[str, Any]:
    return {
        "id": f"0:{line}",
        "kind": "load",
        "function": "f",
        "file": "f.c",
        "line": line,
        "column": 1,
        "inlined_at": [],
    }


def dependence(source: int, destination: int, name: str, **changes: Any) -> dict[str, Any]:
    return {
        "reason": "dependence",
        "source": place(source),
        "destination": place(destination),
        "kinds": ["RAW"],
        "objects": [{"kind": "global", "name": name}],
        "contexts": [],
        "distance": {"min": 1, "max": 1},
        "executions": 9,
        "per_iteration": 0.9,
        "rare": False,
        "remedy": None,
        **changes,
    }


def row(line: int, end: int, verdict: str, **case: Any) -> dict[str, Any]:
    cases = [
        {
            "verdict": verdict,
            "contexts": [{"id": 1, "root": "f", "path": [f"loop f:{line}"]}],
            "accesses": 10,
            "share": 50.0,
            "invocations": 1,
            "iterations": 10,
            "trips": {"min": 10, "mean": 10.0, "max": 10},
            "recipe": [],
            "blocked_by": [],
            "speculation": None,
            "independent_in_a_row": None,
            "stages": [],
            "unplaced_share": 0.0,
            **case,
        }
    ]
    parallel = verdict in ("doall", "doall-with")
    openmp = {"file": "f.c", "line": line, "rounding": False, "pragma": "#pragma", "missing": None}
    return {
        "loop": {"function": "f", "file": "f.c", "line": line, "column": 1, "depth": line, "end_line": end},
        "verdict": verdict,
        "accesses": 10,
        "share": 50.0,
        "openmp": openmp if parallel else None,
        "cases": cases,
        "contexts_not_exercised": 0,
    }


def text(*loops: dict[str, Any], further: tuple[dict[str, Any], ...] = (), style: Style = PLAIN) -> str:
    summary = {"loops": 5, "hot": 3, "not_exercised": 0, "verdicts": {}}
    runs = [{"command": ["./app", "a b"], "status": 1, "signal": None, "accesses": 20}]
    report = {
        "module": "advise",
        "trace": "0",
        "options": {"min_share": 1.0},
        "result": {"runs": runs, "loops": list(loops), "further_parallel": list(further), "summary": summary},
    }
    return advise_text(report, {}, 0, style)


def test_lines_are_no_wider_than_the_terminal_or_the_page() -> None:
    calls = [place(line) for line in range(100, 160)]
    heap = {"kind": "heap", "site": place(3), "called_at": calls, "called_elsewhere": False}
    step = {"kind": "private", "object": heap, "operator": None}
    row_of_it = row(1, 9, "sequential", blocked_by=[dependence(2, 3, "", objects=[heap])], recipe=[step])
    for width, widest in ((0, 118), (60, 60)):
        lines = text(row_of_it, style=Style(False, width)).splitlines()
        assert max(len(line) for line in lines if "f.c:1" in line) <= widest
        assert len([line for line in lines if "f.c:159:1" in line]) == 2


def test_dependences_stand_together_by_object() -> None:
    blocked = [dependence(2, 3, "x"), dependence(2, 4, "y"), dependence(2, 5, "x"), dependence(2, 6, "x")]
    shown = text(row(1, 9, "sequential", blocked_by=blocked))
    assert shown.count("on global x") == shown.count("on global y") == 1
    assert "... and 1 more pair of instructions\n" in shown


def test_stages_that_are_of_no_help_are_not_listed() -> None:
    stage = {"parallel": False, "lines": [{"file": "f.c", "line": 2}], "calls": [], "values": [], "share": 95.0}
    other = {**stage, "parallel": True, "share": 5.0}
    shown = text(row(1, 9, "sequential", stages=[stage, other]))
    assert "stage 1" not in shown
    assert "95.0%" in shown
    assert "at best 2.0 times" in text(row(1, 9, "pipeline", stages=[{**stage, "share": 50.0}, other]))


def test_a_pipeline_gains_no_more_than_it_has_iterations() -> None:
    stage = {"parallel": False, "lines": [{"file": "f.c", "line": 2}], "calls": [], "values": [], "share": 0.01}
    stages = [stage, {**stage, "parallel": True, "share": 99.99}]
    shown = text(row(1, 9, "pipeline", stages=stages))
    assert "0.0% of its accesses: by them, at best 10 times, in 10 iterations." in shown
    assert "10000" not in shown


def test_of_nested_parallel_loops_one_is_enough() -> None:
    shown = text(row(1, 9, "doall"), row(2, 5, "doall"))
    assert shown.count("lies inside loop 1") == 1
    assert "lies inside" not in text(row(1, 4, "doall"), row(5, 9, "doall"))


def test_a_remedy_is_given_only_if_it_helps_with_all() -> None:
    copy = {"kind": "copy"}
    assert "read from a copy" in text(row(1, 9, "sequential", blocked_by=[dependence(2, 3, "x", remedy=copy)]))
    both = [dependence(2, 3, "x", remedy=copy), dependence(3, 3, "x")]
    assert "read from a copy" not in text(row(1, 9, "sequential", blocked_by=both))


def test_locals_without_a_name_are_told_apart() -> None:
    locals_ = [{"kind": "stack", "name": "", "site": {**place(line), "kind": "alloca"}} for line in (3, 0)]
    shown = text(row(1, 9, "sequential", blocked_by=[dependence(2, 3, "x", objects=[each]) for each in locals_]))
    assert "on a local of f (f.c:3:1):" in shown
    assert "on a local of f:" in shown


def test_each_of_several_objects_has_a_line() -> None:
    objects = [{"kind": "global", "name": name} for name in ("x", "y", "z")]
    shown = text(row(1, 9, "sequential", blocked_by=[dependence(2, 3, "", objects=objects, thing=0)])).splitlines()
    at = shown.index("   - RAW on 3 objects:")
    assert shown[at + 1 : at + 4] == [f"         * global {name}" for name in ("x", "y", "z")]
    assert any("reads from global x and 2 other objects what" in line for line in shown), shown


def test_of_very_many_objects_the_first_have_a_line() -> None:
    objects = [{"kind": "global", "name": f"x{number}"} for number in range(64)]
    shown = text(row(1, 9, "sequential", blocked_by=[dependence(2, 3, "", objects=objects, thing=0)])).splitlines()
    at = shown.index("   - RAW on 64 objects:")
    assert shown[at + 1 : at + 7] == [f"         * global x{number}" for number in range(6)]
    assert shown[at + 7] == "         * ... and 58 more (--json shows all)"
    assert "RAW" in shown[at + 8]


def test_of_many_contexts_the_others_are_counted() -> None:
    contexts = [{"id": None, "root": "main", "path": [f"main:{line}:1", "loop f:1"]} for line in range(4)]
    assert "\n     in 1 more context\n" in text(row(1, 9, "doall", contexts=contexts))


def test_a_reduction_is_named_only_if_nothing_else_would_be_left() -> None:
    reduce = {"kind": "reduce", "operator": "+", "but": [place(7)]}
    update = dependence(2, 2, "x", remedy=reduce)
    assert "a reduction (+), but for f.c:7:1" in text(row(1, 9, "sequential", blocked_by=[update]))
    seen = dependence(2, 7, "x")
    assert "a reduction (+), but for f.c:7:1" in text(row(1, 9, "sequential", blocked_by=[update, seen]))
    other = dependence(8, 9, "x")
    assert "a reduction" not in text(row(1, 9, "sequential", blocked_by=[update, seen, other]))


def test_of_many_stages_the_small_ones_are_counted() -> None:
    stage = {"parallel": True, "lines": [{"file": "f.c", "line": 2}], "calls": [], "values": [], "share": 40.0}
    many = [stage, {**stage, "share": 59.5}, *[{**stage, "share": 0.1}] * 5]
    shown = text(row(1, 9, "pipeline", stages=many))
    assert shown.count("stage ") == 2
    assert "5 more stages make less than 1%" in shown
    assert "1 more stage makes less than 1%" in text(row(1, 9, "pipeline", stages=many[:3] + [stage] * 4))
    assert "not known by which stage" in " ".join(text(row(1, 9, "pipeline", stages=many, unplaced_share=50.0)).split())


def test_it_says_which_runs_it_has_seen() -> None:
    assert "./app 'a b'  (20 accesses, exit status 1)" in text(row(1, 9, "doall"))


def test_parallel_loops_below_the_first_are_named() -> None:
    further = {"loop": row(20, 22, "doall")["loop"], "verdict": "doall", "accesses": 1, "share": 2.0}
    assert "f.c:20:1 f, 2.0%: doall" in text(row(1, 9, "doall"), further=(further,))


def recurrence(name: str, line: int) -> dict[str, Any]:
    source = {"kind": "register", "name": name, "file": "f.c", "line": line, "column": 1}
    return {"reason": "recurrence", "source": source, "destination": None, "thing": 0}


def leaving(line: int, depends_on: Any) -> dict[str, Any]:
    source = {"kind": "exit", "file": "f.c", "line": line, "column": 1, "depends_on": depends_on}
    return {"reason": "exit", "source": source, "destination": None, "thing": 0}


def read(name: str, line: int) -> dict[str, Any]:
    return {**place(line), "name": name}


def test_what_would_make_it_parallel_comes_first() -> None:
    lines = text(row(1, 9, "sequential", blocked_by=[dependence(2, 3, "x", thing=0)])).splitlines()
    assert lines[3].startswith("   Parallel but for one thing: an iteration reads from global x what the one before")
    two = [dependence(2, 3, "x", thing=0), dependence(2, 4, "y", thing=1)]
    lines = text(row(1, 9, "sequential", blocked_by=two)).splitlines()
    assert lines[3].startswith("   Parallel but for 2 things; the first: an iteration reads from global x")
    assert "Parallel but" not in text(row(1, 9, "doall"))
    many = [dependence(2, 3 + thing, f"x{thing}", thing=thing) for thing in range(4)]
    lines = text(row(1, 9, "sequential", blocked_by=many)).splitlines()
    assert lines[3].startswith("   4 things keep its iterations in order; the first: an iteration reads from global x0")


def test_one_is_not_spoken_of_as_many() -> None:
    once = row(1, 9, "doall")
    once["cases"][0]["trips"] = {"min": 1, "mean": 1.0, "max": 1}
    assert "Ran once, 1 iteration." in text(once)


def test_a_remedy_is_what_comes_first() -> None:
    copy = dependence(2, 3, "x", kinds=["WAR"], remedy={"kind": "copy"}, thing=0)
    assert "one thing: global x is only overwritten" in text(row(1, 9, "sequential", blocked_by=[copy]))
    reduce = {"kind": "reduce", "operator": "+", "but": [place(7)]}
    update = dependence(2, 2, "x", remedy=reduce, thing=0)
    shown = text(row(1, 9, "sequential", blocked_by=[update]))
    assert "one thing: global x would be a reduction (+), but for f.c:7:1." in shown


def test_a_variable_that_is_needed_has_its_name_and_its_places_once() -> None:
    shown = text(row(1, 9, "sequential", blocked_by=[recurrence("p", 3), recurrence("p", 3), recurrence("p", 5)]))
    assert "each iteration needs p (f.c:3:1, f.c:5:1) of the one before" in shown
    assert shown.count("needs p") == 1
    nameless = text(row(1, 9, "sequential", blocked_by=[recurrence("", 4)]))
    assert "each iteration needs a value that is computed there (f.c:4:1) of the one before" in nameless


def test_what_decides_an_exit_is_named_once() -> None:
    shown = text(row(1, 9, "sequential", blocked_by=[leaving(3, [read("nx", 3), read("nx", 4), read("nx", 3)])]))
    assert "is decided at f.c:3:1 by nx (f.c:3:1, f.c:4:1)." in " ".join(shown.split())
    older = " ".join(text(row(1, 9, "sequential", blocked_by=[leaving(3, None)])).split())
    assert "what it finds" not in older
    assert "by something that the trace of an older tracekit does not name (build and record again)" in older


def test_exits_that_depend_on_the_same_have_all_their_lines_each() -> None:
    reads = [read("", line) for line in range(1000, 1010)]
    exits = [{**leaving(line, reads), "thing": 1} for line in (3, 4)]
    first, second = text(row(1, 9, "sequential", blocked_by=[dependence(2, 3, "x", thing=0), *exits])).split(
        "- whether it is left at "
    )[1:]
    assert first.startswith("f.c:3:1 ") and second.startswith("f.c:4:1 ")
    assert first.split()[1:] == second.split()[1 : len(first.split())]
    assert "later iterations cannot begin before" in " ".join(second.split())


def test_where_all_stages_are_parallel_it_says_so() -> None:
    stage = {"parallel": True, "lines": [], "calls": [], "values": [], "share": 50.0}
    words = "None has to run in order"
    assert words in text(row(1, 9, "pipeline", stages=[stage, stage]))
    assert words not in text(row(1, 9, "pipeline", stages=[stage]))
    assert words not in text(row(1, 9, "pipeline", stages=[stage, {**stage, "parallel": False}]))


def test_where_only_the_end_is_in_the_way_stages_promise_nothing() -> None:
    stage = {"parallel": False, "lines": [{"file": "f.c", "line": 2}], "calls": [], "values": [], "share": 60.0}
    stages = [stage, {**stage, "parallel": True, "share": 40.0}]
    assert "at best" not in text(row(1, 9, "pipeline", stages=stages, blocked_by=[leaving(3, [read("n", 3)])]))
    assert "at best" in text(row(1, 9, "pipeline", stages=stages, blocked_by=[recurrence("p", 3)]))


def test_names_in_lists_are_not_repeated() -> None:
    stage = {"parallel": True, "lines": [], "calls": ["f", "f", "g"], "values": ["p", "", "p", ""], "share": 40.0}
    shown = text(row(1, 9, "pipeline", stages=[stage]))
    assert "hands on p, a value; calls f, g" in shown
    twice = dependence(2, 3, "x", objects=[{"kind": "global", "name": "x"}] * 2, thing=0)
    assert text(row(1, 9, "sequential", blocked_by=[twice])).count("other object") == 0
    step = {"kind": "reduction", "object": {"kind": "register", "name": "s", "line": 0}, "operator": "+"}
    assert text(row(1, 9, "doall-with", recipe=[step, step])).count("reduce s with +") == 1


def test_what_iterations_only_set_is_no_sum() -> None:
    flag = {"kind": "reduction", "object": {"kind": "register", "name": "s", "line": 0}, "operator": "=1"}
    shown = text(row(1, 9, "doall-with", recipe=[flag, {**flag, "operator": "="}]))
    assert "- all iterations that set s set it to 1: any of them may win" in shown
    assert "- all iterations that set s set it to one value: any of them may win" in shown
    assert transformation_text(flag) == "with s set to 1 by any iteration"
    remedy = {"kind": "reduce", "operator": "=1", "but": [place(7)]}
    shown = text(row(1, 9, "sequential", blocked_by=[dependence(2, 2, "x", remedy=remedy, thing=0)]))
    assert "one thing: global x would be only set to 1, but for f.c:7:1." in shown


def test_copies_say_whether_the_last_one_is_kept() -> None:
    thing = {"kind": "register", "name": "t", "file": "/src/a.c", "line": 3, "column": 0}
    steps = [{"kind": kind, "object": thing, "operator": None} for kind in ("private", "lastprivate")]
    shown = text(row(1, 9, "doall-with", recipe=steps)).splitlines()
    copies = [line.strip() for line in shown if "copy of" in line]
    assert copies[0] == "- give each iteration a copy of t at /src/a.c:3 (it writes before it reads)"
    assert copies[1] == copies[0] + "; keep the last one's"


def test_contexts_are_told_apart_by_their_columns() -> None:
    def context(column: int, line: int = 5) -> dict[str, Any]:
        return {"id": None, "root": "main", "path": [f"main:{line}:{column}", "loop f:1"], "inlined_at": []}

    shown = text(row(1, 9, "doall", contexts=[context(3), context(12), context(3, line=6)]))
    assert "in main > f@5:3\n" in shown
    assert "in main > f@5:12\n" in shown
    assert "in main > f@6\n" in shown


def test_a_loop_of_an_inlined_function_says_where_that_was_inlined() -> None:
    inlined = [{"function": "main", "file": "f.c", "line": 30, "column": 3}]
    context = {"id": 7, "root": "main", "path": ["loop main:1"], "inlined_at": inlined}
    assert "in main  [7], inlined at f.c:30:3\n" in text(row(1, 9, "doall", contexts=[context]))
