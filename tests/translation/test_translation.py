"""Object-relative translation against its reference, as callbacks are given it."""

from __future__ import annotations

from random import Random
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.naive.program_builder import ProgramBuilder
from tests.naive.translation import MemoryMachine, Sites, named
from tracekit.formats.events import CODE
from tracekit.formats.image import BlockFlag, OpKind
from tracekit.module import Module, inlined
from tracekit.modules.contract import WrongModuleError, declared
from tracekit.modules.options import NoOptions
from tracekit.modules.runner import CallbackRunner


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
                call = builder.call(block, f"f{number + 1}")
                handles.setdefault("calls", []).append(call)
                block = builder.block(number, continues=call)
    for name in ("malloc", "malloc", "realloc", "realloc", "make_thing", "munmap"):
        call = builder.call(block, name)
        handles.setdefault(name, []).append(call)
        block = builder.block(2, continues=call)
    handles["variable"] = [builder.op(block, OpKind.STACK_ALLOC, 8) for _ in range(2)]
    handles["access"] = [builder.op(block, OpKind.LOAD, 4) for _ in range(4)]
    for number in range(2):
        builder.variable(f"g{number}", 8, 0x1000 * number)
    layout = builder.layout()
    rows = {name: [layout.op[handle] for handle in some] for name, some in handles.items()}
    functions = {op: 1 + place // 2 for place, op in enumerate(rows["calls"])}
    sites = Sites(
        rows["malloc"],
        rows["realloc"],
        rows["make_thing"][0],
        rows["munmap"][0],
        rows["variable"],
        rows["access"],
        functions,
    )
    return builder.program(), sites


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


@pytest.mark.parametrize(("kind", "workers"), [(Noting, 1), (WithStack, 1), (ByContext, 1), (Shared, 2)])
@settings(deadline=None, max_examples=150)
@given(seed=st.integers(0, 2**32))
def test_it_is_its_reference(kind: type[Module], workers: int, seed: int) -> None:
    program, sites = made()
    machine = MemoryMachine(Random(seed), sites, stack=kind.stack_objects, contexts=kind is ByContext)
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


def test_an_event_without_an_address_is_no_object() -> None:
    class Wrong(Noting):
        @staticmethod
        def loop_exit(state: State, offset: int) -> None:
            state.rows[0, 0] = offset

    with pytest.raises(
        WrongModuleError, match=r"Wrong.loop_exit asks for 'offset'; the event loop_exit has no address"
    ):
        declared(Wrong(made()[0], NoOptions()))


def test_groups_are_by_site_or_by_context() -> None:
    class Wrong(Noting):
        groups_by = "name"

    with pytest.raises(WrongModuleError, match="groups_by is site or context, not 'name'"):
        declared(Wrong(made()[0], NoOptions()))
