"""The pass that finds final stores, against its reference; test_dependence_random.py tries what is done with it."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tracekit
from tests.naive.dependence_machine import Machine, RandomProgram, interleaved
from tests.naive.final_stores import overwritten_stores, passed, stored_pages
from tracekit.containers.hash_table import used_rows
from tracekit.containers.kernels.initial_pages import STREAM_SHIFT
from tracekit.dependence import final_stores
from tracekit.formats.reader import TraceReader
from tracekit.program.program import Program
from tracekit.replay.totals import trace_totals

FIXTURE = Path(tracekit.__file__).resolve().parents[1] / "fixtures/traces/v1.zst"


@settings(deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 3), st.sampled_from([30, 100, 300]))
def test_the_pass_finds_which_stores_are_final(seed: int, streams: int, limit: int) -> None:
    random = Random(seed)
    made = RandomProgram(random)
    numbers = random.sample(range(4), streams)
    events = interleaved(random, [Machine(made, random, number, limit).run() for number in numbers])
    final = passed(made.program, events)
    bits = np.unpackbits(final.overwritten, bitorder="little")
    assert set(np.flatnonzero(bits).tolist()) == overwritten_stores(events)
    pages = {page ^ stream << STREAM_SHIFT for stream, page in stored_pages(events)}
    assert set(used_rows(final.pages)["key"][1:].tolist()) == pages


def test_where_the_pass_pays(monkeypatch: pytest.MonkeyPatch) -> None:
    def totals(loads: int, stores: int) -> dict[str, int]:
        return {"accesses": loads + stores, "loads": loads, "stores": stores}

    monkeypatch.delenv(final_stores.SETTING, raising=False)
    assert final_stores.pays(totals(60_000_000, 10_000_000), 10_000_000)
    assert not final_stores.pays(totals(600, 100), 100)
    assert not final_stores.pays(totals(60_000_000, 50_000_000), 50_000_000)
    assert not final_stores.pays(totals(1 << 61, 1 << 50), 1)
    monkeypatch.setenv(final_stores.SETTING, "always")
    assert final_stores.pays(totals(1, 1), 1)
    monkeypatch.setenv(final_stores.SETTING, "0")
    assert not final_stores.pays(totals(60_000_000, 10_000_000), 10_000_000)


@pytest.mark.parametrize("module", ["camp", "lamp", "dependence"])
@pytest.mark.parametrize("jobs", [1, 2])
def test_profiles_do_not_depend_on_it(module: str, jobs: int, monkeypatch: pytest.MonkeyPatch) -> None:
    options: dict[str, Any] = {"kinds": "raw,war,waw"}
    found, said = [], []
    for setting in ("0", "always"):
        monkeypatch.setenv(final_stores.SETTING, setting)
        found.append(tracekit.analyze(FIXTURE, module, jobs, **options).report["result"])
        said.append(final_stores.pays({"accesses": 1, "loads": 1, "stores": 0}, 1))
    assert said == [False, True]
    assert found[0] == found[1]


def test_an_end_that_states_accesses_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    with TraceReader(FIXTURE) as trace:
        program = Program.from_images(trace.images())
        counted = trace_totals(trace, program)
        monkeypatch.setattr(TraceReader, "done", {"totals": {"accesses": 1 << 30}})
        assert {name: trace_totals(trace, program)[name] for name in counted} == counted
