"""Windows: opened by the program, by `tracekit start` and by signals; what control flow, threads and forks do to them.

That the events inside are those of the whole run, tests/programs/test_windows.py says.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections import Counter
from pathlib import Path

import pytest

from tests.needs import require
from tests.programs.running import run_here
from tests.programs.test_windows import compare, located, place, recorded, stretches
from tests.recorder.recording import ENVIRONMENT, TRACEKIT, build, events, record
from tests.recorder.window_traces import good, info
from tracekit.formats.container import WITH_PLANES
from tracekit.formats.reader import TraceReader
from tracekit.recorder.window_signal import is_listening

UNWINDING = r"""
#include <csetjmp>
#include <cstdio>
#include <cstdlib>
#include "tracekit.h"
int table[64];
static jmp_buf back;
struct Guard { int *at; Guard(int *p) : at(p) { *at += 1; } ~Guard() { *at -= 1; } };
__attribute__((noinline)) int thrower(int n, int *p)
{
    Guard guard(p + n % 8);
    int local[4] = {n, n + 1, n + 2, n + 3};
    if (n == OPEN_IN) tracekit_window_open();
    if (n == 0) { if (WHERE & 1) throw local[1]; longjmp(back, 1); }
    return thrower(n - 1, local) + local[2];
}
__attribute__((noinline)) int catcher(int n)
{
    int sum = 0, mine[8] = {};
    for (int i = 0; i < 3; i++) {
        if (WHERE & 1) {
            try { sum += thrower(n, mine); }
            catch (int what) { table[what & 63] += i; if (WHERE & 2) tracekit_window_open(); }
        } else if (setjmp(back) == 0) {
            sum += thrower(n, mine);
        } else {
            if (WHERE & 2) tracekit_window_open();
        }
        for (int k = 0; k < 8; k++) sum += mine[k] + table[k + i];
        if (i == 1) tracekit_window_close();
    }
    return sum;
}
int main() { int sum = 0; for (int i = 0; i < 4; i++) sum += catcher(i + 2); printf("%d\n", sum); }
"""


@pytest.mark.parametrize("where", range(4))
@pytest.mark.parametrize("flags", ["-O0", "-O2", "-O2 -flto", "-O2 -flto=thin"])
def test_exceptions_and_longjmp_across_an_opening(tmp_path: Path, where: int, flags: str) -> None:
    if "-flto" in flags:
        require("lto plugin")
    opens = 99 if where & 2 else 2
    app = build(tmp_path, UNWINDING, *flags.split(), "--windows", f"-DWHERE={where}", f"-DOPEN_IN={opens}", cxx=True)
    whole = recorded(app, tmp_path / "whole.zst")
    paused = recorded(app, tmp_path / "paused.zst", "--paused")
    good(tmp_path / "paused.zst")
    numbers = [number for number, (name, *_) in enumerate(paused.events) if name == "window_begin"]
    assert numbers
    opened = stretches_of_first_opens(whole)
    assert len(opened) == len(numbers)
    for (start, _), begin in zip(opened, numbers, strict=True):
        inside = next(k for k in range(begin, len(paused.events)) if paused.events[k][1] in paused.calls)
        before = place(whole.events[:start])
        assert place(paused.events[begin:inside]).frames == before.frames
        end = next(k for k in range(inside, len(paused.events) + 1) if ended(paused.events, k))
        assert located(paused.events)[inside:end] == located(whole.events)[start : start + end - inside]


def ended(found: list[tuple[str, int, int, int]], at: int) -> bool:
    return at == len(found) or found[at][0] == "window_end"


def stretches_of_first_opens(whole: object) -> list[tuple[int, int]]:
    """Windows nest here, and closes may have no open: count as the runtime does. After which event each one opens."""
    from tests.programs.test_windows import Recorded

    assert isinstance(whole, Recorded)
    opens, depth, found = whole.opens, 0, []
    for at, (name, subject, *_) in enumerate(whole.events):
        if name != "external_call" or subject not in whole.calls:
            continue
        if subject in opens:
            depth += 1
            if depth == 1:
                found.append((at, at))
        else:
            depth = max(depth - 1, 0)
    return found


def test_eight_threads_open_by_themselves(tmp_path: Path) -> None:
    app = build(
        tmp_path,
        r"""
        #include <pthread.h>
        #include <stdio.h>
        #include <stdlib.h>
        #include "tracekit.h"
        long cells[8][64];
        static __attribute__((noinline)) long turn(long *mine, int rounds)
        {
            long sum = 0;
            for (int i = 0; i < rounds; i++) sum += mine[i & 63] += i;
            return sum;
        }
        static void *work(void *argument)
        {
            long *mine = argument, sum = 0;
            for (int i = 0; i < 200; i++) {
                void *volatile block = malloc(64);
                if (i % 20 == 7) tracekit_window_open();
                sum += turn(mine, 50);
                if (i % 20 == 9) tracekit_window_close();
                free(block);
            }
            return (void *)sum;
        }
        int main(void)
        {
            pthread_t threads[8];
            for (int i = 0; i < 8; i++) pthread_create(&threads[i], 0, work, cells[i]);
            for (int i = 0; i < 8; i++) pthread_join(threads[i], 0);
        }""",
        "--windows",
        "-pthread",
    )
    for number in range(3):
        trace = tmp_path / f"{number}.zst"
        assert record(tmp_path, app, options=("--paused", "-o", str(trace))).returncode == 0
        good(trace)
        windows = info(trace)["windows"]
        assert isinstance(windows, list) and windows and all(window["end"] is not None for window in windows)
        allocated = Counter(name for _, name, _ in events(trace, "heap_alloc", "heap_free"))
        assert min(allocated.values()) >= 1600, "objects are known outside of windows, too"


def test_windows_nest_and_a_close_too_many_is_nothing(tmp_path: Path) -> None:
    app = build(
        tmp_path,
        r"""
        #include "tracekit.h"
        volatile int a, b, c, d;
        int main(void)
        {
            tracekit_window_close();
            a = 1;
            TRACEKIT_ON();
            tracekit_window_open();
            b = 1;
            tracekit_window_close();
            c = 1;
            TRACEKIT_OFF();
            d = 1;
        }""",
        "--windows",
    )
    record(tmp_path, app, options=("--paused", "-o", "t.zst"))
    facts = info(tmp_path / "t.zst")
    assert facts["accesses"] == 2
    assert [(each["window"], each["accesses"]) for each in facts["windows"]] == [(1, 2)]  # type: ignore[attr-defined]
    made = run_here("analyze", "-m", "accesses", "--json", tmp_path / "t.zst")
    assert json.loads(made.stdout)["windows"] == facts["windows"]
    shown = run_here("analyze", "-m", "accesses", tmp_path / "t.zst").stdout.decode()
    assert shown.startswith("Recorded in 1 window: 1 (") and ", 2 accesses)" in shown.splitlines()[0]


def test_without_paused_the_whole_run_is_recorded_and_natively_the_header_does_nothing(tmp_path: Path) -> None:
    source = '#include "tracekit.h"\nvolatile int a; int main(void) { tracekit_window_open(); return a; }'
    app = build(tmp_path, source, "--windows")
    assert record(tmp_path, app, options=("-o", "t.zst")).returncode == 0
    with TraceReader(tmp_path / "t.zst") as reader:
        assert reader.version == reader.oldest_reader == WITH_PLANES
    assert "windows" not in info(tmp_path / "t.zst")
    include = Path(__file__).parents[2] / "recorder" / "include"
    for compiler in ("cc", "c++"):
        name = tmp_path / f"native-{compiler}"
        file = tmp_path / ("n.c" if compiler == "cc" else "n.cpp")
        file.write_text(source)
        subprocess.run([compiler, f"-I{include}", file, "-o", name], check=True)
        assert subprocess.run([name]).returncode == 0


def test_a_program_built_without_windows_is_refused(tmp_path: Path) -> None:
    app = build(tmp_path, "int main(void) { return 0; }")
    run = record(tmp_path, app, options=("--paused",))
    assert run.returncode == 125
    assert "was built without --windows" in run.stderr and "Traceback" not in run.stderr


@pytest.fixture(scope="module")
def ticking(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Counts until it is killed, says `ready`; with an argument it handles SIGUSR2 itself and counts those."""
    return build(
        tmp_path_factory.mktemp("ticking"),
        r"""
        #include <signal.h>
        #include <stdio.h>
        #include <unistd.h>
        long table[256], ticks;
        volatile int own;
        static void count(int number) { own++; }
        static __attribute__((noinline)) void tick(void) { for (int i = 0; i < 256; i++) table[i] += i; ticks++; }
        int main(int argc, char **argv)
        {
            if (argc > 1) signal(SIGUSR2, count); else signal(SIGUSR2, SIG_IGN);
            puts("ready");
            fflush(stdout);
            while (own < 2) { tick(); usleep(500); }
            printf("%d\n", own);
        }""",
        "--windows",
        name="ticking",
    )


