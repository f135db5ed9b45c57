"""The line about long work: on a terminal, after two seconds, gone when the work is over; nothing anywhere else."""

from __future__ import annotations

import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import tracekit
from tests.naive.program_builder import ProgramBuilder
from tests.naive.trace_file import write_trace
from tracekit import progress
from tracekit.commands.progress import nearest_end
from tracekit.formats.image import BlockFlag, OpKind
from tracekit.formats.reader import TraceReader
from tracekit.program.program import Program
from tracekit.replay.engine import Replay

ROOT = Path(tracekit.__file__).resolve().parents[1]

SLOW = '''"""Counts batches, slowly."""

import time

from tracekit.module import BatchModule


class Slow(BatchModule):
    events = {{"load": ("address",)}}

    def feed(self, batch):
        time.sleep({pause})

    def result(self):
        return {{"done": True}}


MODULE = Slow
'''

KERNELS = """
from contextlib import contextmanager

from tracekit import progress
from tracekit.jit.kernel import kernel

steps = []


@contextmanager
def noted(what):
    steps.append(what)
    yield


progress.step = noted


@kernel
def twice(number):
    return 2 * number


@kernel
def twice_and_one(number):
    return twice(number) + 1


result = twice_and_one(3)
print(steps, result)
"""

RECORDS = 400_000
"""Of one load each: a dozen batches."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a trace and modules that take 7 s, a minute, and no time over it."""
    b = ProgramBuilder()
    f = b.function("main")
    entry = b.block(f, BlockFlag.ENTRY)
    loop = b.loop(f, line=7)
    body = b.block(f, BlockFlag.LOOP_HEADER | BlockFlag.LATCH, loop)
    b.op(body, OpKind.LOAD, 8, line=8)
    leave = b.block(f, BlockFlag.RETURNS)
    paths = [b.path(block) for block in (entry, body, leave)]
    enter, work, end = (b.layout().path_number(path) for path in paths)
    made = tmp_path_factory.mktemp("progress")
    records: list[tuple[int, list[int]]] = [(work, [4096 + 8 * number]) for number in range(RECORDS)]
    write_trace(made / "trace.zst", b.layout(), {0: [(enter, []), *records, (end, [])]})
    for name, pause in (("slow", 0.3), ("slower", 5), ("quick", 0)):
        (made / f"{name}.py").write_text(SLOW.format(pause=pause))
    return made


def on_terminal(folder: Path, *arguments: str, interrupt: bool = False, before: str = "pass") -> tuple[int, str, str]:
    """(exit status, standard output, what a terminal as standard error was sent); Ctrl-C once something appears."""
    ours, theirs = pty.openpty()
    # A job in the background of a script ignores Ctrl-C, and so would its children.
    heard = "signal.signal(signal.SIGINT, signal.default_int_handler)"
    code = f"import signal, sys; {heard}; {before}; from tracekit.cli import main; sys.exit(main(sys.argv[1:]))"
    process = subprocess.Popen(
        [sys.executable, "-c", code, *arguments],
        cwd=folder,
        stdin=theirs,
        stdout=subprocess.PIPE,
        stderr=theirs,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "100"},
        start_new_session=True,
    )
    os.close(theirs)
    sent = b""
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        if select.select([ours], [], [], 0.1)[0]:
            try:
                sent += os.read(ours, 65536)
            except OSError:  # all that could write to the terminal have closed it
                break
        if interrupt and b"replaying" in sent:
            process.send_signal(signal.SIGINT)
            interrupt = False
    os.close(ours)
    assert process.stdout is not None
    output = process.stdout.read().decode()
    return process.wait(60), output, sent.decode()


def left_on_screen(sent: str) -> str:
    """What a terminal shows at the end of `sent`."""
    lines, row, column = [""], 0, 0
    for token in re.findall(r"\x1b\[[0-9;?]*[A-Za-z]|.|\n", sent, re.DOTALL):
        if token == "\x1b[2K":
            lines[row] = ""
        elif token == "\x1b[1A":
            row -= 1
        elif token == "\r":
            column = 0
        elif token == "\n":
            row += 1
            lines += [""] * (row == len(lines))
        elif not token.startswith("\x1b"):
            lines[row] = lines[row][:column].ljust(column) + token + lines[row][column + 1 :]
            column += 1
    return "\n".join(lines).strip()


