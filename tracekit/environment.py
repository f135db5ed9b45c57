"""The environment of this process as the user has it, and what the command line changes in it for itself."""

from __future__ import annotations

import os
import sys

_BLAS_THREADS = "OPENBLAS_NUM_THREADS"
_changed = False


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

    Programs that are started for the user find them closed: these descriptors are not inherited.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode))  # noqa: SIM115


def users_environment() -> dict[str, str]:
    """What programs that are started for the user get."""
    return {name: value for name, value in os.environ.items() if not (_changed and name == _BLAS_THREADS)}
