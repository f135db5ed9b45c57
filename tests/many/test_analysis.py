"""`tracekit analyze` of many traces: what `tracekit merge` makes of the profiles of each, whatever happens to them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

import tracekit
from tests.commands.test_merge import CHAINED, FAR, INDEPENDENT, ONCE, record
from tracekit.cli import main
from tracekit.formats.errors import TracekitError
from tracekit.many import analysis, processes
from tracekit.many.analysis import Outcome, analyze_many, leave_out_strangers, require_merging
from tracekit.modules import registry

NEVER_MERGING = ("bandwidth", "footprint", "heatmap", "races", "regions", "schedule")


@pytest.fixture(scope="module")
def traces(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    folder = tmp_path_factory.mktemp("many")
    runs = {"independent": INDEPENDENT, "chained": CHAINED, "far": FAR, "once": ONCE}
    return [str(record(folder / f"{name}.zst", addresses)) for name, addresses in runs.items()]


def merged_one_by_one(traces: Sequence[str], modules: Sequence[str], folder: Path) -> bytes:
    """The obvious way to the same: a profile file of each trace, then all of them merged."""
    named = [word for module in modules for word in ("-m", module)]
    profiles = [str(folder / f"{number}.profile") for number in range(len(traces))]
    for trace, profile in zip(traces, profiles, strict=True):
        assert main(["analyze", *named, "-j", "1", "-o", profile, trace]) == 0
    assert main(["merge", *profiles, "-o", str(folder / "one-by-one")]) == 0
    return (folder / "one-by-one").read_bytes()


@pytest.mark.parametrize("jobs", [1, 2, 5])
def test_many_traces_are_analysed_and_merged(traces: list[str], jobs: int, tmp_path: Path) -> None:
    target = tmp_path / "many"
    assert main(["analyze", "-m", "camp", "-m", "accesses", "-j", str(jobs), "-o", str(target), *traces]) == 0
    assert target.read_bytes() == merged_one_by_one(traces, ["camp", "accesses"], tmp_path)


def test_groups_are_merged_first_where_there_are_more(
    traces: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(analysis, "AT_ONCE", 2)
    runs = [str(record(tmp_path / f"{n}.zst", INDEPENDENT[: 1 + n % 5] * (1 + n // 5))) for n in range(7)]
    target = tmp_path / "many"
    assert main(["analyze", "-m", "camp", "-o", str(target), *runs]) == 0
    assert target.read_bytes() == merged_one_by_one(runs, ["camp"], tmp_path)


def test_a_folder_and_options(traces: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    folder = str(Path(traces[0]).parent)
    assert main(["analyze", "-m", "dependence", "--kinds", "war", "--explain", "--from", "25%", "--json", folder]) == 0
    printed = capsys.readouterr()
    assert '"kinds": "war"' in printed.out and '"from": "25%"' in printed.out
    assert all(f"{trace}: events generated" in printed.err for trace in traces)
    assert main(["analyze", "-m", "accesses", "--from", "9", *traces]) == 0
    assert f"tracekit: there was no access inside the window of {traces[3]}.\n" in capsys.readouterr().err


def test_a_program_asks_for_several_traces(traces: list[str], tmp_path: Path) -> None:
    profile = tracekit.analyze(traces, "dependence", 2, kinds="war")
    profile.save(tmp_path / "many")
    words = ["analyze", "-m", "dependence", "--kinds", "war", "-o", str(tmp_path / "same"), *traces]
    assert main(words) == 0
    assert (tmp_path / "many").read_bytes() == (tmp_path / "same").read_bytes()
    assert tracekit.analyze(traces[:1], "camp").to_json() == tracekit.analyze(traces[0], "camp").to_json()
    with pytest.raises(TracekitError, match="not by the class Accesses"):
        tracekit.analyze(traces, registry.load("accesses"))
    with pytest.raises(TracekitError, match="No trace is named"):
        tracekit.analyze([], "accesses")


def test_one_that_is_damaged_ends_the_others(
    traces: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bad = tmp_path / "bad.zst"
    bad.write_bytes(b"no trace")
    assert main(["analyze", "-m", "accesses", *traces, str(bad)]) == 1
    printed = capsys.readouterr()
    assert printed.err.count("\n") == 1 and str(bad) in printed.err and not printed.out


def test_with_keep_going_the_rest_goes_on(
    traces: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bad, other, twin = tmp_path / "bad.zst", tmp_path / "other.zst", tmp_path / "twin.zst"
    whole = Path(traces[1]).read_bytes()
    bad.write_bytes(whole[:-200] + bytes(200))
    record(other, INDEPENDENT, line=6)
    twin.write_bytes(whole)
    target = tmp_path / "many"
    words = [str(bad), *traces, str(other), str(twin), str(tmp_path / "gone.zst")]
    assert main(["analyze", "-m", "accesses", "--keep-going", "-o", str(target), *words]) == 1
    said = capsys.readouterr().err
    assert said.count(" is left out: ") == 4
    assert f"{other} is left out: It is of another build than {traces[0]}" in said
    assert f"{twin} is left out: It is the same trace as {traces[1]}" in said
    assert target.read_bytes() == merged_one_by_one(traces, ["accesses"], tmp_path)
    assert main(["analyze", "-m", "accesses", "--keep-going", str(bad), str(tmp_path / "gone.zst")]) == 1
    assert "None of the 2 traces could be analysed" in capsys.readouterr().err


def test_what_other_libraries_were_loaded_in_is_no_other_build() -> None:
    outcomes = [Outcome(trace, 1, build=build) for trace, build in (("a", ["x"]), ("b", ["x", "y"]), ("c", ["z"]))]
    for outcome in outcomes:
        outcome.hash = outcome.trace
    leave_out_strangers(outcomes, keep_going=True)
    first, more, other = (outcome.left_out for outcome in outcomes)
    assert not first
    assert more.startswith("It did not load the same libraries as a (")
    assert other.startswith("It is of another build than a;")


@pytest.mark.parametrize("line", [6, 7])
def test_traces_that_cannot_be_merged_are_refused(traces: list[str], line: int, tmp_path: Path) -> None:
    """Of another build, or one of them again: told when the traces are opened."""
    other = str(record(tmp_path / "other.zst", INDEPENDENT, line=line))
    with pytest.raises(TracekitError, match="of another build than" if line == 6 else "the same trace as"):
        analyze_many([*traces, other], {"accesses": registry.load("accesses").Options()})


def test_modules_that_never_merge_are_refused_at_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["analyze", "-m", "footprint", str(tmp_path / "a"), str(tmp_path / "b")]) == 1
    assert "module footprint cannot be merged: a slice is a stretch of one run" in capsys.readouterr().err
    with pytest.raises(TracekitError, match="the module is a file"):
        require_merging("./mine.py")
    merging = [name for name in registry.names() if name not in NEVER_MERGING]
    for name in merging:
        require_merging(name)


FALLS_ONCE = """
import contextlib, os
with contextlib.suppress(FileExistsError):
    os.mkdir({mark!r})
    os.kill(os.getpid(), 9)
