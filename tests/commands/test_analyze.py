"""`tracekit analyze` and `tracekit modules`: what they print, where, and how they exit."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

import tracekit
from tests.naive.program_builder import ProgramBuilder
from tests.naive.trace_file import write_trace
from tracekit import __version__
from tracekit.cli import main
from tracekit.formats.image import BlockFlag, OpKind
from tracekit.formats.reader import TraceReader
from tracekit.modules.runners import MOST_WORKERS


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """main runs a loop of 5 iterations, `a[i] = a[i - 1]`, at line 7: load of line 8, store of line 9."""
    b = ProgramBuilder()
    f = b.function("main")
    entry = b.block(f, BlockFlag.ENTRY)
    loop = b.loop(f, line=7)
    header = b.block(f, BlockFlag.LOOP_HEADER, loop)
    body = b.block(f, BlockFlag.LATCH, loop)
    b.op(body, OpKind.LOAD, 8, line=8)
    b.op(body, OpKind.STORE, 8, line=9)
    leave = b.block(f, BlockFlag.RETURNS)
    paths = [b.path(block) for block in (entry, header, body, leave)]
    enter, test, work, end = (b.layout().path_number(path) for path in paths)
    records: list[tuple[int, list[int]]] = [(enter, [])]
    for number in range(5):
        records += [(test, []), (work, [4096 + 8 * number, 4104 + 8 * number])]
    records += [(test, []), (end, [])]
    path = tmp_path_factory.mktemp("analyze") / "trace.zst"
    write_trace(path, b.layout(), {0: records})
    return path


def test_json_has_the_promised_shape(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["analyze", "-m", "camp", "--json", str(trace)]) == 0
    report = json.loads(capsys.readouterr().out)
    assert list(report) == ["tracekit", "module", "trace", "options", "result"]
    assert (report["tracekit"], report["module"]) == (__version__, "camp")
    with TraceReader(trace) as reader:
        assert report["trace"] == reader.content_hash
    result = report["result"]
    assert list(result) == ["dependences", "loops", "summary"]
    (flow,) = result["dependences"]
    assert (flow["kind"], flow["source"]["line"], flow["destination"]["line"], flow["count"]) == ("RAW", 9, 8, 4)
    (level,) = flow["levels"]
    assert (level["loop"]["line"], level["intra"], level["inter"]) == (7, False, True)
    assert (level["min_distance"], level["max_distance"]) == (1, 1)
    (loop,) = result["loops"]
    assert list(loop) == [
        "loop",
        "context",
        "invocations",
        "iterations",
        "accesses",
        "carried",
        "verdict",
        "recipe",
        "blocked_by",
        "rests_on",
        "not_taken",
    ]
    assert (loop["invocations"], loop["iterations"], loop["accesses"]) == (1, 5, 10)
    assert loop["carried"] == {"raw": 1, "war": 0, "waw": 0}
    assert loop["context"] == {"id": 1, "root": "main", "path": ["loop main:7"]}
    assert list(result["summary"]) == [
        "dependences",
        "contexts",
        "contexts_without_id",
        "recursive_contexts",
        "limited_contexts",
        "parallel_loops_lamp",
        "parallel_loops_camp",
        "false_positive_share",
    ]


def test_several_modules_give_a_list_and_two_runs_the_same_bytes(
    trace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["analyze", "-m", "lamp", "--module=camp", "--format", "json", str(trace)]
    assert main(words) == 0
    first = capsys.readouterr().out
    assert [report["module"] for report in json.loads(first)] == ["lamp", "camp"]
    assert list(json.loads(first)[0]["result"]["summary"]) == ["dependences"]
    assert main(words) == 0
    assert capsys.readouterr().out == first


def test_a_file_is_always_json(trace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It holds what is printed, and more."""
    profile = tmp_path / "profile.json"
    assert main(["analyze", "-m", "camp", "-o", str(profile), str(trace)]) == 0
    assert capsys.readouterr().out == ""
    assert main(["analyze", "-m", "camp", "--json", str(trace)]) == 0
    written = json.loads(profile.read_text())
    assert json.loads(capsys.readouterr().out) == tracekit.load_profile(profile).report
    assert written["format"] == 2 and written["build"] and written["images"]
    assert list(written)[-1] == "evidence"


