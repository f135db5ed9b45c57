"""Joined rows of the module dependence against plain sums, on rows made by chance."""

from __future__ import annotations

import itertools
from collections import Counter
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tracekit.dependence.pairs_merge import join_dependences

Found = dict[tuple[str, int, int], tuple[int, dict[int, tuple[bool, Counter[int]]]]]


@st.composite
def runs(draw: st.DrawFn) -> Found:
    """Dependence (kind, lines of source and destination) -> count, and by line of a loop: intra, distances."""
    key = st.tuples(st.sampled_from(["RAW", "WAR"]), st.integers(1, 2), st.integers(1, 2))
    distances = st.dictionaries(st.integers(1, 4), st.integers(1, 9), max_size=3).map(Counter)
    levels = st.dictionaries(st.integers(7, 9), st.tuples(st.booleans(), distances), max_size=2)
    return draw(st.dictionaries(key, st.tuples(st.integers(1, 9), levels), max_size=4))


def rows(found: Found) -> list[dict[str, Any]]:
    """As a profile has them."""

    def end(line: int) -> dict[str, Any]:
        return {
            "id": f"u:{line}",
            "kind": "load",
            "function": "f",
            "file": "a.c",
            "line": line,
            "column": 1,
            "inlined_at": [],
        }

    made = []
    for (kind, source, destination), (count, levels) in sorted(found.items()):
        listed = [
            {
                "loop": {"function": "f", "file": "a.c", "line": line, "column": 1, "depth": line - 6},
                "intra": intra,
                "inter": bool(distances),
                "min_distance": min(distances, default=None),
                "max_distance": max(distances, default=None),
                "histogram": [list(each) for each in sorted(distances.items())] or None,
            }
            for line, (intra, distances) in sorted(levels.items())
        ]
        made.append(
            {"kind": kind, "source": end(source), "destination": end(destination), "levels": listed, "count": count}
        )
    return made


def together(all_found: list[Found]) -> Found:
    """What the runs found, in plain sums."""
    total: Found = {}
    for found in all_found:
        for key, (count, levels) in found.items():
            before, known = total.get(key, (0, {}))
            joined = dict(known)
            for line, (intra, distances) in levels.items():
                was, times = joined.get(line, (False, Counter[int]()))
                joined[line] = (was or intra, times + distances)
            total[key] = (before + count, joined)
    return total


@settings(max_examples=200, deadline=None)
@given(st.lists(runs(), min_size=1, max_size=3))
def test_joined_rows_are_plain_sums_in_any_order(all_found: list[Found]) -> None:
    expected = rows(together(all_found))
    for order in itertools.permutations(map(rows, all_found)):
        assert join_dependences(order) == expected
    if len(all_found) == 3:
        first, second, third = map(rows, all_found)
        assert join_dependences([join_dependences([first, second]), third]) == expected