"""
"""Before a worker's program: the first worker that comes to it is killed."""


def test_a_trace_whose_process_was_killed_is_analysed_again(
    traces: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = merged_one_by_one(traces, ["camp"], tmp_path)
    monkeypatch.setattr(processes, "PROGRAM", FALLS_ONCE.format(mark=str(tmp_path / "mark")) + processes.PROGRAM)
    target = tmp_path / "many"
    assert main(["analyze", "-m", "camp", "-j", "2", "-o", str(target), *traces]) == 0
    assert (tmp_path / "mark").is_dir()
    assert target.read_bytes() == expected


def test_one_that_is_killed_each_time_is_named(
    traces: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(processes, "PROGRAM", "import os; os.kill(os.getpid(), 9)")
    assert main(["analyze", "-m", "camp", "-j", "2", *traces]) == 1
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and "ended by the signal SIGKILL" in said and "many" in said


INTERRUPTED = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # tests that run in the background inherit that it is ignored
from tracekit.many import processes
processes.PROGRAM = "import os, time; print('{}', flush=True); open(f'pid{os.getpid()}', 'w'); time.sleep(600)"
from tracekit.cli import main
sys.exit(main(sys.argv[1:]))
"""


def test_an_interrupt_ends_all_processes_and_leaves_nothing(traces: list[str], tmp_path: Path) -> None:
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    words = [sys.executable, "-c", INTERRUPTED, "analyze", "-m", "accesses", "-j", "2", *traces]
    process = subprocess.Popen(words, cwd=tmp_path, env=environment, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 60
    while len(list(tmp_path.glob("pid*"))) < 2:
        assert time.monotonic() < deadline and process.poll() is None
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    said = process.communicate(timeout=60)[1]
    assert (process.returncode, said.strip()) == (130, "")
    assert not [pid for pid in tmp_path.glob("pid*") if Path(f"/proc/{pid.name[3:]}").exists()]
    assert not list(tmp_path.glob("tracekit-*"))


def test_processes_end_with_the_one_that_started_them(tmp_path: Path) -> None:
    """Killed, it cannot end them: their standard input ends."""
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)  # opening it waits for a writer, who never comes
    words = [sys.executable, "-c", processes.PROGRAM, *sys.path]
    worker = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
    assert worker.stdin is not None
    worker.stdin.write(f'{{"trace": "{fifo}", "options": {{}}}}\n')
    worker.stdin.flush()
    with pytest.raises(subprocess.TimeoutExpired):
        worker.wait(timeout=1)
    worker.stdin.close()
    assert worker.wait(timeout=60) == 1
