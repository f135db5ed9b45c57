"""The tools as the server calls them: their names, what their arguments mean, and one question at a time.

The docstring of a handler is what the client reads of the tool. tracekit/assistant/tools.py has the answers.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Annotated, Any

import anyio
import anyio.to_thread
from mcp.server.mcpserver import Context
from pydantic import Field

from tracekit import progress
from tracekit.assistant.tools import Tools
from tracekit.formats.errors import TracekitError

REPORT_PERIOD = 2.0
"""Seconds between reports of progress."""

Trace = Annotated[str, Field(description="a trace or a profile file, as list_runs names it")]
Function = Annotated[str, Field(description="only in this function; demangled")]
File = Annotated[str, Field(description="a source file, or the last components of its path")]
FirstLine = Annotated[int, Field(description="the first line of the region; 0: no limit")]
LastLine = Annotated[int, Field(description="the last line; 0: the first line alone")]
Share = Annotated[
    float, Field(description="only loops with so many percent of all accesses", ge=0, le=100, allow_inf_nan=False)
]
Factor = Annotated[
    float, Field(description="leave out rows of which only numbers changed by less", allow_inf_nan=False)
]
Start = Annotated[int, Field(description="the first row of the answer, from 1: what the answer before said")]
Limit = Annotated[int, Field(description="rows of the answer at most, up to 200")]


class Handlers:
    """The tools, each with the arguments that a client sees; a handler returns a text, or raises TracekitError."""

    def __init__(self, tools: Tools) -> None:
        self._tools = tools
        self._lock = anyio.Lock()

    def all(self) -> list[Callable[..., Awaitable[str]]]:
        """Every handler, in the order in which clients list the tools."""
        return [
            self.list_runs,
            self.list_loops,
            self.dependences,
            self.annotated_source,
            self.advice,
            self.compare_runs,
            self.tables,
            self.query,
        ]

    async def list_runs(self, context: Context[Any, Any], start: Start = 1, limit: Limit = 50) -> str:
        """List the traces and profile files that may be asked about."""
        return await self._answer(context, self._tools.list_runs, start, limit)

    async def list_loops(
        self,
        context: Context[Any, Any],
        trace: Trace,
        function: Function = "",
        file: File = "",
        verdict: Annotated[str, Field(description="doall, doall-with, pipeline, sequential or not-exercised")] = "",
        min_share: Share = 0.0,
        start: Start = 1,
        limit: Limit = 20,
    ) -> str:
        """List the loops of a run with verdicts, hottest first: parallel, or what keeps them from it."""
        asked = (trace, function, file, verdict, min_share, start, limit)
        return await self._answer(context, self._tools.list_loops, *asked)

    async def dependences(
        self,
        context: Context[Any, Any],
        trace: Trace,
        file: File = "",
        first_line: FirstLine = 0,
        last_line: LastLine = 0,
        function: Function = "",
        kind: Annotated[str, Field(description="RAW, WAR or WAW")] = "",
        carried_only: Annotated[bool, Field(description="only those between iterations of a loop")] = False,
        start: Start = 1,
        limit: Limit = 20,
    ) -> str:
        """List memory dependences with an end in a function or in lines of a file, most frequent first."""
        asked = (trace, file, first_line, last_line, function, kind, carried_only, start, limit)
        return await self._answer(context, self._tools.dependences, *asked)

    async def annotated_source(
        self,
        context: Context[Any, Any],
        trace: Trace,
        file: File = "",
        first_line: FirstLine = 0,
        last_line: LastLine = 0,
    ) -> str:
        """Show source with loads, stores, carried dependences, verdicts; without a file list the files."""
        return await self._answer(context, self._tools.annotated_source, trace, file, first_line, last_line)

    async def advice(
        self,
        context: Context[Any, Any],
        trace: Trace,
        at: Annotated[str, Field(description="FILE:LINE of one loop, or of a line in it")] = "",
        patch: Annotated[bool, Field(description="add a unified diff that inserts OpenMP directives")] = False,
        top: Annotated[int, Field(description="so many loops; 0 for all")] = 5,
    ) -> str:
        """Say how to make the hottest loops, or one, run in parallel; with a patch if asked."""
        return await self._answer(context, self._tools.advice, trace, at, patch, top)

    async def compare_runs(
        self,
        context: Context[Any, Any],
        before: Trace,
        after: Trace,
        factor: Factor = 1.0,
        limit: Limit = 20,
    ) -> str:
        """Compare two runs, of one build or of two: loops and dependences that are new, gone or changed."""
        return await self._answer(context, self._tools.compare_runs, before, after, factor, limit)

    async def tables(
        self,
        context: Context[Any, Any],
        table: Annotated[str, Field(description="a table, for its columns")] = "",
    ) -> str:
        """List the tables that queries may name, or the columns of one table."""
        return await self._answer(context, self._tools.tables, table)

    async def query(
        self,
        context: Context[Any, Any],
        trace: Trace,
        sql: Annotated[str, Field(description="one SELECT; tables lists what it may name")],
        limit: Limit = 50,
    ) -> str:
        """Run a query in SQL (DuckDB's) over the tables of a run; the answer is CSV."""
        return await self._answer(context, self._tools.query, trace, sql, limit)

    async def _answer(self, context: Context[Any, Any], tool: Callable[..., str], *arguments: Any) -> str:
        """Run a tool in a thread, after the questions before it, and report its progress."""
        async with self._lock, anyio.create_task_group() as group:
            group.start_soon(_report, context)
            try:
                return await anyio.to_thread.run_sync(partial(tool, *arguments))
            except TracekitError as error:
                failure = error  # raised in here it would be one of a group of exceptions
            finally:
                group.cancel_scope.cancel()
        raise failure


async def _report(context: Context[Any, Any]) -> None:
    """Tell the client now and then what is done, if it asked for that."""
    began = time.monotonic()
    while True:
        await anyio.sleep(REPORT_PERIOD)
        steps = progress.steps()
        what = steps[-1].what if steps else "working"
        await context.report_progress(time.monotonic() - began, None, what)
