"""The figures of the CAMP paper, from real recordings of its programs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.programs.listing import dependences, marks
from tests.programs.running import Recording, context_nodes, profiles

INTRA, INTER, BOTH = (True, False), (False, True), (True, True)


def by_ends(name: str, result: Any) -> dict[Any, dict[str, tuple[bool, bool]]]:
    """(kind, source, destination, contexts) -> level -> (intra, inter)."""
    return {
        (found.kind, found.source, found.destination, *found.contexts): {loop: flags for loop, *flags in found.levels}
        for found in dependences(name, result)
    }


def flags(levels: dict[str, Any]) -> dict[str, tuple[bool, ...]]:
    return {loop: tuple(value) for loop, value in levels.items()}


@pytest.mark.parametrize("level", [0, 2])
def test_figure_6_context_tree(level: int, recording: Callable[..., Recording]) -> None:
    names = marks("camp_fig1.c")
    tree = {
        (*(names[line] for line in path),): camp_id
        for path, camp_id in context_nodes(recording("camp_fig1.c", level).trace).items()
    }
    assert tree == {
        (): 0,
        ("L1",): 1,
        ("L1", "L2"): 2,
        ("L1", "L2", "CS1"): 3,
        ("L1", "L2", "CS2"): 4,
        ("L1", "L2", "CS2", "CS4"): 5,
        ("L1", "L2", "CS2", "CS5"): 6,
        ("L1", "L2", "CS2", "CS6"): 7,
        ("L1", "L2", "CS2", "CS6", "CS7"): 8,
        ("L1", "L2", "CS3"): 9,
        ("L1", "L2", "CS3", "CS7"): 10,
    }


@pytest.mark.parametrize("level", [0, 2])
def test_figure_2a_lamp(level: int, recording: Callable[..., Recording]) -> None:
    result = profiles(recording("camp_fig1.c", level).trace, "lamp")["lamp"]
    found = {ends[:3]: flags(levels) for ends, levels in by_ends("camp_fig1.c", result).items()}
    assert found == {
        ("WAR", "LD1", "ST1"): {"L1": INTRA, "L2": INTRA},
        ("RAW", "ST1", "LD1"): {"L1": BOTH, "L2": INTER},
        ("WAW", "ST1", "ST1"): {"L1": BOTH, "L2": INTER},
    }
    assert len(result["dependences"]) == 3


@pytest.mark.parametrize("contexts", ["dynamic", "static"])
@pytest.mark.parametrize("level", [0, 2])
def test_figure_3a_camp(level: int, contexts: str, recording: Callable[..., Recording]) -> None:
    result = profiles(recording("camp_fig1.c", level).trace, "camp", contexts=contexts)["camp"]
    found = {ends: flags(levels) for ends, levels in by_ends("camp_fig1.c", result).items()}
    assert found == {
        ("RAW", "ST1", "LD1", 9, 3): {"L1": INTRA, "L2": INTER},
        ("RAW", "ST1", "LD1", 7, 5): {"L1": INTER},
        ("WAR", "LD1", "ST1", 3, 9): {"L1": INTRA, "L2": INTRA},
        ("WAR", "LD1", "ST1", 5, 7): {"L1": INTRA, "L2": INTRA},
        ("WAW", "ST1", "ST1", 9, 9): {"L1": INTRA, "L2": INTER},
        ("WAW", "ST1", "ST1", 7, 7): {"L1": INTER},
    }
    assert len(result["dependences"]) == 6


@pytest.mark.parametrize("level", [0, 2])
@pytest.mark.parametrize("arguments, called", [((), 2), (("odd",), 3)])
def test_figure_7_recursion_and_indirect_calls(
    level: int, arguments: tuple[str, ...], called: int, recording: Callable[..., Recording]
) -> None:
    names = marks("camp_fig7.c")
    trace = recording("camp_fig7.c", level, *arguments).trace
    tree = {(*(names[line] for line in path),): camp_id for path, camp_id in context_nodes(trace).items()}
    assert tree == {(): 0, ("CS3",): 1, ("CS4",): called}
    result = profiles(trace, "camp", contexts="static")["camp"]
    depths = [row for row in result["dependences"] if row["kind"] == "RAW" and row["destination"]["line"] in (13, 22)]
    assert depths
    for row in depths:  # each activation reads what its caller wrote: carried by the recursion, at distance 1
        assert row["source_context"]["id"] == row["destination_context"]["id"] == 1
        [recursion] = row["levels"]
        assert (recursion["intra"], recursion["inter"], recursion["min_distance"]) == (False, True, 1)
