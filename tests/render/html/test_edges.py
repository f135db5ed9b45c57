"""The edges that a page draws of each loop."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.naive import page_edges
from tracekit.render.html.edges import edges_at

STEPS = st.sampled_from(["main:3:1", "loop work:7", "loop work:9", "recursion main:2:1"])
LOOPS = st.builds(lambda line, depth: {"line": line, "depth": depth}, st.integers(7, 8), st.integers(1, 2))
INSTRUCTIONS = st.builds(
    lambda line, number: {"id": number, "kind": "load", "file": "a.c", "line": line, "column": 1, "function": "f"},
    st.integers(1, 3),
    st.integers(0, 2),
)


def contexts(least: int) -> Any:
    made = st.builds(
        lambda root, path: {"root": root, "path": path},
        st.sampled_from(["main", "thread"]),
        st.lists(STEPS, min_size=least, max_size=3),
    )
    return st.none() | made


def level(loop: Any, distances: tuple[int, int] | None) -> dict[str, Any]:
    low, high = (None, None) if distances is None else (min(distances), max(distances))
    return {"loop": loop, "inter": distances is not None, "min_distance": low, "max_distance": high}


LEVELS = st.lists(
    st.builds(level, LOOPS, st.none() | st.tuples(st.integers(1, 9), st.integers(1, 9))),
    max_size=3,
)


@st.composite
def pages(draw: Any) -> tuple[list[Any], list[Any]]:
    """Rows of loops, and of dependences that share their instructions, contexts and levels."""
    loops = [
        {"loop": draw(LOOPS), "context": draw(contexts(1)), **draw(st.sampled_from([{}, {"recursive": True}]))}
        for _ in range(draw(st.integers(0, 5)))
    ]
    shared = {
        "source": draw(st.lists(INSTRUCTIONS, min_size=1, max_size=3)),
        "destination": draw(st.lists(INSTRUCTIONS, min_size=1, max_size=3)),
        "source_context": draw(st.lists(contexts(0), min_size=1, max_size=3)),
        "destination_context": draw(st.lists(contexts(0), min_size=1, max_size=3)),
        "levels": draw(st.lists(LEVELS, min_size=1, max_size=3)),
        "kind": ["RAW", "WAR"],
    }
    dependences = [
        {name: draw(st.sampled_from(values)) for name, values in shared.items()} | {"count": draw(st.integers(1, 5))}
        for _ in range(draw(st.integers(0, 12)))
    ]
    return loops, dependences


@given(pages(), st.integers(0, 4))
def test_edges_are_those_found_one_by_one(page: tuple[list[Any], list[Any]], most: int) -> None:
    loops, dependences = page
    expected = page_edges.edges_at(loops, dependences, most)
    assert [tuple(each) for each in edges_at(loops, dependences, most)] == expected
    apart = json.loads(json.dumps(dependences))  # as from a file of format 1, where rows share nothing
    assert [tuple(each) for each in edges_at(loops, apart, most)] == expected
