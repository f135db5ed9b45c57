"""The tools of the MCP server: what they find, in pages, inside the folders, and what they refuse."""

from __future__ import annotations

import re
import shutil
import tempfile
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.commands.test_merge import CHAINED, FAR, record
from tests.query.reports import RESULTS, written
from tracekit import api
from tracekit.assistant import answers, tools
from tracekit.assistant.answers import MOST, bounded, page
from tracekit.assistant.folders import Folders
from tracekit.assistant.tools import Tools
from tracekit.formats.errors import TracekitError
from tracekit.profiles import files

SOURCE = "".join(f"line {number}\n" for number in range(1, 41))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs of a loop at line 7 of app.c, and the source."""
    made = tmp_path_factory.mktemp("assistant")
    record(made / "one.zst", CHAINED)
    record(made / "two.zst", FAR)
    (made / "app.c").write_text(SOURCE)
    files.save(made / "one.profile", [api.analyze(made / "one.zst", "camp")])
    return made


@pytest.fixture
def served(folder: Path) -> Tools:
    """Tools for that folder."""
    return Tools([folder], 1)


# -- what they find --------------------------------------------------------------------------------


def test_loops(served: Tools) -> None:
    lines = served.list_loops("one.zst").splitlines()
    assert lines[:4] == [
        "1 loop; 1 to 1:",
        "1. pipeline: app.c:7:1 main; 100.0% of accesses, 4 iterations in 1 invocation; carries 1 RAW",
        "   in main  [1]",
        "   blocked: store app.c:9:1 main -> load app.c:8:1 main",
    ]
    assert "A verdict is about this run." in lines[5]
    assert served.list_loops("one.profile") == served.list_loops("one.zst")
    assert served.list_loops("one.zst", verdict="doall").startswith("There is no loop.")
    assert served.list_loops("one.zst", function="main", file="app.c", min_share=100.0).splitlines() == lines


def test_dependences(served: Tools) -> None:
    text = served.dependences("one.zst", "app.c", 8)
    assert text.splitlines() == [
        "1 dependence; 1 to 1:",
        "1. RAW, 3 times: store app.c:9:1 main -> load app.c:8:1 main",
        "   carried by loop main:7, distance 1",
        "   in main > loop main:7  [1]",
    ]
    assert served.dependences("one.zst", function="main", carried_only=True, kind="RAW") == text
    assert served.dependences("one.zst", "app.c", 1, 40) == text
    assert served.dependences("one.zst", "app.c", 10, 40) == "There is no dependence."
    assert served.dependences("one.zst", kind="WAW") == "There is no dependence."


def test_source(served: Tools) -> None:
    text = served.annotated_source("one.zst", "app.c", 7, 9)
    assert [line.split("line ")[-1] for line in text.splitlines()[2:5]] == ["7", "8", "9"]
    assert "pipeline" in text and "RAW to 8" in text
    assert "line 6" not in text and "line 10" not in text
    whole = served.annotated_source("one.zst", "app.c")
    assert [number for number in range(1, 41) if f"line {number}\n" in whole] == list(range(4, 13))
    assert served.annotated_source("one.zst").splitlines()[1].split()[0] == "app.c"
    with pytest.raises(TracekitError, match=r"app\.c has 40 lines"):
        served.annotated_source("one.zst", "app.c", 41, 50)


def test_advice(served: Tools) -> None:
    text = served.advice("one.zst")
    assert "1. app.c:7:1 main, 100.0% of all accesses: pipeline" in text and "patch" not in text
    assert served.advice("one.zst", "app.c:7", patch=True).endswith("No patch: there is no directive to insert.")
    with pytest.raises(TracekitError, match="at is a FILE:LINE"):
        served.advice("one.zst", "app.c")


def test_two_runs(served: Tools) -> None:
    text = served.compare_runs("one.zst", "two.zst")
    assert text.startswith("camp: one.zst -> two.zst\n")
    assert "distance [1, 1] -> [3, 3]" in text or "distance" in text
    assert "DEPENDENCES: 0 new, 0 gone, 0 changed, 1 the same" in served.compare_runs("one.profile", "one.zst")


def test_queries(served: Tools, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("duckdb")
    assert served.query("one.zst", "select line, verdict from loops") == "line,verdict\n7,pipeline"
    assert served.query("one.zst", "from range(9)", 2) == (
        "range\n0\n1\nThere are more than 2 rows: use LIMIT and OFFSET, or a greater limit."
    )
    assert served.tables("lives").startswith("lives: ")
    assert "\nloops " in served.tables()
    monkeypatch.setattr(tools, "QUERY_SECONDS", 0.3)
    before = threading.active_count()
    with pytest.raises(TracekitError, match=r"The query took longer than 0\.3 seconds\."):
        served.query("one.zst", "SELECT sum(a.range * b.range) FROM range(10000000) a, range(10000000) b")
    assert served.query("one.zst", "select 1 as one") == "one\n1"
    assert threading.active_count() <= before + 1


def test_a_trace_that_is_cut_off_is_said_to_be(tmp_path: Path) -> None:
    pytest.importorskip("duckdb")
    whole = record(tmp_path / "whole.zst", CHAINED * 400)
    path = tmp_path / "cut.zst"
    path.write_bytes(whole.read_bytes()[: -whole.stat().st_size // 10])
    served = Tools([tmp_path], 1)
    assert ", cut off" in served.list_runs() and served.list_runs().count("cut off") == 1
    note = "\n\nThe trace is cut off: this is of what it holds."
    for text in (
        served.list_loops("cut.zst"),
        served.dependences("cut.zst"),
        served.advice("cut.zst"),
        served.compare_runs("whole.zst", "cut.zst"),
        served.query("cut.zst", "select count(*) from loops"),
    ):
        assert text.endswith(note)
    assert note not in served.list_loops("whole.zst")


def test_a_run_that_changed_is_read_again(folder: Path, tmp_path: Path) -> None:
    shutil.copy(folder / "one.zst", tmp_path / "run.zst")
    served = Tools([tmp_path], 1)
    assert "pipeline" in served.list_loops("run.zst")
    record(tmp_path / "run.zst", [(4096 + 8 * number, 8192 + 8 * number) for number in range(5)])
    assert "doall" in served.list_loops("run.zst")


# -- pages -----------------------------------------------------------------------------------------


@given(st.lists(st.integers(0, 3000), min_size=1, max_size=60), st.integers(1, 40))
def test_pages_together_have_every_row_once(sizes: list[int], limit: int) -> None:
    rows = [(number, size) for number, size in enumerate(sizes)]
    seen, start, asked = [], 1, 0
    while True:
        text = page(rows, start, limit, "row", lambda row: [f"<{row[0]}>", "x" * row[1]])
        asked += 1
        assert len(text) <= MOST + 100
        seen += [int(word) for word in re.findall(r"<(\d+)>", text)]
        going_on = re.search(r"ask again with start=(\d+)\.$", text)
        if not going_on:
            break
        assert int(going_on[1]) > start
        start = int(going_on[1])
    assert seen == list(range(len(rows)))
    assert text.startswith(f"{len(rows):,} row")


def test_one_row_that_is_too_long_is_cut() -> None:
    text = page(["x" * 100 + "\n" + "y" * MOST], 1, 1, "row", lambda row: [row])
    assert len(text) < MOST + 100 and text.endswith("more characters: ask for fewer rows with limit.")
    assert bounded("short\n", "") == "short"


@pytest.mark.parametrize("start, limit", [(0, 5), (1, 0), (1, answers.LARGEST_PAGE + 1), (4, 1)])
def test_pages_that_make_no_sense(start: int, limit: int) -> None:
    with pytest.raises(TracekitError, match=r"start is at (least|most)"):
        page([1, 2, 3], start, limit, "row", lambda row: [str(row)])


def chosen(rows: list[Any], ends: tuple[str, ...], function: str, file: str, first: int, last: int) -> int:
    """How many rows have an end there, one by one."""
    count = 0
    for row in rows:
        hit = False
        for end in ends:
            for place in [row[end], *row[end].get("inlined_at", [])]:
                is_function = function in ("", place["function"])
                is_file = file == "" or ("/" + place["file"]).endswith("/" + file)
                is_line = first == 0 or first <= place["line"] <= last
                hit = hit or (is_function and is_file and is_line)
        count += hit
    return count


@settings(max_examples=40)
@given(RESULTS, st.sampled_from(["", "main", "f"]), st.sampled_from(["", "app.c", "x.h"]), st.integers(0, 9))
def test_regions(results: dict[str, Any], function: str, file: str, first: int) -> None:
    first, last = (first, first + 3) if file and first else (0, 0)
    camp = results["camp"]
    with tempfile.TemporaryDirectory() as name:
        written(Path(name, "a.profile"), results)
        served = Tools([name])
        for ask, rows, ends in (
            (lambda: served.dependences("a.profile", file, first, last, function), camp["dependences"],
             ("source", "destination")),
            (lambda: served.list_loops("a.profile", function, file), camp["loops"], ("loop",)),
        ):  # fmt: skip
            region = (function, file, first, last) if "source" in ends else (function, file, 0, 0)
            expected = chosen(rows, ends, *region)
            try:
                text = ask()
            except TracekitError as error:
                text = str(error)
            found = re.match(r"(\d+) (dependence|loop)", text)
            assert (int(found[1]) if found else 0) == expected
            assert found or text.startswith(("There is no ", "Nothing of this kind was seen in a "))


# -- what they refuse ------------------------------------------------------------------------------


def test_nothing_outside_the_folders_is_read(folder: Path, tmp_path: Path) -> None:
    inside = tmp_path / "inside"
    inside.mkdir()
    shutil.copy(folder / "one.zst", inside / "mine.zst")
    (inside / "link.zst").symlink_to(folder / "one.zst")
    (inside / "round").symlink_to(inside / "round")
    served = Tools([inside], 1)
    outside = [str(folder / "one.zst"), "../inside/../../one.zst", "link.zst", "/etc/passwd", "..", "a\0b", "round"]
    for name in outside:
        with pytest.raises(TracekitError, match=r"which is all that this server reads|There is no file"):
            served.list_loops(name)
    assert "pipeline" in served.list_loops(str(inside / "mine.zst"))
    assert "pipeline" in served.list_loops("../inside/mine.zst")
    assert served.list_runs().splitlines() == [
        "1 file; 1 to 1:",
        f"1. mine.zst, {(inside / 'mine.zst').stat().st_size:,} bytes, trace of ./app",
    ]


def test_sources_outside_the_folders_are_not_shown(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copy(folder / "one.zst", tmp_path / "one.zst")
    monkeypatch.chdir(folder)  # where the source is
    with pytest.raises(TracekitError, match="neither in the trace nor below the folders that may be read"):
        Tools([tmp_path], 1).annotated_source("one.zst", "app.c", 7)
    assert "line 7" in Tools([tmp_path, folder], 1).annotated_source("one.zst", "app.c", 7)


def test_runs_of_several_folders_are_listed_once(folder: Path) -> None:
    below = folder / ".hidden"
    below.mkdir(exist_ok=True)
    shutil.copy(folder / "one.zst", below / "x.zst")
    names = [path.name for path in Folders([folder, folder.parent / folder.name]).runs()]
    assert names == ["one.profile", "one.zst", "two.zst"]
    (folder / "bad.zst").write_text("bad")
    try:
        assert "bad.zst, 3 bytes, no trace that can be read" in Tools([folder]).list_runs()
        with pytest.raises(TracekitError, match="is not a tracekit trace"):
            Tools([folder]).list_loops("bad.zst")
    finally:
        (folder / "bad.zst").unlink()


@pytest.mark.parametrize(
    "ask, sentence",
    [
        (lambda served: served.list_loops("none.zst"), r"There is no file 'none\.zst' below .*; list_runs lists"),
        (lambda served: served.list_loops("one.zst", verdict="fine"), "A verdict is one of .*, not 'fine'"),
        (lambda served: served.list_loops("one.zst", function="gone"), "was seen in a function 'gone'"),
        (lambda served: served.dependences("one.zst", "none.c"), r"was seen in a file none\.c"),
        (lambda served: served.dependences("one.zst", "app.c", 9, 8), "The last line, 8, is before the first, 9"),
        (lambda served: served.dependences("one.zst", first_line=8), "name the file, too"),
        (lambda served: served.dependences("one.zst", kind="RAR"), "A kind is RAW, WAR or WAW, not 'RAR'"),
        (lambda served: served.annotated_source("one.zst", "none.c"), r"Nothing was recorded in none\.c"),
        (lambda served: served.compare_runs("one.zst", "two.zst", limit=0), "limit is from 1 to 200, not 0"),
        (lambda served: served.tables("none"), "There is no table 'none'"),
        (lambda served: served.query("one.zst", "from loops", 0), "limit is from 1 to 200, not 0"),
        (lambda served: served.query("one.zst", "drop table loops"), "Queries only read"),
    ],
)
def test_what_is_wrong_is_one_sentence(ask: Any, sentence: str, served: Tools) -> None:
    with pytest.raises(TracekitError, match=sentence) as raised:
        ask(served)
    assert "\n" not in str(raised.value) and str(raised.value).endswith(".")
