"""`tracekit query`: what it prints, lists and refuses."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import pytest

from tests.commands.test_merge import CHAINED, record
from tracekit.cli import main
from tracekit.commands import query as command
from tracekit.query import output
from tracekit.query.catalogue import ENTRIES

pytest.importorskip("duckdb")


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A chained loop."""
    return str(record(tmp_path_factory.mktemp("query") / "trace.zst", CHAINED))


def test_a_query_is_printed(trace: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["query", trace, "select function, line, verdict from loops"]) == 0
    out, err = capsys.readouterr()
    assert (out, err) == ("function  line  verdict\nmain         7  pipeline\n", "")
    assert main(["query", "--format", "json", trace, "select loads from functions"]) == 0
    assert json.loads(capsys.readouterr().out) == [{"loads": 4}]
    assert main(["query", "--limit", "2", trace, "from range(5)"]) == 0
    assert capsys.readouterr().out.endswith("... and 3 more rows (--limit 0 shows all)\n")
    assert main(["query", "--set", "cache.levels=4K:4:64", trace, "select size from cache_levels"]) == 0
    assert capsys.readouterr().out.split() == ["size", "4096"]


def test_a_window_without_accesses_is_told(trace: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["query", "--from", "90%", "--to", "10%", "--format", "json", trace, "from loops"]) == 0
    assert capsys.readouterr() == ("[]\n", "tracekit: there was no access inside the window.\n")


def test_a_query_from_standard_input(
    trace: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("select 1 as one"))
    assert main(["query", trace, "-"]) == 0
    assert capsys.readouterr().out.split() == ["one", "1"]


def test_tables_and_columns_are_listed(
    trace: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "duckdb", None)  # nothing of it is needed
    assert main(["query", "--tables"]) == 0
    listed = [line.split()[0] for line in capsys.readouterr().out.splitlines()[1:]]
    assert listed == list(ENTRIES)
    assert main(["query", "--schema"]) == 0
    text = capsys.readouterr().out
    for entry in ENTRIES.values():
        assert entry.doc in text and all(column.doc in text for column in entry.columns)
    assert main(["query", "--schema", "levels"]) == 0
    alone = capsys.readouterr().out
    assert main(["query", trace, "--schema", "levels"]) == 0
    assert capsys.readouterr().out == alone and alone.startswith("levels: ") and "loops:" not in alone


def test_of_a_profile_file_only_what_it_has_is_listed(
    trace: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(tmp_path / "a.profile")
    assert main(["analyze", "-m", "accesses", "-o", path, trace]) == 0
    assert main(["query", path, "--tables"]) == 0
    listed = [line.split()[0] for line in capsys.readouterr().out.splitlines()[1:]]
    assert listed == ["instructions", "functions", "lines", "accesses.instructions"]
    assert main(["query", path, "--schema", "accesses.instructions"]) == 0
    assert "instruction.line" in capsys.readouterr().out


@pytest.mark.parametrize(
    "words, status, sentence",
    [
        (["select 1/"], 2, 'tracekit: The query fails: syntax error at or near "/".'),
        (["from nothing"], 2, "tracekit: The query fails: Table with name nothing does not exist!"),
        (["--schema", "nothing"], 2, "tracekit: There is no table 'nothing': `tracekit query --tables` lists them."),
        (["--set", "x", "select 1"], 2, "tracekit: --set takes MODULE.OPTION=VALUE, not 'x'."),
        (["--set", "x.y=1", "select 1"], 2, "tracekit: There is no module 'x'. The modules are: "),
        (["--set", "cache.y=1", "select 1"], 2, "tracekit: cache: there is no option 'y'"),
        (["from value_patterns"], 1, "tracekit: "),
    ],
)
def test_failures(words: list[str], status: int, sentence: str, trace: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["query", trace, *words]) == status
    out, err = capsys.readouterr()
    assert out == "" and err.startswith(sentence) and err.count("\n") == 1


def test_a_window(trace: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    query = "select sum(loads), sum(stores) from functions"
    assert main(["query", "--format", "csv", trace, query]) == 0
    assert capsys.readouterr().out.splitlines()[1:] == ["4,4"]
    assert main(["query", "--format", "csv", "--from", "1", "--to", "4", trace, query]) == 0
    part = capsys.readouterr().out.splitlines()[1]
    assert sum(map(int, part.split(","))) == 3
    assert main(["query", "--thread", "7", trace, query]) == 1
    assert "no stream 7" in capsys.readouterr().err
    assert main(["query", "--from", "x", trace, query]) == 2
    assert capsys.readouterr().err.count("\n") == 1
    profile = str(tmp_path / "a.profile")
    assert main(["analyze", "-m", "accesses", "-o", profile, trace]) == 0
    assert main(["query", "--to", "4", profile, query]) == 1
    assert "a window is chosen when the trace is analysed" in capsys.readouterr().err


def test_what_is_no_trace(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "text").write_text("text")
    for name in ("text", "none"):
        assert main(["query", str(tmp_path / name), "select 1"]) == 1
        assert capsys.readouterr().err.startswith("tracekit: ")
    assert main(["query"]) == 2
    assert main(["query", str(tmp_path / "text")]) == 2


@pytest.mark.parametrize("words", [["query", "select 1"], ["shell"]])
def test_without_the_extra(
    words: list[str], trace: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "duckdb", None)
    assert main([words[0], trace, *words[1:]]) == 2
    assert capsys.readouterr().err == (
        "tracekit: A query needs duckdb, which is not installed: pip install 'tracekit[query]'\n"
    )


def test_formats_are_those_of_the_help() -> None:
    assert ("table", *output.FORMATS) == command.FORMATS
