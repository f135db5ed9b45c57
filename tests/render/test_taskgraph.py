"""Lines of a task graph as text."""

from __future__ import annotations

from tracekit.render.taskgraph import line_text


def test_lines_of_inlined_functions_say_into_which() -> None:
    line = {"kind": "line", "function": "at", "file": "vector.h", "line": 7, "column": 0}
    assert line_text({**line, "within": "at"}) == "vector.h:7 at"
    assert line_text({**line, "within": "main"}) == "vector.h:7 at, in main"
    assert line_text(line) == "vector.h:7 at", "profiles of older versions do not say so"
