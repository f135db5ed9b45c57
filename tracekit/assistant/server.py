"""The MCP server: the tools of tracekit.assistant.tools by the official SDK, on standard input and output."""

from __future__ import annotations

import inspect
from typing import Any

from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import ToolAnnotations
from pydantic import ValidationError

from tracekit.assistant.handlers import Handlers
from tracekit.assistant.tools import Tools
from tracekit.formats.errors import TracekitError
from tracekit.version import __version__

INSTRUCTIONS = """\
Memory profiles of recorded runs: which loops could run in parallel, which memory dependences keep others from it, \
what to change. Begin with list_runs, then list_loops of a trace, hottest first; dependences and annotated_source say \
more of a region; advice says what to do, and with patch=true gives OpenMP directives as a diff. A verdict is about \
the runs that were recorded, never a proof. Nothing here changes a file. The first question about a long trace may \
take minutes; `tracekit analyze -m camp -m accesses -o FILE trace.zst` makes a profile file, which answers at once."""

HINTS = ToolAnnotations(read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False)


class Server(MCPServer[Any]):
    """Says in one sentence what is wrong with a call."""

    takes: dict[str, list[str]]
    """The arguments of each tool."""

    async def call_tool(self, name: str, arguments: dict[str, Any], context: Context[Any, Any] | None = None) -> Any:
        """As the SDK has it, errors of ours and of arguments in our words; no arguments that it has not."""
        known = self.takes.get(name, list(arguments))
        unknown = [argument for argument in arguments if argument not in known]
        if unknown:
            raise ToolError(f"{name} takes no {', '.join(unknown)[:200]}; it takes {', '.join(known)}.")
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
    handlers = Handlers(tools).all()
    server.takes = {
        handler.__name__: [name for name in inspect.signature(handler).parameters if name != "context"]
        for handler in handlers
    }
    for handler in handlers:
        server.add_tool(handler, annotations=HINTS, structured_output=False)
    return server
