"""`tracekit top`: what its panes hold, and what keys do, by Textual's pilot."""

from __future__ import annotations

import asyncio
import os
import pty
import select
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.commands.test_merge import CHAINED, record
from tests.query.reports import RESULTS
from tracekit.cli import main
from tracekit.formats.errors import TracekitError
from tracekit.inputs import Gathered, gather
from tracekit.profiles.profile import Profile
from tracekit.program.sources import Sources
from tracekit.top.view import ORDERS, View

pytest.importorskip("textual")


def of_results(results: dict[str, Any], sources: Sources | None = None) -> View:
    """A view of made-up results."""
    profiles = [
        Profile({"module": name, "trace": "0", "options": {}, "result": result}, {"accesses": 100}, True)
        for name, result in results.items()
    ]
    return View(Gathered(profiles), sources or Sources({}, only=True))


def place(line: int, kind: str = "load", file: str = "app.c") -> dict[str, Any]:
    return {"id": "a:1", "kind": kind, "function": "main", "file": file, "line": line, "column": 1, "inlined_at": []}


def loop(line: int, verdict: str, accesses: int, file: str = "app.c") -> dict[str, Any]:
    return {
        "loop": {"function": "main", "file": file, "line": line, "column": 5, "depth": 1},
        "context": {"id": 1, "root": "main", "path": [f"loop main:{line}"]},
        "invocations": 1,
        "iterations": 1000 - accesses,
        "accesses": accesses,
        "carried": {"raw": accesses % 3, "war": 0, "waw": 0},
        "verdict": verdict,
        "recipe": [],
        "blocked_by": [],
    }


def dependence(
    kind: str, row: dict[str, Any], source: int, destination: int, inter: bool, count: int
) -> dict[str, Any]:
    distance = 1 if inter else None
    level = {
        "loop": row["loop"], "intra": not inter, "inter": inter, "min_distance": distance, "max_distance": distance,
    }  # fmt: skip
    return {
        "kind": kind,
        "source": place(source, "store", row["loop"]["file"]),
        "destination": place(destination, "load", row["loop"]["file"]),
        "source_context": row["context"],
        "destination_context": row["context"],
        "levels": [level],
        "count": count,
    }


LOOPS = [
    loop(7, "pipeline", 60),
    loop(20, "doall", 30),
    loop(900, "sequential", 10),
    loop(3, "not-exercised", 0, "[bold]x.c"),
]
DEPENDENCES = [
    dependence("WAR", LOOPS[0], 8, 9, False, 50),
    dependence("RAW", LOOPS[0], 9, 8, True, 5),
    dependence("RAW", LOOPS[2], 950, 901, True, 7),
]
RESULT = {"camp": {"loops": LOOPS, "dependences": DEPENDENCES}, "accesses": {"instructions": []}}
TEXT = "".join(f"text {number} [red]\n" for number in range(1, 2001)).encode()


# -- the view --------------------------------------------------------------------------------------


def test_words_verdicts_and_orders() -> None:
    view = of_results(RESULT)

    def lines(*arguments: str) -> list[int]:
        return [row["loop"]["line"] for row in view.loops(*arguments)]

    assert lines() == [7, 20, 900, 3]
    assert lines("iterations") == [3, 900, 20, 7]
    assert lines("verdict") == [900, 7, 20, 3]
    assert lines("place") == [3, 7, 20, 900]
    assert lines("accesses", "MAIN app") == [7, 20, 900]
    assert lines("accesses", "", "doall") == [20]
    assert lines("accesses", "nothing") == []


def test_dependences_of_a_loop_those_that_it_carries_first() -> None:
    view = of_results(RESULT)
    first = view.loops()[0]
    found = view.dependences(first)
    assert [view.dependence_cells(each, first) for each in found] == [
        ("RAW", "5", "1", "store app.c:9:1", "load app.c:8:1"),
        ("WAR", "50", "within", "store app.c:8:1", "load app.c:9:1"),
    ]


