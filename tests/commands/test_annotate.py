"""`tracekit annotate`: notes beside lines, how sources are found, and what is said where they are not."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from pathlib import Path

import pytest

from tests.commands.test_merge import CHAINED, record
from tests.needs import needs
from tracekit.api import analyze
from tracekit.cli import main
from tracekit.formats.errors import TracekitError
from tracekit.profiles.annotation import Annotations, LineNote, shown_lines
from tracekit.program.sources import Sources, chosen_file
from tracekit.render.annotation import carried, files_text, source_text
from tracekit.render.text import Style

SOURCE = [f"line {number}" for number in range(1, 41)]


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A loop at line 7 of app.c, a load of line 8 and a store of line 9, chained."""
    folder = tmp_path_factory.mktemp("annotate")
    (folder / "app.c").write_text("\n".join(SOURCE) + "\n")
    return record(folder / "trace.zst", CHAINED)


def test_notes_stand_beside_their_lines(
    trace: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(trace.parent)
    assert main(["annotate", "trace.zst", "app.c"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[:2] == ["app.c", "LOADS  STORES  CARRIED     VERDICT   LINE  SOURCE"]
    shown = {line.split("line ")[-1]: line for line in lines if "line " in line and "LINE" not in line}
    assert shown["7"].split() == ["pipeline", "7", "line", "7"]
    assert shown["8"].split() == ["4", "RAW", "from", "9", "8", "line", "8"]
    assert shown["9"].split() == ["4", "RAW", "to", "8", "9", "line", "9"]
    assert [name for name in shown if name.isdecimal()] == [str(number) for number in range(4, 13)]
    assert main(["annotate", "trace.zst", "app.c", "--all"]) == 0
    assert sum(line.endswith(tuple(SOURCE)) for line in capsys.readouterr().out.splitlines()) == len(SOURCE)


def test_on_a_narrow_terminal_notes_stand_below_lines_that_have_no_room_beside_them(
    trace: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(trace.parent)
    monkeypatch.setenv("COLUMNS", "80")
    assert main(["annotate", "trace.zst", "app.c"]) == 0
    assert "LOADS  STORES  CARRIED" in capsys.readouterr().out, "short lines have room"
    text = [*SOURCE[:6], "    for (int i = 0; i < 100; i++) " + "total = " * 6 + "0;", *SOURCE[7:]]
    reports = [analyze(trace, module, jobs=1).report for module in ("camp", "accesses")]
    lines = source_text(Annotations(reports), "app.c", text, 1, Style(False, 60)).splitlines()
    assert lines[:8] == [
        "app.c",
        " 6  line 6",
        " 7      for (int i = 0; i < 100; i++) total = total = total",
        "        = total = total = total = 0;",
        "    ^ loop pipeline",
        " 8  line 8",
        "    ^ 4 loads; carried RAW from 9",
        " 9  line 9",
    ]
    assert max(map(len, lines)) <= 60
    wide = source_text(Annotations(reports), "app.c", text, 1, Style(False, 130)).splitlines()
    assert wide[1].split()[0] == "LOADS"


def test_without_a_file_the_files_are_listed(
    trace: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(trace.parent)
    assert main(["annotate", "trace.zst"]) == 0
    head, row = capsys.readouterr().out.splitlines()
    assert (head.split(), row.split()) == (
        ["FILE", "LOADS", "STORES", "SHARE", "LOOPS", "SOURCE"],
        ["app.c", "4", "4", "100.0%", "1", "found"],
    )


def test_files_are_listed_by_short_names_which_annotate_takes() -> None:
    files = ("/src/app/a.cc", "/usr/lib/gcc/12/../../../include/c++/12/bits/stl_vector.h", "/src/app/lib/b.h", "")
    rows = [
        {"instruction": {"file": file, "line": 3}, "loads": 9 - number, "stores": 0, "bytes": 8}
        for number, file in enumerate(files)
    ]
    notes = Annotations([{"module": "accesses", "result": {"instructions": rows}}])
    below, _, *listed = files_text(notes, [], {}, 0, Style(colour=False)).splitlines()
    assert below == "files below /src/app"
    assert [line.split("  ")[0] for line in listed] == [
        "a.cc",
        "bits/stl_vector.h",
        "lib/b.h",
        "(no debug information)",
    ]
    assert chosen_file("bits/stl_vector.h", files) == files[1]


def test_files_of_a_profile_without_accesses_have_no_numbers() -> None:
    loop = {"function": "f", "file": "/src/a.c", "line": 3, "column": 1, "depth": 1}
    row = {"loop": loop, "accesses": 5, "verdict": "doall", "invocations": 1, "iterations": 2, "carried": {}}
    notes = Annotations([{"module": "lamp", "result": {"loops": [row], "dependences": []}}])
    *_, listed, note = files_text(notes, [], {}, 0, Style(colour=False)).splitlines()
    assert listed.split()[1:] == ["-", "-", "-", "1", "-"]
    assert note == "The profile has no loads and stores of lines: analyze with -m accesses, too."


def test_json(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["annotate", str(trace), "app.c", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["file"], found["loads"], found["stores"]) == ("app.c", 4, 4)
    loop, load, store = found["lines"]
    assert (loop["line"], loop["loops"][0]["verdict"], loop["loops"][0]["carried"]) == (
        7,
        "pipeline",
        {"RAW": 1, "WAR": 0, "WAW": 0},
    )
    assert load["carried"] == [{"kind": "RAW", "way": "from", "file": "app.c", "line": 9, "count": 3}]
    assert (store["stores"], store["bytes"]) == (4, 32)
    assert main(["annotate", str(trace), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == [found]


def test_a_profile_file_will_do(trace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = ["--source", str(trace.parent)]
    profile = str(tmp_path / "app.profile")
    assert main(["analyze", "-m", "camp", "-m", "accesses", "-o", profile, str(trace)]) == 0
    assert main(["annotate", *source, profile, "app.c"]) == 0
    from_profile = capsys.readouterr().out
    assert main(["annotate", *source, str(trace), "app.c"]) == 0
    assert capsys.readouterr().out == from_profile
    assert main(["analyze", "-m", "camp", "-o", profile, str(trace)]) == 0
    assert main(["annotate", *source, profile, "app.c"]) == 0
    assert "no loads and stores of lines: analyze with -m accesses" in capsys.readouterr().out
    assert main(["analyze", "-m", "footprint", "-o", profile, str(trace)]) == 0
    assert main(["annotate", *source, profile, "app.c"]) == 1
    assert "says nothing of lines" in capsys.readouterr().err


def test_a_source_that_is_not_there_says_what_to_do(
    trace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["annotate", str(trace), "app.c"]) == 1
    err = capsys.readouterr().err
    assert err.count("\n") == 1 and "with --source DIR" in err and "--with-sources" in err
    assert main(["annotate", str(trace), "other.c"]) == 1
    assert "Nothing was recorded in other.c" in capsys.readouterr().err


def test_a_file_that_is_not_what_was_compiled(trace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "app.c").write_text("short\n")
    assert main(["annotate", "--source", str(tmp_path), str(trace), "app.c", "--all"]) == 0
    assert "3 lines with notes lie beyond the file's end" in capsys.readouterr().out


def test_sources_are_found_below_folders_and_nowhere_else(tmp_path: Path) -> None:
    (tmp_path / "in" / "src").mkdir(parents=True)
    (tmp_path / "in" / "src" / "a.c").write_text("inside\r\n")
    (tmp_path / "secret.c").write_text("outside\n")
    (tmp_path / "in" / "link.c").symlink_to(tmp_path / "secret.c")
    sources = Sources({"/gone/kept.c": b"in the trace\n\xff"}, [tmp_path / "in"])
    assert sources.lines("src/a.c") == sources.lines("/build/src/a.c") == ["inside"]
    assert sources.lines("../in/src/a.c") == ["inside"]
    assert sources.lines("/gone/kept.c") == ["in the trace", "\ufffd"]
    for outside in (
        str(tmp_path / "secret.c"),
        "../secret.c",
        "src/../../secret.c",
        "link.c",
        "",
        "\0",
        "/etc/passwd",
        "src",
    ):
        assert sources.lines(outside) is None, outside


def test_a_file_that_is_still_what_was_compiled_is_found_where_that_was(tmp_path: Path) -> None:
    for name in ("same.c", "other.c"):
        (tmp_path / name).write_text(f"int {name[0]};\n")
    digest = hashlib.md5(b"int s;\n").hexdigest()
    digests = {str(tmp_path / name): digest for name in ("same.c", "other.c", "none.c")}
    sources = Sources({}, (), str(tmp_path), digests)
    assert sources.lines("same.c") == sources.lines("./same.c") == sources.lines(f"{tmp_path}/same.c") == ["int s;"]
    assert sources.lines("other.c") is sources.lines("none.c") is None
    assert Sources({}, (), str(tmp_path)).lines("same.c") is None
    assert Sources({}, (), str(tmp_path), {str(tmp_path / "same.c"): ""}).lines("same.c") is None


@needs("headers")
def test_headers_of_the_system_are_found_where_they_are() -> None:
    sources = Sources({})
    assert sources.lines("/usr/include/stdio.h") == sources.lines("/usr/lib/none/1/../../../include/stdio.h")
    assert sources.lines("/usr/include/stdio.h") is not None
    for other in (
        "/usr/bin/env",
        "/usr/include/../../etc/passwd",
        "/usr/include",
        "stdio.h",
        "/build/stdio.h",
        "/etc/../usr/include/stdio.h",
    ):
        assert sources.lines(other) is None, other


def test_a_file_may_be_named_by_its_end() -> None:
    names = ["/b/src/a.c", "/b/test/a.c", "b.c"]
    assert chosen_file("src/a.c", names) == "/b/src/a.c"
    assert chosen_file("./b.c", names) == "b.c"
    with pytest.raises(TracekitError, match=r"may be /b/src/a.c, /b/test/a.c"):
        chosen_file("a.c", names)
    with pytest.raises(TracekitError, match="Nothing was recorded"):
        chosen_file("c.c", names)


@pytest.mark.parametrize(
    ("notes", "last", "around", "stretches"),
    [
        ([], 9, 3, []),
        ([5], 9, 1, [(4, 6)]),
        ([1, 9], 9, 2, [(1, 3), (7, 9)]),
        ([2, 6], 9, 1, [(1, 7)]),
        ([2, 7], 9, 1, [(1, 3), (6, 8)]),
        ([3, 40], 9, 0, [(3, 3)]),
        ([4, 5], 5, 9, [(1, 5)]),
    ],
)
def test_stretches(notes: list[int], last: int, around: int, stretches: list[tuple[int, int]]) -> None:
    assert shown_lines(notes, last, around) == stretches


def test_an_end_without_a_line_is_its_file_or_a_dash() -> None:
    ends = {("RAW", "to", "a.c", 0): 3, ("WAR", "from", "/x/b.c", 0): 2, ("WAW", "to", "", 0): 1}
    note = LineNote(ends=Counter(ends))
    assert carried(note, "a.c") == "RAW to -, WAR from b.c, WAW to -"
