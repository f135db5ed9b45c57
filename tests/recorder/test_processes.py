"""Numbers of processes, and the choice of those that are recorded: the three trees of Alleria's Fig. 3."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.recorder.recording import Recorded, build, read, record
from tracekit.formats.errors import TracekitError
from tracekit.formats.reader import TraceReader
from tracekit.recorder import processes, window_rules

TREE = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int table[64];

/* Each process stores as many times as the text says, then makes its children, one after the other: "5(7 8(9))". */
__attribute__((noinline)) static void work(int times) { for (int i = 0; i < times; i++) table[i] += times; }

static const char *skip(const char *at)
{
    int depth = 0;
    for (; *at; at++) {
        if (*at == '(') depth++;
        if (*at == ')' && --depth < 0) return at;
        if (*at == ' ' && depth == 0) return at;
    }
    return at;
}

static void run(const char *at)
{
    char *end;
    work((int)strtol(at, &end, 10));
    if (*end != '(')
        return;
    for (const char *child = end + 1; *child && *child != ')'; child = *skip(child) == ' ' ? skip(child) + 1 : ")") {
        pid_t process = fork();
        if (process == 0) {
            run(child);
            exit(0);
        }
        waitpid(process, NULL, 0);
    }
}

int main(int count, char **arguments)
{
    run(arguments[1]);
    if (count > 2)
        execv(arguments[0], (char *[]){arguments[0], arguments[2], NULL});
    return 0;
}
"""

LEFT = "11(12 13 14)"
"""A process with three children, numbers 2 to 4."""
MIDDLE = "11(12(21 22) 13)"
"""The second process has children of its own: here they have the numbers 3 and 4, and its brother has 5."""
RIGHT = "11(12(13(14)))"
"""Only the fourth is wanted, which comes of three that are not."""


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("tree"), TREE)


def numbered(folder: Path) -> dict[int, tuple[list[Recorded], str]]:
    """By process number: the records without what differs from run to run, and the trace's name."""
    found = {}
    for path in folder.glob("*.zst"):
        with TraceReader(path) as reader:
            assert reader.complete
            number = reader.meta["number"]
        assert number not in found
        found[number] = ([(item.stream, item.name, len(item.words)) for item in read(path)], path.name)
    return found


@pytest.mark.parametrize(
    ("text", "chosen", "count"),
    [(LEFT, "1-4", 4), (LEFT, "3", 4), (MIDDLE, "1,5", 5), (MIDDLE, "1,3-5", 5), (RIGHT, "4", 4), (RIGHT, "2,4", 4)],
)
def test_only_the_chosen_ones_have_traces_and_those_are_what_they_were(
    tmp_path: Path, tree: Path, text: str, chosen: str, count: int
) -> None:
    (tmp_path / "all").mkdir()
    (tmp_path / "some").mkdir()
    record(tmp_path / "all", tree, text, options=("--follow-fork", "-o", "app.zst"))
    expected = numbered(tmp_path / "all")
    assert sorted(expected) == list(range(1, count + 1))
    run = record(tmp_path / "some", tree, text, options=("--follow-fork", "-o", "app.zst", "--processes", chosen))
    assert run.returncode == 0, run.stderr
    found = numbered(tmp_path / "some")
    assert sorted(found) == sorted(processes.parse(chosen))
    assert {number: records for number, (records, _) in found.items()} == {
        number: expected[number][0] for number in found
    }
    assert len(list((tmp_path / "some").iterdir())) == len(found)  # nothing is left of the others
    assert (1 in found) == (tmp_path / "some" / "app.zst").exists()


def test_numbers_count_processes_not_their_ids(tmp_path: Path, tree: Path) -> None:
    record(tmp_path, tree, MIDDLE, options=("--follow-fork", "-o", "app.zst"))
    stores = {}
    for path in tmp_path.glob("*.zst"):
        with TraceReader(path) as reader:
            assert reader.done is not None
            inherited = reader.done.get("inherited", {"stores": 0})["stores"]
            stores[reader.meta["number"]] = reader.done["totals"]["stores"] - inherited
    # What each stores to the table; the rest of what the three do that have no children is the same.
    own = dict(zip(range(1, 6), (11, 12, 21, 22, 13)))
    assert [stores[number] - stores[3] for number in (4, 5)] == [own[number] - own[3] for number in (4, 5)]


def test_who_executes_another_program_keeps_its_number(tmp_path: Path, tree: Path) -> None:
    record(tmp_path, tree, "5(6)", "7(8)", options=("--follow-fork", "-o", "app.zst"))
    numbers = []
    for path in tmp_path.glob("*.zst"):
        with TraceReader(path) as reader:
            numbers.append(reader.meta["number"])
    assert sorted(numbers) == [1, 1, 2, 3]


def test_the_file_of_windows_may_choose_too(tmp_path: Path, tree: Path) -> None:
    (tmp_path / "w.toml").write_text("processes = [2]\n")
    run = record(tmp_path, tree, LEFT, options=("--follow-fork", "-o", "app.zst", "--windows", "w.toml"))
    assert run.returncode == 0 and sorted(numbered(tmp_path)) == [2], run.stderr


def test_none_of_the_chosen_ones_came(tmp_path: Path, tree: Path) -> None:
    run = record(tmp_path, tree, LEFT, options=("--follow-fork", "--processes", "9"))
    assert run.returncode == 125 and "none of the chosen processes" in run.stderr and "4 processes were" in run.stderr
    assert not list(tmp_path.iterdir())
    run = record(tmp_path, tree, LEFT, options=("--processes", "1"))
    assert run.returncode == 125 and "add --follow-fork" in run.stderr


@pytest.mark.parametrize("text", ["", "0", "4-2", "a", "1,,2", "1-", "-3"])
def test_what_chooses_nothing(text: str) -> None:
    with pytest.raises(TracekitError, match="--processes"):
        processes.parse(text)


@pytest.mark.parametrize("text", ["processes = []", "processes = 1", "processes = [true]", "processes = [0]"])
def test_lists_that_choose_nothing(tmp_path: Path, text: str) -> None:
    (tmp_path / "w.toml").write_text(text)
    with pytest.raises(TracekitError, match="processes is a list"):
        window_rules.read(str(tmp_path / "w.toml"))