def test_a_terminal_shows_what_how_far_and_how_long(folder: Path) -> None:
    status, output, sent = on_terminal(folder, "analyze", "-j", "1", "--json", "-m", "./slow.py", "trace.zst")
    assert status == 0 and '"done": true' in output
    shown = [int(percent) for percent in re.findall(r"replaying.*?(\d+)%", sent)]
    assert shown == sorted(shown) and len(set(shown)) > 5 and shown[-1] <= 100
    assert re.search(r"\d:\d\d left", sent)
    assert "\x1b[?25l" not in sent, "the cursor stays"
    assert left_on_screen(sent) == ""


def test_ctrl_c_leaves_a_clean_line(folder: Path) -> None:
    status, output, sent = on_terminal(folder, "analyze", "-m", "./slower.py", "trace.zst", interrupt=True)
    assert (status, output) == (130, "")
    assert "replaying" in sent and left_on_screen(sent) == ""


def test_what_is_quick_shows_nothing_and_imports_nothing(folder: Path) -> None:
    check = "import atexit; atexit.register(lambda: print('rich' in sys.modules))"
    check += "; import tracekit.commands.progress as line; line.AFTER = 600"  # also where kernels are compiled first
    status, output, sent = on_terminal(folder, "analyze", "-m", "./quick.py", "trace.zst", before=check)
    assert (status, sent) == (0, "") and output.endswith("False\n")


def test_nothing_where_there_is_no_terminal(folder: Path) -> None:
    command = [sys.executable, "-m", "tracekit", "analyze", "-j", "1", "-m", "./slow.py", "trace.zst"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    assert done.stderr == "" and "done" in done.stdout


def test_compiling_is_a_step_and_the_cache_is_none(tmp_path: Path) -> None:
    """Two kernels, of which one calls the other; once compiled, once from the cache."""
    (tmp_path / "sums.py").write_text(KERNELS)
    runs = [
        subprocess.run([sys.executable, "sums.py"], cwd=tmp_path, env=environment, capture_output=True, text=True)
        for environment in [{**os.environ, "PYTHONPATH": str(ROOT), "XDG_CACHE_HOME": str(tmp_path)}] * 2
    ]
    assert [(done.stdout, done.stderr) for done in runs] == [
        ("['compiling kernels (first use)'] 7\n", ""),
        ("[] 7\n", ""),
    ]


def test_a_position_goes_from_nothing_to_all_records(folder: Path) -> None:
    others = progress.steps()  # of a replay that a test before this one has left in the middle

    def steps() -> list[progress.Step]:
        return [step for step in progress.steps() if step not in others]

    with TraceReader(folder / "trace.zst") as trace:
        replay = Replay(trace, Program.from_images(trace.images()), events=("load",), columns=("address",))
        positions = []
        for _ in replay.batches():
            (step,) = steps()
            assert (step.what, step.total) == ("replaying", RECORDS + 2)
            positions.append(step.position())
        assert positions == sorted(positions) and len(set(positions)) > 5 and positions[-1] == RECORDS + 2
    assert steps() == []


def test_of_steps_inside_one_another_that_is_told_whose_end_is_near() -> None:
    lines, replay = progress.Step("lines", 10, lambda: 5), progress.Step("replay", 100, lambda: 20)
    assert nearest_end((lines, replay)) is lines
    assert nearest_end((progress.Step("lines", 10, lambda: 1), replay)) is replay
    kernels = progress.Step("kernels", None, int)
    assert nearest_end((lines, replay, kernels)) is kernels
    assert nearest_end((kernels, replay)) is replay


def test_dump_writes_a_file(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    from tracekit.cli import main

    assert main(["dump", "--limit", "5", str(folder / "trace.zst")]) == 0
    printed = capfd.readouterr().out
    assert main(["dump", "--limit", "5", "-o", str(folder / "events"), str(folder / "trace.zst")]) == 0
    assert (folder / "events").read_text() == printed and capfd.readouterr().out == ""
    assert main(["dump", "-o", str(folder / "no" / "events"), str(folder / "trace.zst")]) == 1
    assert "Cannot write the events to" in capfd.readouterr().err
