"""`tracekit start` and `tracekit stop`: open and close a window in a program under `tracekit record --paused`."""

from __future__ import annotations

import click

_OPEN, _CLOSE = True, False


@click.command("start")
@click.argument("pid", type=click.IntRange(1))
def start_command(pid: int) -> None:
    """Begin to record the program PID, which `tracekit record --paused` started.

    What each of its threads is doing is part of the trace: activations, open loops, live objects. `kill -USR2 PID`
    opens a window, too, and closes it again, unless the program handles that signal itself.
    """
    _send(pid, _OPEN)


@click.command("stop")
@click.argument("pid", type=click.IntRange(1))
def stop_command(pid: int) -> None:
    """Stop recording the program PID until the next `tracekit start`."""
    _send(pid, _CLOSE)


def _send(process: int, opens: bool) -> None:
    from tracekit.recorder.window_signal import send

    send(process, opens)
