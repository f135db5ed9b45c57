"""Windows on a trace: what passes, against a naive filter; what they are called; what modules make of them."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import tracekit
from tests.naive import window as naive
from tests.naive.random_trace import write_random, write_walks
from tracekit.analysis import passes
from tracekit.analysis.modules import class_of
from tracekit.analysis.passes import prepare, replay_through
from tracekit.formats.errors import TracekitError
from tracekit.formats.events import CODE
from tracekit.module import Module
from tracekit.modules.options import make_options
from tracekit.replay.engine import Replay
from tracekit.replay.totals import trace_totals
from tracekit.replay.window import Position, Restriction, Window

ACCESSES = (CODE["load"], CODE["store"])


def chosen(trace: Any, rng: random.Random) -> tuple[dict[str, Any], dict[str, Any]]:
    """A window by chance: as a user gives it, and as the naive filter takes it."""
    window: dict[str, Any] = {}
    given: dict[str, Any] = {}
    program = trace.program
    if rng.random() < 0.5:
        window["function"] = program.function_name(rng.randrange(len(program.functions)))
        given["functions"] = {
            row for row in range(len(program.functions)) if program.function_name(row) == window["function"]
        }
    if len(program.loops) and rng.random() < 0.4:
        loop = program.loop(rng.randrange(len(program.loops)))
        window["loop"] = f"{loop['file']}:{loop['line']}"
        given["loops"] = {
            row
            for row in range(len(program.loops))
            if (program.loop(row)["file"], program.loop(row)["line"]) == (loop["file"], loop["line"])
        }
    if rng.random() < 0.4:
        window["thread"] = given["thread"] = rng.choice(trace.reader.streams())
    total = trace.reader.done["totals"]["accesses"]
    if rng.random() < 0.4:
        window["from"] = given["first"] = rng.randint(0, total)
    if rng.random() < 0.4:
        window["to"] = given["last"] = rng.randint(0, total + 1)
    return window, given


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32), streams=st.integers(1, 3))
def test_the_filter_and_the_naive_one_agree(tmp_path_factory: Any, seed: int, streams: int) -> None:
    path = tmp_path_factory.mktemp("t") / "trace.zst"
    write_walks(path, seed, streams)
    with tracekit.open(path) as trace:
        window, naive_window = chosen(trace, random.Random(seed))
        wanted = list(naive.inside(naive.rows(trace.batches()), **naive_window))
        if not window:
            return
        found, marks = [], []
        for batch in trace.batches(window=window):
            found += naive.rows([batch])
            marks += batch.inside.tolist()
        assert list(zip(found, map(bool, marks))) == wanted
        # What is not asked for does not arrive, and does not change what does.
        names = ("load", "heap_free", "loop_iteration", "function_entry", "stack_free")
        few = {CODE[name] for name in names}
        part = naive.rows(trace.batches(names, window=window))
        assert part == [row for row, _ in wanted if row[1] in few]


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 2**32), percent=st.integers(0, 100))
@example(seed=138, percent=100)  # heap_realloc moves an object: accesses that the total does not count
def test_a_percentage_divides_a_trace(tmp_path_factory: Any, seed: int, percent: int) -> None:
    path = tmp_path_factory.mktemp("t") / "trace.zst"
    write_walks(path, seed, 2)
    with tracekit.open(path) as trace:
        parts = [
            [row for row in naive.rows(trace.batches(window={name: f"{percent}%"})) if row[1] in ACCESSES]
            for name in ("to", "from")
        ]
        assert parts[0] + parts[1] == [row for row in naive.rows(trace.batches()) if row[1] in ACCESSES]
        everything, stated = len(parts[0] + parts[1]), trace.reader.done["totals"]["accesses"]
        assert len(parts[0]) == (everything if percent == 100 else min(stated * percent // 100, everything))


class Traffic(Module):
    """Counts what arrives, and what of it is inside."""

    def state(self) -> Any:
        return (np.zeros(4, np.int64),)

    @staticmethod
    def load(state: Any, context: int) -> None:
        state[0][0] += 1
        state[0][3] += context

    @staticmethod
    def function_entry(state: Any, function: int, inside: int) -> None:
        state[0][1] += 1
        state[0][2] += inside

    def result(self, state: Any) -> dict[str, Any]:
        loads, entries, inside, contexts = state[0].tolist()
        return {"loads": loads, "entries": entries, "inside": inside, "contexts": contexts}


@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 2**32), jobs=st.integers(1, 2))
def test_a_module_counts_what_is_inside_and_its_contexts_stay_right(
    tmp_path_factory: Any, seed: int, jobs: int
) -> None:
    path = tmp_path_factory.mktemp("t") / "trace.zst"
    write_walks(path, seed, 2)
    with tracekit.open(path) as trace:
        window, naive_window = chosen(trace, random.Random(seed))
        events = naive.rows(trace.batches())
        wanted = list(naive.inside(events, **naive_window))
    profile = tracekit.analyze(path, Traffic, jobs, window=window)
    assert profile.result["loads"] == sum(row[1] == CODE["load"] for row, _ in wanted)
    assert profile.result["entries"] == sum(row[1] == CODE["function_entry"] for row in events)
    assert profile.result["inside"] == sum(row[1] == CODE["function_entry"] and within for row, within in wanted)
    assert profile.accesses_inside == (
        sum(row[1] in (CODE["load"], CODE["store"]) for row, _ in wanted) if window else None
    )
    assert ("window" in profile.report) == bool(window)
    # The numbers of contexts are those of a whole run: two parts of it add up.
    if not window:
        with tracekit.open(path) as trace:
            half = trace.reader.done["totals"]["accesses"] // 2
        parts = [tracekit.analyze(path, Traffic, window=part).result for part in ({"to": half}, {"from": half})]
        for name in ("loads", "contexts"):
            assert sum(part[name] for part in parts) == profile.result[name]


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32), kept=st.integers(2, 5))
def test_batches_stay_as_they_are_while_later_ones_are_left_out(tmp_path_factory: Any, seed: int, kept: int) -> None:
    path = tmp_path_factory.mktemp("t") / "trace.zst"
    write_walks(path, seed, 2)
    with tracekit.open(path) as trace:
        window, _ = chosen(trace, random.Random(seed))
        restricted = Restriction(window, trace.reader, trace.program)
        replay = Replay(trace.reader, trace.program, 8, kept=kept)
        held: deque[tuple[Any, bytes]] = deque(maxlen=kept - 1)
        for batch in restricted.batches(replay.batches(), CODE):
            for earlier, content in held:
                assert earlier.address.tobytes() == content
            held.append((batch, batch.address.tobytes()))


ENDING = {
    "accesses": [{}],
    "bandwidth": [{}],
    "cache": [{}, {"by": "context", "stack": True}],
    "dependence": [
        {},
        {"kinds": "raw,war,waw", "distance": True, "context": True},
        {"threads": True},
    ],
    "leap": [{"list": True, "compare": True}, {"stack": True, "by": "caller"}],
    "reuse": [{"by": "context"}],
    "tlb": [{}],
    "whomp": [{}, {"stack": True, "by": "context"}],
}
"""Modules for which the replay ends with the window -> options of theirs."""


def replayed(path: Path, module: str, options: Any, jobs: int, window: dict[str, Any]) -> tuple[Any, int, int]:
    """A module's result by small batches; records that were replayed for it, and all of them."""
    with tracekit.open(path) as trace:
        restricted = Restriction(window, trace.reader, trace.program)
        chosen = {module: make_options(class_of(module).Options, options)}
        replay, runners = prepare(trace.reader, trace.program, chosen, jobs, restricted)
        replay.columns = replay.selection.room(8)
        replay_through(replay, runners, restricted, jobs)
        assert replay.records is not None
        return runners[module].result(), replay.position(), replay.records


