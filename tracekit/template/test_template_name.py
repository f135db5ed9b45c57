"""template_name against its naive reference, and against an answer that is known."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import tracekit
from tracekit.template.naive_template_name import expected
from tracekit.template.template_name import MODULE

PROGRAM = """
#include <string.h>

volatile int numbers[100];
char text[64], copy[64];

static int __attribute__((noinline)) sum(int count)
{
    int result = 0;
    for (int i = 0; i < count; i++)
        result += numbers[i];
    return result;
}

int main(int argc, char **argv)
{
    for (int i = 0; i < 100; i++)
        numbers[i] = i;
    memcpy(copy, text, 32 + 8 * argc);
    return sum(100) + sum(50) == 0;
}
"""


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A recorded run of the program above."""
    folder = tmp_path_factory.mktemp("template_name")
    (folder / "app.c").write_text(PROGRAM)
    for words in (["cc", "-O1", "app.c", "-o", "app"], ["record", "-o", "app.zst", "--", "./app"]):
        subprocess.run([sys.executable, "-m", "tracekit", *words], cwd=folder, check=True)
    return folder / "app.zst"


@pytest.mark.parametrize("jobs", [1, 3])
def test_it_says_what_the_naive_reference_says(trace: Path, jobs: int) -> None:
    """With one worker and with several."""
    assert tracekit.analyze(trace, MODULE, jobs).result == expected(trace)


def test_what_the_program_surely_moves(trace: Path) -> None:
    """150 numbers are read by sum; main writes 100 and copies 40 bytes."""
    rows = {row["function"]: row for row in tracekit.analyze(trace, MODULE).result["functions"]}
    assert rows["sum"] == {"function": "sum", "read": 600, "written": 0}
    assert rows["main"] == {"function": "main", "read": 40, "written": 440}


def test_functions_that_move_little_are_left_out(trace: Path) -> None:
    """An option."""
    assert tracekit.analyze(trace, MODULE, least=500).result == {
        "functions": [{"function": "sum", "read": 600, "written": 0}]
    }
    assert tracekit.analyze(trace, MODULE, least=500).result == expected(trace, least=500)
