"""The signal that opens and closes windows in a running program (runtime/preload_windows.c)."""

from __future__ import annotations

import ctypes
import os
import signal

from tracekit.formats.errors import TracekitError
from tracekit.recorder.toolchain import PRELOAD

OPEN, CLOSE = 0x746B6F6E, 0x746B6F66
"""What comes with the signal; the runtime takes no other for tracekit's."""


def send(process: int, opens: bool) -> None:
    """Open or close a window in a process.

    Raises TracekitError if there is no such process, it may not be signalled, or it is not under `record --paused`:
    the signal would end it.
    """
    if not is_listening(process):
        raise TracekitError(f"process {process} was not started by `tracekit record --paused`, or is no program of it")
    libc = ctypes.CDLL(None, use_errno=True)
    value = ctypes.c_void_p(OPEN if opens else CLOSE)  # union sigval
    if libc.sigqueue(process, signal.SIGUSR2, value) != 0:
        raise TracekitError(f"process {process} cannot be told: {os.strerror(ctypes.get_errno())}")


def is_listening(process: int) -> bool:
    """Whether the process handles the signal and has the recorder's library. TracekitError if it cannot be seen."""
    try:
        with open(f"/proc/{process}/status") as file:
            status = dict(line.split(":", 1) for line in file)
        with open(f"/proc/{process}/maps") as file:
            mapped = PRELOAD in file.read()
    except (FileNotFoundError, ProcessLookupError):
        raise TracekitError(f"there is no process {process}") from None
    except PermissionError:
        raise TracekitError(f"process {process} is another user's") from None
    caught = int(status.get("SigCgt", "0"), 16) >> (signal.SIGUSR2 - 1) & 1
    return bool(caught) and mapped
