"""Queries analyse no more than they need, read nothing but tables, and fail with a sentence."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.commands.test_merge import CHAINED, record
from tracekit import extras
from tracekit.formats.errors import TracekitError
from tracekit.profiles import files
from tracekit.query import run as run_module
from tracekit.query.database import Database, QueryError
from tracekit.query.run import Run

pytest.importorskip("duckdb")


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A chained loop."""
    return str(record(tmp_path_factory.mktemp("database") / "trace.zst", CHAINED))


@pytest.fixture
def analysed(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The modules of each analysis, as they are asked for."""
    asked: list[list[str]] = []
    real = run_module.gather

    def noted(path: str, modules: Sequence[str], *more: Any) -> Any:
        asked.append(list(modules))
        return real(path, modules, *more)

    monkeypatch.setattr(run_module, "gather", noted)
    return asked


def test_ctrl_c_ends_a_query_that_would_take_long(trace: str) -> None:
    database = Database(Run(trace, 1))
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # it is ignored where tests run in the background
    threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        database.query("SELECT count(*) FROM range(100000) a, range(100000) b WHERE (a.range * b.range) % 7 = 1")
    signal.signal(signal.SIGINT, before)
    assert time.monotonic() - began < 5
    assert database.query("SELECT 1").rows == [(1,)]


def test_only_modules_that_a_query_names_are_run(trace: str, analysed: list[list[str]]) -> None:
    database = Database(Run(trace, 1))
    assert database.query("SELECT 1").rows == [(1,)]
    assert database.query("DESCRIBE SELECT 'loops' AS cache").rows[0][0] == "cache"
    assert database.query("SHOW TABLES").rows
    assert analysed == []
    assert database.query("WITH x AS (FROM functions) SELECT loads, stores FROM x").rows == [(4, 4)]
    assert analysed == [["accesses"]]
    assert database.query('SELECT verdict FROM Loops JOIN "lines" USING (file)').rows == [("pipeline",)] * 2
    assert analysed == [["accesses"], ["camp"]]
    assert database.query("SELECT count(*) FROM dependences d, loops AS l").rows == [(1,)]
    assert database.query("SELECT count(*) FROM main.loops WHERE 'cache_levels' <> function").rows == [(1,)]
    assert len(analysed) == 2
    assert database.query("EXPLAIN FROM footprint").rows
    assert analysed[2:] == [["footprint"]]


def test_modules_of_one_query_share_a_replay(trace: str, analysed: list[list[str]]) -> None:
    database = Database(Run(trace, 1))
    database.query("SELECT * FROM loops, footprint")
    assert [sorted(modules) for modules in analysed] == [["camp", "footprint"]]


def test_results_of_modules_are_made_when_they_are_named(trace: str, analysed: list[list[str]]) -> None:
    database = Database(Run(trace, 1))
    assert database.query("SELECT lamp.verdict FROM Lamp.loops lamp").rows == [("pipeline",)]
    assert database.query("SELECT cache.line FROM instructions cache").rows == [(8,), (9,)]
    assert analysed == [["lamp"], ["accesses"]]


def test_pivot(trace: str) -> None:
    result = Database(Run(trace, 1)).query("PIVOT functions ON file USING sum(loads) GROUP BY function")
    assert (result.names, result.rows) == (["function", "app.c"], [("main", 4)])


def test_options_of_modules(trace: str) -> None:
    database = Database(Run(trace, 1, {"cache": {"levels": "4K:4:64"}}))
    assert database.query("SELECT name, size FROM cache_levels").rows == [("L1", 4096)]


def test_no_more_rows_than_asked_for(trace: str) -> None:
    database = Database(Run(trace, 1))
    found = database.query("FROM range(10)", 3)
    assert (found.rows, found.is_whole) == ([(0,), (1,), (2,)], False)
    assert database.query("FROM range(3)", 3).is_whole


FORBIDDEN = [
    "COPY (SELECT 1) TO '{folder}/out.csv'",
    "ATTACH '{folder}/out.db'",
    "CREATE TABLE mine AS SELECT 1",
    "INSERT INTO loops SELECT * FROM loops",
    "DROP TABLE loops",
    "SET enable_external_access = true",
    "INSTALL httpfs",
    "LOAD httpfs",
    "EXPORT DATABASE '{folder}/out'",
    "PRAGMA database_list",
    "SELECT * FROM read_text('{folder}/secret')",
    "SELECT * FROM read_csv('{folder}/secret')",
    "SELECT * FROM '{folder}/secret.csv'",
    "SELECT * FROM glob('{folder}/*')",
    "SELECT * FROM query('COPY (SELECT 1) TO ''{folder}/out.csv''')",
    "SELECT * FROM trace",
    "SELECT * FROM query_table('loops')",
    "PIVOT query_table('loops') ON verdict",
]


@pytest.mark.parametrize("query", FORBIDDEN)
def test_queries_only_read_tables(query: str, trace: str, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    (tmp_path / "secret.csv").write_text("secret\n1\n")
    database = Database(Run(trace, 1))
    with pytest.raises(QueryError) as raised:
        database.query(query.format(folder=tmp_path))
    assert "\n" not in str(raised.value) and str(raised.value).endswith((".", "?"))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["secret", "secret.csv"]
    assert database.query("SELECT count(*) FROM loops").rows == [(1,)]


@pytest.mark.parametrize(
    "query, sentence",
    [
        ("", "There is no query."),
        ("FROM loops; FROM lines", "That is several queries; ask one at a time."),
        ("SELEC 1", 'The query fails: syntax error at or near "SELEC".'),
        ("FROM loop", 'The query fails: Table with name loop does not exist! Did you mean "loops"?'),
        ("FROM accesses", "accesses is a module; its tables are: instructions, functions, lines."),
        ("SELECT 'x'::INT", "The query fails: Could not convert string 'x' to INT32."),
        ("DELETE FROM loops", "Queries only read: SELECT, DESCRIBE, SUMMARIZE, PIVOT, not DELETE."),
    ],
)
def test_what_is_wrong_with_a_query(query: str, sentence: str, trace: str) -> None:
    with pytest.raises(QueryError) as raised:
        Database(Run(trace, 1)).query(query)
    assert str(raised.value) == sentence


def test_a_profile_file_has_what_it_has(trace: str, tmp_path: Path) -> None:
    path = tmp_path / "lamp.profile"
    import tracekit

    tracekit.analyze(trace, "lamp").save(path)
    database = Database(Run(str(path)))
    assert database.query("SELECT verdict, context FROM loops").rows == [("pipeline", None)]
    with pytest.raises(TracekitError, match="holds no profile of accesses, only of lamp"):
        database.query("FROM lines")
    with pytest.raises(TracekitError, match="holds no profile of cache, only of lamp"):
        database.query("FROM cache.levels")
    with pytest.raises(TracekitError, match="options of modules are for traces"):
        Run(str(path), None, {"lamp": {}})


@pytest.mark.parametrize(
    "result",
    [
        {"loops": [{"loop": 3}], "dependences": []},
        {"loops": [3]},
        {"dependences": []},
        {"loops": {"a": 1}},
        {"loops": [{"loop": {"function": "f", "file": "f", "line": "x", "column": 0}}]},
    ],
)
def test_a_profile_that_is_none_of_ours(result: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "odd.profile"
    path.write_text(json.dumps({"tracekit": "0", "module": "camp", "options": {}, "result": result}))
    with pytest.raises(TracekitError, match=r"The profile of camp in .* is not as this tracekit writes it"):
        Database(Run(str(path))).query("SELECT * FROM loops")


def test_names_in_a_profile_are_only_names(tmp_path: Path) -> None:
    path = tmp_path / "odd.profile"
    rows = [{'a"; DROP TABLE loops; --': 1, "b": [1], "c": 1 << 70, "d": "x"}, {"b": None, "c": 1, "d": 2}]
    path.write_text(json.dumps({"tracekit": "0", "module": "my_own", "options": {}, "result": {'t"x': rows}}))
    found = Database(Run(str(path))).query('FROM my_own."t""x"')
    assert found.names == ['a"; DROP TABLE loops; --', "b", "c", "d"]
    assert found.rows == [(1, "[1]", 1 << 70, '"x"'), (None, None, 1, "2")]


def test_a_query_is_interrupted(trace: str) -> None:
    database = Database(Run(trace, 1))
    threading.Timer(0.5, database.interrupt).start()
    began = time.monotonic()
    with pytest.raises(QueryError, match="nterrupt"):
        database.query("SELECT sum(a.range * b.range) FROM range(10000000) a, range(10000000) b")
    assert time.monotonic() - began < 60


def test_without_the_extra(trace: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "duckdb", None)
    assert extras.missing("query") == ["duckdb"]
    with pytest.raises(extras.MissingExtraError, match=r"A query needs duckdb, .*: pip install 'tracekit\[query\]'"):
        Database(Run(trace, 1))


def test_no_numba_for_a_profile_file(trace: str, tmp_path: Path) -> None:
    path = tmp_path / "a.profile"
    import tracekit

    tracekit.analyze(trace, "camp").save(path)
    code = (
        "import sys; from tracekit.cli import main; "
        "assert main(['query', sys.argv[1], 'select count(*) from loops']) == 0; "
        "assert 'numba' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code, str(path)], check=True, capture_output=True)
    assert files.is_profile(path)
