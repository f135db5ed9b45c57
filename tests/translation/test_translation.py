"""Object-relative translation against its reference, as callbacks are given it."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tracekit
from tests.naive.program_builder import ProgramBuilder
from tests.naive.translation import MemoryMachine, Sites, named
from tracekit import translation
from tracekit.formats.errors import TracekitError
from tracekit.formats.events import CODE
from tracekit.formats.image import BlockFlag, CallFlag, OpKind
from tracekit.module import Module, inlined
from tracekit.modules.callback_runner import CallbackRunner
from tracekit.modules.declarations import WrongModuleError, declared
from tracekit.modules.options import NoOptions
from tracekit.replay.kernels.layouts import Columns
from tracekit.replay.selection import Batch
from tracekit.replay.translated import ObjectColumns
from tracekit.translation.translation import in_wrapper

FIXTURE = Path(tracekit.__file__).resolve().parents[1] / "fixtures/traces/v1.zst"


class State(NamedTuple):
    rows: Any


@inlined
def note(state: State, time: int, group: int, object: int, offset: int) -> None:
    state.rows[time, 0] = group
    state.rows[time, 1] = object
    state.rows[time, 2] = offset


class Noting(Module):
    """What each load and store is translated to."""

    def state(self) -> State:
        return State(np.zeros((20_000, 3), np.int64))

    @staticmethod
    def load(state: State, time: int, group: int, object: int, offset: int) -> None:
        note(state, time, group, object, offset)

    @staticmethod
    def store(state: State, time: int, group: int, object: int, offset: int) -> None:
        note(state, time, group, object, offset)

    def result(self, state: State) -> dict[str, Any]:
        return {}


class WithStack(Noting):
    stack_objects = True


class ByContext(WithStack):
    groups_by = "context"


class ByCaller(Noting):
    groups_by = "caller"


class Shared(Noting):
    shard_by = "instruction"

    def reduce(self, states: Any) -> Any:
        return State(sum(state.rows for state in states))


def made() -> tuple[Any, Sites]:
    """A program with calls of allocators, and three functions each of which calls the next at two places."""
    builder = ProgramBuilder()
    handles: dict[str, list[int]] = {}
    for number in range(3):
        builder.function(f"f{number}")
    for number in range(3):
        block = builder.block(number, BlockFlag.ENTRY)
        if number < 2:
            for _ in range(2):
                call = builder.call(block, f"f{number + 1}", CallFlag.HANDED_ON if number == 1 else 0)
                handles.setdefault("calls", []).append(call)
                block = builder.block(number, continues=call)
    for name in ("malloc", "malloc", "realloc", "realloc", "make_thing", "munmap"):
        call = builder.call(block, name, 0 if handles.get(name) else CallFlag.HANDED_ON)
        handles.setdefault(name, []).append(call)
        block = builder.block(2, continues=call)
    handles["variable"] = [builder.op(block, OpKind.STACK_ALLOC, 8) for _ in range(2)]
    handles["access"] = [builder.op(block, OpKind.LOAD, 4) for _ in range(4)]
    for number in range(2):
        builder.variable(f"g{number}", 8, 0x1000 * number)
    layout = builder.layout()
    rows = {name: [layout.op[handle] for handle in some] for name, some in handles.items()}
    program = builder.program()
    functions = {op: 1 + place // 2 for place, op in enumerate(rows["calls"])}
    sites = Sites(
        rows["malloc"],
        rows["realloc"],
        rows["make_thing"][0],
        rows["munmap"][0],
        rows["variable"],
        rows["access"],
        functions,
        set(np.flatnonzero(in_wrapper(program)).tolist()),
    )
    return program, sites


def fed(module: Module, events: list[Any], length: int, workers: int = 1) -> CallbackRunner:
    """The runner after the events, in batches of at most `length` of one stream."""
    runner = CallbackRunner(module, "noting", workers)
    wanted = {CODE[name] for name in runner.columns}
    first = 0
    while first < len(events):
        last = first + 1
        while last < min(len(events), first + length) and events[last][0] == events[first][0]:
            last += 1
        rows = [event for event in events[first:last] if event[1] in wanted]
        for worker in range(workers if rows else 0):
            kind, subject, address, size = (
                np.array(column, dtype) for column, dtype in zip(list(zip(*rows))[1:], ("u1", "u4", "u8", "u8"))
            )
            runner.feed(
                SimpleNamespace(
                    stream=events[first][0], kind=kind, subject=subject, address=address, size=size, value=None
                ),
                worker,
            )
        first = last
    return runner


@pytest.mark.parametrize(("kind", "workers"), [(Noting, 1), (WithStack, 1), (ByContext, 1), (ByCaller, 1), (Shared, 2)])
@settings(deadline=None, max_examples=150)
@given(seed=st.integers(0, 2**32))
def test_it_is_its_reference(kind: type[Module], workers: int, seed: int) -> None:
    program, sites = made()
    machine = MemoryMachine(Random(seed), sites, stack=kind.stack_objects, by=kind.groups_by)
    machine.begin_threads()
    machine.run(1 + seed % 150)
    module = kind(program, NoOptions())
    runner = fed(module, machine.events, 1 + seed % 40, workers)
    found = runner.finished().rows[: len(machine.expected)].tolist()
    names: dict[Any, int] = {}
    for (group, number, offset), row in zip(machine.expected, found):
        assert (number, offset) == tuple(row[1:])
        assert names.setdefault(group, row[0]) == row[0]
        assert ("unknown" if group is None else group[0]) == named(module.groups, row[0])[0]
        assert group is None or group[1] == named(module.groups, row[0])[1]
    assert len(set(names.values())) == len(names)
    for group, row in names.items():
        if group is not None:
            assert module.groups.objects(row) == machine.naive.counts[group]


@settings(deadline=None, max_examples=60)
@given(
    seed=st.integers(0, 2**32),
    stack=st.booleans(),
    loads_alone=st.booleans(),
    by=st.sampled_from(translation.GROUPS_BY),
)
def test_columns_of_batches(seed: int, stack: bool, loads_alone: bool, by: str) -> None:
    program, sites = made()
    machine = MemoryMachine(Random(seed), sites, stack=stack, by=by)
    machine.begin_threads()
    machine.run(1 + seed % 150)
    objects = ObjectColumns(program, stack, by)
    names = ("load",) if loads_alone else ("load", "store")
    found = []
    for batch in objects.batches(of_columns(machine.events, 1 + seed % 40), names):
        assert set(batch.kind.tolist()) <= {CODE[name] for name in names}
        found += list(zip(batch.address.tolist(), batch.group.tolist(), batch.object.tolist(), batch.offset.tolist()))
    accesses = [event for event in machine.events if event[1] in (CODE["load"], CODE["store"])]
    expected = [
        (event[3], *where)
        for event, where in zip(accesses, machine.expected)
        if not loads_alone or event[1] == CODE["load"]
    ]
    assert len(found) == len(expected)
    numbers: dict[Any, int] = {}
    for row, (address, group, number, offset) in zip(found, expected):
        assert numbers.setdefault(group, row[1]) == row[1]
        assert row[0] == address and row[2:] == (number, offset)
        assert named(objects.groups, row[1])[0] == ("unknown" if group is None else group[0])
        assert group is None or named(objects.groups, row[1])[1] == group[1]
    assert len(set(numbers.values())) == len(numbers)


def of_columns(events: list[Any], length: int) -> Iterator[Batch]:
    """Batches of all columns, at most `length` events of one stream each."""
    for stream, some in groupby(events, key=lambda event: event[0]):
        rows = list(some)
        for first in range(0, len(rows), length):
            _, *columns = zip(*rows[first : first + length])
            kind, subject, address, size = (
                np.array(column, dtype) for column, dtype in zip(columns, ("u1", "u4", "u8", "u8"))
            )
            keep = np.ones(256, np.uint8)
            yield Batch(stream, Columns(kind, subject, address, size, None, None, keep, None, None, None))


def groups_of(trace: Any, by: str) -> Iterator[dict[str, Any]]:
    """The groups of what is loaded."""
    batches = trace.batches(["load"], ["group"], by=by, stack=True)
    for group in sorted(set(np.concatenate([batch.group for batch in batches]).tolist())):
        yield trace.groups.describe(group)


def test_columns_of_a_recorded_trace() -> None:
    """Beside those of the event itself, in a window, and with values."""
    with tracekit.open(FIXTURE) as trace:
        names = ["subject", "address", "size", "value"]
        plain = [[b.kind.copy(), *(getattr(b, name).copy() for name in names)] for b in trace.batches(["load"], names)]
        batches = trace.batches(["load"], [*names, "group", "object", "offset"], stack=True)
        rows = [[b.kind, *(getattr(b, name) for name in (*names, "group", "offset"))] for b in batches]
        assert [b.tolist() for b in map(np.concatenate, zip(*plain))] == [
            b.tolist() for b in map(np.concatenate, list(zip(*rows))[:5])
        ]
        groups = np.concatenate([row[5] for row in rows])
        kinds = {trace.groups.describe(group)["kind"] for group in set(groups.tolist())}
        assert kinds == {"heap", "stack", "global", "unknown"}
        half = trace.batches(["load"], ["offset"], window={"from": "50%"})
        assert 0 < sum(len(batch) for batch in half) < len(groups)
    with tracekit.open(FIXTURE) as trace:
        sites = sum(1 for _ in groups_of(trace, "site"))
        shown = list(groups_of(trace, "context"))
        assert len(shown) >= sites and all(("context" in group) == ("site" in group) for group in shown)
        with pytest.raises(TracekitError, match="told apart by site, caller or context, not 'name'"):
            trace.batches(["load"], ["group"], by="name")
    with tracekit.open(FIXTURE) as trace, pytest.raises(TracekitError, match="column group"):
        _ = trace.groups


def test_an_event_without_an_address_is_no_object() -> None:
    class Wrong(Noting):
        @staticmethod
        def loop_exit(state: State, offset: int) -> None:
            state.rows[0, 0] = offset

    with pytest.raises(
        WrongModuleError, match=r"Wrong.loop_exit asks for 'offset'; the event loop_exit has no address"
    ):
        declared(Wrong(made()[0], NoOptions()))


def test_groups_are_by_what_there_is() -> None:
    class Wrong(Noting):
        groups_by = "name"

    with pytest.raises(WrongModuleError, match="groups_by is site, caller or context, not 'name'"):
        declared(Wrong(made()[0], NoOptions()))
