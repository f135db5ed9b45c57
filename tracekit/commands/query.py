"""`tracekit query`: SQL over the profiles of a trace or a profile file."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from tracekit.commands import options
from tracekit.commands.progress import progress_line
from tracekit.commands.terminal import terminal_style
from tracekit.commands.usage import ShortUsageError

if TYPE_CHECKING:
    from tracekit.query.database import Database
    from tracekit.query.run import Run

settings_option = click.option(
    "--set", "settings", multiple=True, metavar="MODULE.OPTION=VALUE", help="Set an option of a module."
)
"""The command gets them as its parameter `settings`, for :func:`opened`."""

FORMATS = ("table", "csv", "json", "jsonl", "markdown")


@click.command("query")
@options.output_format(FORMATS, "What is printed.")
@click.option("--tables", "list_tables", is_flag=True, help="List the tables instead.")
@click.option("--schema", is_flag=True, help="List the tables' columns instead, or those of the table that QUERY is.")
@options.row_limit("Rows that --format table shows; 0 shows all.")
@settings_option
@options.jobs
@options.window
@click.argument("trace", type=click.Path(), required=False)
@click.argument("query", required=False)
def command(
    form: str,
    list_tables: bool,
    schema: bool,
    limit: int,
    settings: tuple[str, ...],
    jobs: int | None,
    trace: str | None,
    query: str | None,
    **parts: Any,
) -> None:
    """Print what a QUERY in SQL finds in the profiles of TRACE; QUERY may be - for standard input.

    \b
        tracekit query trace.zst 'select function, line, verdict from loops'

    TRACE is a trace, which the modules analyse that the query's tables come from, or a profile file. Nothing can be
    changed, and no file be read, by a query. It is DuckDB's SQL: pip install 'tracekit[query]'.
    """
    from tracekit.query import listing

    window = options.window_of(parts)
    style = terminal_style()
    if list_tables or schema:
        if trace is not None and query is None and listing.is_table(trace, None) and not os.path.exists(trace):
            trace, query = None, trace
        run = None if trace is None else opened_run(trace, jobs, settings, window)
        wanted = query if schema else None
        if wanted is not None and not listing.is_table(wanted, run):
            raise ShortUsageError(f"There is no table {wanted!r}: `tracekit query --tables` lists them.")
        text = listing.columns_text(wanted, run, style) if schema else listing.tables_text(run, style)
        click.echo(text, nl=False)
        return
    if trace is None or query is None:
        raise click.UsageError("query takes a trace, or a profile file, and a query; or --tables.")
    database = opened(trace, jobs, settings, window)
    print_result(database, sys.stdin.read() if query == "-" else query, form, limit, style)


def opened_run(trace: str, jobs: int | None, settings: Sequence[str], window: Mapping[str, Any] | None = None) -> Any:
    """The profiles of a trace or a profile file; a trace is not analysed yet."""
    from tracekit.query.run import Run

    with progress_line():
        return Run(trace, jobs, checked_settings(settings), window)


def opened(trace: str, jobs: int | None, settings: Sequence[str], window: Mapping[str, Any] | None = None) -> Database:
    """Their tables. Raises MissingExtraError without the extra."""
    from tracekit import extras
    from tracekit.query.database import Database

    extras.require("query", "A query")
    return Database(opened_run(trace, jobs, settings, window))


def checked_settings(settings: Sequence[str]) -> Mapping[str, Mapping[str, str]]:
    """Module -> option -> value, of MODULE.OPTION=VALUE. Raises ShortUsageError for what is none."""
    from tracekit.formats.errors import TracekitError
    from tracekit.modules import registry
    from tracekit.modules.options import make_options

    values: dict[str, dict[str, str]] = {}
    for setting in settings:
        target, equals, value = setting.partition("=")
        name, dot, option = target.partition(".")
        if not (equals and dot):
            raise ShortUsageError(f"--set takes MODULE.OPTION=VALUE, not {setting!r}.")
        if name not in registry.names():
            raise ShortUsageError(registry.unknown_text(name))
        values.setdefault(name, {})[option] = value
    for name, chosen in values.items():
        try:
            make_options(registry.load(name, files=False).Options, chosen)
        except TracekitError as error:
            raise ShortUsageError(f"{name}: {error}") from None
    return values


def remarks(run: Run) -> list[str]:
    """What there is to say of all that its modules have found, in sentences."""
    found = list(run.cautions)
    if run.is_window_empty:
        found.append(f"{options.NO_ACCESS.removeprefix('tracekit: ')}.")
    return found


def print_result(database: Database, query: str, form: str, limit: int, style: Any) -> None:
    """Run a query and print what it finds. Raises ShortUsageError if the query makes no sense."""
    from tracekit.query.database import QueryError
    from tracekit.query.output import FORMATS as MADE
    from tracekit.query.output import table_text

    try:
        with progress_line():
            result = database.query(query)
    except QueryError as error:
        raise ShortUsageError(str(error)) from None
    for remark in remarks(database.run):
        click.echo(f"tracekit: {remark}", err=True)
    click.echo(table_text(result, limit, style) if form == "table" else MADE[form](result), nl=False)
