"""The text of differences between profiles whose rows are about objects, or hold lists."""

from __future__ import annotations

from tracekit.render.diff import change_text, label

SITE = {"id": "1", "file": "a.c", "line": 3, "column": 5, "function": "make", "kind": "library"}
OBJECT = {"kind": "heap", "name": "", "site": SITE, "context": {"id": 1, "root": "main", "path": ["main:9:1"]}}
CALL = {"kind": "call", "function": "f", "context": {"id": 1, "root": "main", "path": []}}
LOOP = {"kind": "iteration", "loop": {"function": "f", "file": "a.c", "line": 20, "column": 1}}


def test_an_object_is_named_as_in_its_profile() -> None:
    assert label({"object": OBJECT, "objects": 3, "scope": CALL}) == "heap a.c:3:5, made in main > main:9:1"


def test_of_a_list_the_members_that_differ_are_shown() -> None:
    same = {"scope": CALL, "objects": 1}
    before, after = [same, {"scope": LOOP, "objects": 4}], [same, {"scope": LOOP, "objects": 7}]
    assert (
        change_text({"before": before, "after": after})
        == "iteration of f:20: 4 objects -> iteration of f:20: 7 objects"
    )
    assert change_text({"before": [], "after": [same]}) == "none -> call of f: 1 object"
    pointed = [{**OBJECT, "start": 2, "interior": 0, "past_end": 1}]
    assert change_text({"before": pointed, "after": []}) == "heap a.c:3:5: start 2, past end 1 -> none"
    cases = [{"verdict": "doall", "accesses": number} for number in range(1, 6)]
    assert change_text({"before": [], "after": cases}) == (
        "none -> doall: 1 access; doall: 2 accesses; doall: 3 accesses; ... (5)"
    )


def test_of_the_loops_that_carry_those_that_differ_are_shown() -> None:
    outer, inner = ({"function": "f", "file": "a.c", "line": line, "column": 1, "depth": 1} for line in (20, 22))
    change = {"before": [outer, inner], "after": [{"recursion": "g:3:5"}, inner]}
    assert change_text(change) == "loop a.c:20:1 f -> recursion g:3:5"


def test_numbers_have_their_factor() -> None:
    assert change_text({"before": 4, "after": 6, "factor": 1.5}) == "4 -> 6 (x1.5)"
    assert change_text({"before": 4, "after": 4004, "factor": 1001.0}) == "4 -> 4,004 (x1,001)"
    assert change_text({"before": 0, "after": 6, "factor": None}) == "0 -> 6"
