"""Unwinding, as a stress: random programs (tests/programs/unwinding.py) of nested longjmps and exceptions.

TRACEKIT_LONG=N runs N of them, from seed TRACEKIT_SEED (by default 0) on.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from pathlib import Path

import pytest

from tests.naive.reader import read
from tests.programs.running import compile_program, record, replayed, run, tracekit
from tests.programs.test_recorders import shape
from tests.programs.unwinding import program
from tracekit.formats.events import BY_CODE

FIRST = int(os.environ.get("TRACEKIT_SEED", "0"))
COUNT = int(os.environ.get("TRACEKIT_LONG", "8"))


@pytest.mark.parametrize("seed", range(FIRST, FIRST + COUNT))
def test_unwinding(seed: int, tmp_path: Path) -> None:
    """As it runs natively; every call that the program counts is entered; both recorders agree."""
    source = tmp_path / "unwinding.cpp"
    source.write_text(program(seed))
    level = f"-O{seed // 2 % 4}"
    native = run([compile_program([source], tmp_path / "native", [level], instrumented=False)])
    shapes = []
    for how in ("both", "paths", "blocks"):
        app = compile_program([source], tmp_path / how, [level, f"--record={how}"], instrumented=True)
        recording = record(app)
        assert (recording.outcome.stdout, recording.outcome.status) == (native.stdout, native.status)
        report = tracekit("check", recording.trace)
        if how == "both":
            compared = re.search(r"([\d,]+) addresses and ([\d,]+) blocks", report)
            assert compared
            assert int(compared[1].replace(",", "")) > 100
        found = replayed(recording.trace)
        entries = Counter(
            found.program.function_name(subject)
            for _, kind, subject, _, _ in found.events
            if BY_CODE[kind].name == "function_entry"
        )
        for number, calls in enumerate(native.stdout.split()[1:]):
            assert entries[f"f{number}(unsigned int)"] == int(calls), number
        events = [(stream, BY_CODE[kind].name, *rest) for stream, kind, *rest in found.events]
        assert events == read(recording.trace.read_bytes()).events()
        shapes.append(shape(recording.trace))
    assert shapes[0] == shapes[1] == shapes[2]
