"""The tables of a run in a DuckDB database in memory, filled as queries name them; only memory is within reach."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from tracekit import extras
from tracekit.formats.errors import TracekitError
from tracekit.modules import registry
from tracekit.profiles.gc_paused import gc_paused
from tracekit.query.arrays import as_arrays, batches, expression, quoted
from tracekit.query.catalogue import ENTRIES, TABLES, VIEWS, tables_of
from tracekit.query.interrupts import INTERRUPTED, interruptible
from tracekit.query.names import named
from tracekit.query.raw import raw_tables
from tracekit.query.run import Run
from tracekit.query.schema import Column, Table, View

if TYPE_CHECKING:
    import duckdb

CONFIGURATION = {
    "enable_external_access": "false",  # files, network, ATTACH, COPY, extensions
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "temp_directory": "",
}
READING = ("SELECT", "EXPLAIN", "MULTI")
"""Kinds of statements that are run; PIVOT is MULTI, and DESCRIBE and SHOW are SELECT."""

_ROWS = "rows of python"

_Made = TypeVar("_Made")

_NO_TABLE = re.compile(r"Table with name (\w+) does not exist!")
_NO_SCHEMA = re.compile(r'because schema "(\w+)" does not exist')
"""What DuckDB says of MODULE.TABLE before there is that schema."""


class QueryError(TracekitError):
    """A query that makes no sense, or that does more than read."""


class Result(NamedTuple):
    """The rows that a query gives, with the names and types of their columns."""

    names: list[str]
    types: list[str]
    """DuckDB's, as BIGINT."""
    rows: list[tuple[Any, ...]]
    is_whole: bool = True
    """False if there are more rows than were asked for."""


