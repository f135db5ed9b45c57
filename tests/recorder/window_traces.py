"""What is asked of every trace with windows."""

from __future__ import annotations

import json
from pathlib import Path

from tests.naive.reader import read as naive_read
from tests.programs.running import replayed, run_here
from tracekit.formats.events import BY_CODE


def good(trace: Path) -> None:
    """The trace keeps all rules, and both readers find the same in it."""
    outcome = run_here("check", trace)
    assert outcome.status == 0, outcome.stdout
    found = [(stream, BY_CODE[kind].name, *rest) for stream, kind, *rest in replayed(trace).events]
    assert found == naive_read(trace.read_bytes()).events()


def info(trace: Path) -> dict[str, object]:
    outcome = run_here("info", "--json", trace)
    assert outcome.status == 0
    return dict(json.loads(outcome.stdout))
