"""Runs whose accesses go to modules many at a time: the profiles are those of accesses that come one by one."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.naive import modules as naive
from tests.naive.final_stores import passed
from tests.naive.program_builder import ProgramBuilder
from tests.naive.reader import read
from tests.naive.trace_file import write_trace
from tracekit.analysis.modules import modules_of
from tracekit.analysis.passes import prepare_modules
from tracekit.dependence import final_stores
from tracekit.formats.events import CODE, NONE
from tracekit.formats.image import Base, BlockFlag, OpKind, PathFlag
from tracekit.formats.reader import TraceReader
from tracekit.module import Module, NoOptions, inlined, reading, shadow, writing
from tracekit.modules import registry
from tracekit.modules.table import with_rows
from tracekit.program.program import Program
from tracekit.replay.compiled import range_code
from tracekit.replay.compiled.cost_model import SETTING
from tracekit.replay.window import Restriction

OPS = 5
"""Loads and stores in an iteration: always as many, so that the code around paths is made once."""
STEPS = (0, 0, 1, 2, 4, 4, 8, 8, 8, 12, 16, 24, 64, 100, 4096, 5000)
PASSES: Sequence[Mapping[str, Mapping[str, int]]] = (
    {"dependence": {}},
    {"accesses": {}},
    {"footprint": {"granule": 64}},
    {"heatmap": {"granule": 256, "rows": 16}},
    {"dependence": {}, "accesses": {}, "footprint": {"granule": 8}, "heatmap": {"granule": 64, "rows": 8}},
    {"camp": {}},
    {"camp": {}},
    {"camp": {}, "dependence": {}},
    {"lamp": {}},
)
Record = tuple[int, list[int]]


class Nest:
    """Three loops, one inside the other, of which the innermost records nothing."""

    def __init__(self) -> None:
        self.b = b = ProgramBuilder()
        function = b.function("f", registers=2)
        entry = b.block(function, BlockFlag.ENTRY)
        for register in range(2):
            b.op(entry, OpKind.BASE, defines=register)
        self.variable = b.variable("v", 3000, 1 << 16)
        self.loops = [b.loop(function)]
        self.loops.append(b.loop(function, self.loops[0]))
        self.loops.append(b.loop(function, self.loops[1]))
        heads = [b.block(function, BlockFlag.LOOP_HEADER, loop) for loop in self.loops]
        self.body = heads[2]
        paths = {"enter": b.path(entry), "outer": b.path(heads[0]), "middle": b.path(heads[1])}
        paths |= {"run": b.path(heads[2], flags=PathFlag.RUN), "behind": b.path(b.block(function))}
        self.other = b.block(function, 0, self.loops[2])
        paths["other run"] = b.path(heads[2], self.other, flags=PathFlag.RUN)
        layout = b.layout()
        self.ids = {name: layout.path_number(path) for name, path in paths.items()}

    def op(
        self,
        kind: OpKind,
        size: int,
        offset: int,
        step: int,
        base: Base = Base.ABSOLUTE,
        of: int = 0,
        block: int | None = None,
    ) -> int:
        """An access that moves by `step` in each iteration, and by other distances in those of the loops around."""
        terms = ((step, self.loops[2], NONE), (40, self.loops[1], NONE), (-8, self.loops[0], NONE))
        return self.b.op(self.body if block is None else block, kind, size, base, of, offset, terms)


def some_nest(rng: random.Random) -> Nest:
    """Accesses that often meet: with steps and addresses of a few kinds."""
    nest = Nest()
    steps = [rng.choice((1, -1)) * rng.choice(STEPS) for _ in range(2)]
    far = rng.random() < 0.3
    for _ in range(OPS):
        kind = rng.choice((OpKind.LOAD, OpKind.LOAD, OpKind.STORE, OpKind.ATOMIC))
        size = rng.choice((1, 2, 4, 8, 8, 8, 16, 32, rng.randint(1, 32)))
        offset = rng.choice((0, 8, 16, rng.randint(-40, 40))) + (rng.randrange(4) << 24 if far else 0)
        base = rng.choice(((Base.REGISTER, 0), (Base.REGISTER, 0), (Base.REGISTER, 1), (Base.GLOBAL, nest.variable)))
        nest.op(kind, size, offset, rng.choice(steps), *base)
    return nest


def some_records(nest: Nest, rng: random.Random) -> list[Record]:
    """Runs of few and of many iterations."""
    start = rng.choice((1 << 40, (1 << 40) + rng.randrange(1 << 13), 0, (1 << 64) - 200))
    records: list[Record] = [(nest.ids["enter"], [start, (start + rng.choice((0, 64, 1 << 20))) % (1 << 64)])]
    for _ in range(rng.randint(1, 4)):
        if rng.random() < 0.7:
            records.append((nest.ids["outer"], []))
        for _ in range(rng.randint(1, 3)):
            records.append((nest.ids["middle"], []))
            for _ in range(rng.randint(1, 2)):
                records.append((nest.ids["run"], [rng.choice((0, 1, 3, 4, 5, rng.randrange(40), rng.randrange(400)))]))
    return records


def outcome(
    path: Path, modules: Mapping[Any, Any], setting: str, looks_ahead: bool = False
) -> tuple[dict[str, Any], Any, dict[str, Any]]:
    """What each module finds, what rules the trace breaks, and the states.

    With `looks_ahead`, those that ask for a first pass know what it finds.
    """
    with pytest.MonkeyPatch.context() as patch, TraceReader(str(path)) as trace:
        patch.setenv(SETTING, setting)
        program = Program.from_images(trace.images())
        restricted = Restriction(None, trace, program)
        made = modules_of(trace, program, modules, restricted)
        if looks_ahead:
            patch.setenv(final_stores.SETTING, "always")
            events = [(stream, CODE[name], *rest) for stream, name, *rest in read(path.read_bytes()).events()]
            final = passed(program, events)
            for module in made.values():
                module.found_first = {"final": final} if module.first_pass({}, 0) else {}
        replay, runners = prepare_modules(trace, program, made, 1, restricted)
        for batch in replay.batches():
            for runner in runners.values():
                runner.feed(batch, 0)
        assert (replay.compiled is not None) == (setting == "always")
        found = {name: runner.result()[0] for name, runner in runners.items()}
        states = {name: runner.finished() for name, runner in runners.items()}  # type: ignore[attr-defined]
        return found, replay.violations(), states


class History(NamedTuple):
    memory: Any  # of each byte: the store that stored it, as instruction << 32 | how many it had made before, plus 1
    made: Any  # int64: stores of each instruction
    seen: Any  # int64: what each instruction has loaded, mixed


@inlined
def read_all(state: Any, instruction: Any, address: Any, size: Any) -> None:
    for byte in range(address, address + size):
        for row in reading(state.memory, byte, 1):
            state.seen[instruction] = state.seen[instruction] * 31 + np.int64(state.memory.rows[row])


@inlined
def write_all(state: Any, instruction: Any, address: Any, size: Any) -> None:
    state.made[instruction] += 1
    for byte in range(address, address + size):
        for row in writing(state.memory, byte, 1):
            state.memory.rows[row] = (instruction << 32) + state.made[instruction]


class Order(Module):
    """What each load loads depends on all stores before it and on none behind it."""

    def state(self) -> History:
        instructions = len(self.program.ops)
        return History(shadow.empty("i8"), np.zeros(instructions, np.int64), np.zeros(instructions, np.int64))

    @staticmethod
    def load(state, instruction, address, size):  # type: ignore[no-untyped-def]
        read_all(state, instruction, address, size)

    @staticmethod
    def store(state, instruction, address, size):  # type: ignore[no-untyped-def]
        write_all(state, instruction, address, size)

    @staticmethod
    def loads(state, instruction, address, size, step, count):  # type: ignore[no-untyped-def]
        for number in range(count):
            read_all(state, instruction, address + number * step, size)

    @staticmethod
    def stores(state, instruction, address, size, step, count):  # type: ignore[no-untyped-def]
        for number in range(count):
            write_all(state, instruction, address + number * step, size)

    def result(self, state: History) -> dict[str, Any]:
        return {"seen": state.seen.tolist(), "made": state.made.tolist()}


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 1 << 32))
def test_each_load_has_the_same_stores_before_it(tmp_path_factory: pytest.TempPathFactory, seed: int) -> None:
    rng = random.Random(seed)
    nest = some_nest(rng)
    path = tmp_path_factory.mktemp("t") / "trace.zst"
    write_trace(path, nest.b.layout(), {0: some_records(nest, rng)}, totals={}, chunk=50)
    expected, violations, _ = outcome(path, {Order: NoOptions()}, "0")
    found, violations_found, _ = outcome(path, {Order: NoOptions()}, "always")
    assert (found, violations_found) == (expected, violations)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 1 << 32), st.sampled_from(PASSES), st.sampled_from((1, 4)), st.booleans())
def test_profiles_are_those_of_accesses_one_by_one(
    tmp_path_factory: pytest.TempPathFactory,
    seed: int,
    chosen: Mapping[str, Mapping[str, int]],
    least: int,
    looks_ahead: bool,
) -> None:
    rng = random.Random(seed)
    nest = some_nest(rng)
    path = tmp_path_factory.mktemp("t") / "trace.zst"
    write_trace(path, nest.b.layout(), {0: some_records(nest, rng)}, totals={}, chunk=50)
    modules = {name: registry.load(name).Options(**given) for name, given in chosen.items()}
    expected, violations, _ = outcome(path, modules, "0")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(range_code, "LEAST", least)
        patch.setattr(range_code, "LEAST_WITH_LEVELS", least)
        found, violations_found, _ = outcome(path, modules, "always", looks_ahead)
    assert found == expected
    assert violations_found == violations
    events = [(*event, 0) for event in read(path.read_bytes()).process().events]
    if any(event[3] >> 47 for event in events):
        return  # no address of a program
    if "footprint" in chosen:
        assert found["footprint"]["slices"] == naive.footprint(events, chosen["footprint"]["granule"])
    if "heatmap" in chosen:
        assert found["heatmap"] == naive.heatmap(events, *chosen["heatmap"].values())


@pytest.mark.parametrize("module", ["camp", "lamp"])
@pytest.mark.parametrize("offset, step", [(8 * 199, -8), (-800, 16), (8 * 199, -16), (0, 0), (-200, 8), (-600, 24)])
def test_distances_that_are_others_in_each_iteration(module: str, offset: int, step: int, tmp_path: Path) -> None:
    nest = Nest()
    nest.op(OpKind.STORE, 8, 4096, 8)
    nest.op(OpKind.LOAD, 8, 4096 + offset, step, block=nest.other)
    ids, path = nest.ids, tmp_path / "trace.zst"
    records: list[Record] = [(ids["enter"], [0, 0]), (ids["outer"], [])]
    for often in (100, 90, 7, 7, 7, 7, 7, 7, 100):
        records += [
            (ids["middle"], []),
            (ids["run"], [often]),
            (ids["other run"], [max(30, often // 2)]),
            (ids["run"], [7]),
        ]
        records += [(ids["other run"], [often // 3])]
    write_trace(path, nest.b.layout(), {0: records}, totals={}, chunk=50)
    modules = {module: registry.load(module).Options()}
    expected, _, _ = outcome(path, modules, "0")
    found, _, _ = outcome(path, modules, "always")
    assert found == expected
    assert any(row["kind"] == "RAW" for row in with_rows(found[module])["dependences"])


@pytest.mark.parametrize("module", ["camp", "lamp"])
@pytest.mark.parametrize("start, step", [(0x2000 - 800, 8), (0x3000 + 800, -8), (0x2000 - 500, 100), (0x8000, 0)])
def test_loads_that_come_from_pages_in_which_nothing_is_stored(
    module: str, start: int, step: int, tmp_path: Path
) -> None:
    nest = Nest()
    nest.op(OpKind.STORE, 8, 0x2000, 8)
    nest.op(OpKind.LOAD, 8, start - 512 * step, step, block=nest.other)  # the iterations go on behind those of stores
    ids, path = nest.ids, tmp_path / "trace.zst"
    records: list[Record] = [(ids["enter"], [0, 0]), (ids["outer"], [])]
    for _ in range(2):
        records += [(ids["middle"], []), (ids["run"], [511]), (ids["other run"], [611])]
    write_trace(path, nest.b.layout(), {0: records}, totals={}, chunk=50)
    modules = {module: registry.load(module).Options()}
    expected, _, _ = outcome(path, modules, "0")
    found, _, _ = outcome(path, modules, "always", looks_ahead=True)
    assert found == expected
    kinds = {row["kind"] for row in with_rows(found[module])["dependences"]}
    assert kinds == ({"WAW"} if step == 0 else {"RAW", "WAR", "WAW"})


# -- what callbacks are told -----------------------------------------------------------------------

CALL = np.dtype(
    [(name, "i8") for name in ("kind", "instruction", "address", "size", "step", "count", "time", "period", "stream")]
)
LOAD, STORE, LOADS, STORES = range(4)


class State(NamedTuple):
    calls: Any  # CALL
    used: Any  # int64 (1)


class Diary(Module):
    """Writes down all calls."""

    def state(self) -> State:
        return State(np.zeros(1000, CALL), np.zeros(1, np.int64))

    @staticmethod
    def load(state, instruction, address, size, time, stream):  # type: ignore[no-untyped-def]
        row = state.calls[state.used[0]]
        row.kind, row.instruction, row.address, row.size, row.time = 0, instruction, address, size, time
        state.used[0] += 1

    @staticmethod
    def store(state, instruction, address, size, time, stream):  # type: ignore[no-untyped-def]
        row = state.calls[state.used[0]]
        row.kind, row.instruction, row.address, row.size, row.time = 1, instruction, address, size, time
        state.used[0] += 1

    @staticmethod
    def loads(state, instruction, address, size, step, count, time, period, stream):  # type: ignore[no-untyped-def]
        row = state.calls[state.used[0]]
        row.kind, row.instruction, row.address, row.size, row.time = 2, instruction, address, size, time
        row.step, row.count, row.period, row.stream = step, count, period, stream
        state.used[0] += 1

    @staticmethod
    def stores(state, instruction, address, size, step, count, time, period, stream):  # type: ignore[no-untyped-def]
        row = state.calls[state.used[0]]
        row.kind, row.instruction, row.address, row.size, row.time = 3, instruction, address, size, time
        row.step, row.count, row.period, row.stream = step, count, period, stream
        state.used[0] += 1

    def result(self, state: State) -> dict[str, Any]:
        return {}


class InSevens(Diary):
    """Order does not matter among seven accesses at a time."""

    @staticmethod
    def unordered(state, time):  # type: ignore[no-untyped-def]
        return 7 - time % 7


class Careless(Diary):
    """Order never matters."""

    @staticmethod
    def unordered(state):  # type: ignore[no-untyped-def]
        return 1 << 62


class Iterations(Diary):
    """Wants to know of iterations."""

    @staticmethod
    def loop_iteration(state, loop):  # type: ignore[no-untyped-def]
        pass


def calls_of(nest: Nest, module: type[Module], iterations: int, tmp_path: Path) -> list[tuple[int, ...]]:
    """The calls for one run: kind, instruction (counted from the first of the loop), address and so on."""
    path = tmp_path / "trace.zst"
    names = [name for name in nest.ids if name != "other run"]
    records: list[Record] = [(nest.ids[name], [1 << 20, 1 << 21] if name == "enter" else []) for name in names]
    records[3] = (nest.ids["run"], [iterations])
    layout = nest.b.layout()
    write_trace(path, layout, {0: records}, totals={}, chunk=50)
    _, _, states = outcome(path, {module: NoOptions()}, "always")
    state = states[module.__name__]
    rows: list[tuple[int, ...]] = state.calls[: state.used[0]].tolist()
    return [(row[0], row[1] - layout.op[2], *row[2:]) for row in rows]


def test_a_run_is_one_call_for_each_instruction(tmp_path: Path) -> None:
    nest = Nest()
    nest.op(OpKind.LOAD, 8, 800, -8)
    nest.op(OpKind.STORE, 4, 1 << 20, 16)
    assert calls_of(nest, Diary, 100, tmp_path) == [
        (LOADS, 0, 800, 8, -8, 100, 0, 2, 0),
        (STORES, 1, 1 << 20, 4, 16, 100, 1, 2, 0),
    ]


@pytest.mark.parametrize(
    "load, store, order",
    [
        ((0, 8), (0, 8), [LOADS, STORES]),  # a[i] += x
        ((8, 8), (0, 8), [LOADS, STORES]),  # a[i] = a[i + 1]
        ((0, 8), (8, 8), [STORES, LOADS]),  # a[i + 1] = a[i]
        ((4, 8), (0, 8), [LOADS, STORES]),  # half of it is stored later in the iteration, half in the next one
        ((-4, 8), (0, 8), [LOAD, STORE]),  # half of it was stored in the iteration before, half is stored in this one
        ((792, 0), (0, 8), [LOAD, STORE]),  # stored in one of the iterations
        ((800, 0), (0, 8), [LOADS, STORES]),  # right behind all of them
        ((0, -8), (0, 8), [LOAD, STORE]),
        ((0, -8), (8, 8), [LOADS, STORES]),
        ((16, -16), (0, -16), [STORES, LOADS]),
        ((0, -16), (16, -16), [LOADS, STORES]),
    ],
)
def test_an_order_in_which_nothing_is_stored_too_early_or_too_late(
    load: tuple[int, int], store: tuple[int, int], order: list[int], tmp_path: Path
) -> None:
    nest = Nest()
    nest.op(OpKind.LOAD, 8, 4096 + load[0], load[1])
    nest.op(OpKind.STORE, 8, 4096 + store[0], store[1])
    kinds = [call[0] for call in calls_of(nest, Diary, 100, tmp_path)]
    assert kinds == (order if LOADS in order else order * 100)


def test_a_load_behind_a_store_of_the_same_iteration_stays_behind_it(tmp_path: Path) -> None:
    nest = Nest()
    nest.op(OpKind.STORE, 8, 4096, 8)
    nest.op(OpKind.LOAD, 8, 4096, 8)
    nest.op(OpKind.LOAD, 8, 4104, 8)
    calls = [call[:3] for call in calls_of(nest, Diary, 10, tmp_path)]
    assert calls == [(LOADS, 2, 4104), (STORES, 0, 4096), (LOADS, 1, 4096)]


def test_modules_say_how_many_accesses_may_come_in_any_order(tmp_path: Path) -> None:
    nest = Nest()
    nest.op(OpKind.LOAD, 8, 4096, 0)
    nest.op(OpKind.STORE, 8, 4096, 0)
    assert [call[0] for call in calls_of(nest, Diary, 10, tmp_path)] == [LOAD, STORE] * 10
    assert calls_of(nest, Careless, 10, tmp_path) == [
        (LOADS, 0, 4096, 8, 0, 10, 0, 2, 0),
        (STORES, 1, 4096, 8, 0, 10, 1, 2, 0),
    ]
    calls = [(call[0], call[5], call[6]) for call in calls_of(nest, InSevens, 10, tmp_path)]
    assert calls == [
        *[(LOADS, 3, 0), (STORES, 3, 1), (LOAD, 0, 6), (STORE, 0, 7)],
        *[(LOADS, 3, 8), (STORES, 3, 9), (LOADS, 3, 14), (STORES, 3, 15)],
    ]


def test_whoever_wants_to_know_of_iterations_gets_accesses_one_by_one(tmp_path: Path) -> None:
    nest = Nest()
    nest.op(OpKind.LOAD, 8, 4096, 8)
    assert [call[0] for call in calls_of(nest, Iterations, 10, tmp_path)] == [LOAD] * 10