def started(app: Path, trace: Path, *arguments: str) -> tuple[subprocess.Popen[str], int]:
    """The recording, and the process id of the program."""
    command = [*TRACEKIT, "record", "--paused", "-o", str(trace), str(app), *arguments]
    process = subprocess.Popen(command, env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None and process.stdout.readline() == "ready\n"
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    return process, next(child for child in map(int, children) if is_listening(child))


@pytest.mark.parametrize("how", ["command", "signal"])
def test_a_window_is_opened_and_closed_from_outside_and_outlives_a_kill(
    tmp_path: Path, ticking: Path, how: str
) -> None:
    process, child = started(ticking, tmp_path / "t.zst")
    for opens in (True, False, True):
        time.sleep(0.2)
        if how == "signal":
            os.kill(child, signal.SIGUSR2)
        else:
            assert run_here("start" if opens else "stop", str(child)).status == 0
    time.sleep(0.2)
    os.kill(child, signal.SIGKILL)
    process.communicate(timeout=60)
    good(tmp_path / "t.zst")
    windows = info(tmp_path / "t.zst")["windows"]
    assert isinstance(windows, list)
    assert [window["window"] for window in windows] == [1, 2]
    assert windows[0]["end"] is not None and windows[1]["end"] is None
    assert all(window["accesses"] > 0 for window in windows)
    assert windows[1]["begin"] - windows[0]["end"] > 0.1


def test_a_kill_outside_of_windows(tmp_path: Path, ticking: Path) -> None:
    process, child = started(ticking, tmp_path / "t.zst")
    os.kill(child, signal.SIGKILL)
    process.communicate(timeout=60)
    good(tmp_path / "t.zst")
    assert info(tmp_path / "t.zst")["windows"] == [] and info(tmp_path / "t.zst")["accesses"] == 0


def test_a_program_that_handles_the_signal_keeps_it(tmp_path: Path, ticking: Path) -> None:
    process, child = started(ticking, tmp_path / "t.zst", "own")
    assert run_here("start", str(child)).status == 0
    time.sleep(0.2)
    assert run_here("stop", str(child)).status == 0
    for _ in range(2):
        time.sleep(0.2)
        os.kill(child, signal.SIGUSR2)
    stdout, _ = process.communicate(timeout=60)
    assert stdout == "2\n", "the program's own signals reach it, tracekit's do not"
    good(tmp_path / "t.zst")
    assert len(info(tmp_path / "t.zst")["windows"]) == 1  # type: ignore[arg-type]


def test_only_programs_under_record_paused_are_told(tmp_path: Path) -> None:
    for process, why in ((os.getpid(), "was not started by"), (1 << 30, "there is no process")):
        outcome = run_here("start", str(process))
        assert outcome.status == 1 and why in outcome.stderr.decode()


def test_a_fork_inside_a_window(tmp_path: Path) -> None:
    app = build(
        tmp_path,
        r"""
        #include <sys/wait.h>
        #include <unistd.h>
        #include "tracekit.h"
        int table[64];
        static __attribute__((noinline)) void touch(int from) { for (int i = from; i < 64; i++) table[i] += i; }
        int main(void)
        {
            touch(0);
            for (int i = 0; i < 2; i++) {
                if (i == 1) tracekit_window_open();
                touch(60);
                if (i == 1) {
                    pid_t child = fork();
                    touch(child ? 62 : 61);
                    tracekit_window_close();
                    if (!child) { tracekit_window_open(); touch(63); _exit(0); }
                    waitpid(child, 0, 0);
                }
            }
        }""",
        "--windows",
    )
    run = record(tmp_path, app, options=("--paused", "--follow-fork", "-o", "t.zst"))
    assert run.returncode == 0, run.stderr
    (child,) = tmp_path.glob("t.*.zst")
    good(tmp_path / "t.zst")
    good(child)
    assert [window["accesses"] for window in info(tmp_path / "t.zst")["windows"]] == [2 * (4 + 2)]  # type: ignore[attr-defined]
    assert [window["accesses"] for window in info(child)["windows"]] == [2 * (4 + 3), 2 * 1]  # type: ignore[attr-defined]


def test_a_whole_run_in_a_window_is_the_whole_run(tmp_path: Path) -> None:
    source = r"""
    #include <stdlib.h>
    #include <string.h>
    #include "tracekit.h"
    struct node { struct node *next; int value; } *list;
    static __attribute__((noinline)) int sum(struct node *at)
    {
        int s = 0;
        for (; at; at = at->next) s += at->value;
        return s;
    }
    int main(void)
    {
        tracekit_window_open();
        for (int i = 0; i < 50; i++) {
            struct node *made = malloc(sizeof *made);
            made->next = list, made->value = i, list = made;
        }
        char text[32];
        strcpy(text, "a window");
        return sum(list) + (int)strlen(text) == 0;
    }"""
    app = build(tmp_path, source, "--windows")
    whole, paused = recorded(app, tmp_path / "w.zst"), recorded(app, tmp_path / "p.zst", "--paused")
    compare(whole, paused)
    assert stretches(whole)[0][1] == len(whole.events)
