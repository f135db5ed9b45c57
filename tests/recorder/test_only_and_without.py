"""Filters: what is recorded of a run by function, file, library and thread is that part of a whole recording."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from tests.naive.reader import read as naive_read
from tests.programs.running import replayed, run_here
from tests.recorder.recording import record
from tests.recorder.window_programs import filtered
from tests.recorder.window_traces import good, info
from tracekit.formats.errors import TracekitError
from tracekit.formats.events import BY_CODE
from tracekit.recorder.window_filters import Filter, Of, of_table, parse, together

FUNCTIONS = {"leaf", "logger", "jumper", "middle", "catcher", "work", "begin", "main"}


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
    return filtered(tmp_path_factory.mktemp("filters"), request.param)


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
