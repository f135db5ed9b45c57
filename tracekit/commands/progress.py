"""A line on the terminal about work that takes longer than two seconds: what, how far, how long still."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from tracekit import interrupts, progress

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

AFTER = 2.0
"""Seconds of work before the line appears."""

EVERY = 0.2
"""Seconds from one look at the work to the next."""


@contextmanager
def progress_line() -> Iterator[None]:
    """Show how far the block is, on standard error, if that is a terminal; afterwards the line is gone.

    The block writes nothing to the terminal meanwhile. Ctrl-C ends it for sure.
    """
    with interrupts.remembered(), _line_drawn():
        yield


@contextmanager
def _line_drawn() -> Iterator[None]:
    if not sys.stderr.isatty():
        yield
        return
    is_over = threading.Event()
    watcher = threading.Thread(target=_watch, args=(is_over,), daemon=True)
    watcher.start()
    try:
        yield
    finally:
        is_over.set()
        watcher.join()


def _watch(is_over: threading.Event) -> None:
    """Draw the steps of the work until it is over."""
    if is_over.wait(AFTER):
        return
    line = _Line()
    while not is_over.wait(EVERY):
        line.draw(progress.steps())
    line.clear()


class _Line:
    """The line: rich's, imported only now, for it takes a tenth of a second."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, ProgressColumn, Task, TaskProgressColumn, TextColumn
        from rich.progress import Progress as Drawn
        from rich.text import Text

        class Still(ProgressColumn):
            """How long the step takes still, or has taken if nobody knows."""

            def render(self, task: Task) -> Text:
                if task.total is None:
                    return Text(_minutes(task.elapsed or 0))
                return Text("" if task.time_remaining is None else f"{_minutes(task.time_remaining)} left")

        class Visible(Console):
            """A terminal whose cursor is never hidden: a program that is killed could not bring it back."""

            def show_cursor(self, show: bool = True) -> bool:
                return False

        columns = (TextColumn("{task.description}"), BarColumn(30), TaskProgressColumn(), Still())
        self.drawn: Progress = Drawn(
            *columns,
            console=Visible(stderr=True),
            auto_refresh=False,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
        )
        self.step: progress.Step | None = None
        self.task: TaskID | None = None

    def draw(self, steps: tuple[progress.Step, ...]) -> None:
        """Show where the work is."""
        if not steps:
            return
        step = nearest_end(steps)
        if step is not self.step:
            if self.task is None:
                self.drawn.start()
            else:
                self.drawn.remove_task(self.task)
            self.step = step
            what = ": ".join(each.what for each in steps)
            self.task = self.drawn.add_task(what, total=step.total, completed=step.position())
        assert self.task is not None
        done = self.drawn.tasks[0].completed
        self.drawn.update(self.task, completed=max(done, step.position()))
        self.drawn.refresh()

    def clear(self) -> None:
        """Leave the terminal as it was before."""
        self.drawn.stop()


def nearest_end(steps: Sequence[progress.Step]) -> progress.Step:
    """The step whose end is near: the innermost, unless one around it ends before (``tracekit dump --limit``)."""
    inner = steps[-1]
    if not inner.total:
        return inner
    return max(reversed(steps), key=lambda step: step.position() / step.total if step.total else 0.0)


def _minutes(seconds: float) -> str:
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"
