"""The module ``privateer``: its sets against a reference on random programs, and on fixtures/heaps.c."""

from __future__ import annotations

from collections import Counter, defaultdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import tracekit
from tests.analyzers.test_object_lifetime import fed, fresh, random_run
from tests.naive.dependence import StreamState
from tests.naive.dependence_rows import paths_of
from tests.naive.points_to import NaivePointsTo
from tests.programs.running import FIXTURES, compile_program, record
from tracekit.analyzers.privateer import MIXED, Privateer, PrivateerOptions, loop_sets, loops_of
from tracekit.formats.image import OpFlag
from tracekit.replay.keyed import used_rows
from tracekit.replay.liveobjects import SiteNames


class NaiveSets(NaivePointsTo):
    """``sets``: loop -> site (None: of no known object) -> [read, written, operators]."""

    def __init__(self, program: Any, calls: frozenset[int], operators: list[int]) -> None:
        super().__init__(program, calls)
        self.operators = operators
        self.sets: defaultdict[int, dict[Any, tuple[set[str], set[int]]]] = defaultdict(dict)
        self.inside: Counter[int] = Counter()  # loop: accesses while it was open

    def event(self, number: int, stream: StreamState, name: str, subject: int, address: int, size: int) -> None:
        super().event(number, stream, name, subject, address, size)
        if name in ("load", "store"):
            here = self.known(number, address)
            for loop in {level.node[-1][1] for level in stream.levels if level.node[-1][0] == "loop"}:
                self.inside[loop] += 1
                names, operators = self.sets[loop].setdefault(here and here.site, (set(), set()))
                names.add(name)
                operators.add(self.operators[min(subject, len(self.program.ops))] or MIXED)

    def shown(self) -> dict[int, dict[Any, tuple[bool, bool, int]]]:
        return {loop: {site: ("load" in names, "store" in names, operators.pop() if len(operators) == 1 else MIXED)
                       for site, (names, operators) in sets.items()} for loop, sets in self.sets.items()}


@settings(deadline=None, max_examples=60)
@given(seed=st.integers(0, 2**32), streams=st.integers(1, 3))
def test_the_sets_are_their_reference(seed: int, streams: int) -> None:
    made, events = random_run(seed, streams)
    made.program.ops["flags"] |= np.uint8(OpFlag.VALUE)  # the module asks for values
    assume(made.program.has_values)
    module = Privateer(made.program, PrivateerOptions())
    module.pointers.options = SimpleNamespace(accesses=True, most=0)  # no instruction of these programs makes pointers
    state = module.state()
    operators = [row % 3 * 7 for row in range(len(made.program.ops) + 1)]

    state.operators[:] = operators
    vars(module)["state"] = lambda: state
    result, _ = fed(module, "privateer", events, 1 + seed % 60).result()
    names = SiteNames(module.program, module.contexts, state.lifetimes.live)
    paths = paths_of(SimpleNamespace(nodes=module.contexts.nodes))

    def site_of(site: int) -> Any:
        kind = int(names.kind[site])
        return (kind, int(names.site[site]), () if kind == 3 else paths[names.node[site]]) if site else None

    naive = NaiveSets(made.program, fresh(module.lifetimes, state.lifetimes), operators)
    naive.feed(events)
    assert {loop: {site_of(site): row for site, row in sets.items()} for loop, sets in loop_sets(state).items()} == \
        naive.shown()
    regions, inside = used_rows(state.regions), Counter[int]()
    for region in np.flatnonzero(regions["accesses"]).tolist():
        loops = list(loops_of(regions, region))
        assert len(set(loops)) == len(loops)
        inside.update({loop: int(regions["accesses"][region]) for loop in loops})
    assert inside == naive.inside
    by_place = {tuple(row["loop"].items()): row["accesses"] for row in result["loops"]}
    assert by_place.keys() == {tuple(made.program.loop(loop).items()) for loop in inside}


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
    return {each["name"] if each["kind"] == "global" else f"{each['kind']}:{each['site']['line']}" for each in objects
            if each["kind"] != "unknown"}


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
