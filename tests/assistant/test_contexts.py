"""What list_loops says of a loop whose contexts have different verdicts: advice has the worst of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tracekit.assistant.tools import _elsewhere, _verdicts_of_contexts


def row(line: int, verdict: str) -> Mapping[str, Any]:
    return {"loop": {"file": "a.c", "line": line, "column": 5, "function": "f"}, "verdict": verdict}


def test_only_loops_whose_contexts_differ_say_so() -> None:
    rows = [row(1, "doall"), row(1, "sequential"), row(1, "doall"), row(2, "pipeline"), row(2, "pipeline")]
    verdicts = _verdicts_of_contexts(rows)
    expected = ["one of 3 contexts of this loop: 2 doall, 1 sequential; advice and source have the worst, sequential"]
    assert [_elsewhere(each, verdicts) for each in rows] == [expected, expected, expected, [], []]
