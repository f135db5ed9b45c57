"""Objects that come from elsewhere than malloc: mappings, what the C library allocates for a caller, operator new."""

from __future__ import annotations

from pathlib import Path

from tests import prepared
from tests.recorder.recording import ENVIRONMENT, TRACEKIT, build, events, record

HEAP = ("heap_alloc", "heap_realloc", "heap_free")


def checked(trace: Path) -> Path:
    run = prepared.run([*TRACEKIT, "check", trace], env=ENVIRONMENT, capture_output=True, text=True)
    assert run.returncode == 0, run.stdout + run.stderr
    return trace


def heap_events(trace: Path) -> list[tuple[str, list[int]]]:
    """Name and words but the ticket, in the order of tickets."""
    found = sorted(events(checked(trace), *HEAP), key=lambda event: event.words[0])
    return [(event.name, event.words[1:]) for event in found]


LIBRARY = r"""
    #define _GNU_SOURCE
    #include <limits.h>
    #include <stdio.h>
    #include <stdlib.h>
    #include <string.h>
    #include <unistd.h>
    int main(void)
    {
        char *made[8] = {0};
        size_t room = 0, size = 0;
        FILE *file;
        made[0] = strdup("hello");
        made[1] = strndup("hello world", 7);
        if (asprintf(&made[2], "%d and %s", 12345, "more") < 0) return 1;
        file = fopen("/proc/self/cmdline", "r");
        if (getline(&made[3], &room, file) < 0) return 1;
        fclose(file);
        made[4] = realpath(".", NULL);
        made[5] = getcwd(NULL, 0);
        file = open_memstream(&made[6], &size);
        fputs("streamed", file);
        fclose(file);
        made[7] = reallocarray(strdup("again"), 3, 7);
        for (int i = 0; i < 8; i++) printf("%p %zu\n", made[i], i == 3 ? room : i == 7 ? 21 : strlen(made[i]) + 1);
        fflush(stdout);
        for (int i = 0; i < 8; i++) free(made[i]);
        return 0;
    }"""


def test_what_the_library_allocates_for_its_caller(tmp_path: Path) -> None:
    run = record(tmp_path, build(tmp_path, LIBRARY))
    assert run.returncode == 0
    alive: dict[int, int] = {}
    freed: dict[int, int] = {}
    for name, words in heap_events(tmp_path / "trace.zst"):
        if name == "heap_free":
            freed[words[0]] = alive.pop(words[0])
        elif name == "heap_alloc":
            alive[words[0]] = words[1]
        else:
            alive.pop(words[0])
            alive[words[1]] = words[2]
    for line in run.stdout.splitlines():
        address, size = line.split()
        assert freed[int(address, 16)] >= int(size), line


MAPPINGS = r"""
    #define _GNU_SOURCE
    #include <stdio.h>
    #include <sys/mman.h>
    enum { PAGE = 4096 };
    int main(void)
    {
        char *a = mmap(0, 5 * PAGE - 100, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        printf("%p\n", (void *)a);
        munmap(a + PAGE, 2 * PAGE);                                    /* leaves a hole */
        char *b = mremap(a + 3 * PAGE, 2 * PAGE, 40 * PAGE, MREMAP_MAYMOVE);
        printf("%p\n", (void *)b);
        char *c = mmap(b + 39 * PAGE, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
        c[0] = 1;                                                      /* took b's last page */
        char *d = mmap(0, 1ul << 40, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        printf("%p\n", (void *)d);
        fflush(stdout);
        if (mmap(0, 0, PROT_READ, MAP_PRIVATE, -1, 0) != MAP_FAILED || munmap(a + 1, PAGE) == 0) return 1;
        munmap(b, 40 * PAGE);                                          /* b and c */
        munmap(d, 1ul << 40);
        munmap(a, 5 * PAGE);                                           /* what is left of it */
        return 0;
    }"""


