"""`python -m tracekit` and the `tracekit` executable.

`tracekit cc` takes the compiler's place once for every file of a build, so it goes to the driver
before click is imported; everything else is the command line of cli.py.
"""

from __future__ import annotations

import gc
import sys

YOUNG_OBJECTS = 100_000
"""So many more objects than went come before Python looks for garbage: nearly all are tables and rows that stay."""


def main() -> int:
    """Run the command line in ``sys.argv``; return the exit status, that of Ctrl-C also while modules are imported."""
    try:
        return _run()
    except KeyboardInterrupt:
        return 130  # cli.INTERRUPTED


def _run() -> int:
    if len(sys.argv) > 1 and sys.argv[1] in ("cc", "c++"):
        from tracekit.recorder import driver

        return driver.main(sys.argv[1], sys.argv[2:])
    if len(sys.argv) > 1 and sys.argv[1] == "fc":
        from tracekit.recorder import fortran

        return fortran.main(sys.argv[2:])
    if len(sys.argv) > 1 and sys.argv[1] == "rustc":
        from tracekit.recorder import rust

        return rust.main(sys.argv[2:])
    gc.set_threshold(YOUNG_OBJECTS)
    from tracekit import cli
    from tracekit.environment import fill_standard_streams, keep_blas_alone

    fill_standard_streams()
    keep_blas_alone()
    return cli.main(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
