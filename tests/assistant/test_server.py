"""`tracekit mcp`, by the SDK's own client over standard input and output."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from tests.commands.test_merge import CHAINED, record
from tracekit.assistant.tools import Tools
from tracekit.cli import main

pytest.importorskip("mcp")

NAMES = ["list_runs", "list_loops", "dependences", "annotated_source", "advice", "compare_runs", "tables", "query"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a trace."""
    made = tmp_path_factory.mktemp("server")
    record(made / "one.zst", CHAINED)
    return made


def session(folder: Path, talk: Callable[[Any], Awaitable[None]]) -> None:
    """Talk to a server of a folder."""
    from mcp import Client, StdioServerParameters, stdio_client

    async def run() -> None:
        environment = {name: os.environ[name] for name in ("PYTHONPATH", "XDG_CACHE_HOME") if name in os.environ}
        command = StdioServerParameters(
            command=sys.executable, args=["-m", "tracekit", "mcp", str(folder)], env=environment
        )
        async with Client(stdio_client(command), read_timeout_seconds=300) as client:
            await talk(client)

    asyncio.run(asyncio.wait_for(run(), 500))


def test_tools_are_listed_and_only_read(folder: Path) -> None:
    async def talk(client: Any) -> None:
        assert client.server_info.name == "tracekit" and "list_runs" in client.instructions
        listed = (await client.list_tools()).tools
        assert [tool.name for tool in listed] == NAMES
        for tool in listed:
            assert tool.description and hasattr(Tools, tool.name)
            assert tool.annotations.read_only_hint and not tool.annotations.destructive_hint
            assert all(field["description"] for field in tool.input_schema["properties"].values())

    session(folder, talk)


def test_answers_are_those_of_the_tools_and_failures_are_sentences(folder: Path) -> None:
    expected = Tools([folder], 1)
    calls: list[tuple[str, dict[str, Any]]] = [
        ("list_runs", {}),
        ("list_loops", {"trace": "one.zst", "verdict": "pipeline"}),
        ("dependences", {"trace": "one.zst", "file": "app.c", "first_line": 8, "last_line": 9}),
        ("annotated_source", {"trace": "one.zst"}),
        ("advice", {"trace": "one.zst", "at": "app.c:7", "patch": True}),
        ("compare_runs", {"before": "one.zst", "after": "one.zst"}),
        ("tables", {"table": "loops"}),
        ("query", {"trace": "one.zst", "sql": "select verdict from loops"}),
    ]
    wrong: list[tuple[str, dict[str, Any], str]] = [
        ("list_loops", {"trace": "/etc/passwd"}, f"'/etc/passwd' is not below {folder}, which is all that this"),
        ("list_loops", {"trace": ""}, f"There is no file '' below {folder}; list_runs lists"),
        ("list_loops", {"trace": "x" * 10_000}, f"There is no file '{'x' * 200}' below {folder}; list_runs lists"),
        ("list_loops", {"trace": "one.zst", "min_share": "nan"}, "The arguments of list_loops are wrong: min_share: "),
        ("list_loops", {"trace": "one.zst", "min_share": 101}, "The arguments of list_loops are wrong: min_share: "),
        ("tables", {"trace": "one.zst"}, "tables takes no trace; it takes table."),
        ("list_loops", {}, "The arguments of list_loops are wrong: trace: Field required."),
        ("list_loops", {"trace": "one.zst", "start": "x"}, "The arguments of list_loops are wrong: start: "),
        ("query", {"trace": "one.zst", "sql": "selec"}, 'The query fails: syntax error at or near "selec".'),
        ("nothing", {}, "Unknown tool: nothing"),
    ]

    async def talk(client: Any) -> None:
        for name, arguments in calls:
            answer = await client.call_tool(name, arguments)
            assert not answer.is_error, answer
            assert answer.content[0].text == getattr(expected, name)(**arguments)
        for name, arguments, sentence in wrong:
            answer = await client.call_tool(name, arguments)
            assert answer.is_error and answer.content[0].text.startswith(sentence)
            assert "\n" not in answer.content[0].text
        together = [client.call_tool("list_loops", {"trace": "one.zst"}) for _ in range(4)]
        assert len({answer.content[0].text for answer in await asyncio.gather(*together)}) == 1

    session(folder, talk)


def test_progress_is_told_to_those_who_ask(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import time

    from mcp import Client

    from tracekit import progress
    from tracekit.assistant import handlers, server

    monkeypatch.setattr(handlers, "REPORT_PERIOD", 0.05)
    monkeypatch.setattr(progress, "_open", [])  # a replay that another test left in the middle has its step there
    tools = Tools([folder], 1)
    slow = tools.list_runs

    def slowly(*arguments: Any) -> str:
        time.sleep(0.5)
        return slow(*arguments)

    monkeypatch.setattr(tools, "list_runs", slowly)
    reports: list[tuple[float, str | None]] = []

    async def noted(done: float, total: float | None, message: str | None) -> None:
        reports.append((done, message))

    async def talk() -> None:
        async with Client(server.make_server(tools)) as client:
            answer = await client.call_tool("list_runs", {}, progress_callback=noted)
            assert "one.zst" in answer.content[0].text

    asyncio.run(talk())
    assert len(reports) > 2 and reports == sorted(reports) and reports[0][1] == "working"


def test_the_server_ends_with_its_input(folder: Path) -> None:
    command = [sys.executable, "-m", "tracekit", "mcp", str(folder)]
    done = subprocess.run(command, input="", capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_misuse(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["mcp", str(folder / "none")]) == 2
    capsys.readouterr()
    monkeypatch.setitem(sys.modules, "mcp", None)
    assert main(["mcp", str(folder)]) == 2
    assert capsys.readouterr().err == (
        "tracekit: tracekit mcp needs mcp, which is not installed: pip install 'tracekit[mcp]'\n"
    )


def test_ctrl_c_ends_the_server_while_its_input_is_open(folder: Path) -> None:
    hello = {"protocolVersion": "2024-11-05", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    message = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}
    server = subprocess.Popen(
        [sys.executable, "-m", "tracekit", "mcp", str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert server.stdin and server.stdout
    try:
        server.stdin.write(json.dumps(message).encode() + b"\n")
        server.stdin.flush()
        assert b"serverInfo" in server.stdout.readline()
        server.send_signal(signal.SIGINT)
        assert server.wait(timeout=60) == -signal.SIGINT
    finally:
        server.kill()
        server.communicate()
