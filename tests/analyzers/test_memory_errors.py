"""The module ``memory_errors`` against its reference on random programs, and what its profiles come to."""

from __future__ import annotations

from collections import Counter
from random import Random
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.analyzers.test_object_lifetime import fed, fresh, random_runs
from tests.naive.dependence import Event
from tests.naive.dependence_machine import RandomProgram
from tests.naive.dependence_rows import paths_of
from tests.naive.memory_errors import NaiveMemoryErrors
from tests.naive.object_machine import HEAP
from tests.naive.objects import GLOBAL, Site
from tracekit.analyzers.memory_errors import MemoryErrors, MemoryErrorsOptions
from tracekit.containers.hash_table import used_rows
from tracekit.formats.errors import TracekitError
from tracekit.formats.events import CODE, NONE
from tracekit.memory_errors.kernels import checks
from tracekit.memory_errors.kernels.checks import State
from tracekit.memory_errors.kernels.variables import Named
from tracekit.memory_errors.profile import KEY, KINDS, REASONS, without
from tracekit.modules.merge_rows import as_key
from tracekit.objects.live import every_site

RULES = (
    *(0, 0, checks.DECIDES, checks.DECIDES, checks.NAMED, checks.DECIDES | checks.NAMED, checks.EMPTY),
    *(checks.BULK, checks.BULK | checks.STRICT, checks.BULK | checks.FIRST, checks.BULK | checks.COPIES),
    *(checks.EMPTY, checks.BULK | checks.COPIES | checks.EMPTY, checks.EMPTY | checks.DECIDES, checks.MAPS),
    *(checks.OPAQUE | checks.BULK, checks.OPAQUE | checks.HOSTS | checks.BULK, checks.BULK | checks.NAMED),
    *(checks.BULK | checks.SORTS, checks.EMPTY | checks.PACKED, checks.BULK | checks.CALLS_BACK),
)


class Given(NamedTuple):
    """What instructions and functions are taken for."""

    rules: Any
    family: Any
    blind: Any


def given_of(made: RandomProgram, random: Random) -> Given:
    count = len(made.program.ops) + 1
    functions = len(made.program.functions)
    return Given(
        np.array([random.choice(RULES) for _ in range(count)], np.uint16),
        np.array([random.choice((0, 0, 1, 2)) for _ in range(count)], np.uint8),
        np.array([random.random() < 0.1 for _ in range(functions)], np.uint8),
    )


class Prepared(MemoryErrors):
    """The module with instructions that are what a test says."""

    prepared: Given
    flags = (0, 0)
    """ATOMICS, ROUNDED"""
    named: Named

    def state(self) -> State:
        state = super().state()._replace(named=Named(*(array.copy() for array in self.named)))
        for array, values in zip((state.rules, state.family, state.blind), self.prepared):
            array[:] = values
        state.control[checks.ATOMICS], state.control[checks.ROUNDED] = self.flags
        return state


def groups_of(made: RandomProgram, random: Random) -> Named:
    """Some accesses are known to be to variables."""
    count = len(made.program.ops) + 1
    variables = made.program.globals
    of_global = np.arange(4, 4 + len(variables), dtype=np.int32)
    address = made.program.global_address.astype(np.int64)
    low = np.concatenate([np.zeros(4, np.int64), address])
    high = np.concatenate([np.zeros(4, np.int64), address + variables["size"].astype(np.int64)])
    kinds = (0, 0, 0, 1, 2, 3, *of_global.tolist())
    return Named(
        np.array([random.choice(kinds) for _ in range(count)], np.int32),
        np.array([random.choice((1, 2, 3)) for _ in range(count)], np.int32),
        *(of_global, low, high),
    )


def disturbed(events: list[Event], made: RandomProgram, random: Random) -> list[Event]:
    """The events with accesses to the heap, copies, threads and handlers between them."""
    result: list[Event] = []
    for event in events:
        result.append(event)
        stream = event[0]
        for _ in range(random.choice((0, 1, 1, 3))):
            size = random.choice((1, 2, 4, 8, 8, 8, 16, 24, 70, 200))
            size = 40000 if random.random() < 0.005 else size
            kind, row = random.choice(("load", "store")), random.randrange(len(made.program.ops) + 1)
            result.append((stream, CODE[kind], row, HEAP + random.randrange(-16, 140), size))
            if random.random() < 0.3:
                result.append((stream, CODE["store"], row, HEAP + random.randrange(-16, 140), size))
        if random.random() < 0.02:
            call = random.randrange(len(made.program.ops) + 1)
            result.append((stream, CODE["external_call"], call, 0, 0))
        if random.random() < 0.01:
            name = random.choice(("thread_create", "thread_exit", "thread_create", "thread_exit", "signal_enter"))
            result.append((stream, CODE[name], 0, 0, 0))
    return result


