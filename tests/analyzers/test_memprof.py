"""The module ``memprof`` against a list of blocks, and its profile through LLVM's own tools."""

from __future__ import annotations

import random
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.analyzers.test_access_modules import program
from tests.analyzers.test_object_lifetime import fed
from tracekit.analyzers.memprof import Memprof, MemprofOptions
from tracekit.cli import main
from tracekit.formats.events import CODE
from tracekit.objects.profile import MEASURES
from tracekit.render.export import memprof as export

Event = tuple[int, str, int, int, int]


class Block:
    """A heap block."""

    def __init__(self, site: int, start: int, size: int, born: int) -> None:
        self.site, self.start, self.size, self.born, self.accesses = site, start, size, born, 0

    def measured(self, time: int, rate: int) -> dict[str, int]:
        density = self.accesses * 100 // max(self.size, 1)
        life = time - self.born
        by_life = density * 100 // max(life // rate, 1)
        return dict(zip(MEASURES, (max(self.size, 1), self.accesses, life, density, by_life)))


def random_events(rng: random.Random, count: int) -> tuple[list[Event], list[Block], int]:
    """Events, the blocks in the order of their ends, and how many loads and stores there were."""
    live: dict[int, Block] = {}
    events: list[Event] = []
    ended = []
    time = 0
    for _ in range(count):
        what = rng.random()
        slot = rng.randrange(12)
        start = 0x10000 + 512 * slot
        if what < 0.2 and slot not in live:
            size = rng.choice((1, 8, 100, 400))
            live[slot] = Block(rng.randrange(4), start, size, time)
            events.append((0, "heap_alloc", live[slot].site, start, size))
        elif what < 0.3 and slot in live:
            events.append((0, "heap_free", 5, start, live[slot].size))
            ended.append((live.pop(slot), time))
        elif what >= 0.3:
            size = rng.choice((1, 4, 8, 64, 65, 200))
            address = start + rng.randrange(420)
            block = live.get(slot)
            if block is not None and address < start + block.size:
                block.accesses += (size + 63) // 64
            events.append((0, rng.choice(("load", "store")), 6, address, size))
            time += 1
    return events, [*ended, *((block, time) for block in live.values())], time  # type: ignore[return-value]


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32), count=st.sampled_from((0, 5, 60, 600)), rate=st.sampled_from((1, 7, 1_000_000)))
def test_memprof(seed: int, count: int, rate: int) -> None:
    events, blocks, time = random_events(random.Random(seed), count)
    module = Memprof(program(8), MemprofOptions(rate))
    module.accesses = time
    coded: Any = [(stream, CODE[name], *fields) for stream, name, *fields in events]
    rows = fed(module, "memprof", coded, 1 + seed % 40).result()[0]["sites"]
    found = {int(row["object"]["site"]["id"].rpartition(":")[2]): row for row in rows}
    assert found.keys() == {block.site for block, _ in blocks}  # type: ignore[misc]
    for site, row in found.items():
        own = [block.measured(end, rate) for block, end in blocks if block.site == site]  # type: ignore[misc]
        assert row["blocks"] == len(own)
        for name in MEASURES:
            values = [each[name] for each in own]
            assert (row[name], row[f"least_{name}"], row[f"most_{name}"]) == (sum(values), min(values), max(values))


SOURCE = """
#include <new>
__attribute__((noinline)) static char *get(unsigned long n)
{
    return static_cast<char *>(::operator new(n));
}
__attribute__((noinline)) char *often(unsigned long n)
{
    return get(n);
}
__attribute__((noinline)) char *seldom(unsigned long n)
{

    return get(n);
}
int main()
{
    char *one = often(64), *other = seldom(100);
    other[1] = 3;
    for (int k = 0; k < 6400; k++)
        one[k % 64] += k;
    int sum = one[5] + other[1];
    ::operator delete(one);
    ::operator delete(other);
    return sum == 7;
}
"""