def test_mappings(tmp_path: Path) -> None:
    run = record(tmp_path, build(tmp_path, MAPPINGS))
    assert run.returncode == 0, run.stderr
    a, b, d = (int(word, 16) for word in run.stdout.split())
    page = 4096
    found = [
        event
        for event in heap_events(tmp_path / "trace.zst")
        if any(low <= event[1][0] < low + size for low, size in ((a, 5 * page), (b, 40 * page), (d, 1 << 40)))
    ]
    assert found == [
        ("heap_alloc", [a, 5 * page - 100]),
        ("heap_realloc", [a, a, page]),
        ("heap_alloc", [a + 3 * page, 2 * page - 100]),
        ("heap_realloc", [a + 3 * page, b, 40 * page]),
        ("heap_realloc", [b, b, 39 * page]),
        ("heap_alloc", [b + 39 * page, page]),
        ("heap_alloc", [d, 1 << 40]),
        ("heap_free", [b]),
        ("heap_free", [b + 39 * page]),
        ("heap_free", [d]),
        ("heap_free", [a]),
    ]


OPERATORS = r"""
    #include <cstdio>
    #include <new>
    struct alignas(64) Wide { char bytes[192]; };
    struct Plain { long value[5]; };
    int main()
    {
        void *made[] = {new Plain, new Plain[3], new (std::nothrow) Plain, new (std::nothrow) char[77],
                        new Wide, new Wide[2], new (std::nothrow) Wide, ::operator new(33),
                        ::operator new(100, std::align_val_t(32))};
        for (void *pointer : made) std::printf("%p\n", pointer);
        std::fflush(stdout);
        delete static_cast<Plain *>(made[0]);
        delete[] static_cast<Plain *>(made[1]);
        delete static_cast<Plain *>(made[2]);
        delete[] static_cast<char *>(made[3]);
        delete static_cast<Wide *>(made[4]);
        delete[] static_cast<Wide *>(made[5]);
        delete static_cast<Wide *>(made[6]);
        ::operator delete(made[7]);
        ::operator delete(made[8], std::align_val_t(32));
    }"""


def test_every_operator_new(tmp_path: Path) -> None:
    run = record(tmp_path, build(tmp_path, OPERATORS, "-std=c++17", cxx=True))
    assert run.returncode == 0, run.stderr
    pointers = [int(word, 16) for word in run.stdout.split()]
    found = heap_events(tmp_path / "trace.zst")
    sizes = {words[0]: words[1] for name, words in found if name == "heap_alloc"}
    assert [sizes[pointer] for pointer in pointers] == [40, 120, 40, 77, 192, 384, 192, 33, 100 + -100 % 32]
    assert [words[0] for name, words in found if name == "heap_free"][-len(pointers) :] == pointers


FREED_IN_DLSYM = r"""
    #include <dlfcn.h>
    #include <stdlib.h>
    int main(void)
    {
        void *volatile block;
        dlsym(RTLD_DEFAULT, "no_such_symbol");  /* the message is freed by the next dlsym: the runtime's, in free */
        block = malloc(10);
        free(block);
        return dlsym(RTLD_DEFAULT, "malloc") == NULL;
    }"""


def test_a_pending_error_of_dlsym(tmp_path: Path) -> None:
    run = record(tmp_path, build(tmp_path, FREED_IN_DLSYM))
    assert run.returncode == 0, run.stderr
    assert [name for name, _ in heap_events(tmp_path / "trace.zst")].count("heap_free") < 10


ERRORS = r"""
    #define _GNU_SOURCE
    #include <dlfcn.h>
    #include <stdlib.h>
    int main(void)
    {
        for (int i = 0; i < 100; i++) {
            char *volatile like_a_text = malloc(68);
            free(like_a_text);
            if (dlsym(RTLD_DEFAULT, "no_function_has_this_name") || dlopen("no-library-has-this-name.so", RTLD_LAZY))
                return 1;
        }
        return 0;
    }"""


def test_texts_of_errors_that_the_linker_allocates(tmp_path: Path) -> None:
    """dlsym and dlopen free the text of the failure before, whose allocation is no event."""
    run = record(tmp_path, build(tmp_path, ERRORS))
    assert run.returncode == 0
    alive = set()
    freed = 0
    for name, words in heap_events(tmp_path / "trace.zst"):
        if name == "heap_free":
            alive.remove(words[0])
            freed += 1
        else:
            alive.add(words[0])
    assert freed >= 100
