"""Random C programs, end to end: recorded, then read and analysed by tracekit and by the naive references.

The recorders are compared on them too: half of them hold ground truth, all have the block recorder's events.

A handful for each run of the suite; TRACEKIT_LONG=N runs N of them, from seed TRACEKIT_SEED (by default 0) on.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.generator import program
from tests.naive.dependence import Event, NaiveDependence
from tests.naive.dependence_rows import from_naive, from_profile
from tests.naive.reader import read
from tests.programs.running import compile_program, dependence_profile, record, replayed, run, tracekit
from tests.programs.test_recorders import shape
from tracekit.formats.events import BY_CODE, CODE

FIRST = int(os.environ.get("TRACEKIT_SEED", "0"))
COUNT = int(os.environ.get("TRACEKIT_LONG", "6"))
NAIVE_ACCESSES = 12_000
"""The naive dependence reference takes minutes beyond."""


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> dict[int, Path]:
    """Seed -> the instrumented program; its source and the native program lie beside it. Two compile at a time."""
    folder = tmp_path_factory.mktemp("random")
    seeds = range(FIRST, FIRST + COUNT)
    with ThreadPoolExecutor(2) as pool:
        return dict(zip(seeds, pool.map(partial(_build, folder), seeds)))


def _build(folder: Path, seed: int) -> Path:
    source = folder / f"seed{seed}.c"
    source.write_text(program(seed))
    level = f"-O{seed % 4}"
    compile_program([source], folder / f"seed{seed}-native", [level], instrumented=False)
    compile_program([source], folder / f"seed{seed}-blocks", [level, "--record=blocks"], instrumented=True)
    recorder = "--record=both" if seed // 4 % 2 else "--record=paths"
    return compile_program([source], folder / f"seed{seed}", [level, recorder], instrumented=True)


@pytest.mark.parametrize("seed", range(FIRST, FIRST + COUNT))
def test_random_program(seed: int, programs: dict[int, Path]) -> None:
    app = programs[seed]
    native = run([app.with_name(app.name + "-native")])
    recording = record(app)
    assert (recording.outcome.stdout, recording.outcome.status) == (native.stdout, native.status)
    tracekit("check", recording.trace)
    events = replayed(recording.trace).events
    assert shape(recording.trace) == shape(record(app.with_name(app.name + "-blocks")).trace)
    naive = read(recording.trace.read_bytes())
    assert _named(events) == naive.events()
    if sum(kind in (CODE["load"], CODE["store"]) for _, kind, *_ in events) <= NAIVE_ACCESSES:
        for context in (True, False):
            _compare(recording.trace, events, context=context)


def _named(events: list[Event]) -> list[Any]:
    return [(stream, BY_CODE[kind].name, *rest) for stream, kind, *rest in events]


def _compare(trace: Path, events: list[Event], *, context: bool) -> None:
    """camp's (or without `context` lamp's) tables are those of the naive reference."""
    made, profile = dependence_profile(trace, context=context)
    reference = NaiveDependence(made, context)
    reference.feed(events)
    got, want = from_profile(profile), from_naive(reference)
    for table in ("accesses", "dependences", "exposed", "nodes"):
        assert got[table] == want[table], table
