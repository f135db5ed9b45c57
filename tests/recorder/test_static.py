"""Static programs: what is recorded of them is what is recorded of the same program, linked dynamically."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tests.recorder.recording import ROOT, build, read, record
from tracekit.formats.reader import TraceReader

PROGRAM = r"""
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static int table[64], told;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static sem_t semaphore;

static int compare(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }
static void tell(int number) { told += number; }

static void *work(void *number)
{
    sem_wait(&semaphore);
    for (int i = 0; i < 64; i++) {
        pthread_mutex_lock(&lock);
        table[i] += i ^ (int)(long)number;
        pthread_mutex_unlock(&lock);
    }
    sem_post(&semaphore);
    return malloc(7);
}

int main(int count, char **arguments)
{
    pthread_t threads[3];
    sem_init(&semaphore, 0, 1);
    signal(SIGUSR1, tell);
    for (long i = 0; i < 3; i++)
        pthread_create(&threads[i], NULL, work, (void *)i);
    for (int i = 0; i < 3; i++) {
        void *result;
        pthread_join(threads[i], &result);
        free(result);
    }
    raise(SIGUSR1);
    qsort(table, 64, sizeof *table, compare);
    char *copy = strdup(arguments[0]), text[80];
    snprintf(text, sizeof text, "%zu of %.3f", strlen(copy), 0.5 * count);
    puts(text);
    free(copy);
    copy = realloc(calloc(9, 9), 9000);
    memset(copy, 1, 9000);
    free(copy);
    int *pages = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    pages[5] = table[9];
    munmap(pages, 8192);
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        table[5] = 3;
        if (count > 1)
            execl(arguments[1], arguments[1], (char *)NULL);
        exit(table[5]);
    }
    int status;
    waitpid(child, &status, 0);
    return WEXITSTATUS(status) + told - SIGUSR1;
}
"""

CXX = r"""
#include <future>
#include <iostream>
#include <map>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

struct Name {
    std::string text = "longer than what a string holds within itself";
    ~Name() { text += "!"; }
};
Name &name() { static Name only; return only; }
std::mutex lock;
int total;

__attribute__((noinline)) int refuse(int number)
{
    if (number > 3)
        throw std::runtime_error("too large");
    return number;
}

int main()
{
    std::map<std::string, int> counts;
    for (int i = 0; i < 40; i++)
        counts["a key that is long enough, number " + std::to_string(i % 7)]++;
    std::vector<std::thread> threads;
    for (int i = 0; i < 3; i++)
        threads.emplace_back([i] { std::lock_guard<std::mutex> held(lock); total += i + name().text.size(); });
    for (auto &thread : threads)
        thread.join();
    int caught = 0;
    for (int i = 0; i < 6; i++)
        try { caught += refuse(i); } catch (std::exception &) { caught += 100; }
    std::cout << counts.size() << ' ' << total << ' ' << caught << '\n';
}
"""

EXPECTED_OF_CXX = f"7 {3 + 3 * len('longer than what a string holds within itself')} 206\n"


def kinds(trace: Path) -> Counter[tuple[int, str]]:
    return Counter((found.stream, found.name) for found in read(trace))


def both(folder: Path, source: str, *flags: str, cxx: bool = False) -> tuple[Path, Path]:
    dynamic, static = (folder / "dynamic", folder / "static")
    for place in (dynamic, static):
        place.mkdir()
    return (
        build(dynamic, source, "-pthread", cxx=cxx),
        build(static, source, "-pthread", *(flags or ("-static",)), cxx=cxx),
    )


def assert_children_are_followed(folder: Path, dynamic: Path, static: Path) -> None:
    """A PROGRAM that executes the other one: each of them, and each child that they fork, has a trace."""
    for first, second in ((static, dynamic), (dynamic, static), (static, static)):
        place = folder / f"{first.parent.name}-{second.parent.name}"
        place.mkdir()
        run = record(place, first, second, options=("--follow-fork", "-o", "a.zst"))
        traces = list(place.glob("*.zst"))
        assert len(traces) == 4, run.stderr  # the first, its child, what that executes, and a child of this
        assert all(kinds(trace)[0, "program_start"] for trace in traces)


@pytest.mark.parametrize("flag", ["-static", "-static-pie"])
def test_the_records_are_those_of_the_dynamic_program(tmp_path: Path, flag: str) -> None:
    dynamic, static = both(tmp_path, PROGRAM, flag)
    runs = [record(app.parent, "./app") for app in (dynamic, static)]
    assert [run.returncode for run in runs] == [3, 3] and runs[0].stdout == runs[1].stdout, runs
    found, expected = (kinds(app.parent / "trace.zst") for app in (static, dynamic))
    assert found == expected
    assert {"heap_alloc", "library_load", "lock", "acquire", "signal_enter", "fork", "program_end"} <= {
        name for _, name in found
    }
    with TraceReader(static.parent / "trace.zst") as reader:
        assert [image.name for image in reader.images()] == ["app"]


def test_forked_children_and_executed_programs(tmp_path: Path) -> None:
    dynamic, static = both(tmp_path, PROGRAM)
    assert_children_are_followed(tmp_path, dynamic, static)


def test_cxx_has_threads_exceptions_and_variables_that_are_initialised_once(tmp_path: Path) -> None:
    dynamic, static = both(tmp_path, CXX, cxx=True)
    runs = [record(app.parent, "./app") for app in (dynamic, static)]
    assert [run.stdout for run in runs] == [EXPECTED_OF_CXX, EXPECTED_OF_CXX]
    found, expected = (kinds(app.parent / "trace.zst") for app in (static, dynamic))
    # What the libraries do for themselves differs: tables of exceptions, and strings that those hold.
    own = {"heap_alloc", "heap_free", "library_load", "library_store"}
    # Which thread comes first initialises the variable, and others may meet it while that goes on.
    once = {"acquire", "release", "atomic"}
    of_main_and_others: list[Counter[tuple[int, str]]] = [Counter(), Counter()]
    for sums, counts in zip(of_main_and_others, (found, expected)):
        for (stream, name), count in counts.items():
            if name not in own and (stream == 0 or name not in once):
                sums[min(stream, 1), name] += count
    assert of_main_and_others[0] == of_main_and_others[1]
    for name in ("heap_alloc", "heap_free"):
        assert 0 <= found[0, name] - expected[0, name] <= 4


def test_without_record_it_runs_as_ever(tmp_path: Path) -> None:
    import subprocess

    static = both(tmp_path, PROGRAM)[1]
    run = subprocess.run([static], capture_output=True, text=True, timeout=60)
    assert (run.returncode, run.stderr) == (3, "") and run.stdout.endswith(" of 0.500\n")


def test_windows_open_in_static_programs(tmp_path: Path) -> None:
    source = (ROOT / "fixtures/families.c").read_text()
    build(tmp_path, source, "-pthread", "-static", "--windows", "-fno-inline")
    run = record(tmp_path, "./app", "fork", options=("--window", "on=call:main"))
    assert "no window opened" not in run.stderr and kinds(tmp_path / "trace.zst")[0, "window_begin"] == 1, run.stderr
