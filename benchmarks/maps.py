"""Reduction maps: nanoseconds for each of 10 M insertions of keys drawn at random, side by side with other maps.

    python benchmarks/maps.py                       # count maps: tracekit's, and a plain one in Numba
    python benchmarks/maps.py --peers FOLDER        # also C++: phmap::flat_hash_map, PROMPT's HTMap_Sum (1 thread)
    python benchmarks/maps.py --kinds               # the other kinds of tracekit's maps
    python benchmarks/maps.py --workers             # two workers over one

FOLDER holds parallel_hashmap/ (of github.com/greg7mdp/parallel-hashmap) and HTContainer.h (of
github.com/PrincetonUniversity/PROMPT, src/runtime/ProfilingModules); g++ compiles them into the benchmarks' cache.
Medians of --repeat interleaved runs; processor time unless said.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from fetch import cache
from numpy.typing import NDArray

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from tracekit.containers import maps  # noqa: E402
from tracekit.jit.kernel import inlined, kernel  # noqa: E402

Keys = NDArray[np.uint64]
Timed = Callable[[Keys], float]


@inlined
def plain_cell(cells: Any, key: Any) -> Any:
    mask = np.uint64(cells.size - 2)
    cell = ((key * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(31)) & mask
    while cells[cell + np.uint64(1)] != np.uint64(0) and cells[cell] != key:
        cell = (cell + np.uint64(2)) & mask
    return cell


@kernel
def plain_count(cells: Any, keys: Any) -> None:
    """What one writes first: open addressing without a buffer, and here large enough from the start."""
    for i in range(keys.size):
        cell = plain_cell(cells, keys[i])
        cells[cell] = keys[i]
        cells[cell + np.uint64(1)] += np.uint64(1)


@kernel
def count_one_by_one(table: Any, keys: Any) -> None:
    for i in range(keys.size):
        maps.count(table, keys[i])


@kernel
def count_pairs(table: Any, keys: Any) -> None:
    for i in range(keys.size):
        maps.count(table, (keys[i], keys[i] >> np.uint64(3)))


@kernel
def insert_one_by_one(table: Any, keys: Any) -> None:
    for i in range(keys.size):
        maps.insert(table, keys[i], keys[i] & np.uint64(3))


def plain(keys: Keys) -> float:
    cells = np.zeros(4 << int(keys.max()).bit_length(), np.uint64)
    begin = time.process_time()
    plain_count(cells, keys)
    return time.process_time() - begin


def filled(make: Callable[[], Any], fill: Any) -> Timed:
    """Time to fill a map that begins empty, up to and with its last drain and its rows."""

    def timed(keys: Keys) -> float:
        table = make()
        begin = time.process_time()
        fill(table, keys)
        maps.rows(table)
        return time.process_time() - begin

    return timed


PEER = r"""
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <functional>
#include <memory>
#include <vector>
#include <string>
#include "HTContainer.h"

static double now() { timespec t; clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t); return t.tv_sec + t.tv_nsec * 1e-9; }

