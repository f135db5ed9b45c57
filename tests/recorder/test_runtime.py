"""The runtime in real processes: what each leaves in its trace, however it ends."""

from __future__ import annotations

import os
import subprocess
from collections import Counter
from pathlib import Path

import pytest

import tracekit
from tests.needs import require
from tests.recorder.recording import ROOT, build, events, read, record
from tracekit.formats.reader import TraceReader
from tracekit.recorder.build_cache import cache_folder
from tracekit.replay.engine import Replay

FIXTURES = ROOT / "fixtures"


def tickets(trace: Path) -> list[int]:
    with_tickets = (
        "heap_alloc",
        "heap_free",
        "heap_realloc",
        "lock",
        "unlock",
        "thread_create",
        "thread_start",
        "thread_exit",
        "thread_join",
        "program_start",
        "program_end",
        "image_load",
        "fork",
    )
    return [found.words[0] for found in events(trace, *with_tickets)]


def test_allocations_with_their_sizes_and_addresses(tmp_path: Path) -> None:
    app = build(
        tmp_path,
        r"""
        #include <stdlib.h>
        #include <stdio.h>
        int main(void)
        {
            char *volatile a = malloc(101), *volatile b = calloc(7, 11);
            void *volatile c = 0;
            printf("%p %p", a, b);
            a = realloc(a, 100000);
            if (posix_memalign((void **)&c, 64, 192)) return 1;
            printf(" %p %p\n", a, c);
            fflush(stdout);
            free(c); free(a); free(b); free(NULL);
            return 0;
        }""",
    )
    run = record(tmp_path, app)
    a, b, moved, c = (int(word, 16) for word in run.stdout.split())
    trace = tmp_path / "trace.zst"
    ours = {found.words[1]: found.words[2] for found in events(trace, "heap_alloc")}
    assert (ours[a], ours[b], ours[c]) == (101, 77, 192)
    assert [found.words[1:] for found in events(trace, "heap_realloc")] == [[a, moved, 100000]]
    assert [found.words[1] for found in events(trace, "heap_free")][-3:] == [c, moved, b]
    assert len(set(tickets(trace))) == len(tickets(trace))


@pytest.mark.parametrize("options", [["-O2"], ["-O1", "-flto"], ["-O2", "-flto"]], ids=" ".join)
def test_what_the_optimiser_does_later_to_library_calls(tmp_path: Path, options: list[str]) -> None:
    # Each of these records in the middle of the loop, and fills buffers there. The linker's plugin knows again what the
    # pass has made untrue (malloc writes no memory of the program), and the code generator would read 24 bytes itself.
    if "-flto" in options:
        require("lto plugin")
    app = build(
        tmp_path,
        r"""
        #include <stdio.h>
        #include <stdlib.h>
        #include <string.h>
        char one[64] = "0123456789abcdefghijklmnopqrstuvwxyz", two[64] = "0123456789abcdefghijklmnopqrstuvwxy";
        int main(void)
        {
            size_t sum = 0;
            for (int i = 0; i < 20000; i++) {
                char *block = malloc(40);
                memset(block, 'x', i % 39 + 1);
                block[i % 39 + 1] = 0;
                sum += strlen(block) + (memcmp(one, block, 24) == 0) + (strchr(one, 'a' + i % 26) != 0);
                sum += memcmp(one, two, 1 + i % 40) == 0;
                free(block);
            }
            printf("%zu\n", sum);
        }""",
        *options,
    )
    assert record(tmp_path, app).returncode == 0
    counts = Counter(found.name for found in events(tmp_path / "trace.zst", "heap_alloc", "heap_free", "library_load"))
    assert counts["heap_alloc"] - 1 == counts["heap_free"] == 20000  # the one more is the stream's buffer
    assert counts["library_load"] == 20000 * (1 + 2 + 1 + 2)


def test_fortified_calls_are_seen_too(tmp_path: Path) -> None:
    app = build(
        tmp_path,
        r"""
        #include <stdio.h>
        #include <string.h>
        char text[16] = "hello", other[16];
        int main(int argc, char **argv)
        {
            printf("%p %p\n", text, other);
            snprintf(other, sizeof other - (argc > 8), "%s", argv[1]);
            strcpy(text, argv[1]);
            return 0;
        }""",
        "-O2",
        "-D_FORTIFY_SOURCE=2",
    )
    text, other = (int(word, 16) for word in record(tmp_path, app, "four").stdout.split())
    stores = [found.words for found in events(tmp_path / "trace.zst", "library_store")]
    assert [words for words in stores if words[0] in (text, other)] == [[other, 5], [text, 5]]


