"""How many bytes of a trace say what its program is: image tables in rows, and in planes, as traces have them.

    python -m benchmarks.planes TRACE...

Bytes compressed as frames of traces are, seconds to turn them and back, and what planes save of the file.
"""

from __future__ import annotations

import sys
from pathlib import Path
from time import process_time

import zstandard

from tracekit.formats.planes import in_planes, in_rows
from tracekit.formats.reader import TraceReader
from tracekit.formats.unit import Unit
from tracekit.formats.writer import IMAGE_LEVEL


def _row(path: str) -> str:
    with TraceReader(path) as trace:
        rows = [Unit.build(unit.tables) for image in trace.images() for unit in image.units]
    start = process_time()
    planes = [in_planes(unit) for unit in rows]
    turned = process_time()
    if [in_rows(unit) for unit in planes] != rows:
        raise AssertionError(f"{path}: other tables come back")
    back = process_time()
    sizes = [sum(len(zstandard.compress(unit, IMAGE_LEVEL)) for unit in units) for units in (rows, planes)]
    seconds = f"{turned - start:8.2f} {back - turned:8.2f}"
    ratio = sizes[1] / sizes[0]
    return f"{sum(map(len, rows)):12,} {sizes[0]:12,} {sizes[1]:12,} {ratio:8.2f} {seconds}  {Path(path).name}"


def main(paths: list[str]) -> int:
    """Print a row for each trace."""
    print(f"{'bytes':>12} {'rows':>12} {'planes':>12} {'ratio':>8} {'turned':>8} {'back':>8}  trace")
    for path in paths:
        print(_row(path))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
