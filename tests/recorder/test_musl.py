"""Static programs of musl: what is recorded of them is what is recorded of the same program with glibc."""

from __future__ import annotations

import subprocess
from collections import Counter
from pathlib import Path

import pytest

from tests.needs import needs
from tests.recorder.recording import ENVIRONMENT, ROOT, TRACEKIT, build, events, record
from tests.recorder.test_static import PROGRAM, assert_children_are_followed, kinds
from tracekit.formats.errors import TracekitError
from tracekit.formats.reader import TraceReader
from tracekit.recorder import driver, musl, toolchain
from tracekit.recorder.toolchain import GLIBC, Libc

TARGET = "--target=x86_64-linux-musl"

# Functions of which one calls another in musl, sometimes in place of its return.
RELATIVES = r"""
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

extern char **environ;
static char text[200];
static int told, ready;

static void tell(int number) { told += number; }

static mtx_t own;
static cnd_t changed;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static pthread_rwlock_t gate = PTHREAD_RWLOCK_INITIALIZER;
static sem_t semaphore;

static void wait_in_vain(void)
{
    struct timespec past = {1, 0};
    mtx_lock(&own);
    cnd_timedwait(&changed, &own, &past);
    mtx_unlock(&own);
    pthread_mutex_lock(&lock);
    pthread_cond_timedwait(&condition, &lock, &past);
    pthread_mutex_unlock(&lock);
    pthread_rwlock_timedrdlock(&gate, &past);
    pthread_rwlock_unlock(&gate);
    pthread_rwlock_timedwrlock(&gate, &past);
    pthread_rwlock_unlock(&gate);
    sem_timedwait(&semaphore, &past);
    sem_wait(&semaphore);
}

static void *open_gate(void *unused)
{
    pthread_mutex_lock(&lock);
    ready = 1;
    pthread_cond_signal(&condition);
    pthread_mutex_unlock(&lock);
    return NULL;
}

static void wait_for_other(void)
{
    pthread_t other;
    pthread_mutex_lock(&lock);
    pthread_create(&other, NULL, open_gate, NULL);
    while (!ready)
        pthread_cond_wait(&condition, &lock);
    pthread_mutex_unlock(&lock);
    pthread_join(other, NULL);
}

static int say(char *to, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    int length = vsprintf(to, format, list);
    va_end(list);
    return length;
}

static void move_text(void)
{
    int ends[2];
    char *line = NULL;
    size_t room = 0;
    socketpair(AF_UNIX, SOCK_STREAM, 0, ends);
    send(ends[0], "one\ntwo\n", 8, 0);
    recv(ends[1], text, 8, 0);
    say(text + 20, "%d", told);
    sprintf(text + 30, "%d", told);
    snprintf(text + 40, 4, "%d", told);
    strcat(strcpy(text + 50, "abc"), "def");
    told += bcmp(text, text + 50, 3) != 0;
    told += atof("1.5") > strtod("1.25", NULL);
    write(ends[0], "first\nsecond\n", 13);
    FILE *file = fdopen(ends[1], "r");
    setvbuf(file, text + 100, _IOFBF, 64);
    getline(&line, &room, file);
    free(line);
    close(ends[0]);
    close(ends[1]);
}

static void allocate(void)
{
    void *held[5];
    posix_memalign(&held[0], 64, 100);
    held[1] = aligned_alloc(32, 64);
    held[2] = memalign(128, 10);
    held[3] = valloc(10);
    held[4] = reallocarray(calloc(3, 5), 100, 100);
    for (int i = 0; i < 5; i++)
        free(held[i]);
}

int main(int count, char **arguments)
{
    mtx_init(&own, mtx_plain);
    cnd_init(&changed);
    sem_init(&semaphore, 0, 2);
    wait_in_vain();
    wait_for_other();
    sigset(SIGUSR1, tell);
    raise(SIGUSR1);
    siginterrupt(SIGUSR1, 1);
    raise(SIGUSR1);
    sigignore(SIGUSR1);
    raise(SIGUSR1);
    move_text();
    allocate();
    pid_t child;
    int status;
    posix_spawnp(&child, "true", NULL, NULL, (char *[]){"true", NULL}, environ);
    waitpid(child, &status, 0);
    return status + (told == 2 * SIGUSR1 + 2 ? 0 : 1);
}
"""

