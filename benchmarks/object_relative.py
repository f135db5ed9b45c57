"""The evaluation of the paper on object-relative profiling (Wu et al., CGO 2004), on the programs of programs.py.

    python benchmarks/object_relative.py [--only bzip2,lua] [--size 1] [--whomp 4000000]

Table 1 and Fig. 6 to 9, of LEAP: compression over a trace of 12 bytes an access, dilation (recording and the whole
`tracekit analyze -m leap`, over the native run), accesses and instructions captured, pairs of a store and a load whose
frequency is right or off by at most 10 %, by LEAP and by a window of stores, strongly strided instructions found of
all that there are; then the error distributions of LEAP (Fig. 6) and of the window (Fig. 7), and their means (Fig. 8).
Fig. 5, of WHOMP, in the first accesses of the run (--whomp): the object-relative grammars over those of instructions
and addresses. Speed in million accesses a second of processor time, one thread, replay included.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from pathlib import Path
from typing import Any

import fetch
import measure
import programs

sys.path.insert(0, str(Path(__file__).parents[1]))

import tracekit

PROGRAMS = "bzip2,lua,sqlite3,minigzip,minisat"
LEAP = (
    "program         accesses, M  compression  dilation  accesses %  instructions %  pairs  "
    "within 10 %  window  strided  found  M/s"
)
WHOMP = "program         accesses, M  OMSG / RASG %  compression  M/s"


def recorded(program: programs.Program, size: int) -> tuple[Path, float]:
    """A trace of its own, which no other benchmark overwrites, and the seconds that recording took."""
    folder = fetch.cache() / "object-relative"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{program.name}-{size}.zst"
    arguments, stdin = program.arguments(size)
    command = [*measure.TRACEKIT, "record", "-f", "-o", str(path), "--"]
    run = measure.run([*command, str(measure.build(program, instrumented=True)), *arguments], stdin)
    return path, run.seconds


Errors = list[dict[str, Any]]
"""Rows of LEAP's table ``errors``."""


def leap(program: programs.Program, size: int) -> tuple[dict[str, float], Errors]:
    """What LEAP's table says of a program, and its error distribution."""
    native = measure.native(program, size)
    path, recording = recorded(program, size)
    measure.analyze(path, "leap")  # what has to be compiled is compiled
    analysis = measure.analyze(path, "leap")
    if analysis.status != 0:
        raise SystemExit(f"leap failed on {path}.")
    result: dict[str, Any] = tracekit.analyze(path, "leap", compare=True).result
    summary, compared = result["summary"], result["comparison"]
    accesses = summary["accesses"] / 1e6
    figures = {
        "accesses": accesses,
        "compression": summary["compression_ratio"],
        "dilation": (recording + analysis.seconds) / native.seconds,
        "accesses_captured": summary["accesses_captured"],
        "instructions_captured": summary["instructions_captured"],
        "pairs": compared["pairs"],
        "near": compared["within_10_percent"],
        "near_by_window": compared["within_10_percent_by_window"],
        "strided": compared["strongly_strided"],
        "found": compared["strongly_strided_found"],
        "rate": accesses / measure.replay_seconds(path, "leap"),
    }
    print(
        f"{program.name:14} {accesses:12.1f} {figures['compression']:12.0f} {figures['dilation']:9.1f} "
        f"{figures['accesses_captured']:11.1f} {figures['instructions_captured']:15.1f} {figures['pairs']:6.0f} "
        f"{figures['near']:12.1f} {figures['near_by_window']:7.1f} {figures['strided']:8.0f} {figures['found']:6.0f} "
        f"{figures['rate']:4.1f}",
        flush=True,
    )
    return figures, result["errors"]


def print_errors(names: list[str], tables: list[Errors]) -> None:
    """Share of pairs, in percent, by error (Fig. 6 and 7), and the means (Fig. 8)."""
    for which, title in (("leap", "LEAP"), ("window", "window")):
        print(f"{'pairs, % by ' + title:18}" + "".join(f"{name:>10}" for name in [*names, "mean"]))
        for rows in zip(*tables):
            shares = [row[which] for row in rows]
            print(f"{rows[0]['error']:18}" + "".join(f"{each:10.1f}" for each in [*shares, statistics.mean(shares)]))
    sys.stdout.flush()


def whomp(program: programs.Program, size: int, most: int) -> dict[str, float]:
    """What WHOMP's table says of a program."""
    import time

    path = fetch.cache() / "object-relative" / f"{program.name}-{size}.zst"
    tracekit.analyze(path, "whomp", 1, window={"to": 1000})  # kernels are compiled
    begin = time.process_time()
    summary = tracekit.analyze(path, "whomp", 1, window={"to": most}).result["summary"]
    spent = time.process_time() - begin
    accesses = summary["accesses"] / 1e6
    figures = {
        "ratio": summary["omsg_over_rasg"],
        "compression": summary["compression_ratio"],
        "rate": accesses / spent,
    }
    print(
        f"{program.name:14} {accesses:12.1f} {figures['ratio']:14.1f} {figures['compression']:12.1f} "
        f"{figures['rate']:4.2f}",
        flush=True,
    )
    return figures


def print_means(rows: list[dict[str, float]]) -> None:
    """Of what the paper gives averages of; dilation and speed as geometric means."""
    if not rows:
        return
    names = [name for name in rows[0] if name not in ("accesses", "pairs", "strided", "found")]
    means = {
        name: (statistics.geometric_mean if name in ("dilation", "rate") else statistics.mean)(
            [row[name] for row in rows]
        )
        for name in names
    }
    if "found" in rows[0]:
        means["strided found %"] = 100 * sum(row["found"] for row in rows) / max(sum(row["strided"] for row in rows), 1)
    print("mean: " + ", ".join(f"{name} {value:.1f}" for name, value in means.items()), flush=True)


def main() -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default=PROGRAMS)
    parser.add_argument("--size", type=int, default=1)
    parser.add_argument("--whomp", type=int, default=4_000_000, help="accesses that grammars are made of")
    options = parser.parse_args()
    chosen = [programs.EVERYTHING[name] for name in options.only.split(",")]
    print(LEAP)
    measured = [leap(program, options.size) for program in chosen]
    print_means([figures for figures, _ in measured])
    print_errors([program.name for program in chosen], [errors for _, errors in measured])
    print(WHOMP)
    print_means([whomp(program, options.size, options.whomp) for program in chosen])


if __name__ == "__main__":
    main()
