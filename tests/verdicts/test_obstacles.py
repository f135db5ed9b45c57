"""Which blockers are one thing, and what comes first."""

from __future__ import annotations

from typing import Any

from tracekit.verdicts.obstacles import in_order


def dependence(name: str, executions: int, line: int = 1) -> dict[str, Any]:
    end = {"id": f"0:{line}", "file": "f.c", "line": line, "column": 0}
    objects = [{"kind": "global", "name": name}]
    return {
        "reason": "dependence",
        "source": end,
        "destination": end,
        "objects": objects,
        "executions": executions,
    }


def other(reason: str, line: int, name: str = "") -> dict[str, Any]:
    source = {"file": "f.c", "line": line, "column": 0, "name": name}
    return {"reason": reason, "source": source, "destination": None, "callee": name}


def things(rows: list[dict[str, Any]], **more: Any) -> list[tuple[int, str]]:
    ordered = in_order(rows, 10, **more)
    return [
        (row["thing"], row["objects"][0]["name"] if row["reason"] == "dependence" else row["reason"]) for row in ordered
    ]


def test_conflicts_over_one_object_are_one_thing_and_the_most_frequent_thing_is_first() -> None:
    rows = [dependence("x", 3), dependence("y", 5), dependence("x", 4, line=2)]
    assert things(rows) == [(0, "x"), (0, "x"), (1, "y")]


def test_a_variable_is_in_the_way_of_each_iteration() -> None:
    assert things([dependence("x", 9), other("recurrence", 2, "p")]) == [(0, "recurrence"), (1, "x")]
    assert things([dependence("x", 11), other("recurrence", 2, "p")]) == [(0, "x"), (1, "recurrence")]


def test_two_values_of_one_variable_are_one_thing() -> None:
    rows = [other("recurrence", 2, "p"), other("recurrence", 3, "p"), other("recurrence", 4), other("recurrence", 5)]
    assert [thing for thing, _ in things(rows)] == [0, 0, 1, 2]


def test_an_exit_that_follows_from_a_variable_is_no_thing_of_its_own() -> None:
    rows = [other("exit", 2), other("recurrence", 3, "p")]
    assert [thing for thing, _ in things(rows)] == [0, 1]
    follows = things(rows, follows=lambda number: [1])
    assert follows == [(0, "recurrence"), (0, "exit")]


def test_calls_of_one_function_are_one_thing() -> None:
    rows = [other("external", 2, "rand"), other("external", 3, "rand"), other("external", 4, "puts")]
    assert [thing for thing, _ in things(rows)] == [0, 0, 1]


def test_what_an_exit_follows_from_is_looked_up_once() -> None:
    asked = []

    def follows(number: int) -> list[int]:
        asked.append(number)
        return []

    things([other("exit", 1), other("exit", 2), *(dependence("x", 1, line) for line in range(3, 9))], follows=follows)
    assert asked == [0, 1]
