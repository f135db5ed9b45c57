"""Callbacks for many accesses against those for one, on the same state: any steps, sizes and overlaps."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.analyzers.test_access_modules import BASES, program
from tracekit.containers.kernels.shadow import alike
from tracekit.jit.kernel import kernel, uncached
from tracekit.module import Module, left_in_interval, maps, reading, turn_to
from tracekit.modules import registry
from tracekit.modules.options import make_options

STEPS = (0, 1, 2, 3, 4, 8, 8, 8, 12, 16, 63, 64, 65, 1000, 4096, 5000)
INSTRUCTIONS = 8
COMPILED: dict[Callable[..., Any], Any] = {}


def call(function: Callable[..., Any], state: Any, given: dict[str, Any]) -> Any:
    """Call a callback, compiled, with what it asks for."""
    compiled = COMPILED.setdefault(function, uncached(function))
    names = function.__code__.co_varnames[1 : function.__code__.co_argcount]
    return compiled(state, *(given[name] for name in names))


class Numbers(NamedTuple):
    """The module's options as compiled code takes them."""

    granule: int


def act(module: Module, states: tuple[Any, Any], rng: random.Random, time: int) -> int:
    """Give one state some accesses many at a time, the other one by one; returns the time behind them."""
    one_by_one, many = module.callbacks(), module.range_callbacks()
    step = rng.choice((1, -1)) * rng.choice(STEPS)
    period = rng.choice((1, 2, 5))
    most = rng.choice((1, 2, 9, 60, 300))
    size = rng.choice((1, 2, 4, 8, 8, 16, rng.randint(1, 32)))
    address = rng.choice(BASES[:3]) + rng.randrange(rng.choice((16, 5000)))
    if step < 0:
        address -= step * most
    given = {
        "instruction": rng.randrange(INSTRUCTIONS + 2),
        "size": size,
        "stream": 0,
        "options": Numbers(getattr(module.options, "granule", 0)),
    }
    given |= {"first": 1, "step": step, "period": period, "address": address, "time": time}
    if "unordered" in many:
        most = min(most, max(call(many["unordered"], states[0], given) // period, 1))
    kind = rng.choice(("load", "store"))
    call(many[kind + "s"], states[0], given | {"count": most})
    for number in range(most):
        call(one_by_one[kind], states[1], given | {"address": address + number * step, "time": time + number * period})
    return time + most * period


def made(name: str, options: dict[str, Any], accesses: int) -> Module:
    kind = registry.load(name)
    assert issubclass(kind, Module)
    module = kind(program(INSTRUCTIONS), make_options(kind.Options, options))
    module.accesses = accesses
    return module


@settings(max_examples=60, deadline=None)
@given(
    st.integers(0, 1 << 32),
    st.sampled_from(
        (
            ("accesses", {}),
            ("footprint", {"granule": 1}),
            ("footprint", {"granule": 64}),
            ("heatmap", {"granule": 16, "rows": 1 << 20}),
            ("heatmap", {"granule": 4096, "rows": 8}),
        )
    ),
)
def test_profiles_are_the_same(seed: int, chosen: tuple[str, dict[str, Any]]) -> None:
    rng = random.Random(seed)
    module = made(*chosen, accesses=rng.choice((1000, 100_000)))
    states, time = (module.state(), module.state()), 0
    while time < module.accesses and rng.random() < 0.96:
        time = act(module, states, rng, time)
    module.accesses = max(time, 1)
    found, expected = (module.result(module.reduce([state])) for state in states)
    assert found == expected


@kernel
def look(memory: Any, address: int, size: int, found: Any) -> None:
    """What is known of each byte."""
    turn_to(memory, 0)
    for byte in range(size):
        for row in reading(memory, address + byte, 1):
            found[byte] = memory.rows[row]


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 1 << 32))
def test_flow_dependences_and_what_is_known_of_each_byte(seed: int) -> None:
    rng = random.Random(seed)
    module = made("dependence", {}, accesses=1)
    states = module.state(), module.state()
    for _ in range(rng.randint(1, 40)):
        act(module, states, rng, 0)
        pairs = [maps.rows(state.pairs)["key"].tolist() for state in states]
        assert pairs[0] == pairs[1]
    for base in BASES[:3]:
        found = np.zeros((2, 1 << 16), np.int64)
        for state, row in zip(states, found):
            look(state.memory, base - 1000, 1 << 16, row)
        np.testing.assert_array_equal(*found)


@kernel
def count_alike(column: Any, first: int, most: int) -> int:
    """The helper, from Python."""
    found: int = alike(column, first, most)
    return found


@given(st.lists(st.sampled_from((0, 0, 0, 0, 0, 0, 1, 255)), min_size=1, max_size=40), st.data())
def test_elements_that_are_alike(values: list[int], data: st.DataObject) -> None:
    first = data.draw(st.integers(0, len(values) - 1))
    most = data.draw(st.integers(1, len(values) - first))
    expected = 1
    while expected < most and values[first + expected] == values[first]:
        expected += 1
    assert count_alike(np.array(values, np.uint8), first, most) == expected


@given(st.integers(0, 1 << 40), st.integers(0, 30))
def test_what_is_left_of_an_interval(time: int, bits: int) -> None:
    left = COMPILED.setdefault(left_in_interval, left_in_interval)(time, bits)
    now = min(time >> bits, 256)
    assert min((time + left - 1) >> bits, 256) == now
    assert now == 256 or (time + left) >> bits == now + 1
