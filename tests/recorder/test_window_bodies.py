"""The two bodies of functions built with --windows: which have them, and that control changes over between them."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from tests import prepared
from tests.needs import require
from tests.programs.test_windows import compare, recorded
from tests.recorder.recording import ENVIRONMENT, TRACEKIT, build, events, record
from tests.recorder.window_traces import good

INTERPRETER = r"""
#include <stdio.h>
#include "tracekit.h"
static long stack[64], *top = stack;
static __attribute__((noinline)) void window(int opens)
{
    if (opens) tracekit_window_open(); else tracekit_window_close();
}
static __attribute__((noinline)) long run(const unsigned char *code, long rounds, long start)
{
    static const void *const labels[] = {&&push, &&add, &&again, &&open, &&close, &&end};
    const unsigned char *at = code;
    long left = rounds, sum = start;
#define NEXT goto *labels[*at++]
    NEXT;
push: *top++ = left; NEXT;
add: sum += *--top; NEXT;
again: if (--left > 0) at = code; NEXT;
open: if (left % 5 == 3) window(1); NEXT;
close: if (left % 5 == 1) window(0); NEXT;
end: HELD
    return sum + start + rounds;
}
int main(int argc, char **argv)
{
    unsigned char code[] = {0, 3, 0, 1, 4, 1, 2, 5};
    code[0] = argc - 1; // the compiler knows no jump beforehand
    printf("%ld\n", run(code, 20, 7));
}
"""


def test_both_bodies_of_an_interpreter_with_computed_gotos(tmp_path: Path) -> None:
    app = build(tmp_path, INTERPRETER, "-O2", "--windows", "-DHELD=")
    assert has_twin(app, "run")
    whole = recorded(app, tmp_path / "whole.zst")
    paused = recorded(app, tmp_path / "paused.zst", "--paused")
    good(tmp_path / "paused.zst")
    assert sum(1 for name, *_ in paused.events if name == "window_begin") == 4
    compare(whole, paused)


def test_a_function_that_keeps_addresses_of_its_blocks_has_one_body(tmp_path: Path) -> None:
    held = "{ static const void *kept; if (!kept) { kept = labels[5]; window(1); goto *kept; } window(0); }"
    app = build(tmp_path, INTERPRETER, "-O2", "--windows", f"-DHELD={held}")
    assert not has_twin(app, "run")
    recorded(app, tmp_path / "paused.zst", "--paused")
    good(tmp_path / "paused.zst")


def has_twin(app: Path, name: str) -> bool:
    symbols = subprocess.run(["nm", app], capture_output=True, text=True, check=True).stdout.split()
    assert name in symbols
    return f"{name}.tk" in symbols


LOOPING = r"""
#include <stdio.h>
#include "tracekit.h"
int table[64];
__attribute__((noinline)) int work(int *p, int n)
{
    int sum = 0;
    for (int i = 0; i < n; i++) sum += p[i & 63]++;
    return sum;
}
__attribute__((noinline)) void begin(void) { tracekit_window_open(); table[0]++; }
int main(void)
{
    int sum = 1, local[4] = {1, 2, 3, 4};
    for (int i = 0, k = 7; i < 40; i++, k = k * 3 + sum) {
        if (i % 10 == 5) begin();
        sum += work(table, i) + local[k & 3];
        local[i & 3] ^= work(local, 4) + k;
        if (i % 10 == 7) tracekit_window_close();
    }
    printf("%d %d\n", sum, local[0]);
}
"""


@pytest.mark.parametrize("level", ["-O1", "-O2", "-O3"])
def test_behind_a_window_a_loop_goes_on_in_the_clean_body(tmp_path: Path, level: str) -> None:
    """Frames of clean bodies are known by their addresses: `main` is one again when the next opens in a callee."""
    app = build(tmp_path, LOOPING, level, "--windows")
    output = subprocess.run([app], capture_output=True, text=True, check=True).stdout
    assert record(tmp_path, app, options=("--paused",)).stdout == output
    good(tmp_path / "trace.zst")
    assert len(events(tmp_path / "trace.zst", "window_begin")) == 4
    assert len(events(tmp_path / "trace.zst", "resumed_frame")) == 4
    compare(recorded(app, tmp_path / "whole.zst"), recorded(app, tmp_path / "paused.zst", "--paused"))


LEAVING_A_HANDLER = r"""
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>
#include "tracekit.h"
static sigjmp_buf back;
static int table[64];
static void leave(int number) { siglongjmp(back, number); }
__attribute__((noinline)) int work(int *p, int n)
{
    int sum = 0;
    for (int i = 0; i < n; i++) sum += p[i & 63]++;
    return sum;
}
__attribute__((noinline)) int guarded(int n)
{
    volatile int sum = n;
    if (sigsetjmp(back, 1) == 0) { sum += work(table, n); if (n & 1) raise(SIGUSR1); }
    else sum -= work(table, 2);
    return sum + work(table, 1);
}
__attribute__((noinline)) int spawned(void) { return vfork() ? 1 : (_exit(0), 0); }
int main(void)
{
    signal(SIGUSR1, leave);
    int sum = guarded(3);
    tracekit_window_open();
    sum += guarded(4) + guarded(5);
    tracekit_window_close();
    printf("%d\n", sum + guarded(7) + spawned());
}
"""


@pytest.mark.parametrize("level", ["-O1", "-O2", "-O2 -flto"])
def test_functions_that_call_setjmp_have_two_bodies(tmp_path: Path, level: str) -> None:
    """A longjmp out of a signal handler into the clean body leaves the handler, else no window would open."""
    if "-flto" in level:
        require("lto plugin")
    app = build(tmp_path, LEAVING_A_HANDLER, *level.split(), "--windows")
    assert has_twin(app, "guarded")
    assert not has_twin(app, "spawned")
    output = subprocess.run([app], capture_output=True, text=True, check=True).stdout
    assert record(tmp_path, app, options=("--paused",)).stdout == output
    good(tmp_path / "trace.zst")
    assert len(events(tmp_path / "trace.zst", "window_begin")) == 1
    assert len(events(tmp_path / "trace.zst", "signal_leave")) == 1
    compare(recorded(app, tmp_path / "whole.zst"), recorded(app, tmp_path / "paused.zst", "--paused"))


RETURNING_AGAIN = r"""
#include <setjmp.h>
#include <stdio.h>
#include "tracekit.h"
static jmp_buf bufs[8];
static int table[64];
__attribute__((noinline)) int nested(int n)
{
    volatile int sum = n;
    switch (setjmp(bufs[n])) {
    case 0:
        if (n == 1) tracekit_window_open();
        table[n] += n;
        if (n < 4) sum += nested(n + 1);
        else longjmp(bufs[1], 1);
        break;
    default: if (++table[n] < 5) sum += nested(3); // which is passed over, too
    }
    return sum + table[n];
}
int main(void)
{
    int sum = nested(0);
    tracekit_window_close();
    printf("%d\n", sum);
}
"""


def test_setjmp_of_the_clean_body_returns_to_what_the_trace_knows_as_the_other(tmp_path: Path) -> None:
    """The window opens in an activation that goes on in its twin; a longjmp of an inner activation passes that over."""
    app = build(tmp_path, RETURNING_AGAIN, "-O2", "--windows")
    output = subprocess.run([app], capture_output=True, text=True, check=True).stdout
    assert record(tmp_path, app, options=("--paused",)).stdout == output
    good(tmp_path / "trace.zst")
    compare(recorded(app, tmp_path / "whole.zst"), recorded(app, tmp_path / "paused.zst", "--paused"))


TEMPLATE = """
void use(int *);
int other(int);
template <int N> struct Walk {
    static __attribute__((noinline)) int go(int n)
    {
        int a[4] = {n, N}, b[3] = {n};
        use(a); use(b); use(a + 1);
        return a[n] + b[n];
    }
};
"""


@pytest.mark.parametrize("mine", [1, 2])
def test_templates_of_which_the_linker_keeps_another_files_copy(tmp_path: Path, mine: int) -> None:
    """The compiler makes one of equal tables, and the linker drops those of functions that it drops."""
    (tmp_path / "walk.h").write_text(TEMPLATE)
    other = tmp_path / "other.cpp"
    other.write_text('#include "walk.h"\nint other(int n) { return Walk<1>::go(n) + Walk<2>::go(n); }\n')
    use = "void use(int *p) { p[0]++; }\n"
    main = f'#include "walk.h"\n{use}int main() {{ return Walk<{mine}>::go(1) + other(2) == 0; }}\n'
    build(tmp_path, main, "-O2", "--windows", str(other), cxx=True)


def test_what_calls_nothing_is_listed_at_checks_alone(tmp_path: Path) -> None:
    source = tmp_path / "app.c"
    source.write_text(
        "__attribute__((noinline)) long find(const long *p, long n, long what)\n"
        "{ long at = 0; while (at < n && p[at] != what) at += p[at] > what ? 2 : 1; return at; }\n"
        "long table[9]; int main(void) { return find(table, 9, 3) != 10; }\n"
    )
    code = tmp_path / "app.ll"
    command = [*TRACEKIT, "cc", "--windows", "-O2", "-S", "-emit-llvm", str(source), "-o", str(code)]
    prepared.run(command, check=True, env=ENVIRONMENT)
    twin = re.search(r"^define .* @find\.tk\(.*?^}", code.read_text(), re.MULTILINE | re.DOTALL)
    assert twin is not None
    lists = re.findall(r"(%\w+) = call .*@__tk_activations\)", twin[0])
    listing = [block for block in twin[0].split("\n\n") if any(f", ptr {name}," in block for name in lists)]
    assert listing
    assert all("@__tk_flip" in block for block in listing)