@pytest.mark.parametrize(("module", "number"), [(name, at) for name in ENDING for at in range(len(ENDING[name]))])
def test_what_lies_behind_a_window_changes_nothing_where_the_replay_ends_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: str, number: int
) -> None:
    options = ENDING[module][number]
    shorter = 0
    for seed in range(6):
        path = tmp_path / f"{seed}.zst"
        rng = random.Random(seed)
        write_random(path, rng, 2, False, events=20)
        with tracekit.open(path) as trace:
            total = trace_totals(trace.reader, trace.program)["accesses"]
        window = {"to": rng.randint(0, total)} | ({"from": rng.randint(0, total // 2)} if seed % 2 else {})
        found, records, everything = replayed(path, module, options, 1 + seed % 3, window)
        shorter += records < everything
        with monkeypatch.context() as patch:
            patch.setattr(passes, "ends_with_window", lambda runner: False)
            whole, records, _ = replayed(path, module, options, 1, window)
        assert (found, records) == (whole, everything)
    assert shorter


def test_a_module_that_counts_what_lies_behind_the_window_is_given_it(tmp_path: Path) -> None:
    write_walks(tmp_path / "t.zst", 1, 2)
    for module in ("camp", "object_lifetime"):
        _, records, everything = replayed(tmp_path / "t.zst", module, {}, 1, {"to": 5})
        assert records == everything


def test_threads_find_the_same_in_a_window_as_one() -> None:
    path = Path(tracekit.__file__).resolve().parents[1] / "fixtures/traces/v1.zst"
    for window in ({"thread": 0}, {"to": "50%"}):
        alone = tracekit.analyze(path, "camp", 1, window=window).report
        assert all(tracekit.analyze(path, "camp", 2, window=window).report == alone for _ in range(20))


def test_what_a_window_says_of_itself() -> None:
    given = {"function": "f", "loop": "src/a.c:7", "thread": "3", "from": "5", "to": "12.5%"}
    window = Window.of(given)
    assert window is not None
    assert window.as_json() == {"function": "f", "loop": "src/a.c:7", "thread": 3, "from": 5, "to": "12.5%"}
    assert Window.of({"thread": 0}) == Window(thread=0)
    assert Window.of(dict.fromkeys(given)) is None


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"from": "-1"}, "--from takes a number of accesses or a percentage of them, as 25%, not '-1'"),
        ({"to": "101%"}, "--to takes"),
        ({"to": "%"}, "--to takes"),
        ({"to": "1.5"}, "--to takes"),
        ({"to": "²"}, "--to takes"),
        ({"to": "9" * 19}, "--to takes"),
        ({"to": ".%"}, "--to takes"),
        ({"loop": "7"}, "--loop takes a FILE:LINE, not '7'"),
        ({"thread": "main"}, "--thread takes the number"),
        ({"files": "x"}, "a window has the parts function, loop, thread, from, to, not 'files'"),
    ],
)
def test_a_window_that_makes_no_sense_is_a_sentence(given: dict[str, str], message: str) -> None:
    with pytest.raises(TracekitError, match=message):
        Window.of(given)


