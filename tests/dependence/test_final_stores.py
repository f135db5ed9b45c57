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
from tracekit import api
from tracekit.analysis import first_pass
from tracekit.analysis.passes import prepare, replay_through
from tracekit.containers.hash_table import used_rows
from tracekit.containers.kernels.initial_pages import STREAM_SHIFT
from tracekit.containers.serialization import deserialized
from tracekit.dependence import final_stores
from tracekit.formats.reader import TraceReader
from tracekit.jit import object_cache
from tracekit.modules.options import NoOptions, make_options
from tracekit.modules.registry import load
from tracekit.program.program import Program
from tracekit.replay.totals import trace_totals
from tracekit.replay.window import Restriction

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


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch) -> dict[str, bytes]:
    """What is kept of first passes: nothing yet."""
    kept: dict[str, bytes] = {}
    read, write = object_cache.read, object_cache.write

    def write_here(key: str, contents: bytes) -> None:
        if key.startswith("first-"):
            kept[key] = contents
        else:
            write(key, contents)

    monkeypatch.setattr(object_cache, "read", lambda key: kept.get(key) if key.startswith("first-") else read(key))
    monkeypatch.setattr(object_cache, "write", write_here)
    monkeypatch.setenv(final_stores.SETTING, "always")
    return kept


def analysed() -> tuple[str, Any]:
    """How camp learned of final stores, and what it found."""
    lines: list[str] = []
    (profile,) = api.analyze_all(FIXTURE, {"camp": make_options(load("camp").Options, {})}, 1, lines.append)
    return lines[0], profile.report["result"]


def test_what_a_pass_finds_is_kept(kept: dict[str, bytes]) -> None:
    (said, first), (said_again, again) = analysed(), analysed()
    assert said == "a first pass: FinalStoresPass"
    assert said_again == "kept from an earlier first pass: FinalStoresPass"
    assert first == again
    (data,) = kept.values()
    found = deserialized(data)["final"]
    with TraceReader(FIXTURE) as trace:
        program = Program.from_images(trace.images())
        replay, runners = prepare(trace, program, {final_stores.FinalStoresPass: NoOptions()}, 1)
        replay_through(replay, runners, Restriction(None, trace, program), 1)
        anew = runners["FinalStoresPass"].result()[0]["final"]
    assert anew.overwritten.any()
    assert np.array_equal(found.overwritten, anew.overwritten)
    assert np.array_equal(used_rows(found.pages), used_rows(anew.pages))


def test_what_would_take_much_is_not_kept(kept: dict[str, bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(first_pass, "MOST_BYTES", 10)
    assert analysed() == analysed()
    assert not kept


def test_an_end_that_states_accesses_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    with TraceReader(FIXTURE) as trace:
        program = Program.from_images(trace.images())
        counted = trace_totals(trace, program)
        monkeypatch.setattr(TraceReader, "done", {"totals": {"accesses": 1 << 30}})
        assert {name: trace_totals(trace, program)[name] for name in counted} == counted