@pytest.mark.parametrize("level", ["-O1", "-O2", "-O3"])
def test_fortified_calls_are_simplified_before_they_are_seen_or_not_at_all(tmp_path: Path, level: str) -> None:
    """LLVM makes strlen and a store of two bytes of `__strcat_chk` where the size of its room is not known."""
    app = build(
        tmp_path,
        r"""
        #include <stdio.h>
        #include <string.h>
        char text[16];
        __attribute__((noinline)) void end(char *path) { if (path[strlen(path) - 1] != '/') strcat(path, "/"); }
        __attribute__((noinline)) void say(char *path, const char *name) { sprintf(path, "%s", name); }
        int main(int argc, char **argv)
        {
            printf("%p\n", text);
            say(text, argv[1]);
            end(text);
            return 0;
        }""",
        level,
        "-D_FORTIFY_SOURCE=1",
    )
    text = int(record(tmp_path, app, "four").stdout, 16)
    stored = [found.words[:2] for found in events(tmp_path / "trace.zst", "library_store")]
    assert [[address, size] for address, size in stored if text <= address < text + 16] == [[text, 5], [text + 4, 2]]


FORTIFIED = r"""
#define _GNU_SOURCE
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <wchar.h>
char to[300], from[64] = "some text", path[PATH_MAX];
wchar_t wide_to[60], wide_from[60] = L"wide";
int main(int argc, char **argv)
{
    size_t n = argc + 5;
    mempcpy(to, from, n);
    stpncpy(to, from, n);
    explicit_bzero(to, n);
    if (!getcwd(to, n + 200) || !realpath("/tmp", path) || gethostname(to, n + 70)) abort();
    if (readlink("/proc/self/exe", to, n) < 0) abort();
    wcscpy(wide_to, n > 2 ? wide_from : L"x");
    wcscat(wide_to, wide_from);
    wcsncat(wide_to, wide_from, n - 4);
    wcsncat(wide_to, wide_from, n);
    wcsncpy(wide_to, wide_from, n);
    wmemcpy(wide_to, wide_from, n);
    wmemmove(wide_to, wide_from, n);
    wmemset(wide_to, L'x', n);
    return 0;
}
"""


def test_fortified_calls_store_what_those_that_are_not_do(tmp_path: Path) -> None:
    sizes = []
    for option in ("-U_FORTIFY_SOURCE", "-D_FORTIFY_SOURCE=2"):
        app = build(tmp_path, FORTIFIED, "-O2", option)
        assert record(tmp_path, app).returncode == 0
        with tracekit.open(tmp_path / "trace.zst") as trace:
            replay = Replay(trace.reader, trace.program, events=("store",), columns=("size",))
            sizes.append([size for batch in replay.batches() for size in batch.size.tolist()])
    wide = [20, 20, 12, 20, 24, 24, 24, 24]
    assert sizes[0][:3] == [6, 6, 6]
    assert sizes[0][-len(wide) :] == wide
    assert sizes[0] == sizes[1]


def test_threads_have_streams_of_their_own_and_tell_of_each_other(tmp_path: Path) -> None:
    app = build(
        tmp_path,
        r"""
        #include <pthread.h>
        pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
        volatile long total;
        __attribute__((noinline)) void work(long n) { for (long i = 0; i < n; i++) total += i; }
        void *run(void *n) { pthread_mutex_lock(&mutex); work((long)n); pthread_mutex_unlock(&mutex); return 0; }
        int main(void)
        {
            pthread_t threads[4];
            for (long i = 0; i < 4; i++) pthread_create(&threads[i], 0, run, (void *)(1000 + i));
            for (long i = 0; i < 4; i++) pthread_join(threads[i], 0);
            return 0;
        }""",
        "-pthread",
        "--record=blocks",
    )
    assert record(tmp_path, app).returncode == 0
    trace = tmp_path / "trace.zst"
    created = [found.words[1] for found in events(trace, "thread_create")]
    assert len(set(created)) == 4
    assert [found.words[1] for found in events(trace, "thread_join")] == created
    assert sorted(found.stream for found in events(trace, "thread_start")) == sorted(created)
    assert sorted(found.stream for found in events(trace, "thread_exit")) == sorted(created)
    order = sorted(events(trace, "lock", "unlock"), key=lambda found: found.words[0])
    assert [found.name for found in order] == ["lock", "unlock"] * 4
    work = [found.stream for found in read(trace) if found.name == "work"]
    assert {stream: work.count(stream) for stream in created}.keys() == set(work)
    assert all(work.count(stream) >= 1000 for stream in created)


