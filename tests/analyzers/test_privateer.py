"""The module ``privateer``: its sets against a reference on random programs, and on fixtures/heaps.c."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import tracekit
from tests.analyzers.test_object_lifetime import fed, fresh, random_runs
from tests.naive import object_join
from tests.naive.object_rows import ObjectRows
from tests.naive.privateer import NaiveSets
from tests.programs.running import FIXTURES, compile_program, record
from tracekit.analyzers.privateer import Privateer, PrivateerOptions
from tracekit.contexts.names import ContextNames
from tracekit.formats.image import OpFlag
from tracekit.objects.live import SiteNames


class Reducing(Privateer):
    """The module on random programs, which have no operators, and no instructions that make pointers."""

    def __init__(self, program: Any, options: Any) -> None:
        super().__init__(program, options)
        self.pointers.options = SimpleNamespace(accesses=True, most=0)

    def state(self) -> Any:
        state = super().state()
        state.operators[:] = operators_of(self.program)
        return state


def privateer(made: Any) -> Reducing:
    """The module for a random program."""
    made.program.ops["flags"] |= np.uint8(OpFlag.VALUE)  # the module asks for values
    assume(made.program.has_values)
    return Reducing(made.program, PrivateerOptions())


def operators_of(program: Any) -> list[int]:
    """Offsets of strings, one of three for each instruction."""
    return [row % 3 * 7 for row in range(len(program.ops) + 1)]


SETS = ("reads", "writes", "reductions", "short_lived")


def shown_loops(result: Any) -> dict[Any, dict[str, Any]]:
    """The loops of a result by place, their sets as sorted texts."""
    return {
        tuple(row["loop"].items()): {
            "accesses": row["accesses"],
            **{name: sorted(json.dumps(each, sort_keys=True) for each in row[name]) for name in SETS},
        }
        for row in result["loops"]
    }


def expected_loops(module: Privateer, naive: list[NaiveSets]) -> dict[Any, dict[str, Any]]:
    """The same of the naive join."""
    program, rows = module.program, ObjectRows(module.program, module.profile)
    names = SiteNames(program, module.profile, ContextNames(program, module.profile.nodes))
    shown = {site: names.show(number) for number, site in enumerate(rows.sites)} | {None: {"kind": "unknown"}}

    def texts(sites: Any) -> list[str]:
        return sorted(json.dumps(shown[site], sort_keys=True) for site in sites)

    return {
        place: {
            "accesses": row["accesses"],
            **{name: texts(row[name]) for name in SETS if name != "reductions"},
            "reductions": sorted(
                json.dumps({"operator": program.text(operator), **shown[site]}, sort_keys=True)
                for site, operator in row["reductions"]
            ),
        }
        for place, row in object_join.loops(naive).items()
    }


@settings(deadline=None, max_examples=60)
@given(seed=st.integers(0, 2**32), streams=st.integers(1, 3))
def test_the_sets_are_their_reference(seed: int, streams: int) -> None:
    made, (events,) = random_runs(seed, streams, 1)
    module = privateer(made)
    runner = fed(module, "privateer", events, 1 + seed % 60)
    result, _ = runner.result()
    calls = fresh(module, runner._workers[0].state.lifetimes)
    naive = NaiveSets(made.program, calls, operators_of(made.program))
    naive.feed(events)
    assert shown_loops(result) == expected_loops(module, [naive])


# -- known answers ---------------------------------------------------------------------------------

SOURCE = FIXTURES / "heaps.c"
LINES = list(enumerate(SOURCE.read_text().splitlines(), 1))


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder: Path = tmp_path_factory.mktemp("heaps")
    flags = ["-O1", "--pointers", "--values=loads"]
    return record(compile_program([SOURCE], folder / "app", flags, instrumented=True)).trace


def line_of(text: str) -> int:
    return next(number for number, line in LINES if number > 1 and text in line)


def names(objects: list[Any]) -> set[str]:
    return {
        each["name"] if each["kind"] == "global" else f"{each['kind']}:{each['site']['line']}"
        for each in objects
        if each["kind"] != "unknown"
    }


def test_each_object_of_the_loop_is_in_its_sets(trace: Path) -> None:
    result = tracekit.analyze(trace, "privateer", 1).result
    (outer,) = [row for row in result["loops"] if row["loop"]["line"] == line_of("loop OUTER")]
    room = f"heap:{line_of('short-lived')}"
    assert {"weights", "scratch", "mixed", room} <= names(outer["reads"])
    assert names(outer["writes"]) == {"scratch", "results", "mixed", room}
    assert [(each["name"], each["operator"]) for each in outer["reductions"]] == [("total", "+")]
    assert names(outer["short_lived"]) == {room}
    (inner,) = [row for row in result["loops"] if row["loop"]["line"] == line_of("loop INNER")]
    assert (names(inner["reads"]), names(inner["writes"])) == ({"weights"}, {"scratch", room})
    assert inner["short_lived"] == []


def test_the_other_tables_are_those_of_their_modules(trace: Path) -> None:
    result = tracekit.analyze(trace, "privateer", 2).result
    assert result["pointers"] == tracekit.analyze(trace, "points_to", 1).result["pointers"]
    assert result["sites"] == tracekit.analyze(trace, "object_lifetime", 1).result["sites"]
    assert result["instructions"] == tracekit.analyze(trace, "value_pattern", 1).result["instructions"]
