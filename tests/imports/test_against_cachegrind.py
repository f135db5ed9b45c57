"""The module ``cache`` and valgrind's cachegrind on the accesses of one program, as lackey tells them."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import tracekit
from tests.needs import needs
from tracekit.cli import main

PROGRAM = r"""
#include <stdio.h>
#include <stdlib.h>
static int compare(const void *one, const void *other) { return *(const int *)one - *(const int *)other; }
int main(void)
{
    int count = 20000, *numbers = malloc(count * sizeof *numbers);
    unsigned seed = 1;
    for (int k = 0; k < count; k++)
        numbers[k] = (seed = seed * 1664525 + 1013904223) >> 8;
    qsort(numbers, count, sizeof *numbers, compare);
    printf("%d\n", numbers[count / 2]);
    free(numbers);
    return 0;
}
"""


def misses(said: str, level: str) -> int:
    found = re.search(rf"{level} *misses: *([\d,]+)", said)
    assert found, said
    return int(found[1].replace(",", ""))


@needs("valgrind")
def test_misses_of_both_levels(tmp_path: Path) -> None:
    source, app, log = tmp_path / "sort.c", tmp_path / "sort", tmp_path / "sort.lackey"
    source.write_text(PROGRAM)

    def run(*words: Any) -> str:
        return subprocess.run(words, cwd=tmp_path, check=True, capture_output=True, text=True).stderr

    run("cc", "-O1", source, "-o", app)
    run("valgrind", "--tool=lackey", "--trace-mem=yes", f"--log-file={log}", app)
    caches = ("--cache-sim=yes", "--D1=32768,8,64", "--LL=262144,16,64", "--cachegrind-out-file=/dev/null")
    said = run("valgrind", "--tool=cachegrind", *caches, app)
    assert main(["import", "lackey", str(log), "-o", str(tmp_path / "sort.zst")]) == 0
    levels = tracekit.analyze(tmp_path / "sort.zst", "cache", levels="32K:8:64,256K:16:64").result["levels"]
    for level, theirs in zip(levels, (misses(said, "D1"), misses(said, "LLd")), strict=True):
        # of an access to two lines that both miss cachegrind counts one miss; the tools' stacks differ by a few bytes
        assert abs(level["misses"] - theirs) <= theirs // 100
        assert theirs > 1000
