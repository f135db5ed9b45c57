"""Hot contexts of an event loop are told apart, though a handler may call the event function again."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.programs.listing import marks
from tests.programs.running import profiles, record

NAME = "event_loop.c"
SERVER = ["CS-SERVE", "L-SERVE", "CS-PROCESS", "L-EVENTS", "CS-HANDLER"]


def camp(trace: Path, contexts: str) -> dict[str, Any]:
    """The result of camp."""
    result: dict[str, Any] = profiles(trace, "camp", contexts=contexts)["camp"]
    return result


def marked(context: Any) -> tuple[str, ...]:
    """A context by the marks of its lines; a recursion leaf is said to be one."""
    steps = []
    for step in context["path"]:
        kind = "leaf " if step.startswith("recursion ") else ""
        step = step.removeprefix("recursion ").removeprefix("loop ")
        line = int(step.rsplit(":", 2)[1]) if step.count(":") == 2 else int(step.rsplit(":", 1)[1])
        steps.append(kind + marks(NAME).get(line, str(line)))
    return tuple(steps)


def loops_of(result: dict[str, Any], mark: str) -> dict[tuple[str, ...], int]:
    """The contexts of the loop at a mark, and its accesses in each."""
    rows = [row for row in result["loops"] if marks(NAME).get(row["loop"]["line"]) == mark]
    return {marked(row["context"]): row["accesses"] for row in rows}


@pytest.fixture(scope="module")
def traces(build: Callable[..., Path]) -> dict[bool, Path]:
    """Whether the handler calls the event function again -> the trace of such a run, compiled with -O0."""
    program, made = build(NAME, 0), {}
    for again in (False, True):
        recorded = record(program, ["again"] if again else [])
        assert recorded.outcome.status == 0
        made[again] = recorded.trace.rename(program.with_name(f"event_loop-{again}.zst"))
    return made


def test_static_rule_makes_one_context_of_the_server(traces: dict[bool, Path]) -> None:
    result = camp(traces[False], "static")
    leaf = (*SERVER[:2], "leaf CS-PROCESS")
    assert set(loops_of(result, "SUM")) == {(*leaf, "SUM")}
    assert set(loops_of(result, "FILL")) == {(*leaf, "FILL")}
    contexts = {marked(row[end]) for row in result["dependences"] for end in ("source_context", "destination_context")}
    assert max(map(len, contexts)) == len(leaf)
    assert "recursive_contexts" not in result["summary"]


@pytest.mark.parametrize("again", [False, True])
def test_handlers_are_told_apart(again: bool, traces: dict[bool, Path]) -> None:
    result = camp(traces[again], "dynamic")
    reader, writer = (*SERVER, "CS-READER", "SUM"), (*SERVER, "CS-WRITER-SUM", "SUM")
    assert set(loops_of(result, "SUM")) == {reader, writer}
    assert set(loops_of(result, "FILL")) == {(*SERVER, "CS-WRITER", "FILL")}
    sums = [
        (marked(row["source_context"])[5], marked(row["destination_context"])[5])
        for row in result["dependences"]
        if row["kind"] == "RAW"
        and [marks(NAME).get(row[end]["line"]) for end in ("source", "destination")] == ["FILL", "SUM"]
    ]
    assert {("CS-WRITER", "CS-READER"), ("CS-WRITER", "CS-WRITER-SUM")} <= set(sums)


def test_recursion_is_folded_where_it_happens(traces: dict[bool, Path]) -> None:
    calm, again = (camp(traces[again], "dynamic") for again in (False, True))
    assert calm["summary"]["recursive_contexts"] == 0
    # process_events, and nested, which is entered again from inside
    assert again["summary"]["recursive_contexts"] == 2
    assert again["summary"]["limited_contexts"] == 0
    assert again["summary"]["contexts"] == calm["summary"]["contexts"]  # the same nodes in both runs
    assert not any(row.get("recursive") for row in calm["loops"])
    recursive = {marked(row["context"]) for row in again["loops"] if row.get("recursive")}
    assert recursive == {tuple(SERVER[:4])}
    carried = {
        (level["loop"]["recursion"].split(":")[0], level["min_distance"])
        for row in again["dependences"]
        for level in row["levels"]
        if "recursion" in level["loop"]
    }
    assert ("serve", 1) in carried


def test_contexts_that_camp_foresaw_keep_their_ids(traces: dict[bool, Path]) -> None:
    trace = traces[True]
    ids = []
    for contexts in ("static", "dynamic"):
        rows = camp(trace, contexts)["dependences"]
        found = {
            tuple(mark.removeprefix("leaf ") for mark in marked(row[end])): row[end]["id"]
            for row in rows
            for end in ("source_context", "destination_context")
        }
        ids.append({path: number for path, number in found.items() if len(path) <= 3})
    shared = ids[0].keys() & ids[1].keys()
    assert shared
    assert {path: ids[0][path] for path in shared} == {path: ids[1][path] for path in shared}