def found_in(module: Prepared, state: State) -> tuple[Counter[Any], dict[Any, tuple[int, int, int]]]:
    """The state's errors as the reference has them, and size, offset and bytes of one occurrence of each."""
    profile = every_site(module.program, module.contexts, state.live)
    paths = paths_of(SimpleNamespace(nodes=profile.nodes))  # type: ignore[arg-type]

    def place(row: int) -> tuple[int, Any]:
        key = int(used_rows(state.errors.places)["key"][row])
        return key >> 32, paths[int(module.contexts.rows(np.array([key & NONE]))[0])]

    def site(row: int) -> Site:
        kind, instruction, node, calls = profile.sites[row].tolist()
        known = tuple(int(call) for call in calls if call != NONE)
        if kind == GLOBAL:
            return kind, instruction, (), known
        return kind, min(instruction, len(module.program.ops)), paths[node], known

    counts: Counter[Any] = Counter()
    parts = {}
    for row in used_rows(state.errors.found)[1:]:
        key = int(row["key"])
        of = int(used_rows(state.errors.objects)["key"][key & (1 << 29) - 1])
        freed = place(int(used_rows(state.deaths)["key"][of & NONE]) & NONE) if of & NONE else None
        name = KINDS[key >> 58], place(key >> 29 & (1 << 29) - 1), site(of >> 32), freed
        counts[name] += int(row["count"])
        parts[name] = int(row["size"]), int(row["offset"]), int(row["bytes"])
    return counts, parts


def case(seed: int, streams: int) -> tuple[Prepared, list[Event], NaiveMemoryErrors, Any]:
    made, (events,) = random_runs(seed, streams, 1)
    random = Random(seed)
    module = Prepared(made.program, MemoryErrorsOptions())
    module.prepared = given_of(made, random)
    module.named = groups_of(made, Random(seed + 1))
    module.flags = int(random.random() < 0.5), int(random.random() < 0.2)
    events = disturbed(events, made, random)
    runner = fed(module, "memory_errors", events, 1 + seed % 60)
    naive = NaiveMemoryErrors(
        made.program, fresh(module, runner._workers[0].state), *module.prepared, module.flags, module.named
    )
    naive.feed(events)
    return module, events, naive, runner


@settings(deadline=None, max_examples=60)
@example(seed=249999999, streams=1)  # the C library's own
@given(seed=st.integers(0, 2**32), streams=st.integers(1, 3))
def test_it_is_its_reference(seed: int, streams: int) -> None:
    module, _, naive, runner = case(seed, streams)
    result, _ = runner.result()
    state = runner._workers[0].state
    counts, parts = found_in(module, state)
    assert counts == naive.found
    assert all(parts[key] in naive.parts[key] for key in parts)
    assert dict(zip(REASONS, state.errors.undecided.tolist())) == {name: naive.undecided[name] for name in REASONS}
    totals = Counter[str]()
    for (kind, *_), count in naive.found.items():
        totals[kind] += count
    assert result["summary"]["errors"] == {kind: totals[kind] for kind in KINDS}
    left = naive.left()
    assert sum(row["blocks"] for row in result["leaks"]) == left.total()
    assert sum(row["bytes"] for row in result["leaks"]) == sum(size * count for (_, size), count in left.items())
    gone = naive.released()
    assert result["summary"]["released"] == {
        "blocks": gone.total(),
        "bytes": sum(size * count for (_, size), count in gone.items()),
    }


def test_the_random_runs_have_errors_of_each_kind() -> None:
    kinds: set[str] = set()
    undecided: Counter[str] = Counter()
    for seed in range(60):
        _, _, naive, _ = case(seed, 2)
        kinds |= {key[0] for key in naive.found}
        undecided += naive.undecided
    assert kinds == set(KINDS)
    assert set(undecided) == set(REASONS)


@settings(deadline=None, max_examples=8)
@given(seeds=st.lists(st.integers(0, 2**32), min_size=2, max_size=3))
def test_joined_profiles_have_the_sums(seeds: list[int]) -> None:
    profiles = [{"result": case(seed, 1)[3].result()[0]} for seed in seeds]
    joined = MemoryErrors.merge(profiles, None)["result"]
    for kind in KINDS:
        total = sum(each["result"]["summary"]["errors"][kind] for each in profiles)
        assert joined["summary"]["errors"][kind] == total
        assert sum(row["count"] for row in joined["errors"] if row["kind"] == kind) == total
    keys = [as_key(row, KEY) for row in joined["errors"]]
    assert len(set(keys)) == len(keys)
    assert MemoryErrors.merge(profiles[::-1], None)["result"] == joined
    first = MemoryErrors.merge(profiles[:1], None)
    assert first["result"] == profiles[0]["result"]
    assert MemoryErrors.merge([first, *profiles[1:]], None)["result"] == joined


def test_what_is_suppressed_is_counted() -> None:
    result = next(result for result in (case(seed, 1)[3].result()[0] for seed in range(20)) if result["errors"])
    assert without(result, []) is result
    none = without(result, ["*"])
    assert none["errors"] == none["leaks"] == []
    assert none["summary"]["suppressed"] == len(result["errors"]) + len(result["leaks"])
    assert not any(none["summary"]["errors"].values())
    assert without(result, ["no_such_function"]) == result


def test_a_window_is_refused() -> None:
    made, _ = random_runs(1, 1, 1)
    module = MemoryErrors(made.program, MemoryErrorsOptions())
    module.windowed = True
    with pytest.raises(TracekitError, match="looks at whole runs"):
        module.state()
