"""Intercepted calls: what a program printed of its arguments and results itself is what `tracekit calls` tells."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import tracekit
from tests.programs.running import tracekit as run_tracekit
from tests.recorder.recording import build, record
from tracekit.formats import prototypes
from tracekit.formats.errors import TracekitError

MAIN = "int main(int argc, char **argv) { return argc; }"

PROGRAM = r"""
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

__attribute__((noinline)) static double scale(double by, float half, _Bool up, unsigned char byte, short low)
{
    return (up ? by : -by) * half + byte + low;
}

__attribute__((noinline)) static void fill(int *to, unsigned count, long *total)
{
    for (unsigned i = 0; i < count; i++) { to[i] = (int)(7 * i) - 3; *total += to[i]; }
}

__attribute__((noinline)) static unsigned long depth(unsigned long n) { return n ? 1 + depth(n - 1) : 0; }

__attribute__((noinline)) static int name(const char *text) { return text ? (int)sizeof text : -1; }

static void *thread(void *n) { depth((unsigned long)n); return NULL; }

int main(void)
{
    int to[5];
    long total = 100;
    char read_into[64];
    scale(2.5, 0.5f, 1, 200, -7);
    scale(-1, 0.25f, 0, 0, 32767);
    fill(to, 5, &total);
    depth(2);
    name("a text");
    name(NULL);
    name((const char *)16);
    int pipes[2];
    if (pipe(pipes) || write(pipes[1], "four", 4) != 4) return 9;
    if (read(pipes[0], read_into, sizeof read_into) != 4) return 9;
    if (read(-1, read_into, sizeof read_into) != -1 || errno != EBADF) return 9;
    pthread_t one;
    pthread_create(&one, NULL, thread, (void *)1);
    pthread_join(one, NULL);
    if (getenv("HOME") == NULL) return 9;
    return 0;
}
"""

OPTIONS = (
    *("--intercept", "scale"),
    *("--intercept", "fill(to: out i32[count], count: u32, total: inout i64)"),
    *("--intercept", "read(fd: i32, to: out bytes[return], size: u64) -> i64"),
    *("--intercept", "getenv(name: string) -> string"),
)


def calls(trace: Path) -> list[dict[str, Any]]:
    lines = run_tracekit("calls", "--format", "jsonl", trace).splitlines()
    return [json.loads(line) for line in lines]


def called(trace: Path, function: str) -> list[dict[str, Any]]:
    return [call for call in calls(trace) if call["function"] == function]


def test_the_arguments_of_main(tmp_path: Path) -> None:
    app = build(tmp_path, MAIN, "--intercept=main")
    run = record(tmp_path, app, "one", "", "drei äöü")
    assert run.returncode == 4
    assert calls(tmp_path / "trace.zst") == [
        {
            "call": 0,
            "thread": 0,
            "function": "main",
            "depth": 0,
            "arguments": {"argc": 4, "argv": [str(app), "one", "", "drei äöü"]},
            "outputs": {},
            "result": 4,
            "returned": True,
        }
    ]


@pytest.fixture(scope="module", params=["dynamic", "static"])
def recorded(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, bool]:
    folder = tmp_path_factory.mktemp("intercepted")
    static = request.param == "static"
    app = build(folder, PROGRAM, "-pthread", "--intercept=scale,fill", "--intercept=depth,name", *["-static"] * static)
    run = record(folder, app, options=() if static else OPTIONS, environment={"HOME": "/somewhere"})
    assert run.returncode == 0, run.stderr
    run_tracekit("check", folder / "trace.zst")
    return folder / "trace.zst", static


def test_scalars_have_the_types_of_the_debug_information(recorded: tuple[Path, bool]) -> None:
    first, second = called(recorded[0], "scale")
    assert first["arguments"] == {"by": 2.5, "half": 0.5, "up": True, "byte": 200, "low": -7}
    assert second["arguments"] == {"by": -1.0, "half": 0.25, "up": False, "byte": 0, "low": 32767}
    assert [first["result"], second["result"]] == [2.5 * 0.5 + 200 - 7, 0.25 + 32767]


def test_arrays_and_outputs_have_the_types_of_the_option(recorded: tuple[Path, bool]) -> None:
    trace, static = recorded
    [call] = called(trace, "fill")
    values = [7 * i - 3 for i in range(5)]
    if static:  # there is no shim: the debug information's types
        assert set(call["arguments"]) == {"to", "count", "total"} and call["outputs"] == {}
    else:
        assert call["arguments"]["count"] == 5 and call["arguments"]["total"] == 100
        assert call["outputs"] == {"to": values, "total": 100 + sum(values)} and call["result"] is None


def test_recursion_and_threads(recorded: tuple[Path, bool]) -> None:
    found = [
        (
            call["thread"],
            call["depth"] - called(recorded[0], "depth")[0]["depth"],
            call["arguments"]["n"],
            call["result"],
        )
        for call in called(recorded[0], "depth")
    ]
    assert [row for row in found if row[0] == 0] == [(0, 0, 2, 2), (0, 1, 1, 1), (0, 2, 0, 0)]
    assert [row for row in found if row[0] == 1] == [(1, 0, 1, 1), (1, 1, 0, 0)]


def test_pointers_that_lead_nowhere(recorded: tuple[Path, bool]) -> None:
    texts = [call["arguments"]["text"] for call in called(recorded[0], "name")]
    assert texts == ["a text", None, ""]


def test_library_functions(recorded: tuple[Path, bool]) -> None:
    trace, static = recorded
    if static:
        assert not called(trace, "read")
        return
    first, second = called(trace, "read")
    assert first["outputs"] == {"to": b"four".hex()} and first["result"] == 4 and first["arguments"]["size"] == 64
    assert second["result"] == -1 and second["arguments"]["fd"] == -1
    assert [call["result"] for call in called(trace, "getenv") if call["arguments"]["name"] == "HOME"] == ["/somewhere"]


def test_columns(recorded: tuple[Path, bool]) -> None:
    columns = tracekit.calls(recorded[0])
    assert columns["scale"]["by"].tolist() == [2.5, -1.0] and columns["scale"]["by"].dtype == float
    assert columns["depth"]["return"].tolist() == columns["depth"]["n"].tolist()
    assert columns["name"]["text"].tolist() == ["a text", None, ""]


def test_lines(recorded: tuple[Path, bool]) -> None:
    text = run_tracekit("calls", "--function", "scale", "--limit", "1", recorded[0])
    assert text == "  0  scale(by=2.5, half=0.5, up=true, byte=200, low=-7) = 194.25\n"


def test_an_exception_leaves_calls_without_a_result(tmp_path: Path) -> None:
    source = """
    __attribute__((noinline)) int inner(int n) { if (n > 1) throw n; return n; }
    __attribute__((noinline)) int outer(int n) { try { return inner(n) + inner(n + 1); } catch (int) { return -5; } }
    int main() { return outer(1) + 5; }
    """
    build(tmp_path, source, "--intercept=inner,outer", "--intercept=main", cxx=True)
    record(tmp_path, "./app")
    found = [(call["function"], call["returned"], call["result"]) for call in calls(tmp_path / "trace.zst")]
    assert found == [("main", True, 0), ("outer", True, -5), ("inner", True, 1), ("inner", False, None)]


def test_what_cannot_be_intercepted(tmp_path: Path) -> None:
    build(tmp_path, MAIN)
    run = record(tmp_path, "./app", options=("--intercept", "foo"))
    assert run.returncode == 125 and "build it with `tracekit cc --intercept=foo`" in run.stderr
    run = record(tmp_path, "./app", options=("--intercept", "foo(a: int) -> i32"))
    assert run.returncode == 125 and "int is no type" in run.stderr


@pytest.mark.parametrize(
    "text",
    ["f", "f(", "f(a)", "f(a: )", "f(a: i33)", "f(a: bytes)", "f(a: i32[b])", "f(a: i32, a: i32)", "f() -> x", ": i32"],
)
def test_what_is_no_prototype(text: str) -> None:
    with pytest.raises(TracekitError):
        prototypes.parse(text)


@pytest.mark.parametrize(
    "text", ["f()", "f(a: i32) -> f64", "ns::f(a: out u8[9], b: inout string, c: string[d], d: u16) -> bytes[d]"]
)
def test_prototypes_are_written_as_they_are_read(text: str) -> None:
    assert prototypes.parse(text).text == text
