"""Windows on runs that unwind: random programs of nested longjmps and exceptions (tests/programs/unwinding.py), and of
longjmps alone (tests/programs/longjmps.py), which open and close windows at random steps, as those of test_windows.py
do.

TRACEKIT_LONG=N runs N of them. None has signal handlers: what these do lies in other streams.
"""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pytest

from tests.naive.reader import read
from tests.programs import longjmps
from tests.programs.running import TRACEKIT, compile_program, run, run_here
from tests.programs.test_unwinding import COUNT, FIRST
from tests.programs.test_windows import WINDOWS, Recorded, compare, recorded
from tests.programs.unwinding import program

NONE = 0xFFFFFFFF
"""No instruction: who reads is not known."""

pytestmark = pytest.mark.skipif(shutil.which("setarch") is None, reason="two runs need the same addresses")


def with_windows(source: str, places: list[int]) -> str:
    """The program, with a window that opens or closes at each of these steps: where it draws a number."""
    head, draw, rest = source.partition("static unsigned rnd() {")
    assert draw
    return head + WINDOWS.format(places=", ".join(f"{place}u" for place in places)) + draw + " step();" + rest


def without_reads_of_callees(trace: Path, found: Recorded) -> Recorded:
    """Not what the C++ runtime reads of frames while it unwinds: these are others where a body is clean."""
    calls = {row["op"] for row in read(trace.read_bytes()).tables["calls"]}
    events = [event for event in found.events if event[0] != "load" or event[1] not in (calls | {NONE})]
    return found._replace(events=events)


@pytest.mark.parametrize("seed", range(2 * FIRST, 2 * (FIRST + COUNT), 2))
def test_the_events_inside_are_those_of_the_whole_run(seed: int, tmp_path: Path) -> None:
    chance = random.Random(seed)
    places = sorted(chance.sample(range(chance.choice((60, 300, 600))), 2 * chance.randint(1, 4)))
    source = tmp_path / "app.cpp"
    source.write_text(with_windows(program(seed), places))
    flags = [f"-O{1 + seed // 2 % 3}", "--windows"]
    app = compile_program([source], tmp_path / "app", flags, instrumented=True)
    whole = without_reads_of_callees(tmp_path / "whole.zst", recorded(app, tmp_path / "whole.zst"))
    paused = without_reads_of_callees(tmp_path / "paused.zst", recorded(app, tmp_path / "paused.zst", "--paused"))
    assert run_here("check", tmp_path / "paused.zst").status == 0
    compare(whole, paused)
    assert run([app]).stdout


@pytest.mark.parametrize("seed", range(FIRST, FIRST + COUNT))
def test_longjmps_across_openings_and_closings(seed: int, tmp_path: Path) -> None:
    """Into clean bodies and into instrumented ones, whichever has called setjmp, inside windows and outside."""
    chance = random.Random(seed)
    places = sorted(chance.sample(range(chance.choice((60, 200, 400))), 2 * chance.randint(1, 6)))
    source, plain, level = tmp_path / "app.c", tmp_path / "plain.c", f"-O{1 + seed % 3}"
    plain.write_text(longjmps.program(seed))
    source.write_text(with_windows(longjmps.program(seed), places))
    native = compile_program([plain], tmp_path / "native", [level], instrumented=False)
    app = compile_program([source], tmp_path / "app", [level, "--windows"], instrumented=True)
    whole = recorded(app, tmp_path / "whole.zst")
    paused = recorded(app, tmp_path / "paused.zst", "--paused")
    assert run_here("check", tmp_path / "paused.zst").status == 0
    compare(whole, paused)
    again = run([*TRACEKIT, "record", "--paused", "-o", tmp_path / "again.zst", "--", app])
    assert run([native]).stdout == run([app]).stdout == again.stdout
