"""Tables of queries against rows written down one by one, on random profiles and on those of real analyses."""

from __future__ import annotations

import csv
import io
import json
import random
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings

from tests.naive import query as naive
from tests.naive.random_program import RandomProgram
from tests.naive.trace_file import write_trace
from tests.naive.walker import Walk
from tests.query.reports import RESULTS, written
from tracekit import api
from tracekit.modules.options import make_options
from tracekit.modules.registry import load
from tracekit.profiles import files
from tracekit.query.catalogue import ENTRIES, TABLES, modules_of
from tracekit.query.database import Database
from tracekit.query.output import FORMATS
from tracekit.query.run import Run

pytest.importorskip("duckdb")


def rows(database: Database, query: str) -> list[dict[str, Any]]:
    result = database.query(query)
    return [dict(zip(result.names, row)) for row in result.rows]


def check(database: Database, table: str, expected: list[naive.Row]) -> None:
    """The columns that the reference has, row by row."""
    columns = ", ".join(f'"{name}"' for name in expected[0]) if expected else "*"
    assert rows(database, f"SELECT {columns} FROM {table}") == expected


def check_all(database: Database, reports: dict[str, Any]) -> None:
    """All that the reference knows of camp and accesses."""
    if "camp" in reports:
        check(database, "loops", naive.loops(reports["camp"]))
        check(database, "dependences", naive.dependences(reports["camp"]))
        check(database, "levels", naive.levels(reports["camp"]))
        assert Counter(row["context"] for row in rows(database, "FROM contexts")) == Counter(
            naive.contexts(reports["camp"])
        )
    if "accesses" in reports:
        sums = {(row["function"], row["file"]): row for row in rows(database, "FROM functions")}
        assert {key: (row["loads"], row["stores"], row["bytes"]) for key, row in sums.items()} == naive.functions(
            reports["accesses"]
        )
        assert {
            (row["file"], row["line"]): (row["loads"], row["stores"]) for row in rows(database, "FROM lines")
        } == naive.lines(reports["accesses"])


@settings(max_examples=25)
@given(RESULTS)
def test_random_profiles(results: dict[str, Any]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        database = Database(Run(str(written(Path(folder, "a.profile"), results))))
    check_all(database, {name: {"result": result} for name, result in results.items()})
    obstacles = rows(database, "FROM obstacles")
    assert [row["loop"] for row in obstacles] == [
        number for number, row in enumerate(results["camp"]["loops"], 1) for _ in row["blocked_by"]
    ]


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A trace of three threads of random walks."""
    rng = random.Random(3)
    made = RandomProgram(rng)
    walks = {stream: Walk(made, rng, [], 2000, (stream + 1) << 40) for stream in range(3)}
    for walk in walks.values():
        walk.run()
    path = tmp_path_factory.mktemp("query") / "trace.zst"
    write_trace(path, made.layout, {stream: walk.records() for stream, walk in walks.items()})
    return path


MODULES = (
    "camp",
    "accesses",
    "footprint",
    "heatmap",
    "cache",
    "reuse",
    "object_lifetime",
    "layout",
    "advise",
    "races",
    "memory_errors",
)


@pytest.fixture(scope="module")
def profile(trace: Path) -> Path:
    """A profile file with those modules."""
    path = trace.with_name("all.profile")
    files.save(path, api.analyze_all(trace, {name: make_options(load(name).Options, {}) for name in MODULES}, 1))
    return path


def test_a_profile_of_a_real_analysis(profile: Path) -> None:
    database = Database(Run(str(profile)))
    reports = {each.module: each.report for each in files.load(profile)}
    check_all(database, reports)
    assert len(naive.dependences(reports["camp"])) > 10


def test_a_trace_gives_what_its_profile_gives(trace: Path, profile: Path) -> None:
    mine, known = Database(Run(str(trace), 1)), Database(Run(str(profile)))
    for table in ("loops", "dependences", "functions", "footprint"):
        assert rows(mine, f"FROM {table}") == rows(known, f"FROM {table}") != []


@pytest.mark.parametrize("table", [name for name in ENTRIES if modules_of(name)[0] in MODULES])
def test_every_table_has_the_rows_of_its_module(table: str, profile: Path) -> None:
    database = Database(Run(str(profile)))
    found = database.query(f"FROM {table}")
    entry = ENTRIES[table]
    assert found.names == [column.name for column in entry.columns]
    assert found.types == [column.type for column in entry.columns]
    if table in TABLES:
        report = {**next(each for each in files.load(profile) if each.module == modules_of(table)[0]).report}
        made = list(TABLES[table].rows({**report, "facts": {"accesses": 1}}))
        assert len(made) == len(found.rows)
        assert {len(row) for row in made} <= {len(entry.columns)}


@pytest.mark.parametrize("module", MODULES)
def test_results_as_they_are(module: str, profile: Path) -> None:
    database = Database(Run(str(profile)))
    (report,) = (each for each in files.load(profile) if each.module == module)
    for name, value in report.result.items():
        if not isinstance(value, list) or not value:
            continue
        found = rows(database, f'FROM {module}."{name}"')
        assert len(found) == len(value)
        for row, known in zip(found, value):
            for column, cell in known.items():
                if isinstance(cell, (int, str, float)):
                    assert row[column] == cell
                elif isinstance(cell, list):
                    assert json.loads(row[column]) == cell


def test_columns_of_instructions_in_results_have_dots(profile: Path) -> None:
    database = Database(Run(str(profile)))
    raw = rows(database, 'SELECT "instruction.line" AS line, loads FROM accesses.instructions')
    known = rows(database, "SELECT line, loads FROM instructions")
    assert raw == [{"line": row["line"] or 0, "loads": row["loads"]} for row in known]


def test_formats_are_read_back(profile: Path) -> None:
    result = Database(Run(str(profile))).query(
        "SELECT function, line, share, blocked_by, is_recursive, 0.5::DECIMAL(3, 1) AS half, NULL AS nothing, "
        "'a|b' || chr(10) || '\"' AS odd, 'nan'::DOUBLE AS nan, "
        "[1, '-inf'::DOUBLE] AS ends FROM loops"
    )
    objects = json.loads(FORMATS["json"](result))
    assert [json.loads(line) for line in FORMATS["jsonl"](result).splitlines()] == objects
    assert len(objects) == len(result.rows) > 3
    for made, row in zip(objects, result.rows):
        assert [made["function"], made["line"], made["blocked_by"]] == [row[0], row[1], row[3]]
        assert (made["is_recursive"], made["half"], made["nothing"], made["nan"]) == (False, 0.5, None, None)
        assert made["ends"] == [1, None]
    read = list(csv.DictReader(io.StringIO(FORMATS["csv"](result))))
    assert [row["odd"] for row in read] == ['a|b\n"'] * len(objects)
    assert [json.loads(row["blocked_by"]) for row in read] == [made["blocked_by"] for made in objects]
    assert {(row["nothing"], row["is_recursive"], row["half"], row["nan"]) for row in read} == {
        ("", "false", "0.5", "nan")
    }
    head, marks, *lines = FORMATS["markdown"](result).splitlines()
    assert len(lines) == len(objects)
    assert {line.replace("\\|", "").count("|") for line in (head, marks, *lines)} == {11}
