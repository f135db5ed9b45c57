"""``make test PYTEST_OPTIONS="-p tests.processor_time"``: processor time by file, whatever else the machine does.

It counts the process of the test, the processes that it has waited for, and those that still run with those that they
have waited for, such as those that compile kernels. What has to be compiled counts for the test that needs it first:
with an empty ``XDG_CACHE_HOME``, for `tests/order.py`, or with one that has all.
"""

from __future__ import annotations

import contextlib
import os
import resource
from collections import defaultdict
from collections.abc import Generator
from pathlib import Path

import pytest

SECONDS = "processor seconds"
SHOWN = 60
"""Files, those with most first."""

_BEGUN = pytest.StashKey[float]()
_seconds: defaultdict[str, float] = defaultdict(float)
"""By file, of the tests that are over."""

_TICKS = os.sysconf("SC_CLK_TCK")


def used() -> float:
    """Seconds of processor time that this process and those that it started have used so far."""
    own, ended = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return own.ru_utime + own.ru_stime + ended.ru_utime + ended.ru_stime + _of_those_that_run()


def _of_those_that_run() -> float:
    """The same of children of any thread that are not waited for yet."""
    ticks = 0
    for children in Path("/proc/self/task").glob("*/children"):
        with contextlib.suppress(OSError):
            for child in children.read_text().split():
                with contextlib.suppress(OSError):
                    after_name = Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()
                    ticks += sum(map(int, after_name[11:15]))  # utime and stime, and those waited for (proc(5))
    return ticks / _TICKS


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> Generator[None, None, None]:
    """See pytest's."""
    item.stash[_BEGUN] = used()
    yield


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, None, None]:
    """See pytest's. Properties are handed on to the process that writes the summary."""
    try:
        yield
    finally:
        item.user_properties.append((SECONDS, used() - item.stash[_BEGUN]))


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """See pytest's."""
    for name, value in report.user_properties if report.when == "teardown" else ():
        if name == SECONDS:
            _seconds[report.nodeid.partition("::")[0]] += float(str(value))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """See pytest's."""
    terminalreporter.section(f"{sum(_seconds.values()):.1f} seconds of processor time")
    for file, seconds in sorted(_seconds.items(), key=lambda row: -row[1])[:SHOWN]:
        terminalreporter.line(f"{seconds:8.1f}  {file}")
