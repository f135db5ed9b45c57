"""Long files of tests come first; the end of a run says what was skipped, why, and what to type for it to run."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.needs import REASON
from tests.order import rank

TESTS = Path(__file__).parent

# How long an example takes says nothing on a machine that does other work, too.
settings.register_profile("busy", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("busy")

# Text would be folded in programs that tests run.
os.environ.pop("COLUMNS", None)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """See pytest's. Files that are not named stay in their order, and so do the tests of a file."""
    items.sort(key=lambda item: rank(item.path.relative_to(TESTS).as_posix()) if TESTS in item.path.parents else 0)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """See pytest's."""
    reasons = Counter(_reason(report) for report in terminalreporter.getreports("skipped"))
    if not reasons:
        return
    terminalreporter.section(f"{sum(reasons.values())} skipped")
    for line in summary(reasons):
        terminalreporter.line(line)


def _reason(report: pytest.TestReport | pytest.CollectReport) -> str:
    text = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    return text.removeprefix("Skipped: ")


def summary(reasons: Counter[str]) -> list[str]:
    """A line for each reason, then the command that brings the packages."""
    lines = [f"{reasons[reason]:5}  {reason}" for reason in sorted(reasons)]
    wanted = [word for reason in sorted(reasons) if reason.startswith(REASON) for word in _packages(reason)]
    if wanted:
        unknown = _unknown_to_apt(wanted)
        known = [word for word in wanted if word not in unknown]
        if known:
            lines.append(f"To run them as well: sudo apt-get install {' '.join(dict.fromkeys(known))}")
        if unknown:
            lines.append(f"Not among this system's packages: {' '.join(dict.fromkeys(unknown))}")
    return lines


def _packages(reason: str) -> list[str]:
    return reason.removeprefix(REASON).split()


def _unknown_to_apt(names: Iterable[str]) -> list[str]:
    """Those that apt has no package of; none where there is no apt."""
    if not shutil.which("apt-cache"):
        return []
    run = subprocess.run(["apt-cache", "madison", *names], capture_output=True, text=True)
    known = {line.split("|")[0].strip() for line in run.stdout.splitlines()}
    return [name for name in names if name not in known] if known or run.returncode == 0 else []
