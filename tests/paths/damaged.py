"""Path profiles of damaged traces whose checksums are valid: a profile or a sentence, inside all tables.

    TRACEKIT_CHECK_BOUNDS=all python -m tests.paths.damaged 0 1000

Prints how many of these mutations (tests/replay/mutations.py) gave a profile, and how many a sentence.
"""

from __future__ import annotations

import sys

from tests.paths.test_paths import counted
from tests.replay.mutations import mutated
from tracekit.formats.errors import TracekitError
from tracekit.paths.profile import profile
from tracekit.profiles.json import as_json
from tracekit.render.lcov import lcov
from tracekit.render.paths import paths_text
from tracekit.render.text import Style


def profiled(data: bytes) -> bool:
    """Whether there is a profile, which is shown in all forms."""
    try:
        sums = counted(data)
        result = profile(sums.program, sums.counter)
    except TracekitError:
        return False
    report = {"module": "paths", "trace": "", "result": result}
    assert as_json([report]) and lcov(report) is not None and paths_text(report, {}, 30, Style(False))
    return True


def main() -> None:
    """Profile the mutations that the command line says."""
    first, last = map(int, sys.argv[1:])
    found = [profiled(mutated(seed)[0]) for seed in range(first, last)]
    print(sum(found), len(found) - sum(found))


if __name__ == "__main__":
    main()
