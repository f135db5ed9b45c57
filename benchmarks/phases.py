"""Where does the time by the clock of an analysis in segments go?

    python -m benchmarks.phases [--module camp] [--jobs 2] [--repeat 3] [--anew] [--text] TRACE...

Each analysis is a process of its own, `tracekit analyze --json`, whose steps are timed. Prints medians of seconds:
start (to where the trace is opened), opening (to where the replay begins), replay, result, and output (to the process's
end); of the replay, the pass ahead, the segments and the joining in seconds by the clock of their threads, and how
long the last segment went on alone (alone); and seconds of the processor from the replay's end to the process's
(after). --anew: each time without what is kept of beginnings of segments. --text: without --json.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.segments import forget

STEPS = ("start", "opening", "replay", "result", "output")
REPLAYING = ("replay_segments", "replay_through")
"""Functions of the analysis, one of which is called."""
PARTS = ("ahead", "segments", "joining", "alone", "after")


class Notes:
    """When functions of one process were entered and left, by the clock."""

    def __init__(self) -> None:
        self.times: dict[str, list[tuple[float, float]]] = {}
        self.processor: dict[str, float] = {}  # its time when a function was left last

    def watch(self, owner: Any, name: str) -> None:
        """Note each call of a function."""
        function: Callable[..., Any] = getattr(owner, name)

        def watched(*arguments: Any, **named: Any) -> Any:
            begun = time.time()
            try:
                return function(*arguments, **named)
            finally:
                self.times.setdefault(name, []).append((begun, time.time()))
                self.processor[name] = time.process_time()

        setattr(owner, name, watched)

    def spent(self, *names: str) -> float:
        """Seconds inside functions, of all threads."""
        return sum(ended - begun for name in names for begun, ended in self.times.get(name, []))


def one(module: str, jobs: int, trace: str, notes_file: str, text: bool) -> None:
    """Analyse a trace in this process, and write when its steps began and ended into a file."""
    from tracekit import api, cli
    from tracekit.segments.analysis import SegmentedAnalysis

    notes = Notes()
    notes.watch(api, "analyze_all")
    for name in REPLAYING:
        notes.watch(api, name)
    for name in ("_share", "_analysed", "_join"):
        notes.watch(SegmentedAnalysis, name)
    status = cli.main(["analyze", "-m", module, *([] if text else ["--json"]), "-j", str(jobs), trace])
    sys.stdout.flush()
    times = notes.times
    (opened, made), (begun, ended) = times["analyze_all"][0], *(times[name][0] for name in REPLAYING if name in times)
    spans = sorted(end for _, end in times.get("_analysed", []))
    Path(notes_file).write_text(
        json.dumps(
            {
                "moments": [opened, begun, ended, made],
                "ahead": notes.spent("_share"),
                "segments": notes.spent("_analysed"),
                "joining": max(0.0, ended - spans[-1]) if spans else 0.0,
                "alone": spans[-1] - spans[-2] if len(spans) > 1 else 0.0,
                "after": time.process_time() - max(notes.processor.get(name, 0.0) for name in REPLAYING),
            }
        )
    )
    sys.exit(status)


def timed(module: str, jobs: int, trace: str, text: bool) -> dict[str, float]:
    """Seconds of each step and part of one analysis."""
    with tempfile.TemporaryDirectory() as folder:
        notes = Path(folder) / "notes"
        command = [sys.executable, "-m", "benchmarks.phases", "--into", str(notes), "--module", module]
        command += ["--text"] if text else []
        begun = time.time()
        subprocess.run([*command, "--jobs", str(jobs), trace], check=True, stdout=subprocess.DEVNULL)
        ended = time.time()
        found = json.loads(notes.read_text())
    moments = [begun, *found["moments"], ended]
    return {step: moments[n + 1] - moments[n] for n, step in enumerate(STEPS)} | {part: found[part] for part in PARTS}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--module", default="camp")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--anew", action="store_true")
    parser.add_argument("--text", action="store_true")
    parser.add_argument("--into", help=argparse.SUPPRESS)
    parser.add_argument("traces", nargs="+", metavar="TRACE")
    chosen = parser.parse_args()
    if chosen.into is not None:
        one(chosen.module, chosen.jobs, chosen.traces[0], chosen.into, chosen.text)
    print(f"{'trace':14}" + "".join(f"{name:>9}" for name in (*STEPS, "all", *PARTS)))
    for trace in chosen.traces:
        timed(chosen.module, chosen.jobs, trace, chosen.text)  # compiles
        runs = []
        for _ in range(chosen.repeat):
            if chosen.anew:
                forget()
            runs.append(timed(chosen.module, chosen.jobs, trace, chosen.text))
        medians = {name: statistics.median(run[name] for run in runs) for name in runs[0]}
        medians["all"] = statistics.median(sum(run[step] for step in STEPS) for run in runs)
        print(f"{Path(trace).stem:14}" + "".join(f"{medians[name]:9.2f}" for name in (*STEPS, "all", *PARTS)))


if __name__ == "__main__":
    main()
