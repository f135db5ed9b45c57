"""``dependence --carried-by``, the shorter way, against the reference; the counting pass; the preset perspective."""

from __future__ import annotations

from collections import Counter, defaultdict
from itertools import groupby
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tracekit
from tests.naive.dependence import RAW
from tests.naive.dependence_ladder import NaiveLadder
from tests.naive.dependence_machine import Machine, RandomProgram, interleaved
from tests.programs.running import FIXTURES, compile_program, record, run
from tracekit.analyzers.dependence import Dependence, Options
from tracekit.analyzers.perspective import PerspectiveOptions
from tracekit.api import analyze_all
from tracekit.containers import maps
from tracekit.dependence.hottest import Hottest
from tracekit.formats.errors import TracekitError
from tracekit.formats.events import CODE
from tracekit.modules.callback_runner import CallbackRunner
from tracekit.modules.options import NoOptions, make_options
from tracekit.program.program import Program


@settings(deadline=None, max_examples=80)
@given(seed=st.integers(0, 2**32), streams=st.integers(1, 3), workers=st.integers(1, 3))
def test_what_some_loops_carry_is_its_reference(seed: int, streams: int, workers: int) -> None:
    random = Random(seed)
    made = RandomProgram(random)
    events = interleaved(random, [Machine(made, random, stream, 300).run() for stream in range(streams)])
    loops = {row for row in range(len(made.program.loops)) if random.random() < 0.5}
    module = Dependence(made.program, Options(carried_by="somewhere.c:1"))
    with patch("tracekit.dependence.carried.one_place"):  # which loops is said below
        runner = CallbackRunner(module, "dependence", workers)
    for worker in runner._workers:
        worker.state.loops[:] = [row in loops for row in range(len(worker.state.loops))]
    wanted = np.array([CODE[name] for name in runner.columns])
    for stream, rows in groupby(events, key=lambda event: event[0]):
        kind, subject, address, size = (
            np.array(column, dtype) for column, dtype in zip(list(zip(*rows))[1:], ("u1", "u4", "u8", "u8"))
        )
        kept = np.isin(kind, wanted)
        batch = SimpleNamespace(
            stream=stream, kind=kind[kept], subject=subject[kept], address=address[kept], size=size[kept]
        )
        for worker in range(workers):
            runner.feed(batch, worker)
    found = maps.rows(module.reduce([worker.state for worker in runner._workers]).pairs)["key"].tolist()
    none = len(made.program.ops)
    naive = NaiveLadder(made.program, context=False)
    naive.feed(events)
    expected = {
        (source, destination)
        for (kind, source, _, destination, _), known in naive.dependences.items()
        if kind == RAW and any(flags[1] and node[-1][1] in loops for node, (flags, _) in known.levels.items())
    }
    assert {(int(key >> 32) - 1, int(key & 0xFFFF_FFFF)) for key in found} == {
        tuple(none if end == 0xFFFF_FFFF else end for end in pair) for pair in expected
    }


@settings(deadline=None, max_examples=80)
@given(seed=st.integers(0, 2**32), streams=st.integers(1, 3))
def test_the_counting_pass_counts_what_is_accessed_while_a_loop_of_a_place_is_open(seed: int, streams: int) -> None:
    random = Random(seed)
    made = RandomProgram(random)

    def place(loop: int) -> tuple[str, int]:
        return "loops.c", loop % 5

    events = interleaved(random, [Machine(made, random, stream, 300).run() for stream in range(streams)])
    module = Hottest(made.program, NoOptions())
    module.places = [place(loop) for loop in range(5)]
    module.place_of = np.arange(len(made.program.loops)) % 5
    runner = CallbackRunner(module, "hottest", 1)
    wanted = np.array([CODE[name] for name in runner.columns])
    for stream, rows in groupby(events, key=lambda event: event[0]):
        kind, subject, _, size = (
            np.array(column, dtype) for column, dtype in zip(list(zip(*rows))[1:], ("u1", "u4", "u8", "u8"))
        )
        kept = np.isin(kind, wanted)
        runner.feed(SimpleNamespace(stream=stream, kind=kind[kept], subject=subject[kept], size=size[kept]), 0)
    open_loops = defaultdict[int, list[int]](list)
    expected = Counter[tuple[str, int]]()
    for stream, code, subject, _, _ in events:
        if code == CODE["loop_invocation"]:
            open_loops[stream].append(subject)
        elif code == CODE["loop_exit"]:
            assert open_loops[stream].pop() == subject
        elif code in (CODE["load"], CODE["store"]):
            expected.update({place(loop) for loop in open_loops[stream]})
    found, iterated = module.by_place(runner.finished())
    assert +found == expected
    naive = NaiveLadder(made.program, context=False)
    naive.feed(events)
    naive.finish()
    again = {place(path[-1][1]) for path, node in naive.nodes.items() if path and max(node.iterations, default=0) > 1}
    assert iterated == again


# -- on a program ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def traces(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("perspective")
    source = FIXTURES / "lifetimes.c"
    flags = {"full": ["--values=loads", "--pointers"], "values": ["--values=loads"], "plain": []}
    return {
        name: record(compile_program([source], folder / name, ["-O1", *given], instrumented=True)).trace
        for name, given in flags.items()
    }


