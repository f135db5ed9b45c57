"""The module ``whomp``: what it writes is the run again, and what it says of sizes and hot streams."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tracekit
from tests.naive.sequitur import Sequitur
from tests.naive.translation import MemoryMachine
from tests.translation.test_translation import fed, made
from tests.whomp.test_sequitur import written
from tracekit import whomp
from tracekit.analyzers.whomp import Whomp, WhompOptions
from tracekit.formats.errors import TracekitError
from tracekit.formats.events import CODE, NONE
from tracekit.modules.options import make_options
from tracekit.whomp.grammar import Written
from tracekit.whomp.hot_streams import candidates, hottest

ROOT = Path(tracekit.__file__).resolve().parents[1]
FIXTURE = ROOT / "fixtures" / "traces" / "v1.zst"


def played(seed: int, options: WhompOptions, workers: int = 1) -> tuple[Whomp, dict[str, Any], list[tuple[Any, ...]]]:
    """The module, its result, and all accesses: instruction, kind and site, object, offset, address."""
    program, sites = made()
    machine = MemoryMachine(Random(seed), sites, stack=options.stack, by=options.by)
    machine.begin_threads()
    machine.run(1 + seed % 150)
    module = Whomp(program, options)
    result, _ = fed(module, machine.events, 1 + seed % 40, workers).result()
    accesses = [event for event in machine.events if event[1] in (CODE["load"], CODE["store"])]
    wanted = [
        (event[2], ("unknown", NONE) if group is None else group[:2], number, offset, event[3])
        for event, (group, number, offset) in zip(accesses, machine.expected, strict=True)
    ]
    return module, result, wanted


@settings(deadline=None, max_examples=60)
@given(
    seed=st.integers(0, 2**32),
    block=st.sampled_from([7, 1 << 23]),
    stack=st.booleans(),
    workers=st.sampled_from([1, 2, 3, 5, 8]),
)
def test_the_file_is_the_run_again(tmp_path_factory: Any, seed: int, block: int, stack: bool, workers: int) -> None:
    path = tmp_path_factory.mktemp("grammars") / "run.whomp"
    module, result, wanted = played(seed, WhompOptions(block=block, stack=stack, grammars=str(path)), workers)
    found = [tuple(row) for part in whomp.accesses(path) for row in zip(*(column.tolist() for column in part))]
    groups = [module.groups.describe(group)["kind"] for group in range(len(module.groups))]
    assert [group["kind"] for group in whomp.groups(path)] == groups
    assert [
        (instruction, (groups[group], module.groups.site(group)), number, offset)
        for instruction, group, number, offset in found
    ] == [row[:4] for row in wanted]
    addresses = [address for part in whomp.expand(path, "address") for address in part.tolist()]
    assert addresses == [row[4] for row in wanted]
    assert result["summary"]["accesses"] == len(wanted)
    assert result["summary"]["blocks"] == -(-len(wanted) // block)
    if len(wanted) <= block:
        for dimension, column in (("instruction", 0), ("object", 2), ("offset", 3), ("address", 4)):
            rules = Sequitur([row[column] for row in wanted]).rules() if wanted else []
            (row,) = (row for row in result["dimensions"] if row["dimension"] == dimension)
            assert (row["rules"], row["symbols"]) == (len(rules), sum(map(len, rules)))
            assert row["values"] == len({row[column] for row in wanted})


@settings(deadline=None, max_examples=30)
@given(seeds=st.lists(st.integers(0, 2**32), min_size=1, max_size=3), hot=st.integers(0, 5))
def test_runs_add(seeds: list[int], hot: int) -> None:
    options = WhompOptions(hot=hot, block=50)
    profiles = []
    for seed in seeds:
        module, result, _ = played(seed, options)
        evidence = module.merge_state(None)  # type: ignore[arg-type]
        profiles.append(json.loads(json.dumps({"result": result, "evidence": evidence, "options": {"hot": hot}})))
    merged = Whomp.merge(profiles, None)
    assert Whomp.merge([{**merged, "options": {"hot": hot}}], None) == merged
    for row, *rows in zip(merged["result"]["dimensions"], *(each["result"]["dimensions"] for each in profiles)):
        for name in ("accesses", "symbols", "rules", "values", "bytes"):
            assert row[name] == sum(each[name] for each in rows)
    if len(seeds) == 1:
        assert merged["result"]["summary"] == profiles[0]["result"]["summary"]
        assert merged["evidence"]["streams"] == sorted(profiles[0]["evidence"]["streams"])


@settings(deadline=None, max_examples=60)
@given(st.lists(st.integers(0, 3), max_size=120), st.integers(2, 9))
def test_hot_streams_come_as_often_as_is_said(stream: list[int], longest: int) -> None:
    grammar: Written = written(stream)
    found = hottest(candidates(grammar, longest), 5)
    heats = [len(each) * times for each, times in found]
    assert heats == sorted(heats, reverse=True)
    for each, times in found:
        places = Counter(tuple(stream[place : place + len(each)]) for place in range(len(stream)))
        assert 2 <= len(each) <= longest
        assert 2 <= times <= places[each]


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"block": "0"}, "block is at least 1"),
        ({"longest": "1"}, "longest is at least 2"),
        ({"hot": "-1"}, "hot is not negative"),
    ],
)
def test_options_that_make_no_sense(given: dict[str, str], sentence: str) -> None:
    with pytest.raises(TracekitError, match=sentence):
        make_options(WhompOptions, given)


def test_a_trace_and_files_that_are_none(tmp_path: Path) -> None:
    path = tmp_path / "run.whomp"
    profile = tracekit.analyze(FIXTURE, "whomp", grammars=str(path))
    with tracekit.open(FIXTURE) as trace:
        events = [batch.address.copy() for batch in trace.batches(events=["load", "store"], columns=["address"])]
    assert np.array_equal(np.concatenate(list(whomp.expand(path, "address"))), np.concatenate(events).astype(np.int64))
    assert profile.result["summary"]["accesses"] == sum(map(len, events))
    with pytest.raises(TracekitError, match="no grammar of 'time'"):
        list(whomp.expand(path, "time"))
    with pytest.raises(TracekitError, match="is no file of grammars"):
        list(whomp.expand(FIXTURE, "address"))
    with pytest.raises(TracekitError, match="cannot be read: No such file"):
        list(whomp.expand(tmp_path / "none", "address"))
    with pytest.raises(TracekitError, match="there is no such folder"):
        tracekit.analyze(FIXTURE, "whomp", grammars=str(tmp_path / "none" / "run.whomp"))
