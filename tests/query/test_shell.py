"""`tracekit shell`: lines from a pipe, and at a prompt in a terminal."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import select
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.commands.test_merge import CHAINED, record
from tracekit.commands.query import remarks
from tracekit.query.catalogue import ENTRIES
from tracekit.query.database import Database
from tracekit.query.run import Run
from tracekit.query.shell import HELP, Shell, completions, history_file
from tracekit.render.text import Style

pytest.importorskip("duckdb")


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A chained loop."""
    return str(record(tmp_path_factory.mktemp("shell") / "trace.zst", CHAINED))


class Session:
    """A shell, and what it said."""

    def __init__(self, trace: str, window: dict[str, Any] | None = None) -> None:
        self.said = ""
        self.complaints: list[str] = []
        run = Run(trace, 1, window=window)
        self.shell = Shell(
            Database(run), Style(False), self._say, self.complaints.append, contextlib.nullcontext, lambda: remarks(run)
        )

    def _say(self, text: str) -> None:
        self.said += text

    def typed(self, *lines: str) -> str:
        """What the shell says to these lines."""
        self.said = ""
        self.shell.run(lines)
        return self.said


def test_an_empty_window_is_told_of_once(trace: str) -> None:
    session = Session(trace, {"from": "100%"})
    assert session.typed("select count(*) as loops from loops;", "select count(*) as more from loops;").split() == [
        "loops", "0", "more", "0",
    ]  # fmt: skip
    assert session.complaints == ["there was no access inside the window."] and not session.shell.failed


def test_a_query_goes_over_lines_and_ends_with_a_semicolon(trace: str) -> None:
    session = Session(trace)
    assert session.typed("select verdict", "  from loops", ";", "select 1 as one;").split() == [
        "verdict", "pipeline", "one", "1",
    ]  # fmt: skip
    assert session.typed("select 2 as two").split() == ["two", "2"]
    assert session.complaints == [] and not session.shell.failed


def test_semicolons_end_queries_wherever_they_stand(trace: str) -> None:
    session = Session(trace)
    assert session.typed("select 1 as one; select 2 as two; -- and", ".format csv", "select 3;;").split() == [
        "one", "1", "two", "2", "3", "3",
    ]  # fmt: skip
    assert session.typed("select 'a;", "b' as x, -- c;", "/* ;", '*/ 4 as "y;";') == 'x,y;\n"a;\nb",4\n'
    assert session.typed("select e'\\';' as x, $$;'$$ as y;", "-- nothing") == "x,y\n';,;'\n"
    assert session.complaints == []
    session.typed("select 1 as one; select 'an end", ";")
    assert session.said == "one\n1\n" and session.complaints == ["The query fails: unterminated string literal."]


def test_commands(trace: str) -> None:
    session = Session(trace)
    assert session.typed(".help") == HELP
    for name in ENTRIES:
        assert f"\n{name} " in session.typed(".tables")
        assert session.typed(f".schema {name}").startswith(f"{name}: {ENTRIES[name].doc}\n")
    assert all(f"{name}: " in session.typed(".schema") for name in ENTRIES)
    assert json.loads(session.typed(".format json", "select 1 as one")) == [{"one": 1}]
    assert session.typed(".format table", ".limit 1", "from range(3)").endswith(
        "... and 2 more rows (.limit 0 shows all)\n"
    )
    assert session.typed(".quit", "select 1;") == ""
    assert session.complaints == []


@pytest.mark.parametrize(
    "line, complaint",
    [
        (".tabels", "There is no command .tabels; .help lists them."),
        (".schema loop", "There is no table 'loop'; .tables lists them."),
        (".format xml", "A format is one of table, csv, json, jsonl, markdown."),
        (".limit", ".limit takes a number of rows."),
        ("drop table loops;", "Queries only read: SELECT, DESCRIBE, SUMMARIZE, PIVOT, not DROP."),
    ],
)
def test_a_failure_is_a_sentence_and_the_session_goes_on(trace: str, line: str, complaint: str) -> None:
    session = Session(trace)
    assert session.typed(line, "select 1 as one;").split() == ["one", "1"]
    assert session.complaints == [complaint] and session.shell.failed


def test_completions_are_tables_and_columns() -> None:
    assert {"loops", "functions", "verdict", "carried_by"} <= set(completions())


def shell(trace: str, text: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tracekit", "shell", trace]
    return subprocess.run(command, input=text, capture_output=True, text=True, timeout=300)


def test_from_a_pipe(trace: str) -> None:
    done = shell(trace, "select verdict from loops;\n.format csv\nselect 1 as one")
    assert (done.returncode, done.stdout, done.stderr) == (0, "verdict\npipeline\none\n1\n", "")
    done = shell(trace, "from loop;\nselect 1 as one;\n")
    assert (done.returncode, done.stdout.split()) == (1, ["one", "1"])
    assert done.stderr == 'tracekit: The query fails: Table with name loop does not exist! Did you mean "loops"?\n'


def test_in_a_terminal(trace: str, tmp_path: Path) -> None:
    pytest.importorskip("prompt_toolkit")
    master, slave = pty.openpty()
    environment = {**os.environ, "XDG_STATE_HOME": str(tmp_path), "TERM": "xterm", "NO_COLOR": "1"}
    command = [sys.executable, "-m", "tracekit", "shell", trace]
    process = subprocess.Popen(command, stdin=slave, stdout=slave, stderr=slave, env=environment, close_fds=True)
    os.close(slave)
    seen = b""

    def until(text: bytes) -> None:
        nonlocal seen
        ends = time.monotonic() + 30
        while text not in seen:
            ready, _, _ = select.select([master], [], [], max(ends - time.monotonic(), 0))
            assert ready, seen
            seen += os.read(master, 4096)
        seen = seen.partition(text)[2]

    until(b"Ctrl-D to leave")
    until(b"tracekit>")
    os.write(master, b"select 40000 + 2 from footp\t")  # completed
    until(b"rint")
    os.write(master, b"\r")
    until(b"...>")
    os.write(master, b";\r")
    until(b"40002")
    until(b"tracekit>")
    os.write(master, b"half a query\x03")  # Ctrl-C drops it
    until(b"tracekit>")
    os.write(master, b"\x04")
    assert process.wait(60) == 0
    os.close(master)
    history = (tmp_path / "tracekit" / "shell-history").read_text()
    assert "+select 40000 + 2 from footprint" in history


def test_where_the_history_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", "/state")
    assert history_file() == Path("/state/tracekit/shell-history")
    monkeypatch.delenv("XDG_STATE_HOME")
    monkeypatch.setenv("HOME", "/home/me")
    assert history_file() == Path("/home/me/.local/state/tracekit/shell-history")
