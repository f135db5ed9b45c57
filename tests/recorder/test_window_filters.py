"""Filters: what is recorded of a run by function, file, library and thread is that part of a whole recording."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from tests.naive.reader import read as naive_read
from tests.programs.running import replayed, run_here
from tests.recorder.recording import build, record
from tests.recorder.test_windows import good, info
from tracekit.formats.errors import TracekitError
from tracekit.formats.events import BY_CODE
from tracekit.recorder.window_filters import Filter, Of, of_table, parse, together

PROGRAM = r"""
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
long a[64], b[64], c[64];
static jmp_buf back;
__attribute__((noinline)) void leaf(long n) { for (long i = 0; i < n; i++) a[i & 63] += i; }
__attribute__((noinline)) void logger(int n, ...)
{
    va_list list;
    va_start(list, n);
    for (int i = 0; i < n; i++) { b[i & 63] += va_arg(list, int); leaf(2); }
    va_end(list);
}
__attribute__((noinline)) void jumper(int n) { leaf(1); if (n > 2) longjmp(back, 1); b[n] = n; }
__attribute__((noinline)) void middle(long n)
{
    for (long i = 0; i < n; i++) { c[i & 63]++; leaf(3); }
    logger(2, 1, 2);
}
__attribute__((noinline)) void catcher(int n) { if (setjmp(back) == 0) jumper(n); else leaf(2); c[n]++; }
static void *work(void *x) { for (int i = 0; i < 5; i++) middle(4); return x; }
int main(void)
{
    pthread_t thread;
    pthread_create(&thread, 0, work, 0);
    pthread_join(thread, 0);
    for (int i = 0; i < 6; i++) { middle(i); catcher(i); }
    printf("%ld %ld %ld\n", a[1], b[1], c[1]);
}
"""

FUNCTIONS = {"leaf", "logger", "jumper", "middle", "catcher", "work", "main"}


def by_function(trace: Path) -> tuple[Counter[tuple[int, str]], Counter[tuple[int, str, str]]]:
    """Of each stream and function its entries, and its loads and stores."""
    found = naive_read(trace.read_bytes())
    names = [
        found.text(found.unit_of["functions"][at], row["name"]) for at, row in enumerate(found.tables["functions"])
    ]
    entries: Counter[tuple[int, str]] = Counter()
    accesses: Counter[tuple[int, str, str]] = Counter()
    frames: dict[int, list[str]] = {}
    for stream, kind, subject, *_ in replayed(trace).events:
        name, open_frames = BY_CODE[kind].name, frames.setdefault(stream, [])
        if name == "function_entry":
            open_frames.append(names[subject])
            entries[stream, names[subject]] += 1
        elif name == "function_exit":
            open_frames.pop()
        elif name in ("load", "store") and open_frames:
            accesses[stream, open_frames[-1], name] += 1
    return entries, accesses


@pytest.fixture(scope="module", params=["-O0", "-O2"])
def app(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """At -O0 functions have no clean bodies."""
    folder = tmp_path_factory.mktemp("filters")
    made = build(folder, PROGRAM, request.param, "-g", "-pthread", "--windows")
    assert record(folder, made, options=("-o", "whole.zst")).returncode == 0
    return made


@pytest.mark.parametrize(
    ("options", "functions", "streams"),
    [
        (("--only", "functions=leaf"), {"leaf"}, {0, 1}),
        (("--without", "functions=leaf"), FUNCTIONS - {"leaf"}, {0, 1}),
        (("--without", "functions=logger,jumper"), FUNCTIONS - {"logger", "jumper"}, {0, 1}),
        (("--only", "functions=main,l*", "--without", "functions=leaf"), {"main", "logger"}, {0, 1}),
        (("--without", "functions=catcher,middle"), FUNCTIONS - {"catcher", "middle"}, {0, 1}),
        (("--only", "threads=1"), FUNCTIONS, {1}),
        (("--without", "threads=1 functions=middle"), FUNCTIONS - {"middle"}, {0}),
        (("--only", "files=app.c libraries=app"), FUNCTIONS, {0, 1}),
        (("--only", "files=other.c"), set(), set()),
    ],
)
def test_what_is_left_is_that_part_of_the_whole(
    tmp_path: Path, app: Path, options: tuple[str, ...], functions: set[str], streams: set[int]
) -> None:
    trace = tmp_path / "part.zst"
    run = record(tmp_path, app, options=(*options, "-o", str(trace)))
    assert run.returncode == 0, run.stderr
    good(trace)
    entries, accesses = by_function(app.parent / "whole.zst")
    found_entries, found_accesses = by_function(trace)
    assert found_entries == {key: n for key, n in entries.items() if key[0] in streams and key[1] in functions}
    assert found_accesses == {key: n for key, n in accesses.items() if key[0] in streams and key[1] in functions}


def test_profiles_and_info_say_what_was_left_out(tmp_path: Path, app: Path) -> None:
    file = tmp_path / "w.toml"
    file.write_text('[without]\nfunctions = ["leaf"]\nthreads = [1]\n[[window]]\non = "call:middle#7"\n')
    assert record(tmp_path, app, options=("--windows", str(file), "-o", "t.zst")).returncode == 0
    good(tmp_path / "t.zst")
    assert set(by_function(tmp_path / "t.zst")[0]) == {(0, "main"), (0, "middle"), (0, "logger")}
    expected = ["without functions=leaf", "without threads=1"]
    assert info(tmp_path / "t.zst")["metadata"]["filters"] == expected  # type: ignore[index]
    made = run_here("analyze", "-m", "accesses", "--json", tmp_path / "t.zst")
    assert json.loads(made.stdout)["filters"] == expected
    shown = run_here("analyze", "-m", "accesses", tmp_path / "t.zst").stdout.decode()
    assert shown.startswith(
        "Recorded in part: without functions=leaf, without threads=1; what was left out is not seen"
    )


def test_what_texts_and_tables_mean() -> None:
    assert parse("functions=f,g* threads=0", False) == [
        Filter(Of.FUNCTION, "f"),
        Filter(Of.FUNCTION, "g*"),
        Filter(Of.THREAD, number=0),
    ]
    assert parse("files=src/", True) == [Filter(Of.FILE, "src/*", excludes=True)]
    assert of_table({"libraries": ["libz*"], "threads": [2]}, False, "x") == [
        Filter(Of.LIBRARY, "libz*"),
        Filter(Of.THREAD, number=2),
    ]
    for text in ("", "functions", "functions=", "functions=f,,g", "threads=x", "threads=-1", "loads=1", "f"):
        with pytest.raises(TracekitError) as caught:
            parse(text, False)
        assert "\n" not in str(caught.value)
    tables: list[object] = [[], {"functions": "f"}, {"functions": [[]]}, {"at": ["f"]}]
    for table in tables:
        with pytest.raises(TracekitError):
            of_table(table, False, "w.toml, only")
    with pytest.raises(TracekitError, match="65 names"):
        together([Filter(Of.FUNCTION, "f")] * 65)
