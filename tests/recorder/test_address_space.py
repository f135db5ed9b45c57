"""Snapshots of the address space: what the program says of its own memory is found in them."""

from __future__ import annotations

import json
import os
import subprocess
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests import prepared
from tests.programs.running import tracekit
from tests.recorder.recording import ENVIRONMENT, TRACEKIT, build, record
from tracekit.address_space import read_snapshots
from tracekit.formats.errors import TracekitError
from tracekit.formats.reader import TraceReader
from tracekit.recorder import physical
from tracekit.recorder.address_space import parse_period

PROGRAM = r"""
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static char data[1 << 20] = {1};
static volatile int own;

static void *wait(void *argument)
{
    int local;
    printf("stack %p %d\n", (void *)&local, (int)gettid());
    fflush(stdout);
    for (;;) pause();
    return argument;
}

/* It ends once the recorder has looked: its parent writes to it. */
int main(int count, char **arguments)
{
    pthread_t thread;
    void *file = mmap(NULL, 1 << 16, PROT_READ, MAP_PRIVATE, open(arguments[1], O_RDONLY), 0);
    void *pages = mmap(NULL, 3 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char *small = malloc(100);
    memset(small, count, 100);
    printf("image %p 0\nfile %p 0\nanonymous %p 0\nheap %p 0\nstack %p 0\n", (void *)data, file, pages, (void *)small,
           (void *)&count);
    fflush(stdout);
    pthread_create(&thread, NULL, wait, NULL);
    own = data[5];
    getchar();
    return 0;
}
"""


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    folder = tmp_path_factory.mktemp("space")
    app = build(folder, PROGRAM, "-D_GNU_SOURCE", "-pthread")
    (folder / "mapped").write_bytes(bytes(1 << 16))
    command = [*TRACEKIT, "record", "--snapshots", "10ms", str(app), "mapped"]
    run = subprocess.Popen(
        command, cwd=folder, env=ENVIRONMENT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert run.stdout and run.stdin
    said = "".join(run.stdout.readline() for _ in range(6))
    partial = folder / "trace.zst.partial"
    before = partial.stat().st_size
    while partial.stat().st_size < before + 3000:  # two snapshots have been written since: one has begun since
        time.sleep(0.02)
    run.communicate("\n", timeout=60)
    assert run.returncode == 0
    return folder / "trace.zst", said


def test_each_region_has_its_use(recorded: tuple[Path, str]) -> None:
    trace, said = recorded
    with TraceReader(trace) as reader:
        snapshots = read_snapshots(reader)
    last = snapshots[-1]
    assert [snapshot.time for snapshot in snapshots] == sorted(snapshot.time for snapshot in snapshots)
    lines = [line.split() for line in said.splitlines()]
    assert len(lines) == 6
    for use, address, thread in lines:
        [region] = [region for region in last.regions if region.first <= int(address, 16) < region.end]
        assert region.use == use, (use, region)
        if int(thread):
            assert region.thread == int(thread)
    assert {"tracekit", "kernel"} <= {region.use for region in last.regions}
    assert last.bytes_of("image") >= 1 << 20 and last.bytes_of("anonymous") >= 3 << 20
    assert 0 < last.proportional <= last.resident


def test_the_text_and_the_json(recorded: tuple[Path, str]) -> None:
    text = tracekit("regions", recorded[0])
    assert text.startswith("ADDRESS SPACE over time\n") and "[heap]" in text and "64 KiB  r--p  file" in text
    printed: dict[str, Any] = json.loads(tracekit("regions", "--json", recorded[0]))
    first = printed["snapshots"][0]
    assert sum(first["bytes"].values()) <= sum(region["bytes"] for region in first["regions"])
    assert tracekit("check", recorded[0])


def test_a_trace_without_snapshots(tmp_path: Path) -> None:
    build(tmp_path, "int main(void) { return 0; }")
    record(tmp_path, "./app")
    run = prepared.run(
        [*TRACEKIT, "regions", "trace.zst"], cwd=tmp_path, env=ENVIRONMENT, capture_output=True, text=True
    )
    assert run.returncode == 1 and "tracekit record --snapshots 1s" in run.stderr


@pytest.mark.parametrize("text", ["", "1", "5ms", "0s", "-1s", "1h"])
def test_what_is_no_period(text: str) -> None:
    with pytest.raises(TracekitError, match="--snapshots"):
        parse_period(text)


FRAMES = r"""
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
int main(void)
{
    char *pages = mmap(NULL, 64 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int map = open("/proc/self/pagemap", O_RDONLY);
    for (int k = 0; k < 64; k += 3) memset(pages + 4096 * k, k + 1, 4096);
    mlock(pages, 4096);
    for (int k = 0; k < 64; k++) {
        uint64_t entry;
        pread(map, &entry, 8, 8 * ((uintptr_t)pages / 4096 + k));
        unsigned long frame = entry & ((1ul << 55) - 1);
        printf("%p %d %lu\n", (void *)(pages + 4096 * k), (int)(entry >> 63), frame);
    }
    fflush(stdout);
    getchar();
    munmap(pages, 64 * 4096);
    puts("gone");
    fflush(stdout);
    getchar();
}
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="the kernel tells page frames to root only")
def test_page_frames_are_those_that_the_program_reads_itself(tmp_path: Path) -> None:
    try:
        physical.require()
    except TracekitError:
        pytest.skip("the kernel tells page frames to CAP_SYS_ADMIN only")
    app = build(tmp_path, FRAMES, "-D_GNU_SOURCE")
    command = [*TRACEKIT, "record", "--physical", "--snapshots", "10ms", str(app)]
    run = subprocess.Popen(
        command, cwd=tmp_path, env=ENVIRONMENT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert run.stdout and run.stdin
    printed = [run.stdout.readline().split() for _ in range(64)]
    partial = tmp_path / "trace.zst.partial"

    def wait_for_two() -> None:
        before = partial.stat().st_size
        while partial.stat().st_size < before + 3000:
            time.sleep(0.02)

    wait_for_two()
    run.stdin.write("\n")
    run.stdin.flush()
    assert run.stdout.readline() == "gone\n"
    wait_for_two()
    run.communicate("\n", timeout=60)
    assert run.returncode == 0
    with TraceReader(tmp_path / "trace.zst") as reader:
        snapshots = read_snapshots(reader)
    expected = [int(frame) * 4096 + 5 if int(present) else None for _, present, frame in printed]
    addresses = [int(address, 16) + 5 for address, _, _ in printed]
    assert sum(each is not None for each in expected) >= 22
    assert any([snapshot.physical(address) for address in addresses] == expected for snapshot in snapshots)
    assert [snapshots[-1].physical(address) for address in addresses] == [None] * 64
    regions = json.loads(tracekit("regions", "--json", tmp_path / "trace.zst"))["snapshots"][-1]["regions"]
    assert all(region["resident"] == sum(run[1] for run in region["physical"]) for region in regions)


def test_without_the_capability_one_sentence_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(physical, "_entries", lambda process, first, count: np.array([1 << 63], np.uint64))
    with pytest.raises(TracekitError, match="CAP_SYS_ADMIN"):
        physical.require()


def test_changes_of_frames(monkeypatch: pytest.MonkeyPatch) -> None:
    there = np.uint64(1 << 63)
    table: dict[int, int] = {10: 7, 11: 8, 12: 3}

    def entries(process: int, first: int, count: int) -> np.ndarray:
        return np.array(
            [np.uint64(table[page]) | there if page in table else 0 for page in range(first, first + count)], np.uint64
        )

    monkeypatch.setattr(physical, "_entries", entries)
    frames, regions = physical.Frames(), [[8 * 4096, 16 * 4096, "rw-p", ""], [0, 4096, "---p", ""]]
    assert frames.changes(1, regions) == [[10, 2, 7], [12, 1, 3]]
    assert frames.changes(1, regions) == []
    del table[10]
    table[12], table[13] = 9, 10
    assert frames.changes(1, regions) == [[12, 2, 9], [10, 1, -1]]
