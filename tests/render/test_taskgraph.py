"""Lines of a task graph as text."""

from __future__ import annotations

from tracekit.render.communication import thread_text
from tracekit.render.taskgraph import line_text, short_context, what_if_cells


def test_lines_of_inlined_functions_say_into_which() -> None:
    line = {"kind": "line", "function": "at", "file": "vector.h", "line": 7, "column": 0}
    assert line_text({**line, "within": "at"}) == "vector.h:7 at"
    assert line_text({**line, "within": "main"}) == "vector.h:7 at, in main"
    assert line_text(line) == "vector.h:7 at", "profiles of older versions do not say so"


def test_names_of_templates_are_brief() -> None:
    name = f"std::_Function_handler<void (), Pool::f<{'int, ' * 9}int>::'lambda'()>::_M_invoke(std::_Any_data const&)"
    row = {"work": 9, "span": 3, "faster": [{"name": name, "factor": 2.0}]}
    assert what_if_cells(row)[-1] == "std::_Function_handler<...>::_M_invoke 2 times"
    assert thread_text({"thread": 3, "role": name}) == "3 std::_Function_handler<...>::_M_invoke"


def test_contexts_in_tables_are_short() -> None:
    def context(*path: str) -> dict[str, object]:
        return {"root": "main", "path": list(path)}

    assert short_context(None) == "-"
    assert short_context(context("f:3", "loop g:7")) == "main > f:3 > loop g:7"
    steps = [f"function_{number}:10" for number in range(20)]
    assert short_context(context(*steps)) == "main > ... > function_18:10 > function_19:10"
    assert len(short_context(context("f:3", "n" * 300))) < 90
    assert short_context(context("__gnu_cxx::__exchange_and_add(int volatile*, int):66:12")) == (
        "main > __gnu_cxx::__exchange_and_add:66:12"
    )
    assert short_context(context("get(int):2", *steps, "loop std::sort<int*, Less>(int*, int*, Less):7")).endswith(
        "> loop std::sort<...>:7"
    )
    assert short_context(context("get(int):2")) == "main > get(int):2", "there is room for the parameters"
