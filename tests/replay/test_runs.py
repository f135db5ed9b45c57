"""Runs: one record for many iterations of a loop, against records of every iteration; and ground truth of both."""

from __future__ import annotations

import random
import time
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.naive.program_builder import ProgramBuilder
from tests.replay.test_derive import Record, Records, replay, selected, some_wanted, specialised
from tracekit.formats.errors import TracekitError
from tracekit.formats.events import CODE, NONE
from tracekit.formats.image import Base, BlockFlag, CallFlag, OpFlag, OpKind, PathFlag
from tracekit.replay.engine import Replay
from tracekit.replay.totals import Counter as RecordCounter
from tracekit.replay.totals import totals

RUN = PathFlag.RUN
BESIDE = PathFlag.RUN | PathFlag.GROUND_TRUTH


class Nest:
    """A loop of one to three blocks that record nothing, inside another one; addresses may leave their objects.

    Paths: `enter` (of registers and a stack object), `outer`, `run` and `ground_truth` of the loop, `full`: the
    same blocks as an ordinary path, and `leave`, a block behind the loops.
    """

    def __init__(self, rng: random.Random) -> None:
        self.b = b = ProgramBuilder()
        self.rng = rng
        f = b.function("f", registers=2)
        b.variable("v", 100, 4096)
        b.variable("nowhere", 8, 0)
        entry = b.block(f, BlockFlag.ENTRY)
        for register in range(2):
            b.op(entry, OpKind.BASE, defines=register)
        self.object = b.op(entry, OpKind.STACK_ALLOC, 200)
        self.loops = [b.loop(f)]
        head = b.block(f, BlockFlag.LOOP_HEADER, self.loops[0])
        self.loops += [b.loop(f, self.loops[0]), b.loop(f)]
        b.block(f, BlockFlag.LOOP_HEADER, self.loops[2])
        blocks = [b.block(f, BlockFlag.LOOP_HEADER, self.loops[1])]
        blocks += [b.block(f, 0, self.loops[1]) for _ in range(rng.randint(0, 2))]
        for block in blocks:
            for _ in range(rng.randint(0, 3)):
                self.op(block)
        behind = b.block(f)
        self.names = {
            "enter": b.path(entry),
            "outer": b.path(head),
            "run": b.path(*blocks, flags=RUN),
            "ground_truth": b.path(*blocks, flags=BESIDE),
            "full": b.path(*blocks),
            "leave": b.path(behind),
        }
        layout = b.layout()
        self.ids = {name: layout.path_number(path) for name, path in self.names.items()}
        self.program = b.program()

    def op(self, block: int) -> None:
        """Sometimes its terms count a loop that is not open, sometimes it begins a stack object."""
        rng, b = self.rng, self.b
        kind = rng.choice((OpKind.LOAD, OpKind.STORE, OpKind.ATOMIC, OpKind.POINTER, OpKind.STACK_ALLOC, OpKind.CALL))
        if kind == OpKind.CALL:
            b.call(block, "asm", CallFlag.INLINE_ASM, ends=False)
            return
        loops = rng.choices(self.loops, (3, 9, 1), k=rng.randint(0, 2))
        terms = [(rng.randint(-9, 9), loop, rng.choice((NONE, NONE, 0, 1))) for loop in loops]
        base, of = rng.choice(
            ((Base.REGISTER, 1), (Base.ABSOLUTE, 0), (Base.GLOBAL, 0), (Base.GLOBAL, 1), (Base.STACK, self.object))
        )
        size = rng.choice((0, 4, 8)) if kind != OpKind.STACK_ALLOC or rng.random() < 0.3 else 8
        b.op(
            block,
            OpKind.LOAD if kind == OpKind.STACK_ALLOC and rng.random() < 0.8 else kind,
            size,
            base,
            of,
            rng.randint(0, 40),
            tuple(terms),
        )

    def records(self, whole: bool) -> list[Record]:
        """The loop's iterations as runs, or one by one if `whole`; equal for equal `rng`."""
        rng = self.rng
        records: list[Record] = [(self.ids["enter"], [rng.choice((0, 3, 2**63, 2**64 - 5)), 1 << 20, 1 << 30])]
        for _ in range(rng.randint(1, 5)):
            if rng.random() < 0.8:
                records.append((self.ids["outer"], []))
            iterations = rng.choice((0, 1, 2, 3, 4, 10, rng.randrange(1000)))
            records += [(self.ids["full"], [])] * iterations if whole else [(self.ids["run"], [iterations])]
            if rng.random() < 0.3:
                records.append((self.ids["leave"], []))
        return records


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 20), st.sampled_from((8, 16, 64, 300, 4096)))
def test_a_run_is_so_many_records_of_one_iteration(seed: int, chunk: int, batch: int) -> None:
    found = []
    for whole in (False, True):
        nest = Nest(random.Random(seed))
        records = nest.records(whole)
        events, violations = replay(nest.program, {0: records}, chunk, batch)
        found.append((events, [(violation.text, violation.count) for violation in violations]))
        wanted = some_wanted(random.Random(seed))
        assert specialised(nest.program, {0: records}, wanted, chunk, batch) == selected(events, wanted)
    assert found[0] == found[1]


