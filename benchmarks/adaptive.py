"""Alleria's benchmark of adaptive profiling (section 5.4): twelve threads start one by one, the last four write files.

    python benchmarks/adaptive.py                      # the default beside fixed numbers of workers and of buffers
    python benchmarks/adaptive.py --image workers.svg  # how many workers are busy over time, too

Prints, of each setting, the median of --repeat interleaved runs: seconds, seconds that the program waited for buffers,
and processor time of the collector; then the default's seconds over those of the best fixed setting. How many workers
are busy is the processor time of the collector in an interval over the interval.
"""

from __future__ import annotations

import argparse
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
TRACEKIT = (sys.executable, "-m", "tracekit")
INTERVAL = 0.1
TICK = os.sysconf("SC_CLK_TCK")

SETTINGS: dict[str, tuple[str, ...]] = {
    "default": (),
    "1 worker": ("--workers", "1"),
    "2 workers": ("--workers", "2"),
    "4 workers": ("--workers", "4"),
    "8 workers": ("--workers", "8"),
    "buffers of 16K": ("--buffer-size", "16K"),
    "buffers of 1M": ("--buffer-size", "1M"),
    "buffers of 4M": ("--buffer-size", "4M"),
}


class Figures(NamedTuple):
    """One run: ``busy`` has of each interval how many workers were at work."""

    seconds: float
    waited: float
    processor: float
    busy: list[float]


def environment() -> dict[str, str]:
    """That of commands."""
    return {**os.environ, "PYTHONPATH": str(ROOT)}


def build(folder: Path) -> Path:
    """The program, instrumented."""
    app = folder / "adaptive"
    source = Path(__file__).with_suffix(".c")
    subprocess.run([*TRACEKIT, "cc", "-O1", "-pthread", source, "-o", app], check=True, env=environment())
    return app


def ticks(process: int) -> int:
    """Processor time of a process so far; 0 if it is gone."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0
    return int(fields[11]) + int(fields[12])


def collector_of(process: int) -> int:
    """The child of `record` that is not the program; 0 as long as there is one only, or both have one name."""
    try:
        children = Path(f"/proc/{process}/task/{process}/children").read_text().split()
        names = {int(child): Path(f"/proc/{child}/comm").read_text().strip() for child in children}
    except OSError:
        return 0
    others = [child for child, name in names.items() if name != "adaptive"]
    return others[0] if len(others) == 1 < len(names) else 0


def run(app: Path, options: tuple[str, ...], pause: float, folder: Path) -> Figures:
    """Record the program once."""
    trace = str(folder / "t.zst")
    command = [*TRACEKIT, "record", *options, "-f", "-o", trace, "--", str(app), str(pause), str(folder)]
    begin = time.perf_counter()
    process = subprocess.Popen(command, env=environment(), stderr=subprocess.PIPE)
    busy: list[float] = []
    last = collector = 0
    while process.poll() is None:
        time.sleep(INTERVAL)
        collector = collector or collector_of(process.pid)
        if not collector:
            continue  # the program has not begun
        now = ticks(collector)
        busy.append(max(now - last, 0) / TICK / INTERVAL)
        last = max(now, last)
    seconds = time.perf_counter() - begin
    said = process.stderr.read().decode() if process.stderr else ""
    waited = re.search(r"waited ([\d.]+) s", said)
    return Figures(seconds, float(waited[1]) if waited else 0.0, last / TICK, busy)


def picture(busy: list[float], pause: float) -> str:
    """An SVG of busy workers over time; dotted lines: a thread starts."""
    width, height, most = 800, 200, max(1.0, *busy)
    step = width / max(len(busy), 1)
    points = " ".join(f"{at * step:.1f},{height - each / most * height:.1f}" for at, each in enumerate(busy))
    starts = "".join(
        f'<line x1="{x:.1f}" x2="{x:.1f}" y1="0" y2="{height}" stroke="#999" stroke-dasharray="2 4"/>'
        for x in (number * pause / INTERVAL * step for number in range(12))
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="-60 -20 {width + 80} {height + 60}" font-size="12">'
        f'{starts}<polyline points="{points}" fill="none" stroke="#06c"/>'
        f'<text x="-8" y="4" text-anchor="end">{most:.1f}</text><text x="-8" y="{height}" text-anchor="end">0</text>'
        f'<text x="{width / 2}" y="{height + 24}" text-anchor="middle">busy workers over '
        f"{len(busy) * INTERVAL:.1f} s; a thread starts at each dotted line</text></svg>\n"
    )


def main() -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=0.25, help="between two threads; the paper has 5")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--image", type=Path, help="an SVG of the default's busy workers")
    given = parser.parse_args()
    found: dict[str, list[Figures]] = {name: [] for name in SETTINGS}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        app = build(folder)
        for _ in range(given.repeat):
            for setting, options in SETTINGS.items():
                found[setting].append(run(app, options, given.seconds, folder))
    print(f"{'setting':18}{'seconds':>10}{'waited':>10}{'processor':>11}{'busy at most':>14}")
    medians = {}
    for setting, runs in found.items():
        medians[setting] = statistics.median(each.seconds for each in runs)
        waited, used = (statistics.median(each[column] for each in runs) for column in (1, 2))
        most = max(max(each.busy) for each in runs)
        print(f"{setting:18}{medians[setting]:10.2f}{waited:10.2f}{used:11.2f}{most:14.1f}")
    best = min(seconds for setting, seconds in medians.items() if setting != "default")
    print(f"the default takes {medians['default'] / best:.2f} times the best fixed setting's time")
    if given.image:
        given.image.write_text(picture(found["default"][-1].busy, given.seconds))


if __name__ == "__main__":
    main()
