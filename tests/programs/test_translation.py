"""Object-relative translation on a program: blocks that grow and move, mappings that are cut, threads, past the end."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import tracekit
from tests.programs.running import compile_program, record
from tracekit import whomp

SOURCE = r"""
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

struct node { int data; struct node *next; };
int table[8];

static void *work(void *argument)
{
    struct node *volatile mine = NULL;
    for (int i = 0; i < 300; i++) {
        struct node *node = malloc(sizeof *node); // made
        node->next = mine; // thread
        mine = node;
    }
    for (struct node *node = mine; node; node = node->next) // walk
        node->data++;
    return argument;
}

int main(void)
{
    int *volatile array = NULL;
    for (int n = 1; n <= 3000; n++) {
        array = realloc(array, n * sizeof *array); // grown
        array[n - 1] = n; // array
        if (n % 64 == 0)
            *(char *volatile *)malloc(sizeof(char *)) = NULL; // stands in the way
    }
    volatile char *pages = mmap(NULL, 1 << 17, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    pages[100] = 1; // before
    munmap((char *)pages + 8192, 4096);
    pages[4096] = 2; // first
    pages[12288 + 5] = 3; // last
    for (int i = 0; i < 8; i++)
        ((volatile int *)table)[i] = i; // table
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, work, NULL);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    printf("%d\n", array[2999]);
    return 0;
}
"""
LINES = {
    match[1]: number for number, line in enumerate(SOURCE.split("\n"), 1) if (match := re.search(r"// (\w+)", line))
}
Places = dict[int, list[tuple[int, int, int]]]


@pytest.fixture(scope="module", params=["-O0", "-O2"])
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Places, list[Any]]:
    """Line -> (group, object, offset) of its accesses to known objects that are not on the stack; the groups."""
    folder: Path = tmp_path_factory.mktemp("translation")
    (folder / "app.c").write_text(SOURCE)
    program = compile_program([folder / "app.c"], folder / "app", ["-g", "-pthread", request.param], instrumented=True)
    recording = record(program)
    assert recording.outcome.stdout == b"3000\n"
    tracekit.analyze(recording.trace, "whomp", grammars=str(folder / "run.whomp"))
    places: Places = {}
    with tracekit.open(recording.trace) as trace:
        for part in whomp.accesses(folder / "run.whomp"):
            for instruction, *place in zip(*(column.tolist() for column in part)):
                if place[0] != 0 and instruction < len(trace.program.ops):
                    line = trace.program.instruction(instruction)["line"]
                    places.setdefault(line, []).append(tuple(place))
    return places, whomp.groups(folder / "run.whomp")


def test_realloc_keeps_the_object(run: tuple[Places, list[Any]]) -> None:
    places, groups = run
    stored = places[LINES["array"]]
    assert [(number, offset) for _, number, offset in stored] == [(0, 4 * n) for n in range(3000)]
    (group,) = {group for group, _, _ in stored}
    assert (groups[group]["kind"], groups[group]["site"]["line"]) == ("heap", LINES["grown"])
    copied = places.get(LINES["grown"], [])
    assert {(number, offset) for _, number, offset in copied} <= {(0, 0)}  # by realloc itself, where it moved


def test_a_mapping_that_is_cut(run: tuple[Places, list[Any]]) -> None:
    places, groups = run
    before, first, last = (places[LINES[name]][0] for name in ("before", "first", "last"))
    assert (before[1:], first[1:], last[1:]) == ((0, 100), (0, 4096), (0, 5))
    assert before[0] == first[0] != last[0]
    assert groups[last[0]]["site"]["line"] == LINES["before"] + 1  # made by munmap


def test_a_global_and_threads(run: tuple[Places, list[Any]]) -> None:
    places, groups = run
    assert [offset for _, _, offset in places[LINES["table"]]] == list(range(0, 32, 4))
    assert groups[places[LINES["table"]][0][0]]["name"] == "table"
    made = places[LINES["thread"]]
    assert sorted(number for _, number, _ in made) == list(range(600))
    assert {offset for _, _, offset in made} == {8}
    assert {groups[group]["site"]["line"] for group, _, _ in made} == {LINES["made"]}


WRAPPERS = r"""
#include <stdio.h>
#include <stdlib.h>

struct node { long key; struct node *next; };

__attribute__((noinline)) void *xmalloc(size_t size)
{
    void *made = malloc(size); // malloc
    if (!made)
        exit(1);
    return made;
}

__attribute__((noinline)) void *xcalloc(size_t count, size_t size)
{
    char *made = xmalloc(count * size);
    for (size_t i = 0; i < count * size; i++)
        made[i] = 0;
    return made;
}

static void *xrealloc(void *, size_t) __attribute__((noinline));
static void *xrealloc(void *old, size_t size)
{
    return old ? realloc(old, size) : xmalloc(size);
}

__attribute__((noinline)) struct node *new_node(long key, struct node *next)
{
    struct node *node = xmalloc(sizeof *node); // node
    node->key = key;
    node->next = next;
    return node;
}

int main(int count, char **words)
{
    struct node *list = NULL;
    for (int i = 0; i < 3; i++)
        list = new_node(i, list);
    list = new_node(3, list);
    double *sums = xcalloc(10 * count, sizeof *sums); // sums
    double *more = xcalloc(10, sizeof *more); // more
    long *grown = xrealloc(NULL, 8); // grown
    grown = xrealloc(grown, 1 << 20);
    grown[1000] = 1;
    for (struct node *node = list; node; node = node->next)
        sums[node->key] += more[node->key] + grown[1000];
    printf("%g\n", sums[3]);
    return 0;
}
"""


@pytest.mark.parametrize("level", ["-O0", "-O2"])
def test_a_wrapper_is_told_apart_by_its_callers(level: str, tmp_path: Path) -> None:
    (tmp_path / "app.c").write_text(WRAPPERS)
    program = compile_program([tmp_path / "app.c"], tmp_path / "app", ["-g", level], instrumented=True)
    trace = record(program).trace
    lines = {
        match[1]: number
        for number, line in enumerate(WRAPPERS.split("\n"), 1)
        if (match := re.search(r"// (\w+)", line))
    }
    found: dict[str, dict[int, int]] = {}
    for by in ("site", "caller"):
        found[by] = {}
        for row in tracekit.analyze(trace, "leap", by=by, list=True).result["streams"]:
            if row["group"]["kind"] == "heap":
                line = row["group"]["site"]["line"]
                found[by][line] = found[by].get(line, 0) + row["accesses"]
    assert found["site"].keys() == {lines["malloc"]}
    assert found["caller"].keys() == {lines[name] for name in ("node", "sums", "more", "grown")}
    assert sum(found["site"].values()) == sum(found["caller"].values())