def long_loop(size: int = 1 << 40, stride: int = 8) -> tuple[ProgramBuilder, dict[str, int]]:
    """for (i = 0; ; i++) v[i]++;"""
    b = ProgramBuilder()
    f = b.function("f")
    entry = b.block(f, BlockFlag.ENTRY)
    variable, loop = b.variable("v", size, 4096), b.loop(f)
    head = b.block(f, BlockFlag.LOOP_HEADER, loop)
    for kind in (OpKind.LOAD, OpKind.STORE):
        b.op(head, kind, 8, Base.GLOBAL, variable, 0, ((stride, loop, NONE),))
    behind = b.block(f)
    paths = {
        "entry": b.path(entry),
        "run": b.path(head, flags=RUN),
        "full": b.path(head),
        "ground_truth": b.path(head, flags=BESIDE),
        "behind": b.path(behind),
    }
    layout = b.layout()
    return b, {name: layout.path_number(path) for name, path in paths.items()}


def test_a_long_run_comes_in_batches_and_may_be_left_in_the_middle() -> None:
    b, ids = long_loop()
    engine = Replay(Records({0: [(ids["entry"], []), (ids["run"], [10**12])]}), b.program(), batch=5000)
    addresses, longest = [], 0
    for batch in engine.batches():
        addresses.append(batch.address[batch.kind == CODE["store"]].copy())
        longest = max(longest, len(batch.kind))
        if sum(map(len, addresses)) > 300_000:
            break
    stores = np.concatenate(addresses)
    np.testing.assert_array_equal(stores, 4096 + 8 * np.arange(len(stores), dtype=np.uint64))
    assert longest <= 5000 and engine.violations() == []


def test_a_run_through_a_global_leaves_it_where_its_iterations_do() -> None:
    b, ids = long_loop(size=8 * 1000)
    engine = Replay(Records({0: [(ids["entry"], []), (ids["run"], [1234])]}), b.program(), batch=256)
    assert sum(len(batch.kind) for batch in engine.batches())
    assert [(violation.text, violation.count) for violation in engine.violations()] == [
        ("an address lies outside its object", 2 * 234)
    ]
    assert not engine.breaks_rules  # it is the program that goes beyond the global


@pytest.mark.parametrize("iterations", [(1 << 40) + 1, (1 << 64) - 1])
def test_more_iterations_than_any_program_makes_are_damage(iterations: int) -> None:
    b, ids = long_loop()
    program, records = b.program(), [(ids["entry"], []), (ids["run"], [iterations]), (ids["behind"], [])]
    events, violations = replay(program, {0: records})
    assert [event[0] for _, event in events] == ["function_entry"]
    assert [(violation.text, violation.record) for violation in violations] == [
        ("a run has more iterations than any program makes", 1)
    ]
    with pytest.raises(TracekitError, match="damaged: a run has"):
        RecordCounter(program).add(np.array([ids["run"]], np.uint32), np.array([iterations], np.uint64))


def test_a_run_without_its_activation_is_passed_over_at_once() -> None:
    b, ids = long_loop()
    began = time.monotonic()
    events, violations = replay(b.program(), {0: [(ids["run"], [1 << 40])]})
    assert events == [] and [violation.count for violation in violations] == [1]
    assert time.monotonic() - began < 30


def test_totals_count_the_iterations() -> None:
    b, ids = long_loop()
    program = b.program()
    counter = RecordCounter(program)
    for _ in range(3):
        counter.add(
            np.array([ids["entry"], ids["run"], ids["ground_truth"], ids["full"], ids["run"]], np.uint32),
            np.array([1 << 39, 5, 7], np.uint64),
        )
    counted = totals(program, counter)
    assert counted["blocks"] == 3 * ((1 << 39) + 7 + 2)
    assert counted["loads"] == counted["stores"] == 3 * ((1 << 39) + 7 + 1)
    assert counted["path_records"] == 15 and counted["words"] == 9


@pytest.mark.parametrize(
    ("full", "recorded", "good"),
    [(3, 3, True), (3, 2, False), (3, 4, False), (0, 0, True), (0, 1, False), (2, 0, False)],
)
def test_the_iterations_beside_a_run_are_counted(full: int, recorded: int, good: bool) -> None:
    b, ids = long_loop()
    records: list[Record] = [(ids["entry"], []), *[(ids["full"], [])] * full, (ids["ground_truth"], [recorded])]
    plain, _ = replay(b.program(), {0: records[:-1]})
    events, violations = replay(b.program(), {0: records})
    assert events == plain  # nothing is replayed
    assert [violation.text for violation in violations] == (
        [] if good else ["a run does not have the iterations that it says"]
    )


