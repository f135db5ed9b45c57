"""The module ``taskgraph`` on programs: the talk's fib(2), totals of traces, exports, merging."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

import tracekit
from tests.naive.taskgraph import footprints_of
from tests.programs.running import Recording, compile_program, record, run_here
from tracekit.formats.events import EVENTS
from tracekit.formats.reader import TraceReader
from tracekit.program.program import Program
from tracekit.render.taskgraph import between_tasks, svg
from tracekit.replay.engine import batches
from tracekit.replay.totals import trace_totals
from tracekit.taskgraph.collector import ordering_events
from tracekit.taskgraph.profile import joined

Recorder = Callable[..., Recording]
Forked = Callable[[str], Path]
NAMES = {event.code: event.name for event in EVENTS}
NAMESPACE = {"g": "http://graphml.graphdrawing.org/xmlns"}


@pytest.fixture
def forked(build: Callable[..., Path], tmp_path: Path) -> Forked:
    """A trace of fork_join.c with this argument."""

    def made(n: str) -> Path:
        return record(build("fork_join.c", 1), [n]).trace.rename(tmp_path / f"{n}.zst")

    return made


def graph_of(trace: Path, **options: Any) -> tracekit.Profile:
    """The profile of a trace."""
    return tracekit.analyze(trace, "taskgraph", **options)


def fibonacci_nodes(n: int) -> Counter[str]:
    """Nodes of the graph of fib(n): a task, and if it spawns: two calls, the spawn, the sync and the task after it."""
    if n < 2:
        return Counter(task=0)
    own = Counter(task=2, create=1, join=1)  # what runs on behind the spawn, which has the second call in it; the rest
    spawned = Counter(task=1)
    return own + spawned + fibonacci_nodes(n - 1) + fibonacci_nodes(n - 2)


def test_the_talks_fibonacci_of_two(forked: Forked) -> None:
    result = graph_of(forked("2")).result
    nodes = {node["node"]: node["kind"] for node in result["graph"]["nodes"]}
    assert list(nodes.values()) == ["task", "create", "task", "task", "join", "task"]
    edges = {(edge["source"], edge["destination"]): edge["kind"] for edge in result["graph"]["edges"]}
    assert edges == {
        (1, 2): "continue",  # main, fib(2) up to the spawn
        (2, 3): "continue" if thread_of(result, 3) == 0 else "create",
        (2, 4): "create" if thread_of(result, 3) == 0 else "continue",
        (3, 5): "continue" if thread_of(result, 3) == 0 else "join",
        (4, 5): "join" if thread_of(result, 3) == 0 else "continue",
        (5, 6): "continue",
    }
    begins = {
        row["group"]["kind"]: row["group"]["begins"] for row in result["groups"] if row["group"]["kind"] != "task"
    }
    assert [text.split(":")[0] for text in begins["create"]["path"]] == ["main", "fib"]
    work = {node["node"]: node["work"] for node in result["graph"]["nodes"]}
    assert result["summary"]["work"] == sum(work.values())
    assert result["summary"]["span"] == work[1] + max(work[3], work[4]) + work[6]
    assert result["summary"]["span"] < result["summary"]["work"]


def thread_of(result: dict[str, Any], number: int) -> int:
    return next(int(node["thread"]) for node in result["graph"]["nodes"] if node["node"] == number)


@pytest.mark.parametrize("n", [1, 4, 7])
def test_fibonacci(forked: Forked, n: int) -> None:
    result = graph_of(forked(str(n))).result
    expected = fibonacci_nodes(n) + Counter(task=1)
    assert {kind: count for kind, count in result["summary"]["nodes"].items() if count} == expected
    assert result["summary"]["threads"] == 1 + expected["create"]
    assert {row["group"]["kind"] for row in result["groups"]} == set(expected)
    if n == 7:
        assert 4 < result["summary"]["work"] / result["summary"]["span"] < 6
        assert len(result["groups"]) < sum(expected.values()) / 2


@pytest.mark.parametrize("program", ["threads.c", "exceptions.cpp", "signals.c", "longjmp.c", "tail_calls.c", "fork.c"])
def test_all_work_of_a_trace_is_in_the_graph(program: str, recording: Recorder) -> None:
    path = recording(program, 1).trace
    with TraceReader(path) as trace:
        totals = trace_totals(trace, Program.from_images(trace.images()))
    for work in ("blocks", "accesses"):
        result = graph_of(path, work=work).result
        for name in ("blocks", "loads", "stores"):
            assert result["summary"][name] == totals[name]
        assert result["summary"]["work"] == totals[work]
        assert sum(row["critical_work"] for row in result["groups"]) == result["summary"]["span"]
        assert result["summary"]["broken_records"] == 0


def test_profiles_are_exported_drawn_and_merged(forked: Forked, tmp_path: Path) -> None:
    trace = forked("6")
    small, large = tmp_path / "small.profile", tmp_path / "large.profile"
    graph_of(trace).save(large)
    graph_of(trace, graph=0).save(small)
    nodes = len(json.loads(run_here("merge", large, "--json").stdout)["result"]["graph"]["nodes"])
    for profile, table, count in ((large, "graph", nodes), (large, "groups", None), (small, "groups", None)):
        dot = run_here("export", "dot", "--table", table, profile).stdout.decode()
        xml = ElementTree.fromstring(run_here("export", "graphml", "--table", table, profile).stdout)
        found = xml.findall(".//g:node", NAMESPACE)
        assert len(found) == dot.count("[shape=") == (count or len(found)) and dot.startswith("digraph tasks {")
        assert len(xml.findall(".//g:edge", NAMESPACE)) == dot.count(" -> ")
        assert all(re.fullmatch("#[0-9a-f]{6}", colour) for colour in re.findall('color="(.*?)"', dot))  # no #999
    assert b"greater --graph" in run_here("export", "dot", "--table", "graph", small).stderr
    assert run_here("export", "dot", small).stdout == run_here("export", "dot", "--table", "groups", small).stdout
    once, other = graph_of(trace).result, graph_of(forked("4"))
    other.save(small)
    both = json.loads(run_here("merge", large, small, "--json").stdout)["result"]
    assert both["summary"]["span"] == once["summary"]["span"] + other.result["summary"]["span"]
    merged = joined([once, once])
    assert merged["summary"]["work"] == 2 * once["summary"]["work"] and merged["graph"] is None
    assert [row["count"] for row in merged["groups"]] == [2 * row["count"] for row in once["groups"]]
    assert {str(row["faster"]): row["span"] for row in merged["what_if"]} == {
        str(row["faster"]): 2 * row["span"] for row in once["what_if"]
    }
    picture = ElementTree.fromstring(svg(once))
    arcs = picture.findall(".//{http://www.w3.org/2000/svg}path/{http://www.w3.org/2000/svg}title")
    assert len(arcs) == len(between_tasks(once)) > 0


FLAG = """
#include <pthread.h>
#include <stdatomic.h>
static atomic_int ready;
static int value;
static void *make(void *none) { value = 7; atomic_store_explicit(&ready, 1, memory_order_release); return none; }
int main(void) {
    pthread_t thread;
    pthread_create(&thread, 0, make, 0);
    while (!atomic_load_explicit(&ready, memory_order_acquire)) {}
    int sum = value;
    pthread_join(thread, 0);
    return sum != 7;
}
"""


@pytest.mark.parametrize("threads", [True, False])
def test_a_release_comes_before_who_acquires_it(tmp_path: Path, threads: bool) -> None:
    (tmp_path / "flag.c").write_text(FLAG)
    flags = ["-O1", "-pthread", *(["--threads"] if threads else [])]
    app = compile_program([tmp_path / "flag.c"], tmp_path / "app", flags, instrumented=True)
    summary = graph_of(record(app).trace).result["summary"]
    assert summary["edges"]["signal"] == int(threads)


def test_between_groups_of_tasks_lie_events() -> None:
    """Two tasks in turn take a lock, which one of them has made."""
    groups = [{"group": {"id": name, "kind": kind}} for name, kind in NODES.items()]
    edges = [
        {"source": source, "destination": destination, "kind": kind, "count": count}
        for source, destination, kind, count in (
            ("a", "make", "continue", 3),
            ("make", "b", "create", 3),
            ("make", "a", "continue", 2),
            ("a", "lock", "lock", 7),
            ("b", "lock", "continue", 9),
            ("lock", "lock", "lock", 4),
            ("lock", "b", "continue", 5),
        )
    ]
    assert set(between_tasks({"groups": groups, "group_edges": edges})) == {
        ("a", "b", "create", 3),
        ("a", "a", "continue", 2),
        ("a", "b", "lock", 5),
        ("b", "b", "continue", 5),
        ("b", "b", "lock", 4),
    }


NODES = {"a": "task", "b": "task", "make": "create", "lock": "sync"}


def test_what_cannot_be_asked_is_told(forked: Forked) -> None:
    trace = forked("2")
    for wrong, message in (
        (("--faster", "fub:2"), "has no function 'fub'; there is fib"),
        (("--faster", "fib"), "FUNCTION:FACTOR"),
        (("--faster", "fib:0"), "FUNCTION:FACTOR"),
        (("--work", "seconds"), "seconds"),
    ):
        outcome = run_here("analyze", "-m", "taskgraph", *wrong, trace)
        assert outcome.status != 0 and message in outcome.stderr.decode()
    row = graph_of(trace, faster="fib:2,spawned:3").result["what_if"][-1]
    assert [each["name"] for each in row["faster"]] == ["fib", "spawned"]


@pytest.mark.parametrize("program", ["threads.c", "siglongjmp.c", "fork.c", "atomics.c", "openmp.c"])
@pytest.mark.parametrize("locks", [True, False])
def test_footprints_of_nodes_are_those_of_their_events(program: str, locks: bool, recording: Recorder) -> None:
    path = recording(program, 1).trace
    result = graph_of(path, work="accesses", locks=locks, footprint=64, graph=10**6).result
    with TraceReader(path) as trace:
        events = (
            (batch.stream, NAMES[kind], address, size)
            for batch in batches(trace, Program.from_images(trace.images()))
            for kind, address, size in zip(batch.kind.tolist(), batch.address.tolist(), batch.size.tolist())
        )
        expected = footprints_of(events, ordering_events(locks), 64)
    found: dict[int, list[tuple[int, int]]] = {}
    for node in result["graph"]["nodes"]:
        if node["work"]:
            found.setdefault(node["thread"], []).append((node["work"], node["footprint"]))
    assert found.keys() == {stream for stream, steps in expected.items() if any(count for count, _ in steps)}
    for stream, nodes in found.items():
        steps = [step for step in expected[stream] if step[0]]
        assert [touched for _, touched in nodes] == [touched for _, touched in steps]
        if program != "openmp.c":  # in which the library moves blocks (realloc), which is no work
            assert nodes == steps
    for name, fold in (("footprint", sum), ("largest_footprint", max)):
        of_group = {row["group"]["id"]: row[name] for row in result["groups"]}
        of_nodes: dict[str, list[int]] = {}
        for node in result["graph"]["nodes"]:
            of_nodes.setdefault(node["group"], []).append(node["footprint"])
        assert of_group == {group: fold(values) for group, values in of_nodes.items()}


def test_footprints_are_shown_exported_and_merged(forked: Forked, tmp_path: Path) -> None:
    trace, plain, measured = forked("5"), tmp_path / "plain.profile", tmp_path / "measured.profile"
    other, again = tmp_path / "other.profile", forked("4")
    graph_of(trace).save(plain)
    results = []
    for run, profile in ((trace, measured), (again, other)):
        made = graph_of(run, footprint=4096)
        made.save(profile)
        results.append({row["group"]["id"]: row for row in made.result["groups"]})
    text = run_here("analyze", "-m", "taskgraph", "--footprint", "64", trace).stdout.decode()
    assert "bytes each" in text and "most bytes" in text
    assert "bytes each" not in run_here("analyze", "-m", "taskgraph", trace).stdout.decode()
    xml = run_here("export", "graphml", measured).stdout.decode()
    assert 'attr.name="footprint"' in xml
    assert "footprint" not in run_here("export", "graphml", plain).stdout.decode()
    for row in json.loads(run_here("merge", measured, other, "--json").stdout)["result"]["groups"]:
        both = [result[row["group"]["id"]] for result in results if row["group"]["id"] in result]
        assert row["footprint"] == sum(each["footprint"] for each in both)
        assert row["largest_footprint"] == max(each["largest_footprint"] for each in both)
    assert b"other values of footprint" in run_here("merge", plain, other).stderr
    refused = run_here("analyze", "-m", "taskgraph", "--footprint", "48", trace)
    assert refused.status == 2 and b"power of two" in refused.stderr