@settings(max_examples=60)
@given(RESULTS, st.sampled_from(list(ORDERS)))
def test_views_of_random_profiles(results: dict[str, Any], order: str) -> None:
    view = of_results(results)
    rows = view.loops(order)
    assert len(rows) == view.count == len(results["camp"]["loops"])
    for row in rows:
        assert len(view.loop_cells(row)) == 5 and view.details(row) is not None
        expected = 0
        for each in results["camp"]["dependences"]:
            keys = ("function", "file", "line", "column", "depth")
            same = [
                level for level in each["levels"]
                if "recursion" not in level["loop"] and all(level["loop"][key] == row["loop"][key] for key in keys)
            ]  # fmt: skip
            inside = True
            if row["context"] is not None:
                for end in (each["source_context"], each["destination_context"]):
                    steps = row["context"]["path"]
                    inside = inside and end is not None and end["root"] == row["context"]["root"]
                    inside = inside and end["path"][: len(steps)] == steps
            expected += bool(same) and inside
        found = view.dependences(row)
        assert len(found) == expected
        carried = [view.dependence_cells(each, row)[2] != "within" for each in found]
        assert carried == sorted(carried, reverse=True)


def test_a_run_without_loops_is_refused() -> None:
    with pytest.raises(TracekitError, match="There are no loops to show"):
        of_results({"accesses": RESULT["accesses"]})


@pytest.mark.parametrize(
    "camp", [{}, {"loops": [3], "dependences": []}, {"loops": [{}], "dependences": [{"count": 1}]}]
)
def test_a_profile_that_is_none_of_ours(camp: dict[str, Any]) -> None:
    with pytest.raises(TracekitError, match="The profile of camp is not as this tracekit writes it"):
        of_results({"camp": camp})


# -- the terminal ----------------------------------------------------------------------------------


def piloted(talk: Callable[[Any, Any], Awaitable[None]], view: View | None = None) -> None:
    """Run the application with a pilot."""
    from tracekit.top.app import Top

    chosen = view or of_results(RESULT, Sources({"app.c": TEXT}, only=True))

    async def run() -> None:
        app = Top(chosen, "trace.zst")
        async with app.run_test(size=(160, 40)) as pilot:
            await pilot.pause()
            await talk(app, pilot)

    asyncio.run(asyncio.wait_for(run(), 120))


def screen(app: Any) -> str:
    return "\n".join("".join(part.text for part in strip) for strip in app.screen._compositor.render_strips())


async def press(pilot: Any, *keys: str) -> None:
    await pilot.press(*keys)
    await pilot.pause()


def cursor(app: Any, name: str) -> list[str]:
    """The cells of the row that a pane's cursor is on."""
    table = app.table(name)
    return [cell.plain for cell in table.get_row_at(table.cursor_row)]


def test_the_hottest_loop_is_shown_first_with_its_source_and_dependences() -> None:
    async def talk(app: Any, pilot: Any) -> None:
        text = screen(app)
        assert "trace.zst: 4 of 4 loops by accesses" in text
        assert cursor(app, "loops") == ["pipeline", "app.c:7:5 main", "60.0%", "940", "-"]
        assert cursor(app, "source")[::4] == ["7", "text 7 [red]"]
        assert "text 7 [red]" in text and "2 dependences inside" in text
        await press(pilot, "down", "down")
        assert cursor(app, "source")[::4] == ["900", "text 900 [red]"]
        assert app.table("source").row_count == 801
        assert "text 900 [red]" in screen(app)
        await press(pilot, "down")
        assert "The source [bold]x.c is neither in the trace" in screen(app)
        assert app.table("source").row_count == 0 and app.table("dependences").row_count == 0

    piloted(talk)


def test_a_cell_is_not_cut_that_is_drawn_before_textual_measures_it() -> None:
    async def talk(app: Any, pilot: Any) -> None:
        row = {**loop(7, "doall", 60), "iterations": 123_456_789}
        app.view = of_results({**RESULT, "camp": {"loops": [row], "dependences": []}}, app.view.sources)
        app.show_loops()
        assert "123,456,789" in "".join(part.text for part in app.table("loops").render_line(1))

    piloted(talk)