def test_more_threads_than_buffers(tmp_path: Path) -> None:
    app = build(
        tmp_path,
        r"""
        #include <pthread.h>
        pthread_barrier_t barrier;
        volatile int sum[400];
        void *run(void *n) { sum[(long)n] = 1; pthread_barrier_wait(&barrier); sum[(long)n]++; return 0; }
        int main(void)
        {
            pthread_t threads[400];
            pthread_attr_t small;
            pthread_attr_init(&small);
            pthread_attr_setstacksize(&small, 65536);
            pthread_barrier_init(&barrier, 0, 400);
            for (long i = 0; i < 400; i++) pthread_create(&threads[i], &small, run, (void *)i);
            for (long i = 0; i < 400; i++) pthread_join(threads[i], 0);
            return 0;
        }""",
        "-pthread",
    )
    assert record(tmp_path, app, options=("--buffer-size", "16K")).returncode == 0
    assert len({found.stream for found in read(tmp_path / "trace.zst") if found.name == "run"}) == 400


def test_handlers_run_on_streams_of_their_own(tmp_path: Path) -> None:
    app = build(
        tmp_path,
        r"""
        #include <setjmp.h>
        #include <signal.h>
        #include <string.h>
        sigjmp_buf out;
        volatile int count, leave;
        __attribute__((noinline)) void inside(void) { count++; }
        void handle(int number) { inside(); if (leave) siglongjmp(out, 1); (void)number; }
        int main(void)
        {
            struct sigaction action = {0}, old;
            action.sa_handler = handle;
            sigaction(SIGUSR1, &action, 0);
            sigaction(SIGUSR1, 0, &old);
            if (old.sa_handler != handle) return 1;
            if (signal(SIGUSR2, handle) != SIG_DFL || signal(SIGUSR2, handle) != handle) return 2;
            raise(SIGUSR1);
            raise(SIGUSR2);
            leave = 1;
            for (int i = 0; i < 3; i++) if (!sigsetjmp(out, 1)) raise(SIGUSR1);
            leave = 0;
            raise(SIGUSR1);
            return count == 6 ? 0 : 3;
        }""",
    )
    assert record(tmp_path, app).returncode == 0
    trace = tmp_path / "trace.zst"
    entered, left = events(trace, "signal_enter"), events(trace, "signal_leave")
    assert [found.words for found in entered] == [[10], [12], [10], [10], [10], [10]]
    assert [found.words for found in left] == [[10, 0], [12, 0], [10, 1], [10, 1], [10, 1], [10, 0]]
    streams = {found.stream for found in read(trace) if found.name == "inside"}
    assert streams == {found.stream for found in entered} and 0 not in streams
    assert len(events(trace, "dropped")) == 3


def test_a_forked_child_leaves_no_record(tmp_path: Path) -> None:
    app = build(
        tmp_path,
        r"""
        #include <sys/wait.h>
        #include <unistd.h>
        volatile int count;
        __attribute__((noinline)) void child(void) { for (int i = 0; i < 100000; i++) count++; }
        __attribute__((noinline)) void parent(void) { count++; }
        int main(void)
        {
            int status;
            if (fork() == 0) { child(); _exit(count == 100000 ? 5 : 6); }
            wait(&status);
            parent();
            return WEXITSTATUS(status);
        }""",
    )
    assert record(tmp_path, app).returncode == 5
    names = [found.name for found in read(tmp_path / "trace.zst")]
    assert "child" not in names and "parent" in names and "fork" in names


def test_the_environment_is_as_the_user_set_it(tmp_path: Path) -> None:
    app = build(
        tmp_path,
        r"""
        #include <stdio.h>
        #include <stdlib.h>
        int main(int argc, char **argv, char **envp)
        {
            const char *pool = getenv("TRACEKIT_POOL"), *preload = getenv("LD_PRELOAD");
            printf("%s %s\n", pool ? pool : "none", preload ? preload : "none");
            for (char **entry = envp; *entry; entry++) if ((*entry)[0] == 'T' && (*entry)[9] == 'P') return 1;
            fflush(stdout);
            system("ls /proc/self/fd | wc -l");
            return argc > 5 || !argv;
        }""",
    )
    native = subprocess.run([app], capture_output=True, text=True, check=False)
    assert record(tmp_path, app).stdout == native.stdout
    preload = {"LD_PRELOAD": "libm.so.6"}
    native = subprocess.run([app], capture_output=True, text=True, check=False, env={**os.environ, **preload})
    assert record(tmp_path, app, environment=preload).stdout == native.stdout


def test_a_cache_whose_path_holds_a_space_and_a_colon(tmp_path: Path) -> None:
    """LD_PRELOAD's value is split at both: a link stands in for the library."""
    cache = tmp_path / "a cache: mine"
    cache.mkdir()
    (cache / "tracekit").symlink_to(cache_folder())
    app = build(tmp_path, "int x[9]; int main(void) { for (int i = 0; i < 9; i++) x[i] = i; return x[0]; }")
    done = record(tmp_path, app, environment={"XDG_CACHE_HOME": str(cache)})
    assert done.returncode == 0 and done.stderr.startswith("tracekit: 10 accesses")


