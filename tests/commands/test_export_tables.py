"""Arrow and Parquet files of `tracekit export`, read by Polars, which has readers of its own for both."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import polars
import pytest

import tracekit
from tests.naive.program_builder import ProgramBuilder
from tests.naive.trace_file import write_trace, write_walks
from tests.naive.walker import Walk
from tests.programs.running import compile_program, record
from tracekit.cli import main
from tracekit.commands import export as command
from tracekit.formats.events import BY_CODE, NONE
from tracekit.formats.export import arrow
from tracekit.formats.image import BlockFlag, OpFlag, OpKind
from tracekit.imports.importing import import_trace

pytest.importorskip("pyarrow")

READ: dict[str, Any] = {"parquet": polars.read_parquet, "arrow": polars.read_ipc}


def table(form: str, trace: Path, out: Path, *options: str) -> list[dict[str, Any]]:
    """The rows of an exported table."""
    assert main(["export", form, str(trace), "-o", str(out), *options]) == 0
    rows: list[dict[str, Any]] = READ[form](out).to_dicts()
    return rows


@pytest.fixture(scope="module")
def walked(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[int, Walk]]:
    """A trace of three threads of random walks, and these."""
    path = tmp_path_factory.mktemp("tables") / "trace.zst"
    return path, write_walks(path)


@pytest.mark.parametrize("form", arrow.FORMATS)
@pytest.mark.parametrize("part", [1, 100, 1 << 20])
def test_all_events(
    form: str, part: int, walked: tuple[Path, dict[int, Walk]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arrow, "PART", part)
    path, walks = walked
    rows = table(form, path, tmp_path / "out", "--table", "events")
    for stream, walk in walks.items():
        found = [tuple(row.values())[1:5] for row in rows if row["stream"] == stream]
        assert found == [
            (name, None if subject == NONE else subject, address, size) for name, subject, address, size in walk.events
        ]
        assert len(found) > 20
    assert len(rows) > 500


@pytest.mark.parametrize("form", arrow.FORMATS)
def test_accesses_of_a_window(form: str, walked: tuple[Path, dict[int, Walk]], tmp_path: Path) -> None:
    path, walks = walked
    rows = table(form, path, tmp_path / "out", "--thread", "1")
    known = [event[:4] for event in walks[1].events if event[0] in ("load", "store")]
    assert [(row["event"], row["instruction"], row["address"], row["size"]) for row in rows] == known
    assert len(known) > 100
    assert list(rows[0])[:5] == ["stream", "event", "instruction", "address", "size"]


@pytest.mark.parametrize("form", arrow.FORMATS)
def test_values(form: str, tmp_path: Path) -> None:
    builder = ProgramBuilder()
    block = builder.block(builder.function("main"), BlockFlag.ENTRY)
    builder.op(block, OpKind.LOAD, 8, flags=OpFlag.VALUE)
    builder.op(block, OpKind.STORE, 4)
    builder.path(block)
    layout = builder.layout()
    write_trace(tmp_path / "trace.zst", layout, {0: [(layout.path_number(0), [16, 2**63 + 5, 24])]})
    rows = table(form, tmp_path / "trace.zst", tmp_path / "out")
    assert [(row["address"], row["size"], row["value"]) for row in rows] == [(16, 8, 2**63 + 5), (24, 4, 0)]


@pytest.mark.parametrize("form", arrow.FORMATS)
def test_instructions(form: str, walked: tuple[Path, dict[int, Walk]], tmp_path: Path) -> None:
    rows = table(form, walked[0], tmp_path / "out", "--table", "instructions")
    with tracekit.open(walked[0]) as trace:
        assert len(rows) == len(trace.program.ops) > 10
        for number, row in enumerate(rows):
            shown = trace.program.instruction(number)
            assert row["instruction"] == number
            assert row["program_counter"] is None
            assert {name: row[name] or 0 for name in ("line", "column")} == {
                name: shown[name] for name in ("line", "column")
            }
            assert {name: row[name] for name in ("id", "kind", "function", "file")} == {
                name: shown[name] for name in ("id", "kind", "function", "file")
            }


@pytest.mark.parametrize("form", arrow.FORMATS)
def test_instructions_of_an_imported_trace(form: str, tmp_path: Path) -> None:
    (tmp_path / "log").write_text(" L 10,8\nI  7fffffffffffffff,4\n L 20,8\nI  00401004,4\n S 20,8\n")
    import_trace("lackey", str(tmp_path / "log"), tmp_path / "trace.zst")
    rows = table(form, tmp_path / "trace.zst", tmp_path / "out", "--table", "instructions")
    assert [row["program_counter"] for row in rows] == [None, 2**63 - 1, 0x401004]
    assert [row["kind"] for row in rows] == ["load", "load", "store"]


@pytest.mark.parametrize("form", arrow.FORMATS)
@pytest.mark.parametrize("name", arrow.TABLES)
def test_a_trace_without_events(form: str, name: str, tmp_path: Path) -> None:
    (tmp_path / "log").write_text("")
    import_trace("lackey", str(tmp_path / "log"), tmp_path / "trace.zst")
    rows = table(form, tmp_path / "trace.zst", tmp_path / "out", "--table", name)
    assert [row.get("event") for row in rows] == (["function_entry"] if name == "events" else [])


OBJECTS = """
#include <pthread.h>
#include <stdlib.h>
long counter = 1;
static void *work(void *block) { *(long *)block = counter; return malloc(24); }
int main(void)
{
    pthread_t thread;
    void *result;
    long *first = malloc(100), *second = calloc(5, 8);
    first[1] = second[2];
    first = realloc(first, 5000);
    pthread_create(&thread, NULL, work, first);
    pthread_join(thread, &result);
    free(second);
    second = malloc(40);
    second[0] = first[0];
    counter += second[0];
    free(first);
    return counter == 7 && result != NULL;
}
"""


@pytest.mark.parametrize("form", arrow.FORMATS)
@pytest.mark.parametrize("part", [1, 1 << 20])
def test_objects(form: str, part: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Against the events of the same trace, one after the other."""
    monkeypatch.setattr(arrow, "PART", part)
    (tmp_path / "app.c").write_text(OBJECTS)
    compile_program([tmp_path / "app.c"], tmp_path / "app", ["-g", "-O1", "-pthread"], instrumented=True)
    trace = record(tmp_path / "app").trace
    rows = table(form, trace, tmp_path / "out", "--table", "objects")
    live: dict[int, dict[str, Any]] = {}
    ended, accesses = [], 0
    with tracekit.open(trace) as opened:
        for batch in opened.batches():
            for kind, subject, address, size in zip(batch.kind, batch.subject, batch.address, batch.size):
                name = BY_CODE[int(kind)].name
                accesses += name in ("load", "store")
                if name == "heap_alloc":
                    whose = None if subject == NONE else int(subject)
                    new = {"kind": "heap", "name": None, "instruction": whose, "stream": batch.stream}
                    live[int(address)] = {**new, "address": int(address), "size": int(size), "born": accesses}
                elif name == "heap_free":
                    ended.append({**live.pop(int(address)), "died": accesses})
    ended += [{**row, "died": None} for row in live.values()]
    heap = [row for row in rows if row["kind"] == "heap"]
    assert sorted(heap, key=str) == sorted(ended, key=str)
    assert len(heap) >= 4 and [row["died"] for row in heap if row["died"] is not None] == [
        row["died"] for row in ended if row["died"] is not None
    ]
    (counter,) = [row for row in rows if row["name"] == "counter"]
    assert (counter["kind"], counter["size"], counter["born"], counter["instruction"]) == ("global", 8, 0, None)


def test_what_there_is() -> None:
    assert command.TABLE_FORMATS == arrow.FORMATS
    assert command.TABLES == arrow.TABLES


def test_misuse(
    walked: tuple[Path, dict[int, Walk]],
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    trace, out = str(walked[0]), str(tmp_path / "out")
    assert main(["export", "din", trace, "--table", "events"]) == 2
    assert "--table is of profiles, parquet and arrow; din has loads and stores alone" in capfd.readouterr().err
    assert main(["export", "arrow", trace]) == 2
    assert "arrow is written to a file: -o FILE" in capfd.readouterr().err
    assert main(["export", "arrow", trace, "-o", out, "--table", "instructions", "--thread", "1"]) == 2
    assert main(["export", "arrow", trace, "-o", str(tmp_path / "no" / "out")]) == 1
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    capfd.readouterr()
    assert main(["export", "arrow", trace, "-o", out]) == 2
    assert capfd.readouterr().err == (
        "tracekit: Writing arrow needs pyarrow, which is not installed: pip install 'tracekit[arrow]'\n"
    )
    assert not (tmp_path / "out").exists()