def test_perspective_and_dependence_choose_the_same_loop(traces: dict[str, Path]) -> None:
    profiles = analyze_all(traces["full"], {"perspective": PerspectiveOptions()}, 1)
    assert [profile.report["module"] for profile in profiles] == [
        "value_pattern",
        "object_lifetime",
        "points_to",
        "dependence",
    ]
    loop = profiles[3].report["options"]["carried_by"]
    assert loop != "hottest"
    alone = tracekit.analyze(traces["full"], "dependence", 1, carried_by="hottest")
    assert profiles[3].report == alone.report
    assert alone.result["dependences"]
    for options in ({"counts": True}, {"context": True}, {"distance": True, "kinds": "raw,war,waw"}):
        assert (
            tracekit.analyze(traces["full"], "dependence", 1, carried_by="hottest", **options).report["options"][
                "carried_by"
            ]
            == loop
        )


def test_perspective_knows_that_pointers_were_asked_for_and_none_made(tmp_path: Path) -> None:
    source = tmp_path / "none.c"
    source.write_text("int data[9]; int main(void) { for (int i = 0; i < 9; i++) data[i] = i; return data[3] - 3; }")

    def points_to(*options: str) -> tuple[Program, list[Any]]:
        app = compile_program([source], tmp_path / "app", ["-O0", *options], instrumented=True)
        trace = record(app).trace
        return tracekit.open(trace).program, tracekit.analyze(trace, "points_to", 1).result["pointers"]

    program, pointers = points_to("--pointers", "--values=stores")
    assert program.requested == {"pointers=1", "values=stores"}
    assert pointers == []
    with pytest.raises(TracekitError, match="build the program again with tracekit cc --pointers"):
        points_to()


NESTED = """
static int a[64], b[4096];
int main(void)
{
    for (int t = 0; t < 3; t++) for (int i = 1; i < 64; i++) a[i] += a[i - 1]; // nested: 3 * 63 * 3 accesses
    for (int i = 1; i < 300; i++)
        b[i] += b[i - 1]; // 299 * 3: more than that, less than twice that
    return a[63] + b[299];
}
"""


@pytest.mark.parametrize("options", [{}, {"context": True}, {"counts": True}])
def test_loops_on_one_line_count_each_access_once(tmp_path: Path, options: dict[str, bool]) -> None:
    source = tmp_path / "nested.c"
    source.write_text(NESTED)
    trace = record(compile_program([source], tmp_path / "nested", ["-O0"], instrumented=True)).trace
    found = tracekit.analyze(trace, "dependence", 1, carried_by="hottest", **options)
    assert found.report["options"]["carried_by"].endswith("nested.c:6")


def test_the_hottest_loop_of_a_window_that_is_a_loop_is_that_one(traces: dict[str, Path]) -> None:
    window = {"loop": "lifetimes.c:28"}
    profiles = analyze_all(traces["full"], {"perspective": PerspectiveOptions()}, 1, window=window)
    assert profiles[3].report["options"]["carried_by"] == "lifetimes.c:28"
    ladder = tracekit.analyze(traces["full"], "dependence", 1, window=window, carried_by="hottest").result
    assert profiles[3].result == ladder


def test_each_module_says_what_it_says_alone_with_any_number_of_threads(traces: dict[str, Path]) -> None:
    together = {
        profile.report["module"]: profile
        for profile in analyze_all(traces["full"], {"perspective": PerspectiveOptions()}, 3)
    }
    for name, profile in together.items():
        options = profile.report["options"]
        assert tracekit.analyze(traces["full"], name, 1, **options).to_json() == profile.to_json()


def test_a_module_that_is_also_asked_for_by_itself_has_its_own_options(traces: dict[str, Path]) -> None:
    from tracekit.analyzers.points_to import PointsToOptions

    chosen = {"points_to": make_options(PointsToOptions, {"most": 3}), "perspective": PerspectiveOptions()}
    profiles = analyze_all(traces["full"], chosen, 1)
    assert [profile.report["options"].get("most") for profile in profiles] == [3, None, None, None]


def test_what_a_trace_lacks_is_said_at_once(traces: dict[str, Path]) -> None:
    with pytest.raises(TracekitError, match="tracekit cc --values"):
        analyze_all(traces["plain"], {"perspective": PerspectiveOptions()}, 1)
    with pytest.raises(TracekitError, match="tracekit cc --pointers"):
        analyze_all(traces["values"], {"perspective": PerspectiveOptions()}, 1)
    with pytest.raises(TracekitError, match="stands for several modules"):
        tracekit.analyze(traces["full"], "perspective", 1)


def test_the_command_prints_four_reports(traces: dict[str, Path]) -> None:
    import sys

    done: Any = run([sys.executable, "-m", "tracekit", "analyze", "-m", "perspective", traces["full"]])
    assert done.status == 0, done.stderr
    for title in (b"value_pattern, trace", b"lifetimes", b"pointers", b"dependence, trace"):
        assert title in done.stdout
