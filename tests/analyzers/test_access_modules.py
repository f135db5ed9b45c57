"""accesses, footprint, heatmap and value_pattern against their references, on events made by chance."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.naive import modules as naive
from tests.naive.program_builder import ProgramBuilder
from tracekit.formats.events import CODE
from tracekit.formats.image import BlockFlag, OpFlag, OpKind, TypeClass
from tracekit.module import Module
from tracekit.modules import registry
from tracekit.modules.callback_runner import CallbackRunner
from tracekit.modules.options import make_options
from tracekit.modules.scheduler import run
from tracekit.program.program import Program

BASES = (0x5000_0000_0000, 0x7FFF_FFFF_0FC0, 0x1000, (1 << 47) - 4096)


@dataclass
class Batch:
    stream: int
    kind: Any
    subject: Any
    address: Any
    size: Any
    value: Any


def batches(events: Sequence[naive.Event], length: int) -> list[Batch]:
    """The events as the engine would hand them over, at most `length` at a time, one stream in each."""
    made: list[Batch] = []
    start = 0
    while start < len(events):
        end = start + 1
        while end < len(events) and end - start < length and events[end][0] == events[start][0]:
            end += 1
        _, names, subjects, addresses, sizes, values = zip(*events[start:end])
        made.append(
            Batch(
                events[start][0],
                np.array([CODE[name] for name in names], np.uint8),
                np.array(subjects, np.uint32),
                np.array(addresses, np.uint64),
                np.array(sizes, np.uint64),
                np.array([value % 2**64 for value in values], np.uint64),
            )
        )
        start = end
    return made


def program(instructions: int) -> Program:
    """A function of so many loads and stores whose values are recorded."""
    b = ProgramBuilder()
    block = b.block(b.function("main"), BlockFlag.ENTRY | BlockFlag.RETURNS)
    for _ in range(instructions):
        b.op(block, OpKind.LOAD, 8)
        b.ops[-1]["flags"] |= OpFlag.VALUE
        b.ops[-1]["type_class"] = TypeClass.INTEGER
    b.path(block)
    return b.program()


def some_events(rng: random.Random, count: int) -> list[naive.Event]:
    """Loads and stores near a few places, with values that often repeat or step, and other events between them."""
    steps = [rng.choice((0, 0, 1, -3, 1 << 62)) for _ in range(8)]
    values = [rng.choice((0, 7, -1, (1 << 63) - 1)) for _ in range(8)]
    events: list[naive.Event] = []
    for _ in range(count):
        if rng.random() < 0.1:
            events.append((0, rng.choice(("heap_alloc", "function_entry", "loop_exit")), 0, 4096, 8, 0))
            continue
        subject = rng.randrange(8)
        values[subject] = (values[subject] + steps[subject] + 2**63) % 2**64 - 2**63
        if rng.random() < 0.05:
            values[subject] = rng.choice((0, 1, 2))
        address = rng.choice(BASES) + rng.randrange(rng.choice((16, 5000)))
        size = rng.choice((0, 1, 2, 3, 4, 8, 8, 8, 16, 63, 200, 9000))
        events.append((0, rng.choice(("load", "store")), subject, address, size, values[subject]))
    return events


def profile(name: str, events: Sequence[naive.Event], options: dict[str, Any], workers: int, length: int) -> Any:
    kind = registry.load(name)
    assert issubclass(kind, Module)
    module = kind(program(8), make_options(kind.Options, options))
    module.accesses = len(naive.accesses_of(events))
    runner = CallbackRunner(module, name, workers)
    run(batches(events, length), [runner], 1)
    return runner.result()[0]


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    count=st.sampled_from((0, 1, 30, 255, 256, 257, 900)),
    workers=st.integers(1, 3),
    granule=st.sampled_from((64, 4096)),
)
def test_footprint(seed: int, count: int, workers: int, granule: int) -> None:
    events = some_events(random.Random(seed), count)
    result = profile("footprint", events, {"granule": granule}, workers, 1 + seed % 100)
    assert result["slices"] == naive.footprint(events, granule)
    assert result["summary"]["bytes"] == (result["slices"][-1]["total_bytes"] if result["slices"] else 0)


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    count=st.sampled_from((1, 30, 257, 900)),
    workers=st.integers(1, 3),
    rows=st.sampled_from((3, 64)),
)
def test_heatmap(seed: int, count: int, workers: int, rows: int) -> None:
    events = [*some_events(random.Random(seed), count), (0, "load", 0, 4096, 8, 0)]
    result = profile("heatmap", events, {"granule": 4096, "rows": rows}, workers, 1 + seed % 100)
    assert result == naive.heatmap(events, 4096, rows)


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 2**32), count=st.sampled_from((0, 8, 30, 900)), workers=st.integers(1, 3), stores=st.booleans()
)
def test_value_pattern(seed: int, count: int, workers: int, stores: bool) -> None:
    events = some_events(random.Random(seed), count)
    result = profile("value_pattern", events, {"stores": stores, "linear": True, "small_set": 3}, workers, 50)
    found = {
        int(row["instruction"]["id"].rpartition(":")[2]): (row["count"], row["pattern"], row["value"])
        for row in result["instructions"]
    }
    wanted = naive.value_patterns(events, stores, True, 3)
    for subject, (number, pattern, value) in wanted.items():
        if pattern == "linear":
            wanted[subject] = number, pattern, {"first": value[0], "stride": value[1]}
    assert found == wanted


@settings(max_examples=40, deadline=None)
@given(
    seeds=st.lists(st.integers(0, 2**32), min_size=1, max_size=3),
    count=st.sampled_from((0, 1, 30, 900)),
    workers=st.integers(1, 3),
)
def test_accesses(seeds: list[int], count: int, workers: int) -> None:
    """Of one run, and joined of several."""
    runs = [some_events(random.Random(seed), count) for seed in seeds]
    results = [profile("accesses", events, {}, workers, 50) for events in runs]
    result = (
        registry.load("accesses").merge([{"result": each} for each in results], None)["result"]
        if len(results) > 1
        else results[0]
    )
    found = {
        int(row["instruction"]["id"].split(":")[1]): (row["loads"], row["stores"], row["bytes"])
        for row in result["instructions"]
    }
    together = [event for events in runs for event in events]
    assert found == naive.accesses(together)
    assert result["summary"] == {
        "loads": sum(event[1] == "load" for event in together),
        "stores": sum(event[1] == "store" for event in together),
    }


def joined(parts: Sequence[Any]) -> Any:
    options = {"stores": False, "linear": True, "small_set": 3}
    return registry.load("value_pattern").merge([{"options": options, **part} for part in parts], None)


def pattern_profile(events: Sequence[naive.Event], linear: bool) -> dict[str, Any]:
    """The keys of a profile file that joining looks at."""
    kind = registry.load("value_pattern")
    assert issubclass(kind, Module)
    module = kind(program(8), make_options(kind.Options, {"linear": linear, "small_set": 3}))
    runner = CallbackRunner(module, "value_pattern", 1)
    run(batches(events, 50), [runner], 1)
    return {"result": runner.result()[0], "evidence": runner.merge_state}


def as_sets(rows: Any) -> Any:
    """The order of a set's members is not that of the references."""
    return [{**row, "value": sorted(row["value"])} if row["pattern"] == "set" else row for row in rows]


@settings(max_examples=60, deadline=None)
@given(seeds=st.lists(st.integers(0, 2**32), min_size=2, max_size=3), count=st.sampled_from((1, 9, 30)))
def test_joined_value_patterns_are_those_of_all_events(seeds: list[int], count: int) -> None:
    runs = [some_events(random.Random(seed), count) for seed in seeds]
    together = pattern_profile([event for events in runs for event in events], linear=False)["result"]
    result = joined([pattern_profile(events, linear=False) for events in runs])["result"]
    assert as_sets(result["instructions"]) == as_sets(together["instructions"])


@settings(max_examples=60, deadline=None)
@given(seeds=st.tuples(*[st.integers(0, 50)] * 3), count=st.sampled_from((1, 9, 30)))
def test_joining_value_patterns_is_associative_and_commutative(seeds: tuple[int, ...], count: int) -> None:
    first, second, third = (pattern_profile(some_events(random.Random(seed), count), linear=True) for seed in seeds)
    expected = joined([first, second, third])
    assert joined([third, first, second]) == expected
    assert joined([joined([first, second]), third]) == expected
    assert joined([first, joined([third, second])]) == expected
