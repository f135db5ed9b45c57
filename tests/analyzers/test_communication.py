"""The module ``communication`` against the naive one, on random events of a few threads and on a program."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

import tracekit
from tests.analyzers.test_access_modules import batches, program
from tests.naive import communication as naive
from tests.programs.running import FIXTURES, compile_program, record, run_here
from tracekit.analyzers.communication import Communication
from tracekit.communication.kernel import State
from tracekit.communication.rows import joined
from tracekit.containers.hash_table import used_rows
from tracekit.module import NoOptions
from tracekit.modules.callback_runner import CallbackRunner
from tracekit.modules.scheduler import run
from tracekit.render.communication import svg

Recorder = Callable[..., Any]
MEMORY = 0x1000


class Raw(Communication):
    """Gives the sums by numbers."""

    def result(self, state: State) -> dict[str, Any]:
        def sums(table: Any) -> dict[tuple[int, int], list[int]]:
            return {
                (int(row["key"]) >> 32, int(row["key"]) & 0xFFFF_FFFF): [int(row["loads"]), int(row["bytes"])]
                for row in used_rows(table)[1:]
            }

        return {"streams": sums(state.streams), "pairs": sums(state.pairs)}


def events(rng: random.Random, count: int) -> list[naive.Event]:
    """Loads, stores and new memory of three threads, in a few words."""
    made = []
    for _ in range(count):
        name = rng.choice(("load", "load", "store", "store", rng.choice(naive.NEW)))
        size = rng.choice((1, 2, 4, 8, 8, 16, 24, 40))
        made.append((rng.randrange(3), name, rng.randrange(9), MEMORY + rng.randrange(64), size))
    return made


@settings(max_examples=150, deadline=None)
@given(seed=st.integers(0, 2**32), count=st.integers(1, 200))
def test_who_loads_what_another_has_stored(seed: int, count: int) -> None:
    given_events = events(random.Random(seed), count)
    runner = CallbackRunner(Raw(program(10), NoOptions()), "communication", 1)
    run(batches([(*event, 0) for event in given_events], 17), [runner], 1)
    found, _ = runner.result()
    streams, pairs = naive.communication(given_events)
    assert found["pairs"] == pairs
    assert found["streams"] == {
        (0 if writer is None else writer + 1, reader + 1): sums for (writer, reader), sums in streams.items()
    }


def test_a_program(tmp_path: Path) -> None:
    app = compile_program([FIXTURES / "fork_join.c"], tmp_path / "app", ["-O1", "-g", "-pthread"], instrumented=True)
    trace = record(app, ["5"]).trace
    profile = tracekit.analyze(trace, "communication")
    result = profile.result
    assert {row["role"] for row in result["threads"]} == {"main", "spawned"}
    assert [row["thread"] for row in result["threads"]] == list(range(8))  # fib(5) has seven spawns
    # What a thread is called with is stored by who creates it and loaded by it, the result the other way round.
    known = {(row["source"], row["destination"]): row["bytes"] for row in result["roles"]}
    assert known["main", "spawned"] == known["spawned", "main"] > 0
    assert known["spawned", "spawned"] > 0 and ("main", "main") not in known
    summary = result["summary"]
    assert summary["bytes_loaded"] == sum(summary[f"bytes_{kind}"] for kind in ("own", "between", "of_no_store"))
    for table in ("roles", "by_thread", "dependences"):
        assert sum(row["bytes"] for row in result[table]) == summary["bytes_between"]
    twice = joined([result, result])
    assert [row["bytes"] for row in twice["by_thread"]] == [2 * row["bytes"] for row in result["by_thread"]]
    assert joined([result]) == result
    assert svg(result).count("<rect") == 5 and "main to spawned: " in svg(result)
    profile.save(tmp_path / "saved")
    graph = run_here("export", "dot", tmp_path / "saved").stdout.decode()
    assert graph.count(" -> ") == len(result["dependences"])
    shown = run_here("analyze", "-m", "communication", trace).stdout.decode()
    assert "bytes stored by (rows) and loaded by (columns)" in shown
    assert json.loads(run_here("merge", tmp_path / "saved", "--json").stdout)["result"] == result