def test_a_library_that_is_loaded_again_is_told_apart(tmp_path: Path) -> None:
    for name in ("one", "two"):
        build(
            tmp_path,
            f"int x_{name}[9]; int f(int i) {{ return x_{name}[i]++; }}",
            "-shared",
            "-fPIC",
            name=f"{name}.so",
        )
    app = build(
        tmp_path,
        r"""
        #include <dlfcn.h>
        volatile int sum;
        int main(int argc, char **argv)
        {
            for (int i = 1; i < argc; i++) {
                void *library = dlopen(argv[i], RTLD_NOW);
                int (*f)(int) = (int (*)(int))dlsym(library, "f");
                sum += f(i);
                dlclose(library);
            }
            return 0;
        }""",
        "-ldl",
    )
    one, two = tmp_path / "one.so", tmp_path / "two.so"
    assert record(tmp_path, app, one, two, one).returncode == 0
    trace = tmp_path / "trace.zst"
    with TraceReader(trace) as reader:
        images = reader.images()
        assert [image.name for image in images] == ["app", "one.so", "two.so", "one.so"]
        assert reader.done is not None and reader.done["unknown_words"] == 0
    order = [found.words[1] for found in events(trace, "image_load", "image_unload")]
    assert order[:7] == [0, 1, 1, 2, 2, 3, 3]
    assert [found.name for found in read(trace)].count("f") == 3


def test_threads_that_run_while_libraries_come_and_go(tmp_path: Path) -> None:
    """Each image clears the limits of all threads, also of one that has just been given a buffer."""
    library = build(tmp_path, "int f(int n) { return n + 1; }", "-shared", "-fPIC", name="library.so")
    app = build(
        tmp_path,
        r"""
        #include <dlfcn.h>
        #include <pthread.h>
        #include <stdatomic.h>
        #include <stdio.h>
        atomic_int stop;
        long visits[2];
        __attribute__((noinline)) void visit(volatile long *count) { ++*count; }
        void *spin(void *count) { while (!stop) visit(count); return 0; }
        int main(int argc, char **argv)
        {
            pthread_t threads[2];
            for (int i = 0; i < 2; i++) pthread_create(&threads[i], 0, spin, &visits[i]);
            for (int i = 0; i < 500; i++) dlclose(dlopen(argv[1], RTLD_NOW));
            stop = 1;
            for (int i = 0; i < 2; i++) pthread_join(threads[i], 0);
            printf("%ld", visits[0] + visits[1]);
            return 0;
        }""",
        "-pthread",
        "-ldl",
    )
    done = record(tmp_path, app, library)
    assert done.returncode == 0 and "cut" not in done.stderr
    with TraceReader(tmp_path / "trace.zst") as reader:
        assert reader.done is not None and reader.done["cut"] == ""
        visits = int(done.stdout)
        assert reader.done["totals"]["stores"] == visits + 1 + 2  # stop, and the handles


@pytest.mark.parametrize("instrumented", [False, True])
def test_a_plugin_in_cxx_of_a_program_in_c(instrumented: bool, tmp_path: Path) -> None:
    """Functions of libstdc++ before which the runtime stands are found, which the plugin brings for itself alone."""
    source = """
        struct Counter { int value; Counter(int value) : value(value) {} };
        extern "C" int f(int n) { static Counter first(n); return first.value + n; }"""
    if instrumented:
        plugin = build(tmp_path, source, "-shared", "-fPIC", name="plugin.so", cxx=True)
    else:
        plugin = tmp_path / "plugin.so"
        (tmp_path / "plugin.cpp").write_text(source)
        subprocess.run(["c++", "-shared", "-fPIC", tmp_path / "plugin.cpp", "-o", plugin], check=True)
    app = build(
        tmp_path,
        r"""
        #include <dlfcn.h>
        #include <stdio.h>
        int main(int argc, char **argv)
        {
            int (*f)(int);
            for (int i = 1; i < 4; i++) {
                void *plugin = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
                if (!plugin || !(*(void **)&f = dlsym(plugin, "f"))) return 2;
                printf("%d ", f(i));
                dlclose(plugin);
            }
            return 0;
        }""",
        "-ldl",
    )
    alone = subprocess.run([app, plugin], capture_output=True, text=True, check=True)
    done = record(tmp_path, app, plugin)
    assert (done.returncode, done.stdout) == (0, alone.stdout), done.stderr
