"""Which processes of a session are recorded: `record --processes`, and `processes` in the file of `--windows`.

Processes count from 1, in the order in which they are created: a fork when it is about to happen, another program
when it begins to run instrumented code in a process that has no number yet.
"""

from __future__ import annotations

from typing import Any

from tracekit.formats.errors import TracekitError

MOST = 1 << 20


def parse(text: str) -> frozenset[int]:
    """The numbers of `1,4` or `2-5,9`. Raises TracekitError if there are none."""
    numbers: set[int] = set()
    for part in text.split(","):
        first, dash, last = part.strip().partition("-")
        if not first.isdecimal() or (dash and not last.isdecimal()):
            raise TracekitError(f"--processes {text}: write numbers and ranges from 1 on, as 1,4 or 2-5,9")
        low, high = int(first), int(last or first)
        if not 1 <= low <= high <= MOST:
            raise TracekitError(f"--processes {text}: numbers count from 1, and ranges go upwards")
        numbers.update(range(low, high + 1))
    return frozenset(numbers)


def of_table(value: Any, path: str) -> frozenset[int]:
    """The numbers of `processes = [1, 4]`. Raises TracekitError for anything else."""
    known = isinstance(value, list) and value and all(type(number) is int and 1 <= number <= MOST for number in value)
    if not known:
        raise TracekitError(f"{path}: processes is a list of numbers from 1 on, as [1, 4]")
    return frozenset(value)