def test_a_run_beside_which_nothing_is_open_has_no_iterations() -> None:
    b, ids = long_loop()
    records: list[Record] = [
        (ids["entry"], []),
        (ids["run"], [3]),
        (ids["ground_truth"], [3]),
        (ids["behind"], []),
        (ids["ground_truth"], [0]),
        (ids["run"], [2]),
        (ids["ground_truth"], [2]),
    ]
    engine = Replay(Records({0: records}), b.program())
    assert sum(len(batch) for batch in engine.batches()) == 1 + 3 * 3 + 1 + 2 * 3
    assert engine.violations() == [] and engine.compared() == (0, 0, 3)
    _, violations = replay(b.program(), {0: records[2:]})
    assert "a run does not have the iterations that it says" in [violation.text for violation in violations]


def with_ground_truth() -> tuple[ProgramBuilder, int]:
    b = ProgramBuilder()
    b.block(b.function("other"), BlockFlag.ENTRY)
    f = b.function("f", registers=1)
    b.block(f)
    entry = b.block(f, BlockFlag.ENTRY)
    b.op(entry, OpKind.GROUND_TRUTH)
    b.op(entry, OpKind.BASE, defines=0)
    b.op(entry, OpKind.LOAD, 12, Base.REGISTER, 0, 8, flags=OpFlag.VALUE | OpFlag.GROUND_TRUTH)
    b.op(entry, OpKind.STORE, 0, flags=OpFlag.DYNAMIC_SIZE | OpFlag.GROUND_TRUTH)
    x = b.op(entry, OpKind.STACK_ALLOC, 0, flags=OpFlag.DYNAMIC_SIZE | OpFlag.GROUND_TRUTH)
    b.op(entry, OpKind.POINTER, 0, Base.STACK, x, 4, flags=OpFlag.GROUND_TRUTH)
    b.op(entry, OpKind.STACK_FREE, base=Base.STACK, of=x, flags=OpFlag.GROUND_TRUTH)
    return b, b.path(entry)


GOOD = [1, 100, 7, 7, 108, 200, 16, 200, 300, 0, 300, 304, 300]
"""The words of :func:`with_ground_truth`: the block, a base, two words of a value, and so on."""


@pytest.mark.parametrize(
    ("at", "word", "text"),
    [
        (0, 0, "blocks"),
        (4, 109, "address"),
        (7, 0, "address"),
        (10, 1, "address"),
        (11, 300, "address"),
        (12, 0, "address"),
        (2, 8, ""),
        (6, 8, ""),
    ],
)
def test_a_ground_truth_record_is_compared(at: int, word: int, text: str) -> None:
    b, path = with_ground_truth()
    number = b.layout().path_number(path)
    engine = Replay(Records({0: [(number, GOOD)]}), b.program())
    expected = sum(len(batch) for batch in engine.batches())
    assert engine.violations() == [] and engine.compared() == (5, 1, 0)
    engine = Replay(Records({0: [(number, [word if k == at else good for k, good in enumerate(GOOD)])]}), b.program())
    assert sum(len(batch) for batch in engine.batches()) == expected
    assert [text in violation.text for violation in engine.violations()] == [True] * bool(text)
    assert sum(engine.compared()) == 6 - bool(text)


def test_an_access_of_no_bytes_is_not_compared() -> None:
    b, path = with_ground_truth()
    engine = Replay(Records({0: [(b.layout().path_number(path), [*GOOD[:6], 0, 5, *GOOD[8:]])]}), b.program())
    kinds = Counter(kind for batch in engine.batches() for kind in batch.kind.tolist())
    assert kinds[CODE["store"]] == 0 and engine.violations() == [] and engine.compared() == (4, 1, 0)


@pytest.mark.parametrize(
    ("what", "broken"),
    [
        ("words", "records words"),
        ("ground_truth", "records words"),
        ("beside", "one iteration"),
        ("twice", "one iteration"),
        ("out", "leaves its loop"),
        ("straight", "leaves its loop"),
        ("call", "leaves its function"),
        ("return", "leaves its function"),
        ("other header", "at its loop's header"),
    ],
)
def test_a_path_that_is_no_iteration_is_no_run(what: str, broken: str) -> None:
    b = ProgramBuilder()
    f = b.function("f")
    loop = b.loop(f)
    blocks = {"head": b.block(f, BlockFlag.LOOP_HEADER, loop), "in": b.block(f, 0, loop), "out": b.block(f)}
    path = {
        "beside": ("in",),
        "twice": ("head", "head"),
        "out": ("head", "out"),
        "straight": ("out",),
        "call": ("head", "calls"),
        "return": ("head", "returns"),
        "other header": ("second",),
    }.get(what, ("head",))
    blocks["calls"], blocks["returns"] = b.block(f, 0, loop), b.block(f, BlockFlag.RETURNS, loop)
    b.call(blocks["calls"], "g")
    blocks["second"] = b.block(f, BlockFlag.LOOP_HEADER, loop)
    b.loops[loop]["header"] = blocks["head"]
    if what == "words":
        b.op(blocks["head"], OpKind.LOAD, 8)
    elif what == "ground_truth":
        b.op(blocks["head"], OpKind.LOAD, 8, Base.ABSOLUTE, flags=OpFlag.GROUND_TRUTH)
    b.path(*(blocks[name] for name in path), flags=RUN)
    with pytest.raises(TracekitError, match=broken):
        b.program()
