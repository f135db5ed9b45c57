"""What advice costs: processor time of advise, and of camp and advise together, over that of camp alone.

    python -m benchmarks.advise [--repeat N] TRACE ...

The three are run one after another, --repeat times (one thread: `-j 1`), after a first run that compiles; each figure
is the median of the ratios within a round.
"""

from __future__ import annotations

import argparse
import statistics
import time
from pathlib import Path
from typing import Any

from tracekit.api import analyze_all
from tracekit.modules import registry

COMBINATIONS = (("camp",), ("advise",), ("camp", "advise"))


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("traces", nargs="+", type=Path)
    parser.add_argument("--repeat", type=int, default=5)
    options = parser.parse_args()
    print(f"{'trace':24}{'camp, s':>10}{'advise':>10}{'both':>10}")
    for trace in options.traces:
        rounds = [[_seconds(trace, names) for names in COMBINATIONS] for _ in range(options.repeat + 1)][1:]
        camp = statistics.median(times[0] for times in rounds)
        ratios = [statistics.median(times[at] / times[0] for times in rounds) for at in (1, 2)]
        print(f"{trace.stem:24}{camp:10.2f}" + "".join(f"{ratio:10.2f}" for ratio in ratios), flush=True)


def _seconds(trace: Path, names: tuple[str, ...]) -> float:
    chosen: dict[str, Any] = {name: registry.load(name).Options() for name in names}
    begin = time.process_time()
    analyze_all(trace, chosen, jobs=1)
    return time.process_time() - begin


if __name__ == "__main__":
    main()