int main(int argc, char **argv)
{
    std::vector<uint64_t> keys(std::stoul(argv[2]));
    FILE *file = fopen(argv[3], "rb");
    if (!file || fread(keys.data(), 8, keys.size(), file) != keys.size()) return 1;
    double begin, total = 0;
    if (argv[1][0] == 'p') {
        begin = now();
        phmap::flat_hash_map<uint64_t, uint64_t> map;
        for (uint64_t key : keys) map[key]++;
        total = map.size();
    } else {
        begin = now();
        HTMap_Sum<uint64_t, std::hash<uint64_t>, std::equal_to<uint64_t>, 1> map;
        for (uint64_t key : keys) map.emplace_back(key);
        for (auto &entry : map) total += entry.second != 0;
    }
    printf("%.9f %.0f\n", now() - begin, total);
}
"""


def peer(folder: Path, name: str) -> Timed:
    """One of the C++ maps, in a process of its own; compiled once."""
    program, keys_file = cache() / "peer-maps", cache() / "peer-keys"
    if not program.exists():
        program.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run(
            [
                "g++",
                "-O3",
                "-march=native",
                "-std=c++17",
                "-pthread",
                "-w",
                "-I",
                str(folder),
                "-x",
                "c++",
                "-",
                "-o",
                str(program),
            ],
            input=PEER,
            text=True,
            check=True,
        )

    def timed(keys: Keys) -> float:
        keys.tofile(keys_file)
        run = subprocess.run([str(program), name, str(len(keys)), str(keys_file)], capture_output=True, check=True)
        keys_file.unlink()
        return float(run.stdout.split()[0])

    return timed


def compare(works: dict[str, Timed], number: int, sizes: list[int], repeat: int) -> None:
    """Print one line for each size: nanoseconds for an insertion into each map."""
    print(f"{'keys':>9} " + " ".join(f"{name:>15}" for name in works))
    random = np.random.default_rng(7)
    for work in works.values():
        work(random.integers(0, 5, 1000).astype(np.uint64))  # compiles
    for size in sizes:
        keys = random.integers(0, size, number).astype(np.uint64)
        times: dict[str, list[float]] = {name: [] for name in works}
        for _ in range(repeat):
            for name, work in works.items():
                times[name].append(work(keys))
        print(
            f"{size:9} " + " ".join(f"{1e9 * statistics.median(each) / number:15.1f}" for each in times.values()),
            flush=True,
        )


def compare_workers(number: int, sizes: list[int], repeat: int) -> None:
    """Print the time of one worker over that of two, reduce and rows included, by the clock and in processor time.

    Processor time of the worker that needs the most, and of what follows: what the clock would say of idle cores.
    """
    random = np.random.default_rng(7)
    for size in sizes:
        keys = random.integers(0, size, number).astype(np.uint64)
        times: dict[int, list[tuple[float, float]]] = {1: [], 2: []}
        for _ in range(repeat + 1):
            for workers, each in times.items():
                each.append(timed_workers(keys, workers))
        for clock, name in enumerate(("by the clock", "processor time")):
            one, two = (statistics.median(found[clock] for found in each[1:]) for each in times.values())
            print(
                f"{size:9} keys, {name}: one worker {1e9 * one / number:5.1f} ns, two {1e9 * two / number:5.1f} ns, "
                f"{one / two:.2f} times",
                flush=True,
            )


def timed_workers(keys: Keys, workers: int) -> tuple[float, float]:
    """Seconds by the clock and of processor time on the longest path."""
    begin = time.perf_counter()
    tables = [maps.count_map() for _ in range(workers)]

    def work(number: int) -> float:
        start = time.thread_time()
        maps.insert_columns([tables[number]], keys[len(keys) * number // workers : len(keys) * (number + 1) // workers])
        return time.thread_time() - start

    with ThreadPoolExecutor(workers) as pool:
        longest = max(pool.map(work, range(workers)))
    start = time.thread_time()
    maps.rows(maps.reduce(tables) if workers > 1 else tables[0])
    return time.perf_counter() - begin, longest + time.thread_time() - start


KINDS: dict[str, Callable[[], Any]] = {
    "sum": maps.sum_map,
    "min": maps.min_map,
    "constant": maps.constant_map,
    "set, limit 4": lambda: maps.set_map(limit=4),
    "set, limit 2": lambda: maps.set_map(limit=2),
    "sum float64": lambda: maps.sum_map(dtype=np.float64),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peers", type=Path)
    parser.add_argument("--kinds", action="store_true")
    parser.add_argument("--workers", action="store_true")
    parser.add_argument("--number", type=int, default=10_000_000, help="insertions")
    parser.add_argument("--sizes", type=int, nargs="+", default=[1000, 10_000, 1_000_000], help="different keys")
    parser.add_argument("--repeat", type=int, default=5)
    options = parser.parse_args()
    if options.workers:
        compare_workers(options.number, options.sizes, options.repeat)
        return
    works: dict[str, Timed] = {
        "count": filled(maps.count_map, count_one_by_one),
        "two-word keys": filled(lambda: maps.count_map(2), count_pairs),
        "plain Numba": plain,
    }
    if options.peers:
        works |= {"phmap": peer(options.peers, "phmap"), "PROMPT": peer(options.peers, "HTMap_Sum")}
    if options.kinds:
        works = {name: filled(make, insert_one_by_one) for name, make in KINDS.items()}
    compare(works, options.number, options.sizes, options.repeat)


if __name__ == "__main__":
    main()