class Database:
    """Tables of a run; :meth:`query` analyses a trace for the tables that it names."""

    def __init__(self, run: Run) -> None:
        """Raises MissingExtraError without DuckDB."""
        extras.require("query", "A query")
        import duckdb

        self.run = run
        self._connection = duckdb.connect(":memory:", config=dict(CONFIGURATION))
        self._running = self._connection
        self._filled: set[str] = set()
        self._schemas: set[str] = set()
        with _in_one_sentence():
            for entry in ENTRIES.values():
                self._define(entry)
            self._connection.execute("SET lock_configuration = true")

    def query(self, sql: str, most: int | None = None) -> Result:
        """The rows of one SELECT, `most` of them at most (None: all).

        Raises QueryError for what is wrong with the query, TracekitError if the run lacks what it needs.
        """
        self.prepare(sql)
        with _in_one_sentence(), self._connection.cursor() as cursor:
            self._running = cursor
            self._with_schemas(lambda: interruptible(cursor, lambda: cursor.execute(sql)))
            names, types = zip(*((entry[0], str(entry[1])) for entry in cursor.description or ()))
            fetch = cursor.fetchall if most is None else partial(cursor.fetchmany, most + 1)
            rows = interruptible(cursor, fetch)
        return Result(list(names), list(types), rows[:most], most is None or len(rows) <= most)

    def prepare(self, sql: str) -> None:
        """Analyse the trace for the tables that a query names, and fill them. Raises as :meth:`query`."""
        with _in_one_sentence():
            statements = self._connection.extract_statements(sql)
        if len(statements) != 1:
            raise QueryError("There is no query." if not statements else "That is several queries; ask one at a time.")
        kind = statements[0].type.name
        if kind not in READING:
            raise QueryError(f"Queries only read: SELECT, DESCRIBE, SUMMARIZE, PIVOT, not {kind}.")
        with _in_one_sentence():
            found = named(self._connection, sql)
        if found.unseen:
            raise QueryError(f"{found.unseen}() is not for tables that are filled as queries name them.")
        read = found.tables | {view.source for view in VIEWS.values() if view.name in found.tables}
        known = {*self.run.modules, *registry.names()}
        self._fill([name for name in TABLES if name in read], sorted(found.schemas & known))

    def interrupt(self) -> None:
        """End a query that runs in another thread: it raises QueryError."""
        import duckdb

        with suppress(duckdb.Error):  # it has just ended
            self._running.interrupt()

    # -- definitions -------------------------------------------------------------------------------

    def _define(self, entry: Table | View) -> None:
        """Make the table, empty, with what it and its columns mean as comments."""
        name, what = quoted(entry.name), "TABLE"
        if isinstance(entry, View):
            what = "VIEW"
            self._connection.execute(f"CREATE VIEW {name} AS {entry.query}")
        else:
            columns = ", ".join(f"{quoted(column.name)} {column.type}" for column in entry.columns)
            self._connection.execute(f"CREATE TABLE {name} ({columns})")
        self._connection.execute(f"COMMENT ON {what} {name} IS {_literal(entry.doc)}")
        for column in entry.columns:
            comment = f"COMMENT ON COLUMN {name}.{quoted(column.name)} IS {_literal(column.doc)}"
            self._connection.execute(comment)

    # -- rows --------------------------------------------------------------------------------------

    def _with_schemas(self, act: Callable[[], _Made]) -> _Made:
        """What `act` returns, once the schemas are there that it asks for: those of PIVOT and EXPLAIN."""
        import duckdb

        while True:
            try:
                return act()
            except duckdb.Error as error:
                found = _NO_SCHEMA.search(str(error))
                module = found[1].lower() if found else ""
                if module in self._schemas or module not in (*self.run.modules, *registry.names()):
                    raise QueryError(_sentence(error)) from None
            self._fill_raw(module)

    def _fill(self, names: Sequence[str], modules: Sequence[str]) -> None:
        """Put rows into tables that have none yet, and make those of `modules`, after one analysis for all."""
        wanted = {name: TABLES[name] for name in names if name not in self._filled}
        chosen = {name: self.run.choose(table.modules) or table.modules[0] for name, table in wanted.items()}
        self.run.need([*chosen.values(), *modules])
        for name, table in wanted.items():
            report = self.run.report(chosen[name])
            try:
                with gc_paused():
                    for batch in batches(table.rows(report)):
                        self._insert(quoted(name), table.columns, batch)
            except (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError):
                raise TracekitError(
                    f"The profile of {chosen[name]} in {self.run.path} is not as this tracekit writes it: "
                    f"{name} cannot be made of it."
                ) from None
            self._filled.add(name)
        for module in modules:
            if module not in self._schemas:
                self._fill_raw(module)

    def _fill_raw(self, module: str) -> None:
        """Make the tables of a module's result as they are, MODULE.TABLE, with the columns of Profile.to_dataframe."""
        self.run.need([module])
        self._schemas.add(module)
        with _in_one_sentence():
            self._connection.execute(f"CREATE SCHEMA {quoted(module)}")
            for name, columns, rows in raw_tables(self.run.report(module)):
                place = f"{quoted(module)}.{quoted(name)}"
                shown = ", ".join(f"{quoted(column.name)} {column.type}" for column in columns)
                self._connection.execute(f"CREATE TABLE {place} ({shown})")
                for batch in batches([row.get(column.name) for column in columns] for row in rows):
                    self._insert(place, columns, batch)

    def _insert(self, place: str, columns: Sequence[Column], rows: Sequence[Sequence[Any]]) -> None:
        self._connection.register(_ROWS, as_arrays(columns, rows))
        cells = ", ".join(expression(column) for column in columns)
        with _in_one_sentence():
            self._connection.execute(f"INSERT INTO {place} SELECT {cells} FROM {quoted(_ROWS)}")
        self._connection.unregister(_ROWS)


@contextmanager
def _in_one_sentence() -> Iterator[None]:
    """DuckDB's errors as one sentence."""
    import duckdb

    try:
        yield
    except duckdb.Error as error:
        raise QueryError(_sentence(error)) from None
    except RuntimeError as error:
        if str(error) != INTERRUPTED:
            raise
        raise KeyboardInterrupt from None


def _sentence(error: duckdb.Error) -> str:
    """What DuckDB says, without its kind of error and the query with a mark below it."""
    message, _, _ = str(error).partition("\nLINE ")
    lines = [line.strip() for line in message.splitlines() if line.strip()]
    lines[:1] = [lines[0].partition(": ")[2] or lines[0]] if lines else ["it failed"]
    sentence = " ".join(lines).rstrip(".!")
    missing = _NO_TABLE.match(sentence)
    if missing and (tables := tables_of(missing[1])):
        return f"{missing[1]} is a module; its tables are: {', '.join(tables)}."
    return f"The query fails: {sentence}{'' if sentence.endswith('?') else '.'}"


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
