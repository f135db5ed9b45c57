"""The MCP server: the tools of tracekit.assistant.tools by the official SDK, on standard input and output."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Annotated, Any

import anyio
import anyio.to_thread
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import ToolAnnotations
from pydantic import Field, ValidationError

from tracekit import progress
from tracekit.assistant.tools import Tools
from tracekit.formats.errors import TracekitError
from tracekit.version import __version__

EVERY = 2.0
"""Seconds between reports of progress."""

INSTRUCTIONS = """\
Memory profiles of recorded runs: which loops could run in parallel, which memory dependences keep others from it, \
what to change. Begin with list_runs, then list_loops of a trace, hottest first; dependences and annotated_source say \
more of a region; advice says what to do, and with patch=true gives OpenMP directives as a diff. A verdict is about \
the runs that were recorded, never a proof. Nothing here changes a file. The first question about a long trace may \
take minutes; `tracekit analyze -m camp -m accesses -o FILE trace.zst` makes a profile file, which answers at once."""

Trace = Annotated[str, Field(description="a trace or a profile file, as list_runs names it")]
Function = Annotated[str, Field(description="only in this function; demangled")]
File = Annotated[str, Field(description="a source file, or the last components of its path")]
FirstLine = Annotated[int, Field(description="the first line of the region; 0: no limit")]
LastLine = Annotated[int, Field(description="the last line; 0: the first line alone")]
Start = Annotated[int, Field(description="the first row of the answer, from 1: what the answer before said")]
Limit = Annotated[int, Field(description="rows of the answer at most, up to 200")]


class Server(MCPServer[Any]):
    """Says in one sentence what is wrong with a call."""

    async def call_tool(self, name: str, arguments: dict[str, Any], context: Context[Any, Any] | None = None) -> Any:
        """As the SDK has it, with our errors and its own of arguments in our words."""
        try:
            return await super().call_tool(name, arguments, context)
        except ToolError as error:
            cause = error.__cause__
            if isinstance(cause, TracekitError):
                raise ToolError(str(cause)) from None
            if isinstance(cause, MemoryError):
                raise ToolError("Ran out of memory.") from None
            if isinstance(cause, ValidationError):
                raise ToolError(_arguments_text(name, cause)) from None
            raise


def _arguments_text(name: str, error: ValidationError) -> str:
    wrong = (f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in error.errors())
    return f"The arguments of {name} are wrong: {'; '.join(wrong)}."


def make_server(tools: Tools) -> Server:
    """A server with all tools, which answers one question at a time."""
    server = Server("tracekit", title="tracekit", version=__version__, instructions=INSTRUCTIONS, log_level="CRITICAL")
    lock = anyio.Lock()

    async def answer(context: Context[Any, Any], tool: Callable[..., str], *arguments: Any) -> str:
        async with lock, anyio.create_task_group() as group:
            group.start_soon(_report, context)
            try:
                return await anyio.to_thread.run_sync(partial(tool, *arguments))
            except TracekitError as error:
                told = error
            finally:
                group.cancel_scope.cancel()
        raise told

    hints = ToolAnnotations(read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False)
    tool = partial(server.tool, annotations=hints, structured_output=False)

    @tool(description="List the traces and profile files that may be asked about.")
    async def list_runs(context: Context[Any, Any], start: Start = 1, limit: Limit = 50) -> str:
        return await answer(context, tools.list_runs, start, limit)

    @tool(description="List the loops of a run with verdicts, hottest first: parallel, or what keeps them from it.")
    async def list_loops(
        context: Context[Any, Any],
        trace: Trace,
        function: Function = "",
        file: File = "",
        verdict: Annotated[str, Field(description="doall, doall-with, pipeline, sequential or not-exercised")] = "",
        min_share: Annotated[float, Field(description="only loops with so many percent of all accesses")] = 0.0,
        start: Start = 1,
        limit: Limit = 20,
    ) -> str:
        return await answer(context, tools.list_loops, trace, function, file, verdict, min_share, start, limit)

    @tool(description="List memory dependences with an end in a function or in lines of a file, most frequent first.")
    async def dependences(
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
        return await answer(
            context, tools.dependences, trace, file, first_line, last_line, function, kind, carried_only, start, limit
        )

    @tool(description="Show source with loads, stores, carried dependences, verdicts; without a file list the files.")
    async def annotated_source(
        context: Context[Any, Any],
        trace: Trace,
        file: File = "",
        first_line: FirstLine = 0,
        last_line: LastLine = 0,
    ) -> str:
        return await answer(context, tools.annotated_source, trace, file, first_line, last_line)

    @tool(description="Say how to make the hottest loops, or one, run in parallel; with a patch if asked.")
    async def advice(
        context: Context[Any, Any],
        trace: Trace,
        at: Annotated[str, Field(description="FILE:LINE of one loop, or of a line in it")] = "",
        patch: Annotated[bool, Field(description="add a unified diff that inserts OpenMP directives")] = False,
        top: Annotated[int, Field(description="so many loops; 0 for all")] = 5,
    ) -> str:
        return await answer(context, tools.advice, trace, at, patch, top)

    @tool(description="Compare two runs, of one build or of two: loops and dependences that are new, gone or changed.")
    async def compare_runs(
        context: Context[Any, Any],
        before: Trace,
        after: Trace,
        factor: Annotated[float, Field(description="leave out rows of which only numbers changed by less")] = 1.0,
        limit: Limit = 20,
    ) -> str:
        return await answer(context, tools.compare_runs, before, after, factor, limit)

    @tool(description="List the tables that queries may name, or the columns of one table.")
    async def tables(
        context: Context[Any, Any],
        table: Annotated[str, Field(description="a table, for its columns")] = "",
    ) -> str:
        return await answer(context, tools.tables, table)

    @tool(description="Run a query in SQL (DuckDB's) over the tables of a run; the answer is CSV.")
    async def query(
        context: Context[Any, Any],
        trace: Trace,
        sql: Annotated[str, Field(description="one SELECT; tables lists what it may name")],
        limit: Limit = 50,
    ) -> str:
        return await answer(context, tools.query, trace, sql, limit)

    return server


async def _report(context: Context[Any, Any]) -> None:
    """Tell the client now and then what is done, if it asked to be told."""
    began = time.monotonic()
    while True:
        await anyio.sleep(EVERY)
        steps = progress.steps()
        what = steps[-1].what if steps else "working"
        await context.report_progress(time.monotonic() - began, None, what)