def test_positions() -> None:
    total: Callable[[], int] = lambda: 1000  # noqa: E731
    assert Position.of("to", "12.5%").accesses(total) == 125
    assert Position.of("to", 7).accesses(total) == 7
    assert Position.of("to", "100%").accesses(total) > 1000  # behind what no total counts
    assert Position.of("to", "100").accesses(total) == 100


def test_a_stream_that_there_is_not_is_told_the_streams(tmp_path: Path) -> None:
    write_walks(tmp_path / "trace.zst", 1, 2)
    wanted = r"no stream 7; its streams are: 0, 1\."
    with tracekit.open(tmp_path / "trace.zst") as trace, pytest.raises(TracekitError, match=wanted):
        list(trace.batches(window={"thread": 7}))


def test_the_totals_of_a_trace_that_is_cut_off_are_counted(tmp_path: Path) -> None:
    write_walks(tmp_path / "whole.zst", 3, 1)
    write_walks(tmp_path / "cut.zst", 3, 1, done=False)
    found = []
    for name in ("whole.zst", "cut.zst"):
        with tracekit.open(tmp_path / name) as trace:
            found.append(trace_totals(trace.reader, trace.program)["accesses"])
    assert found[0] == found[1] > 0


def test_wide_values_follow_their_events(tmp_path: Path) -> None:
    compared = 0
    for seed in range(12):
        write_walks(tmp_path / f"{seed}.zst", seed, 1)
        with tracekit.open(tmp_path / f"{seed}.zst") as trace:
            if not trace.program.valued.any():
                continue
            columns = ("subject", "address", "size", "value")
            whole = [
                (row, value)
                for batch in trace.batches(columns=columns)
                for row, value in zip(naive.rows([batch]), batch.values())
            ]
            first = len(whole) // 3
            wanted = naive.inside([row for row, _ in whole], first=first)
            values = iter(whole)
            expected = [(row, next(value for other, value in values if other is row)) for row, _ in wanted]
            found = [
                (row, value)
                for batch in trace.batches(columns=columns, window={"from": first})
                for row, value in zip(naive.rows([batch]), batch.values())
            ]
            assert found == expected
            compared += sum(value >= 1 << 64 for _, value in found)
    assert compared > 0