@pytest.fixture(scope="module")
def profile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The profile of a program with two stacks that lead to one allocation."""
    folder = tmp_path_factory.mktemp("memprof")
    (folder / "app.cc").write_text(SOURCE)
    build = ["c++", "-g", "-O1", str(folder / "app.cc"), "-o", str(folder / "app")]
    subprocess.run([sys.executable, "-m", "tracekit", *build], check=True)
    assert main(["record", "-o", str(folder / "app.zst"), "--", str(folder / "app")]) == 0
    out = str(folder / "app.profile")
    assert main(["analyze", "-m", "memprof", "--rate", "10", "-o", out, str(folder / "app.zst")]) == 0
    return folder / "app.profile"


def test_stacks_of_a_program(profile: Path, capfd: pytest.CaptureFixture[str]) -> None:
    from tracekit.profiles import files

    rows = files.load(str(profile))[0].result["sites"]
    (often, seldom) = sorted(rows, key=lambda row: -row["accesses"])
    lines = [
        [(frame["function"], frame["line"], frame["inlined"]) for frame in row["stack"]] for row in (often, seldom)
    ]
    assert lines == [
        [("_ZL3getm", 2, False), ("_Z5oftenm", 2, False), ("main", 2, False)],
        [("_ZL3getm", 2, False), ("_Z6seldomm", 3, False), ("main", 2, False)],
    ]
    assert often["stack"][2]["column"] != seldom["stack"][2]["column"]
    assert (often["bytes"], seldom["bytes"]) == (64, 100)
    assert often["accesses"] >= 12800 and seldom["accesses"] in (1, 2)
    capfd.readouterr()
    folder = profile.parent
    assert main(["record", "-o", str(folder / "again.zst"), "--", str(folder / "app")]) == 0
    again = str(folder / "again.profile")
    assert main(["analyze", "-m", "memprof", "--rate", "10", "-o", again, str(folder / "again.zst")]) == 0
    assert main(["merge", str(profile), again, "-o", str(folder / "both")]) == 0
    capfd.readouterr()
    assert main(["export", "memprof", str(folder / "both")]) == 0
    text = capfd.readouterr().out
    assert text.count("AllocCount: 2") == text.count("- Callstack:") == 6  # get and main have both, the others one
    assert f"TotalAccessCount: {2 * often['accesses']}\n" in text
    assert f"MaxLifetime: {often['lifetime'] // 10}\n" in text


def test_llvm_reads_it(profile: Path, tmp_path: Path) -> None:
    """llvm-profdata merges it, and clang finds both stacks again, in a program that it inlines otherwise."""
    tools = [f"/usr/lib/llvm-{version}/bin" for version in range(30, 19, -1)]
    found = next((folder for folder in tools if shutil.which("llvm-profdata", path=folder)), None)
    clang = found and shutil.which("clang++", path=found)
    if not found or not clang:
        pytest.skip("llvm-profdata and clang of version 20 or newer read memory profiles in YAML")
    yaml, merged = tmp_path / "app.yaml", tmp_path / "app.memprofdata"
    assert main(["export", "memprof", str(profile), "-o", str(yaml)]) == 0
    subprocess.run([f"{found}/llvm-profdata", "merge", str(yaml), "-o", str(merged)], check=True)
    shown = subprocess.run(
        [f"{found}/llvm-profdata", "show", "--memory", str(merged)], check=True, capture_output=True, text=True
    ).stdout
    assert shown.count("- Callstack:") == 6
    source = tmp_path / "app.cc"
    source.write_text(SOURCE.replace("__attribute__((noinline)) static", "static inline"))
    wanted = ["-O2", "-g", f"-fmemory-profile-use={merged}", "-mllvm", "-memprof-print-match-info"]
    done = subprocess.run(
        [clang, *wanted, "-c", str(source), "-o", str(tmp_path / "app.o")], check=True, capture_output=True, text=True
    )
    assert done.stderr.count("has total profiled size 64 is matched") == 1
    assert done.stderr.count("has total profiled size 100 is matched") == 1


def test_what_yaml_cannot_hold_as_it_is() -> None:
    frame: dict[str, Any] = {"function": "it's", "line": 1, "column": 2, "inlined": True}
    outer = {**frame, "function": "f", "inlined": False}
    numbers = {f"{how}{name}": 2**40 for name in MEASURES for how in ("", "least_", "most_")}
    row = {"object": {"kind": "heap"}, "blocks": 1, **numbers, "stack": [frame, outer, outer]}
    report = {"module": "memprof", "options": {"rate": 1}, "result": {"sites": [row, {**row, "stack": []}]}}
    text = export.write(report, "").decode()
    assert text.count("- GUID: ") == 2
    assert text.count("Function: 'it''s', LineOffset: 1, Column: 2, IsInlineFrame: true }") == 2
    assert "MaxSize: 4294967295\n" in text and "TotalSize: 1099511627776\n" in text
    assert text.count("- Frames:") == 1
    assert export.write({**report, "result": {"sites": []}}, "") == b"---\nHeapProfileRecords: []\n...\n"
