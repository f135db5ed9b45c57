"""Memory of the modules against the memory that the program touched.

    python -m benchmarks.footprints [--module NAME]... TRACE ...

For each trace the bytes that its accesses touched, and for each module the peak memory of `tracekit analyze -j 1` as
the system counts it; less that of a run that looks at the first access alone, as bytes for each touched byte.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

import tracekit


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("traces", nargs="+", type=Path)
    parser.add_argument("--module", action="append", help="default: dependence and camp")
    options = parser.parse_args()
    for trace in options.traces:
        touched = tracekit.analyze(trace, "footprint").result["slices"][-1]["total_bytes"]
        cells = [f"{trace.stem:16} touched {touched / 1e6:9.2f} MB"]
        for module in options.module or ["dependence", "camp"]:
            least, most = peak(trace, module, "--to", "1"), peak(trace, module)
            cells.append(f"{module} {most / 1e6:6.0f} MB, {(most - least) / touched:6.2f} for each byte")
        print("   ".join(cells), flush=True)


def peak(trace: Path, module: str, *rest: str) -> int:
    """Peak resident bytes of one analysis; the kernels have been compiled before."""
    command = [sys.executable, "-m", "tracekit", "analyze", "-j", "1", "-m", module, *rest, str(trace)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{' '.join(command)} failed")
    return used.ru_maxrss << 10


if __name__ == "__main__":
    main()