ENDS = r"""
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

static int told;
static void *leave(void *unused) { exit(7); }
static void last(void) { told = 1; }
static void stop(void) { _exit(9); }

int main(int count, char **arguments)
{
    pthread_t other;
    atexit(last);
    switch (count) {
    case 1: return 5;
    case 2: exit(6);
    case 3: pthread_create(&other, NULL, leave, NULL); pause();
    case 4: _exit(8);
    default: atexit(stop); exit(3);
    }
}
"""


def both(folder: Path, source: str, flag: str = "-static") -> list[Path]:
    """The programs linked with glibc and with musl."""
    apps = []
    for name, options in (("glibc", ()), ("musl", (TARGET,))):
        (folder / name).mkdir()
        apps.append(build(folder / name, source, "-pthread", flag, *options))
    return apps


def both_kinds(apps: list[Path]) -> list[Counter[tuple[int, str]]]:
    """How often each event was recorded, without what is left to the C library: which comparisons sort."""
    found = [kinds(app.parent / "trace.zst") for app in apps]
    for counts in found:
        counts.pop((0, "compare"), None)
    return found


@needs("musl")
@pytest.mark.parametrize("flag", ["-static", "-static-pie"])
def test_the_records_are_those_of_glibc(tmp_path: Path, flag: str) -> None:
    apps = both(tmp_path, PROGRAM, flag)
    runs = [record(app.parent, "./app") for app in apps]
    assert [run.returncode for run in runs] == [3, 3] and runs[0].stdout == runs[1].stdout, runs
    with_glibc, with_musl = both_kinds(apps)
    assert with_glibc - with_musl == {(0, "heap_alloc"): 1}  # glibc's buffer of stdout
    assert not with_musl - with_glibc
    with TraceReader(tmp_path / "musl/trace.zst") as reader:
        assert [image.name for image in reader.images()] == ["app"]


@needs("musl")
def test_functions_that_call_others_are_recorded_once(tmp_path: Path) -> None:
    apps = both(tmp_path, RELATIVES)
    for app in apps:
        run = record(app.parent, "./app")
        assert run.returncode == 0, (app, run)
    with_glibc, with_musl = both_kinds(apps)
    assert not with_glibc - with_musl
    assert with_musl - with_glibc == {(0, "heap_realloc"): 1}  # the line, which musl allocates as it grows


@needs("musl")
def test_ends_of_programs(tmp_path: Path) -> None:
    app = both(tmp_path, ENDS)[1]
    for arguments, status in (((), 5), ("a", 6), ("ab", 7), ("abc", 8), ("abcd", 9)):
        run = record(app.parent, "./app", *arguments)
        assert run.returncode == status
        ends = [found.words[1] for found in events(app.parent / "trace.zst", "program_end")]
        assert ends == ([status] if status < 8 else [])


@needs("musl")
def test_forked_children_and_executed_programs(tmp_path: Path) -> None:
    with_glibc, with_musl = both(tmp_path, PROGRAM)
    assert_children_are_followed(tmp_path, with_glibc, with_musl)


@needs("musl")
def test_without_record_it_runs_as_ever(tmp_path: Path) -> None:
    run = subprocess.run([both(tmp_path, PROGRAM)[1]], capture_output=True, text=True, timeout=60)
    assert (run.returncode, run.stderr) == (3, "") and run.stdout.endswith(" of 0.500\n")


@needs("musl")
def test_windows_open(tmp_path: Path) -> None:
    source = (ROOT / "fixtures/families.c").read_text()
    build(tmp_path, source, "-pthread", "-static", TARGET, "--windows", "-fno-inline")
    run = record(tmp_path, "./app", "fork", options=("--window", "on=call:main"))
    assert "no window opened" not in run.stderr and kinds(tmp_path / "trace.zst")[0, "window_begin"] == 1, run.stderr


@needs("musl")
def test_musl_gcc_with_our_compiler(tmp_path: Path) -> None:
    (tmp_path / "app.c").write_text(PROGRAM)
    compiler = tmp_path / "tracekit-cc"
    compiler.write_text(f'#!/bin/sh\nexec {" ".join(TRACEKIT)} cc "$@"\n')
    compiler.chmod(0o755)
    run = subprocess.run(
        ["musl-gcc", "-O1", "-static", "app.c", "-o", "app"],
        cwd=tmp_path,
        env={**ENVIRONMENT, "REALGCC": str(compiler)},
        capture_output=True,
        text=True,
    )
    assert (run.returncode, run.stderr) == (0, "")
    assert record(tmp_path, "./app").returncode == 3 and kinds(tmp_path / "trace.zst")[0, "lock"] == 0
    assert kinds(tmp_path / "trace.zst")[1, "lock"] == 64


