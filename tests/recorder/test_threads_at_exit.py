"""A program that ends while threads are at work: what they do is recorded, and nothing waits for those that sleep."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

import tracekit
from tests import prepared
from tests.needs import needs
from tests.recorder.recording import ENVIRONMENT, TRACEKIT, build, read, record

PROGRAM = r"""
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>
volatile int count, closed;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static void closes(void) { closed = 1; }
static void *works(void *unused)
{
    for (int i = 0; i < 2000000; i++)
        count++;
    if (closed)
        _exit(9);
    return unused;
}
static void *sleeps(void *unused)
{
    pthread_mutex_lock(&lock);
    return unused;
}
static void *spins(void *unused)
{
    for (;;)
        count++;
    return unused;
}
int main(int argc, char **argv)
{
    pthread_t thread;
    pthread_mutex_lock(&lock);
    pthread_create(&thread, NULL, *argv[1] == 'w' ? works : *argv[1] == 's' ? sleeps : spins, NULL);
    atexit(closes);
    count++;
    if (argc > 2)
        exit(4);
    return 3;
}
"""

LINKED = {
    "shared": (),
    "static": ("-static",),
    "musl": ("--target=x86_64-linux-musl", "-static"),
}


@pytest.mark.parametrize("linked", ["shared", "static", pytest.param("musl", marks=needs("musl"))])
def test_what_a_thread_is_at_work_on_is_recorded(tmp_path: Path, linked: str) -> None:
    app = build(tmp_path, PROGRAM, "-pthread", *LINKED[linked])
    trace = tmp_path / "trace.zst"
    for arguments, status in ((["w"], 3), (["w", "exit"], 4)) * 2:
        done = record(tmp_path, app, *arguments, options=("-f",))
        assert done.returncode == status, done.stderr  # 9: a handler of the end came first
        assert "thread_exit" in {event.name for event in read(trace) if event.stream == 1}
        races = tracekit.analyze(str(trace), "races").result["races"]
        assert any(race["object"]["name"] == "count" for race in races)


@pytest.mark.parametrize("case", ["sleeps", "endless"])
def test_nobody_waits_for_long(tmp_path: Path, case: str) -> None:
    app = build(tmp_path, PROGRAM, "-pthread")
    begin = time.monotonic()
    done = record(tmp_path, app, case)
    assert done.returncode == 3, done.stderr
    assert time.monotonic() - begin < 20
    if case == "endless":  # and the trace, which ends anywhere in the loop, is whole
        checked = prepared.run([*TRACEKIT, "check", tmp_path / "trace.zst"], env=ENVIRONMENT, text=True, timeout=100)
        assert checked.returncode == 0, checked.stdout