def test_the_text_tells_verdict_obstacle_and_dependence(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["analyze", "-m", "camp", str(trace)]) == 0
    out = capsys.readouterr().out
    for line in (
        "app.c:7:1 main",
        "blocked: store app.c:9:1 main -> load app.c:8:1 main",
        "carried by loop main:7, distance 1",
        "in main > loop main:7  [1]",
        "1 dependence in 2 contexts",
    ):
        assert line in out
    assert "A verdict is about this run." in out
    assert "\x1b" not in out


def test_options_of_one_module_are_options_of_the_command(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["analyze", "-m", "camp", "--kinds", "war", "--json", str(trace)]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["options"] == {"kinds": "war", "carried_by": "", "contexts": "dynamic"}
    assert report["result"]["dependences"] == []
    assert report["result"]["summary"]["dependences"] == 1
    assert main(["analyze", "--set", "camp.carried_by=app.c:7", "-m", "camp", "--json", str(trace)]) == 0
    assert len(json.loads(capsys.readouterr().out)["result"]["dependences"]) == 1


def test_help_of_a_module_shows_its_options(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["analyze", "-m", "camp", "--help"]) == 0
    assert "--carried-by FILE:LINE" in capsys.readouterr().out
    assert main(["analyze", "--help"]) == 0
    assert "--carried-by" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["-m", "cramp"], "There is no module 'cramp'. Did you mean camp? The modules are: "),
        (["-m", "kamp"], "There is no module 'kamp'. Did you mean camp or lamp? The modules are: "),
        (["-m", "./no/mine.py"], "There is no file ./no/mine.py, by which a module is named.\n"),
        (["-m", "camp", "--kinds", "rar"], "camp: kinds are raw, war and waw"),
        (["-m", "camp", "--carried-by", "7"], "camp: carried-by is a FILE:LINE"),
        (["-m", "camp", "--set", "camp.colour=red"], "camp: there is no option 'colour'"),
        (["-m", "camp", "--set", "lamp.kinds=raw"], "module 'lamp' is not one that this command runs"),
        (["-m", "camp", "--set", "kinds"], "--set takes MODULE.OPTION=VALUE"),
        (["-m", "camp", "-m", "lamp", "--kinds", "raw"], "theirs are given as --set MODULE.OPTION=VALUE"),
    ],
)
def test_misuse_is_one_sentence_and_status_2(
    words: list[str], message: str, trace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["analyze", *words, str(trace)]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("tracekit: ")
    assert message in captured.err
    assert captured.err.count("\n") == 1


@pytest.mark.parametrize("case", ["missing", "text", "directory"])
def test_a_file_that_is_no_trace_is_refused(case: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "it"
    if case == "text":
        path.write_text("hello\n" * 100)
    elif case == "directory":
        path.mkdir()
    assert main(["analyze", "-m", "camp", str(path)]) == 1
    captured = capsys.readouterr()
    assert captured.err.startswith("tracekit: ") and captured.err.count("\n") == 1
    assert captured.out == ""


def test_a_truncated_trace_is_analysed_with_a_note(
    trace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with TraceReader(trace) as reader:
        end = reader.chunk_frames()[-1].end
    path = tmp_path / "cut.zst"
    path.write_bytes(trace.read_bytes()[: end + 3])
    assert main(["analyze", "-m", "lamp", "--json", str(path)]) == 0
    captured = capsys.readouterr()
    assert "cut off" in captured.err
    report: dict[str, Any] = json.loads(captured.out)
    assert report["result"]["summary"] == {"dependences": 1}


def test_a_trace_that_was_cut_while_the_program_ran_on_is_analysed_with_a_note(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    b = ProgramBuilder()
    b.path(b.block(b.function("main"), BlockFlag.ENTRY | BlockFlag.RETURNS))
    path = tmp_path / "trace.zst"
    write_trace(path, b.layout(), {0: [(b.layout().path_number(0), [])]}, cut="it wrote into the recorder's memory")
    assert main(["analyze", "-m", "accesses", "-o", str(tmp_path / "profile.json"), str(path)]) == 0
    assert "The trace is cut off: this is of what it holds." in capsys.readouterr().err
    profile = json.loads((tmp_path / "profile.json").read_text())
    assert profile["complete"] is False


def test_a_trace_that_breaks_rules_of_replay_is_analysed_with_a_note(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Who switches stacks by itself returns to where nobody called from."""
    b = ProgramBuilder()
    first, other = (b.block(b.function(name), BlockFlag.ENTRY) for name in ("first", "other"))
    last = b.block(1, BlockFlag.RETURNS)
    b.op(last, OpKind.LOAD, 8)
    numbers = [b.path(block) for block in (first, other, last)]
    begin, begin_other, end = (b.layout().path_number(number) for number in numbers)
    note = "Records of the trace break rules of replay, as where a program switches stacks by itself"
    for name, start, told in (("good", begin_other, False), ("bad", begin, True)):
        path, profile = tmp_path / f"{name}.zst", tmp_path / f"{name}.json"
        write_trace(path, b.layout(), {0: [(start, []), (end, [64])] * 4})
        for more in ([], ["-j", "1"], ["--segments", "3"], ["--engine", "processes", "--segments", "3"]):
            assert main(["analyze", "-m", "camp", *more, "-o", str(profile), str(path)]) == 0
            assert (note in capsys.readouterr().err) == told, more
            assert tracekit.load_profile(profile).rules_broken == told
        for command in (["advise", str(path)], ["query", str(path), "select * from loops"]):
            assert main(command) == 0
            assert (note in capsys.readouterr().err) == told, command
    several = [str(tmp_path / "good.zst"), str(tmp_path / "bad.zst")]
    assert main(["analyze", "-m", "camp", *several, "-o", str(profile)]) == 0
    assert f"tracekit: {tmp_path / 'bad.zst'}: {note}" in capsys.readouterr().err
    assert tracekit.load_profile(profile).rules_broken


def test_modules_are_listed_one_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["modules"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == sorted(line.split()[0] for line in lines)
    assert any(line.startswith("camp") and "Context-aware memory profiling" in line for line in lines)


def test_a_profile_that_cannot_be_written_is_an_error(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["analyze", "-m", "lamp", "-o", "/nowhere/profile.json", str(trace)]) == 1
    assert "Cannot write the profile to /nowhere/profile.json" in capsys.readouterr().err


def profile_of(words: list[str], capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    assert main(["analyze", "-m", "camp", "--json", *words]) == 0
    report: dict[str, Any] = json.loads(capsys.readouterr().out)
    return report


@pytest.mark.parametrize(
    "words", [["--function", "main"], ["--loop", "app.c:7"], ["--thread", "0"], ["--from", "0", "--to", "100%"]]
)
def test_a_window_that_holds_everything_changes_nothing(
    words: list[str], trace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    whole, report = profile_of([str(trace)], capsys), profile_of([*words, str(trace)], capsys)
    assert "window" not in whole
    assert list(report) == ["tracekit", "module", "trace", "options", "window", "result"]
    assert report["result"] == whole["result"]


def test_a_window_restricts_accesses_and_keeps_iterations(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report = profile_of(["--from", "50%", str(trace)], capsys)
    assert report["window"] == {"from": "50%"}
    (loop,) = report["result"]["loops"]
    assert (loop["iterations"], loop["accesses"]) == (5, 5)
    (flow,) = report["result"]["dependences"]
    assert flow["count"] == 2


def test_a_window_without_accesses_is_told_and_judges_no_loop(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["analyze", "-m", "camp", "--json", "--to", "0", str(trace)]) == 0
    captured = capsys.readouterr()
    assert captured.err == "tracekit: there was no access inside the window.\n"
    result = json.loads(captured.out)["result"]
    assert (result["dependences"], result["loops"], result["summary"]["parallel_loops_lamp"]) == ([], [], 0)


def test_the_text_says_what_the_window_is(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["analyze", "-m", "camp", "--function", "main", "--to", "8", str(trace)]) == 0
    assert capsys.readouterr().out.startswith("Only accesses inside the window: function main, to 8\n")


@pytest.mark.parametrize(
    ("words", "status", "message"),
    [
        (["--function", "mian"], 1, "The trace's program has no function 'mian'; there is main."),
        (["--loop", "app.c:8"], 1, "The trace's program has no loop at app.c:8; there is app.c:7."),
        (["--thread", "9"], 1, "The trace has no stream 9; its streams are: 0."),
        (["--from", "much"], 2, "--from takes a number of accesses or a percentage of them, as 25%, not 'much'."),
        (["--loop", "7"], 2, "--loop takes a FILE:LINE, not '7'."),
    ],
)
def test_a_window_that_there_is_not_is_one_sentence(
    words: list[str], status: int, message: str, trace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["analyze", "-m", "camp", *words, str(trace)]) == status
    assert capsys.readouterr() == ("", f"tracekit: {message}\n")


MODULE_FILE = """
from dataclasses import dataclass
from typing import Any, NamedTuple
import numpy as np
from tracekit.module import Module, option

class State(NamedTuple):
    loads: Any

@dataclass(frozen=True)
class Options:
    weight: int = option(2, "What a load counts.")
    function: str = option("", "Not the window's.")

class Loads(Module):
    Options = Options
    def state(self):
        return State(np.zeros(1, np.int64))
    @staticmethod
    def load(state, options):
        state.loads[0] += options.weight
    def result(self, state):
        return {"loads": int(state.loads[0])}

MODULE = Loads
"""


def test_a_module_is_run_from_its_file(trace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "mine.py"
    file.write_text(MODULE_FILE)
    words = ["analyze", "-m", str(file), "--weight", "3", "--set", "mine.function=x", "--function", "main", "--json"]
    assert main([*words, str(trace)]) == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["module"], report["options"]) == ("mine", {"weight": 3, "function": "x"})
    assert (report["window"], report["result"]) == ({"function": "main"}, {"loads": 15})
    file.write_text("MODULE = 1\n")
    assert main(["analyze", "-m", str(file), str(trace)]) == 1
    assert "defines no subclass of tracekit.module.Module" in capsys.readouterr().err
    assert main(["analyze", "-m", str(tmp_path / "none.py"), str(trace)]) == 2


def test_explain_says_what_was_generated_and_where_kernels_came_from(
    trace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["analyze", "-m", "camp", "--explain", "--json", "--function", "main", str(trace)]) == 0
    whole, *lines = capsys.readouterr().err.splitlines()
    assert whole == "analysed as a whole: A window is not analysed in segments."
    assert lines[0].startswith(("replay: kernel compiled: ", "replay: kernel from the cache: "))
    cores = min(os.cpu_count() or 1, MOST_WORKERS)
    workers = f"{cores} worker{'s' * (cores > 1)}"
    assert lines[1].startswith((f"camp: {workers}, kernel compiled: ", f"camp: {workers}, kernel from the cache: "))
    assert "  load              instruction, address, size" in lines
    assert "  loop_exit         loop, partial" in lines
    assert "the window: function_entry, function_exit, load, store" in lines
    assert "the replay began at the beginning of the trace" in lines
    assert lines[-1] == "events generated: 19 of 19; removed: 0.0 %"


def test_a_profile_does_not_take_the_place_of_a_trace(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = trace.read_bytes()
    assert main(["analyze", "-m", "accesses", "-o", str(trace), str(trace)]) == 1
    assert f"{trace} is a trace: give the profile another name" in capsys.readouterr().err
    assert trace.read_bytes() == before


def test_a_compressed_profile_file_is_read_by_other_commands(
    trace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one, two = str(tmp_path / "one.json"), str(tmp_path / "two.json.zst")
    for path in (one, two):
        assert main(["analyze", "-m", "camp", "-o", path, str(trace)]) == 0
    capsys.readouterr()
    assert main(["diff", one, two]) == 0
    assert "LOOPS: 0 new, 0 gone, 0 changed" in capsys.readouterr().out
    assert main(["advise", two]) == 0
    assert main(["report", two, "-o", str(tmp_path / "page.html")]) == 0
