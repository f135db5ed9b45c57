"""The environment of this process as the user has it, and what the command line changes in it for itself."""

from __future__ import annotations

import os
import sys

_BLAS_THREADS = "OPENBLAS_NUM_THREADS"
_changed = False
_output_closed = False


def keep_blas_alone() -> None:
    """Keep the BLAS that comes with numpy from starting threads, before numpy is imported.

    tracekit multiplies no matrices. Each of the threads waits in a busy loop for a tenth of a second first: on a core
    that the recorded program or another worker could use.
    """
    global _changed
    if _BLAS_THREADS not in os.environ:
        os.environ[_BLAS_THREADS] = "1"
        _changed = True


def fill_standard_streams() -> None:
    """Open /dev/null as those of stdin, stdout and stderr that are closed, before another file gets their numbers.

    Programs that are started for the user find them closed: these descriptors are not inherited. Standard output is
    open for reading alone, so that what is written there fails (EBADF) as with `cat` and `grep`.
    """
    global _output_closed
    if sys.stdin is None:
        sys.stdin = open(os.devnull)  # noqa: SIM115
    if sys.stdout is None:
        sys.stdout = open(os.open(os.devnull, os.O_RDONLY), "w")  # noqa: SIM115
        _output_closed = True
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115


def is_output_closed() -> bool:
    """Whether the command was started without standard output."""
    return _output_closed


def users_environment() -> dict[str, str]:
    """What programs that are started for the user get."""
    return {name: value for name, value in os.environ.items() if not (_changed and name == _BLAS_THREADS)}
