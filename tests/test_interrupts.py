"""Ctrl-C that a library swallows, as C code does that clears the error of a Python function that it has called."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tracekit import interrupts
from tracekit.commands.progress import progress_line
from tracekit.profiles.files import written_whole


@pytest.fixture(autouse=True)
def _ordinary_handler() -> Iterator[None]:
    """That of a program in the foreground: a job in the background of a script ignores Ctrl-C."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    assert signal.signal(signal.SIGINT, before) is signal.default_int_handler, "the block puts it back"


def swallowed() -> None:
    """Ctrl-C in a function whose errors are dropped."""
    with contextlib.suppress(KeyboardInterrupt):
        os.kill(os.getpid(), signal.SIGINT)


def test_it_is_raised_when_the_block_ends() -> None:
    done = []

    def work() -> None:
        with interrupts.remembered():
            with interrupts.remembered():
                swallowed()
                done.append("inner")
            done.append("outer")

    with pytest.raises(KeyboardInterrupt):
        work()
    assert done == ["inner", "outer"], "the outermost block tells"
    interrupts.check()


def test_it_is_raised_before_the_next_part() -> None:
    taken = []

    def work() -> None:
        with interrupts.remembered():
            for part in interrupts.checked(range(10)):
                taken.append(part)
                if part == 2:
                    swallowed()

    with pytest.raises(KeyboardInterrupt):
        work()
    assert taken == [0, 1, 2]


def test_no_file_takes_its_name_after_it(tmp_path: Path) -> None:
    def work() -> None:
        with progress_line(), written_whole(tmp_path / "out", "it") as file:
            file.write(b"half")
            swallowed()

    with pytest.raises(KeyboardInterrupt):
        work()
    assert not list(tmp_path.iterdir())


def test_what_ignores_it_goes_on_ignoring_it() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with interrupts.remembered():
        os.kill(os.getpid(), signal.SIGINT)
    assert signal.signal(signal.SIGINT, signal.default_int_handler) is signal.SIG_IGN
