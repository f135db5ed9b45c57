"""The session of docs/mcp.md, with the SDK's own client over standard input and output."""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.packaging.test_docs import BLOCK, ROOT, run_console, sessions, steady

pytest.importorskip("mcp")
pytest.importorskip("duckdb")

PAGE = (ROOT / "docs/mcp.md").read_text()
QUERIES = (ROOT / "docs/query.md").read_text()


def comparable(text: str) -> str:
    """Without what no two recordings share."""
    return re.sub(r"[\d,]+ bytes", "... bytes", steady(text))


def test_the_session(tmp_path: Path) -> None:
    from mcp import Client, StdioServerParameters, stdio_client

    ((_, name, text),) = [block for block in BLOCK.findall(QUERIES) if block[1]]
    (tmp_path / name).write_text(text)
    run_console(tmp_path, "\n".join(sessions(QUERIES)[0].splitlines()[:2]))  # compiles, records
    asked = [text for kind, _, text in BLOCK.findall(PAGE) if kind == "mcp"]
    assert len(asked) == PAGE.count("```mcp\n") > 7

    async def talk() -> None:
        environment = {key: os.environ[key] for key in ("XDG_CACHE_HOME",) if key in os.environ}
        server = StdioServerParameters(
            command=sys.executable,
            args=["-P", "-m", "tracekit", "mcp", "-j", "1"],
            env={**environment, "PYTHONPATH": str(ROOT)},
            cwd=tmp_path,
        )
        async with Client(stdio_client(server), read_timeout_seconds=300) as client:
            for block in asked:
                question, _, expected = block.partition("\n")
                word, tool, arguments = question.split(" ", 2)
                assert word == ">"
                answer: Any = await client.call_tool(tool, json.loads(arguments))
                shown = "error: " * answer.is_error + answer.content[0].text
                assert comparable(shown) == comparable(expected.removesuffix("\n"))

    asyncio.run(asyncio.wait_for(talk(), 550))


def test_the_settings_are_json_and_the_tools_are_all_named() -> None:
    from tracekit.assistant.server import make_server
    from tracekit.assistant.tools import Tools

    (settings,) = [text for kind, _, text in BLOCK.findall(PAGE) if kind == "json"]
    assert json.loads(settings)["mcpServers"]["tracekit"]["args"][0] == "mcp"
    rows = [line.split("|")[1] for line in PAGE.splitlines() if line.startswith("| `")]
    listed = asyncio.run(make_server(Tools(["."])).list_tools())
    assert [name for row in rows for name in re.findall(r"`(\w+)`", row)] == [tool.name for tool in listed]
