"""Deriving events from path records: against random walks, and rule by rule on programs made by hand."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.naive.program_builder import ProgramBuilder
from tests.naive.random_program import RandomProgram
from tests.naive.walker import Event, Walk
from tracekit.formats.errors import TracekitError
from tracekit.formats.events import BY_CODE, CODE, NONE
from tracekit.formats.image import Base, BlockFlag, CallFlag, LoopFlag, OpFlag, OpKind
from tracekit.program.program import Program
from tracekit.replay.engine import Replay, count_events
from tracekit.replay.kernels.derive import derive
from tracekit.replay.kernels.layouts import OBJECTS, PATIENCE
from tracekit.replay.selection import GROUPS
from tracekit.replay.stream import Violation

Record = tuple[int, list[int]]


class Records:
    """Records by stream, cut into chunks of `chunk`."""

    def __init__(self, streams: dict[int, Sequence[Record]], chunk: int = 7) -> None:
        self.by_stream, self.chunk = streams, chunk

    def streams(self) -> list[int]:
        return sorted(self.by_stream)

    def records(self, stream: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        records = self.by_stream[stream]
        for first in range(0, len(records), self.chunk):
            part = records[first : first + self.chunk]
            words = [word for _, given in part for word in given]
            yield np.array([identity for identity, _ in part], np.uint32), np.array(words, np.uint64)


def be_impatient(engine: Replay, chunk: int) -> None:
    """Make path templates at the first record, or, every fourth time, only in long traces."""
    if chunk % 4:
        for stream in engine.streams:
            stream.state.scalars[PATIENCE] = 0


def replay(
    program: Program, streams: dict[int, Sequence[Record]], chunk: int = 7, batch: int = 64
) -> tuple[list[tuple[int, Event]], list[Violation]]:
    """All events as (stream, event), in the order of delivery, and the violations."""
    engine = Replay(Records(streams, chunk), program, batch)
    be_impatient(engine, chunk)
    events = [
        (part.stream, (BY_CODE[kind].name, subject, address, size))
        for part in engine.batches()
        for kind, subject, address, size in zip(
            *(getattr(part, column).tolist() for column in ("kind", "subject", "address", "size"))
        )
    ]
    return events, engine.violations()


def specialised(
    program: Program,
    streams: dict[int, Sequence[Record]],
    wanted: tuple[Sequence[str], Sequence[str]],
    chunk: int = 7,
    batch: int = 64,
) -> list[tuple[int, Event]]:
    """As :func:`replay`, asked for some events and columns; the columns that are not there are 0."""
    names, columns = wanted
    engine = Replay(Records(streams, chunk), program, batch, events=names, columns=columns)
    be_impatient(engine, chunk)
    found: list[tuple[int, Event]] = []
    for part in engine.batches():
        held = [
            getattr(part, name).tolist() if name in columns else [0] * len(part)
            for name in ("subject", "address", "size")
        ]
        found += [(part.stream, (BY_CODE[kind].name, *row)) for kind, *row in zip(part.kind.tolist(), *held)]
    assert engine.delivered == len(found)
    return found


def selected(events: list[tuple[int, Event]], wanted: tuple[Sequence[str], Sequence[str]]) -> list[tuple[int, Event]]:
    """What `events` of a full replay leave of themselves in a specialised one."""
    names, columns = wanted
    shown = [column in columns for column in ("subject", "address", "size")]
    return [
        (stream, (event[0], *(value if show else 0 for value, show in zip(event[1:], shown))))
        for stream, event in events
        if event[0] in names
    ]


def some_wanted(rng: random.Random) -> tuple[Sequence[str], Sequence[str]]:
    """Events and columns to ask for. Each combination of groups and columns is a kernel to compile: these are four.

    The first is that of footprint and heatmap, the last that of camp.
    """
    if rng.random() < 0.3:
        return rng.choice((("load", "store"), ("store",), (), ("load", "heap_free"))), ("address", "size")
    if rng.random() < 0.2:
        return ("load", "function_exit", "loop_iteration", "loop_exit"), ("subject", "size")
    if rng.random() < 0.2:
        return ("load", "store", "stack_free", "heap_alloc", "external_call"), ("subject", "address", "size")
    names = [name for name in CODE if rng.random() < 0.5]
    names += [rng.choice(group) for group in GROUPS.values()]
    return names, ("subject", "address", "size")


def events_of(b: ProgramBuilder, *records: Record) -> list[Event]:
    """The events of one stream of records that break no rule."""
    events, violations = replay(b.program(), {0: records})
    assert violations == []
    return [event for _, event in events]


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 50), st.sampled_from((16, 64, 4096)))
def test_a_random_walk_yields_its_own_events(seed: int, chunk: int, batch: int) -> None:
    rng = random.Random(seed)
    made = RandomProgram(rng)
    walk = Walk(made, rng, [])
    walk.run()
    events, violations = replay(made.program, {0: walk.records()}, chunk, batch)
    assert [event for _, event in events] == walk.events
    assert violations == []
    wanted = some_wanted(rng)
    assert specialised(made.program, {0: walk.records()}, wanted, chunk, batch) == selected(events, wanted)
    check_values(made.program, walk, chunk, batch)


WITH_VALUES = ("subject", "address", "size", "value")
"""All columns: one more kernel to compile, that of `tracekit dump`, too."""


def check_values(program: Program, walk: Walk, chunk: int, batch: int) -> None:
    """The values of loads and stores are those of the walk, also where events between them are left out."""
    if not program.has_values:
        return
    names = ("load", "function_exit", "loop_exit", "stack_free") if chunk % 2 else CODE.keys()
    engine = Replay(Records({0: walk.records()}, chunk), program, batch, events=names, columns=WITH_VALUES)
    found = [
        (subject, value if program.valued[subject] else None)
        for part in engine.batches()
        for kind, subject, value in zip(part.kind.tolist(), part.subject.tolist(), part.values())
        if kind in (CODE["load"], CODE["store"])
    ]
    assert found == [
        (event[1], value)
        for event, value in zip(walk.events, walk.values)
        if event[0] in ("load", "store") and event[0] in names
    ]


def test_a_trace_without_values_says_how_to_get_them() -> None:
    b = ProgramBuilder()
    b.path(b.block(b.function("main"), BlockFlag.ENTRY | BlockFlag.RETURNS))
    assert not b.program().has_values
    with pytest.raises(TracekitError, match="tracekit cc --values"):
        Replay(Records({}, 1), b.program(), columns=("value",))


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 2**32), st.integers(2, 4))
def test_streams_keep_their_events_and_the_order_of_tickets(seed: int, count: int) -> None:
    rng = random.Random(seed)
    made = RandomProgram(rng)
    walks = [Walk(made, rng, [], heap_base=(k + 1) << 40) for k in range(count)]
    for walk in walks:
        walk.run()
    streams = {k: walk.records() for k, walk in enumerate(walks)}
    order = retick(streams, rng)
    events, violations = replay(made.program, streams)
    for k, walk in enumerate(walks):
        assert [event for stream, event in events if stream == k] == walk.events
    # One heap_alloc, heap_free or heap_realloc record may be several events, so runs of a stream are compared.
    heap = [stream for stream, event in events if event[0].startswith("heap_")]
    assert runs_of(heap) == runs_of([stream for stream, name in order if name != "thread"])
    assert violations == []
    wanted = some_wanted(rng)
    assert specialised(made.program, streams, wanted) == selected(events, wanted)


def retick(streams: dict[int, list[Record]], rng: random.Random) -> list[tuple[int, str]]:
    """Give the ticketed records of all streams one random order; returns it as (stream, event)."""
    ticketed = {CODE[name] for name in ("heap_alloc", "heap_free", "heap_realloc")}
    pending = {k: [record for record in records if record[0] in ticketed] for k, records in streams.items()}
    order: list[tuple[int, str]] = []
    while waiting := [k for k, records in pending.items() if records]:
        k = rng.choice(waiting)
        identity, words = pending[k].pop(0)
        if not (BY_CODE[identity].name == "heap_realloc" and words[1] == words[2] and quiet(streams[k], words)):
            order.append((k, BY_CODE[identity].name))
        words[0] = len(order) + 1000 * (len(order) > 5)
    return order


def quiet(records: list[Record], words: list[int]) -> bool:
    """Whether a reallocation in place keeps its size, and so causes no event."""
    size = 0
    for identity, own in records:
        if own is words:
            return own[3] == size
        if identity == CODE["heap_alloc"] and own[1] == words[1]:
            size = own[2]
        if identity == CODE["heap_realloc"] and own[2] == words[1]:
            size = own[3]
    return False


def runs_of(streams: list[int]) -> list[int]:
    return [stream for k, stream in enumerate(streams) if k == 0 or streams[k - 1] != stream]


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 2**32))
def test_records_in_any_order_neither_crash_nor_hang(seed: int) -> None:
    rng = random.Random(seed)
    made = RandomProgram(rng)
    walk = Walk(made, rng, [])
    walk.run()
    records = walk.records()
    rng.shuffle(records)
    records = [(identity, [rng.choice((word, rng.getrandbits(64))) for word in words]) for identity, words in records]
    records[rng.randrange(len(records))] = (rng.randrange(2**32), [])
    events, _ = replay(made.program, {0: records})
    assert all(name in CODE for _, (name, *_) in events)
    wanted = some_wanted(rng)
    assert specialised(made.program, {0: records}, wanted) == selected(events, wanted)


@pytest.mark.parametrize("asked", [{"events": ("loads",)}, {"columns": ("kind",)}])
def test_only_what_there_is_can_be_asked_for(asked: dict[str, Sequence[str]]) -> None:
    b, _ = main_with()
    with pytest.raises(ValueError, match=r"there is no (event|column)"):
        Replay(Records({}), b.program(), **asked)  # type: ignore[arg-type]


def test_a_column_that_was_not_asked_for_is_not_there() -> None:
    b, entry = main_with()
    b.op(entry, OpKind.LOAD, size=4)
    records, asked = (
        {0: [(single_paths(b)[entry], [4096])]},
        {"events": ("load", "store"), "columns": ("subject", "size")},
    )
    engine = Replay(Records(records), b.program(), **asked)  # type: ignore[arg-type]  # as `accesses` asks
    (batch,) = engine.batches()
    assert batch.subject.tolist() == [0] and batch.columns.address is None
    with pytest.raises(AttributeError, match="address was not asked for"):
        _ = batch.address


def test_events_are_counted_by_name() -> None:
    b, entry = main_with()
    entered = (single_paths(b)[entry], [])
    assert count_events(Records({0: [(CODE["lock"], [1, 8]), entered]}), b.program()) == {
        "lock": 1,
        "function_entry": 1,
    }


def test_counting_needs_no_kernel_of_its_own() -> None:
    """Neither after a replay with all groups of events, whatever its columns, nor after another one and a full one."""
    b, entry = main_with()
    b.op(entry, OpKind.LOAD, size=4, flags=OpFlag.VALUE)
    entered = (single_paths(b)[entry], [4096, 7])
    program = b.program()
    for events, columns in ((None, WITH_VALUES), (None, None), (("load", "store"), ("subject", "size"))):
        replay = Replay(Records({0: [entered]}), program, events=events, columns=columns)
        assert [len(batch) for batch in replay.batches()] == [2 if events is None else 1]
        kernels = derive.native.signatures
        assert count_events(Records({0: [entered]}), program, replay.selection) == {"function_entry": 1, "load": 1}
        assert derive.native.signatures == kernels


def main_with(flags: int = BlockFlag.ENTRY) -> tuple[ProgramBuilder, int]:
    b = ProgramBuilder()
    return b, b.block(b.function("main"), flags)


def single_paths(b: ProgramBuilder) -> dict[int, int]:
    """A path for each block; block handle -> record id."""
    paths = {block: b.path(block) for block in range(len(b.blocks))}
    layout = b.layout()
    return {block: layout.path_number(path) for block, path in paths.items()}


def test_a_tail_call_ends_its_frame_when_the_callee_returns() -> None:
    b = ProgramBuilder()
    main, thunk, callee = b.function("main"), b.function("thunk"), b.function("callee")
    start = b.block(main, BlockFlag.ENTRY)
    call = b.call(start, "thunk")
    end = b.block(main, BlockFlag.RETURNS, continues=call)
    tail = b.block(thunk, BlockFlag.ENTRY | BlockFlag.TAIL_CALL)
    b.op(tail, OpKind.STACK_ALLOC, size=8)
    jump = b.call(tail, "callee", CallFlag.TAIL)
    body = b.block(callee, BlockFlag.ENTRY | BlockFlag.RETURNS)
    ids = single_paths(b)
    events = events_of(b, (ids[start], []), (ids[tail], [64]), (ids[body], []), (ids[end], []))
    assert events == [
        ("function_entry", main, 0, NONE),
        ("function_entry", thunk, 0, call),
        ("stack_alloc", 1, 64, 8),
        ("stack_free", 1, 64, 8),
        ("function_entry", callee, 0, jump),
        ("function_exit", callee, 0, 0),
        ("function_exit", thunk, 0, 0),
        ("function_exit", main, 0, 0),
    ]


@pytest.mark.parametrize(("flags", "external"), [(CallFlag.TAIL, True), (CallFlag.TAIL | CallFlag.PURE, False)])
def test_a_tail_call_out_of_instrumented_code_has_ended_at_the_next_record(flags: int, external: bool) -> None:
    b = ProgramBuilder()
    main, thunk = b.function("main"), b.function("thunk")
    start = b.block(main, BlockFlag.ENTRY)
    call = b.call(start, "qsort", CallFlag.MAY_CALL_BACK)
    end = b.block(main, BlockFlag.RETURNS, continues=call)
    tail = b.block(thunk, BlockFlag.ENTRY | BlockFlag.TAIL_CALL)
    jump = b.call(tail, "strcmp", flags)
    ids = single_paths(b)
    events = events_of(b, (ids[start], []), (ids[tail], []), (ids[tail], []), (ids[end], []))
    thunk_run = [
        ("function_entry", thunk, 0, call),
        *([("external_call", jump, 0, 0)] if external else []),
        ("function_exit", thunk, 0, 0),
    ]
    assert events == [("function_entry", main, 0, NONE), *thunk_run, *thunk_run, ("function_exit", main, 0, 0)]


def test_a_loop_of_tail_calls_keeps_one_frame() -> None:
    b = ProgramBuilder()
    f = b.function("f")
    tail = b.block(f, BlockFlag.ENTRY | BlockFlag.TAIL_CALL)
    b.call(tail, "f", CallFlag.TAIL)
    last = b.block(f, BlockFlag.ENTRY | BlockFlag.RETURNS)
    ids = single_paths(b)
    events = events_of(b, *[(ids[tail], [])] * 1000, (ids[last], []))
    depth = np.cumsum([{"function_entry": 1, "function_exit": -1}[name] for name, *_ in events])
    assert depth.max() <= 3 and depth[-1] == 0
    assert sum(name == "function_entry" for name, *_ in events) == 1001


def test_a_handler_runs_on_roots_of_its_own() -> None:
    b, main = main_with(BlockFlag.ENTRY | BlockFlag.RETURNS)
    entry = b.block(0, BlockFlag.ENTRY)
    ids = single_paths(b)
    enter, leave = CODE["signal_enter"], CODE["signal_leave"]
    events = events_of(
        b, (enter, [10]), (ids[entry], []), (enter, [12]), (ids[main], []), (leave, [12, 0]), (leave, [10, 1])
    )
    assert events == [
        ("signal_enter", 10, 0, 0),
        ("function_entry", 0, 0, NONE),
        ("signal_enter", 12, 0, 0),
        ("function_entry", 0, 0, NONE),
        ("function_exit", 0, 0, 0),
        ("signal_leave", 12, 0, 0),
        ("signal_leave", 10, 0, 1),
        ("function_exit", 0, 0, 1),
    ]


def test_a_second_return_of_setjmp_unwinds_to_its_activation_and_reopens_its_loop() -> None:
    b = ProgramBuilder()
    f = b.function("f")
    start = b.block(f, BlockFlag.ENTRY)
    b.op(start, OpKind.FRAME)
    loop = b.loop(f)
    head = b.block(f, BlockFlag.LOOP_HEADER, loop)
    setjmp = b.call(head, "setjmp", CallFlag.RETURNS_TWICE)
    landing = b.block(f, BlockFlag.LANDING, loop, continues=setjmp)
    b.op(landing, OpKind.LANDING)
    after = b.block(f)
    recursion = b.call(after, "f")
    ids = single_paths(b)
    outer = [(ids[start], [100]), (ids[head], []), (ids[landing], [100]), (ids[after], [])]
    inner = [(ids[start], [200])]
    events = events_of(b, *outer, *inner, (ids[landing], [100]))
    assert events == [
        ("function_entry", f, 0, NONE),
        ("loop_invocation", loop, 0, 0),
        ("loop_exit", loop, 0, 1),
        ("function_entry", f, 0, recursion),
        ("function_exit", f, 0, 1),
        ("loop_invocation", loop, 0, 0),
    ]


def test_a_thread_waits_for_its_creation_whatever_the_tickets_say() -> None:
    b, main = main_with()
    ids = single_paths(b)
    streams = {
        0: [(CODE["program_start"], [1, 7]), (ids[main], []), (CODE["thread_create"], [9, 1])],
        1: [(CODE["thread_start"], [2, 1]), (ids[main], []), (CODE["thread_exit"], [12, 1])],
    }
    events, violations = replay(b.program(), streams)
    assert [(stream, name) for stream, (name, *_) in events] == [
        (0, "program_start"),
        (0, "function_entry"),
        (0, "thread_create"),
        (1, "thread_start"),
        (1, "function_entry"),
        (1, "thread_exit"),
        (1, "function_exit"),
    ]
    assert violations == []


def test_loading_an_image_initialises_its_globals() -> None:
    b, _ = main_with()
    b.variable("a", 4, 4096)
    b.variable("b", 16, 8192)
    assert events_of(b, (CODE["image_load"], [1, 0])) == [
        ("image_load", 0, 0, 0),
        ("global_init", 0, 4096, 4),
        ("global_init", 1, 8192, 16),
    ]


def test_objects_of_a_long_running_frame_do_not_pile_up() -> None:
    b, entry = main_with()
    begin_x, begin_y, end_x, end_y = (b.block(0) for _ in range(4))
    x, y = b.op(begin_x, OpKind.STACK_ALLOC, size=8), b.op(begin_y, OpKind.STACK_ALLOC, size=8)
    b.op(end_x, OpKind.STACK_FREE, base=Base.STACK, of=x)
    b.op(end_y, OpKind.STACK_FREE, base=Base.STACK, of=y)
    ids = single_paths(b)
    records: list[Record] = [(ids[entry], []), (ids[begin_x], [1])]
    for k in range(500):  # the newest object always lives, so that none below it is on top when it ends
        records += [(ids[begin_y], [2 * k]), (ids[end_x], []), (ids[begin_x], [2 * k + 1]), (ids[end_y], [])]
    engine = Replay(Records({0: records}), b.program())
    assert sum(len(batch) for batch in engine.batches()) == 2 + 500 * 4
    assert engine.violations() == []
    stream = engine.streams[0].state
    assert stream.scalars[OBJECTS] < 200
    assert stream.objects["live"][: stream.scalars[OBJECTS]].sum() == 1


@pytest.mark.parametrize(
    ("what", "records"),
    [
        ("no activation", [("end", [])]),
        ("not open", [("other", []), ("after", [])]),
        ("does not continue", [("start", []), ("end", [])]),
        ("without a call", [("entry", []), ("entry", [])]),
        ("beside its header", [("entry", []), ("inside", [])]),
        ("not open", [("entry", []), ("affine", [])]),
        ("outside its object", [("entry", []), ("wild", [])]),
        ("unknown activation", [("entry", []), ("landing", [5])]),
        ("names no path", [(77777, [])]),
        ("signal handler", [(CODE["signal_leave"], [3, 0])]),
    ],
)
def test_a_broken_rule_is_counted_with_its_first_record(what: str, records: list[tuple[str | int, list[int]]]) -> None:
    b = ProgramBuilder()
    f = b.function("f")
    variable = b.variable("v", 8, 4096)
    loop = b.loop(f, flags=LoopFlag.TESTS_AT_HEADER)
    blocks = {
        "start": b.block(f, BlockFlag.ENTRY),
        "entry": b.block(f, BlockFlag.ENTRY),
        "other": b.block(f, BlockFlag.ENTRY),
        "head": b.block(f, BlockFlag.LOOP_HEADER, loop),
    }
    call = b.call(blocks["start"], "g")
    b.call(blocks["other"], "g")
    blocks["after"] = b.block(f, continues=call)
    blocks["end"] = b.block(f, BlockFlag.RETURNS)
    blocks["inside"], blocks["affine"], blocks["wild"] = b.block(f, 0, loop), b.block(f), b.block(f)
    b.op(blocks["affine"], OpKind.LOAD, 4, Base.ABSOLUTE, terms=((4, loop, NONE),))
    b.op(blocks["wild"], OpKind.LOAD, 4, Base.GLOBAL, variable, 6)
    blocks["landing"] = b.block(f, BlockFlag.LANDING)
    b.op(blocks["landing"], OpKind.LANDING)
    ids = single_paths(b)
    given = [(ids[blocks[name]] if isinstance(name, str) else name, words) for name, words in records]
    _, violations = replay(b.program(), {0: given})
    assert [(violation.count, violation.record) for violation in violations if what in violation.text] == [
        (1, len(given) - 1)
    ]


def test_a_copy_of_no_bytes_is_no_access() -> None:
    b, entry = main_with()
    b.op(entry, OpKind.COPY_FROM, flags=OpFlag.DYNAMIC_SIZE)
    b.op(entry, OpKind.COPY_TO)
    ids = single_paths(b)
    assert events_of(b, (ids[entry], [1, 0, 2])) == [("function_entry", 0, 0, NONE)]