# -- command lines ---------------------------------------------------------------------------------

OPTIONS = ("--target=x86_64-linux-musl", "-nostdlibinc", "-isystem", "/m/include", "-B/m/lib", "-L/m/lib")
BESIDE_GLIBC = Libc("musl", OPTIONS, "/m/lib/libc.a")


@pytest.fixture
def specs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file of specs as musl brings it, in the only place where one is."""
    file = tmp_path / "musl-gcc.specs"
    file.write_text(
        "*cpp_options:\n-nostdinc -isystem /m/include -isystem include%s\n\n*link_libgcc:\n-L/m/lib -L .%s\n"
    )
    monkeypatch.setattr(musl, "PLACES", (str(tmp_path / "none"), str(tmp_path)))
    return file


@pytest.mark.parametrize("words", [("--target=x86_64-linux-musl",), ("-target", "x86_64-alpine-linux-musl")])
def test_a_target_is_found_where_musl_gcc_has_it(specs: Path, tmp_path: Path, words: tuple[str, ...]) -> None:
    assert musl.read([*words, "a.c"]) == musl.Asked(BESIDE_GLIBC, [*words, "a.c"], OPTIONS)
    (tmp_path / "response").write_text(" ".join(words))
    assert musl.read([f"@{tmp_path}/response"]).options == OPTIONS


@pytest.mark.parametrize("words", ["-specs {}", "--specs {}", "-specs={}", "--specs={}"])
def test_the_option_of_musl_gcc(specs: Path, words: str) -> None:
    asked = musl.read(["a.c", *words.format(specs).split(), "-static"])
    assert asked == musl.Asked(BESIDE_GLIBC, ["a.c", "-static"], OPTIONS)


def test_with_a_sysroot_clang_finds_it(specs: Path, tmp_path: Path) -> None:
    (tmp_path / "lib").mkdir()
    archive = tmp_path / "lib/libc.a"
    archive.touch()
    for words in ([f"--sysroot={tmp_path}", "-rtlib=compiler-rt"], ["-rtlib=compiler-rt", "--sysroot", str(tmp_path)]):
        libc = Libc("musl", (TARGET, f"--sysroot={tmp_path}", "-rtlib=compiler-rt"), str(archive))
        assert musl.read([TARGET, *words, "a.c"]) == musl.Asked(libc, [TARGET, *words, "a.c"])
    with pytest.raises(TracekitError, match=r"musl has no libc\.a where --target"):
        toolchain.runtime_file("static_program.o", libc=libc)


def test_its_files_named_one_by_one(specs: Path) -> None:
    words = ["-nostdlib", "a.o", "/usr/lib/x86_64-linux-musl/libc.a"]
    assert musl.read(words) == musl.Asked(BESIDE_GLIBC, words)


def test_all_else_is_glibc(specs: Path) -> None:
    for words in (["a.o", "/home/x86_64-linux-muslin/a.o"], ["-c", "-I/usr/include/x86_64-linux-musl", "a.c"]):
        assert musl.read(words) == musl.Asked(GLIBC, words)
    assert musl.read(["-specs", "other.specs", "a.c"]).words == ["-specs=other.specs", "a.c"]


def test_where_it_is_not_a_sentence_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(musl, "PLACES", ())
    with pytest.raises(
        TracekitError, match="asks for musl, which is not here: install it with `apt-get install musl-t"
    ):
        musl.read([TARGET, "a.c"])
    with pytest.raises(TracekitError, match="cannot be read"):
        musl.read(["-specs", str(tmp_path / "musl-gcc.specs"), "a.c"])
    (tmp_path / "musl-gcc.specs").write_text("*link:\n")
    with pytest.raises(TracekitError, match="does not say where"):
        musl.read(["-specs", str(tmp_path / "musl-gcc.specs"), "a.c"])


def test_dynamic_programs_are_refused(specs: Path) -> None:
    for words in (["a.c"], ["-shared", "a.c"]):
        with pytest.raises(TracekitError, match="only with -static"):
            driver.command("cc", [TARGET, *words])
    driver.command("cc", [TARGET, "-c", "a.c"])