def test_more_dependences_than_a_pane_has() -> None:
    many = [dependence("RAW", LOOPS[0], 9, 8, True, 5)] * 501
    view = of_results({**RESULT, "camp": {"loops": LOOPS, "dependences": many}}, Sources({"app.c": TEXT}, only=True))

    async def talk(app: Any, pilot: Any) -> None:
        assert "501 dependences inside, those that it carries first; the first 500" in screen(app)
        assert app.table("dependences").row_count == 500

    piloted(talk, view)


def test_keys() -> None:
    async def talk(app: Any, pilot: Any) -> None:
        await press(pilot, "s")
        assert "by iterations" in screen(app) and cursor(app, "loops")[0] == "not-exercised"
        await press(pilot, "v")
        assert app.verdict == "sequential" and app.table("loops").row_count == 1
        await press(pilot, "escape")
        assert app.table("loops").row_count == 4
        await press(pilot, "slash", *"doall")
        assert [row["verdict"] for row in app.rows] == ["doall"]
        await press(pilot, "enter")
        assert app.focused.id == "loops" and "doall" in screen(app).splitlines()[0]
        await press(pilot, "slash", *"nothing")
        assert app.table("loops").row_count == 0 and app.table("source").row_count == 0
        await press(pilot, "escape")
        assert app.table("loops").row_count == 4
        await press(pilot, "q")
        assert app.return_code == 0

    piloted(talk)


def test_enter_goes_to_the_ends_of_a_dependence() -> None:
    async def talk(app: Any, pilot: Any) -> None:
        await press(pilot, "tab", "tab")
        assert app.focused.id == "dependences"
        for line in ("9", "8", "9"):
            await press(pilot, "enter")
            assert cursor(app, "source")[0] == line
        await press(pilot, "down", "enter")
        assert cursor(app, "source")[0] == "8"

    piloted(talk)


def test_a_small_terminal_and_a_run_of_a_trace(tmp_path: Path) -> None:
    trace = record(tmp_path / "one.zst", CHAINED)

    async def talk(app: Any, pilot: Any) -> None:
        await pilot.resize_terminal(20, 5)
        await press(pilot, "down", "tab", "down", "tab", "down", "enter")
        await pilot.resize_terminal(160, 40)
        await pilot.pause()
        assert cursor(app, "loops") == ["pipeline", "app.c:7:1 main", "100.0%", "4", "1 RAW"]

    gathered = gather(str(trace), ["camp", "accesses"], 1)
    piloted(talk, View(gathered, Sources({"app.c": TEXT}, only=True)))


@pytest.mark.parametrize("key", [b"q", b"\x03"], ids=["q", "ctrl-c"])
def test_the_command(tmp_path: Path, key: bytes) -> None:
    trace = record(tmp_path / "one.zst", CHAINED)
    master, slave = pty.openpty()
    command = [sys.executable, "-m", "tracekit", "top", str(trace)]
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "120", "LINES": "40"}
    process = subprocess.Popen(command, stdin=slave, stdout=slave, stderr=slave, env=environment, cwd=tmp_path)
    os.close(slave)
    seen, ends = b"", time.monotonic() + 120
    while b"one.zst: 1 of 1 loop" not in seen:
        ready, _, _ = select.select([master], [], [], max(ends - time.monotonic(), 0))
        assert ready, seen
        seen += os.read(master, 65536)
    os.write(master, key)
    while process.poll() is None:
        assert time.monotonic() < ends
        if select.select([master], [], [], 0.1)[0]:
            try:
                os.read(master, 65536)
            except OSError:
                break
    assert process.wait(30) == 0
    os.close(master)


def test_misuse(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["top", str(tmp_path / "none.zst")]) == 2
    assert capsys.readouterr().err.startswith("tracekit: tracekit top is for a terminal; ")
    monkeypatch.setitem(sys.modules, "textual", None)
    assert main(["top", str(tmp_path / "none.zst")]) == 2
    assert capsys.readouterr().err == (
        "tracekit: tracekit top needs textual, which is not installed: pip install 'tracekit[top]'\n"
    )
