"""Allocators of the program's own: their blocks are objects, as those of the C library's malloc are."""

from __future__ import annotations

import re
from pathlib import Path
from random import Random

import pytest

import tracekit
from tests import prepared
from tests.recorder.instrumented import Tables, clang, units
from tests.recorder.recording import ENVIRONMENT, ROOT, TRACEKIT, build, events, record
from tracekit.formats.allocators import FAMILY
from tracekit.formats.errors import TracekitError
from tracekit.recorder import allocator_names

HEAP = ("heap_alloc", "heap_realloc", "heap_free")

ALLOCATOR = r"""
    #include <errno.h>
    #include <stddef.h>
    #include <string.h>
    #define JOIN_(a, b) a##b
    #define JOIN(a, b) JOIN_(a, b)
    #define NAME(name) JOIN(PREFIX, name)
    void *NAME(malloc)(size_t size);
    void NAME(free)(void *block);
    _Alignas(64) char arena[1 << 20];
    static size_t used;
    struct header { size_t size; struct header *next; };
    static struct header *waiting;
    static struct header *header_of(void *block) { return (struct header *)block - 1; }
    static struct header *carve(size_t size)
    {
        struct header *new = (struct header *)(arena + used);
        used += sizeof *new + size;
        new->size = size;
        return new;
    }
    static struct header *reuse(size_t size)
    {
        for (struct header **at = &waiting; *at; at = &(*at)->next)
            if ((*at)->size >= size) {
                struct header *found = *at;
                *at = found->next;
                return found;
            }
        return NULL;
    }
    void *NAME(malloc)(size_t size)
    {
        struct header *found;
        size = (size + 15) / 16 * 16;
        if (size > 1 << 18) return NULL;
        found = reuse(size);
        return (found ? found : carve(size)) + 1;
    }
    void NAME(free)(void *block)
    {
        if (!block) return;
        header_of(block)->next = waiting;
        waiting = header_of(block);
    }
    void *NAME(calloc)(size_t count, size_t size)
    {
        void *block = NAME(malloc)(count * size);
        return block ? memset(block, 0, count * size) : NULL;
    }
    void *NAME(realloc)(void *block, size_t size)
    {
        if (!block) return NAME(malloc)(size);
        if (!size) { NAME(free)(block); return NULL; }
        if (header_of(block)->size >= size) return block;
        void *new = NAME(malloc)(size);
        if (new) { memcpy(new, block, header_of(block)->size); NAME(free)(block); }
        return new;
    }
    int NAME(posix_memalign)(void **block, size_t alignment, size_t size)
    {
        if (alignment % 8) return EINVAL;
        *block = NAME(malloc)(size);
        return *block ? 0 : ENOMEM;
    }
    void *NAME(aligned_alloc)(size_t alignment, size_t size) { (void)alignment; return NAME(malloc)(size); }
    size_t NAME(malloc_usable_size)(void *block) { return header_of(block)->size; }
    size_t NAME(peek)(void *block) { return header_of(block)->size; }
"""

DECLARATIONS = r"""
    #include <stdio.h>
    #define JOIN_(a, b) a##b
    #define JOIN(a, b) JOIN_(a, b)
    #define NAME(name) JOIN(PREFIX, name)
    void *NAME(malloc)(size_t), *NAME(calloc)(size_t, size_t), *NAME(realloc)(void *, size_t);
    void *NAME(aligned_alloc)(size_t, size_t);
    int NAME(posix_memalign)(void **, size_t, size_t);
    void NAME(free)(void *);
    extern char arena[1 << 20];
"""


class Calls:
    """Random calls of an allocator as C, each of which prints its results, and the events that they should be."""

    def __init__(self, random: Random, count: int) -> None:
        self.random, self.lines = random, list[str]()
        self.kinds: list[tuple[str, int, int | None, int]] = []  # what, which variable, of which block, how many bytes
        for number in range(count):
            getattr(self, random.choice(["new", "new", "resized", "freed", "failed"]))(number)

    def _call(self, number: int, what: str, result: str, old: int | None, size: int) -> None:
        before = f"void *old{number} = at[{old}];" if old is not None else ""
        self.lines.append(f'{before} {result}; printf("%p\\n", at[{number}]);')
        self.kinds.append((what, number, old, size))

    def new(self, number: int) -> None:
        size = self.random.choice([1, 8, 24, 100, 3000])
        form = self.random.choice(
            [f"at[{number}] = NAME(malloc)({size})", f"at[{number}] = NAME(aligned_alloc)(16, {size})",
             f"NAME(posix_memalign)(&at[{number}], 16, {size})", f"at[{number}] = NAME(realloc)(NULL, {size})",
             f"at[{number}] = NAME(calloc)(1, {size})", f"at[{number}] = pointer({size})"]
        )  # fmt: skip
        self._call(number, "new", form, None, size)

    def failed(self, number: int) -> None:
        form = self.random.choice(
            [f"at[{number}] = NAME(malloc)(1 << 19)", f"NAME(posix_memalign)(&at[{number}], 3, 8)",
             "NAME(free)(NULL)", f"at[{number}] = NAME(calloc)(1 << 10, 1 << 10)"]
        )  # fmt: skip
        self._call(number, "failed", form, None, 0)

    def _alive(self) -> list[int]:
        gone = {old for what, _, old, _ in self.kinds if old is not None}
        return [number for what, number, _, _ in self.kinds if what in ("new", "resized") and number not in gone]

    def resized(self, number: int) -> None:
        if not self._alive():
            self.new(number)
            return
        old = self.random.choice(self._alive())
        size = self.random.choice([0, 1, 8, 40, 500])
        what = "resized" if size else "freed"
        self._call(number, what, f"at[{number}] = NAME(realloc)(at[{old}], {size})", old, size)

    def freed(self, number: int) -> None:
        if not self._alive():
            self.new(number)
            return
        old = self.random.choice(self._alive())
        self._call(number, "freed", f"NAME(free)(at[{old}])", old, 0)

    def source(self) -> str:
        return (
            DECLARATIONS + "void *(*volatile pointer)(size_t) = NAME(malloc);\n"
            f"int main(void) {{ void *at[{len(self.kinds)}] = {{0}};\n"
            + 'setbuf(stdout, NULL); printf("%p\\n", (void *)arena);\n'
            + "\n".join(self.lines)
            + "\nreturn 0; }\n"
        )

    def expected(self, printed: list[str]) -> list[tuple[str, list[int]]]:
        at = [int(word, 16) if word != "(nil)" else 0 for word in printed]
        found: list[tuple[str, list[int]]] = []
        for what, number, old, size in self.kinds:
            if what == "new":
                found.append(("heap_alloc", [at[number], size]))
            elif what == "freed":
                assert old is not None
                found.append(("heap_free", [at[old]]))
            elif what == "resized":
                assert old is not None
                found.append(("heap_realloc", [at[old], at[number], size]))
        return found


def heap_events(trace: Path) -> list[tuple[str, list[int]]]:
    """Name and words but the ticket, in the order of tickets; that a block begins without bytes and grows is one."""
    found: dict[int, list[tuple[int, str, list[int]]]] = {}
    for event in events(trace, *HEAP):
        own = found.setdefault(event.stream, [])
        ticket, *words = event.words
        if event.name == "heap_realloc" and own and own[-1][1:] == ("heap_alloc", [words[1], 0]):
            own.pop()
            own.append((ticket, "heap_alloc", words[1:]) if words[0] == words[1] else (ticket, event.name, words))
        else:
            own.append((ticket, event.name, words))
    return [(name, words) for _, name, words in sorted(event for own in found.values() for event in own)]


def blocks_of(trace: Path, arena: int) -> list[tuple[str, list[int]]]:
    """Those of blocks in an arena."""
    return [event for event in heap_events(trace) if 0 <= event[1][0] - arena < 1 << 20]


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("allocator", ["instrumented", "plain", "shared"])
@pytest.mark.parametrize("prefix", ["pool_", ""])
def test_blocks_are_what_the_program_was_given(tmp_path: Path, prefix: str, allocator: str, seed: int) -> None:
    random = Random(repr((prefix, allocator, seed)))
    calls = Calls(random, 60)
    defined = [f"-DPREFIX={prefix}", "-O" + random.choice("012"), *random.choice([[], ["--windows"]])]
    asked = [] if not prefix and allocator == "shared" else [f"--allocator={prefix}*"]
    if allocator == "plain":
        (tmp_path / "pool.c").write_text(ALLOCATOR)
        clang(["-O1", "-c", defined[0], tmp_path / "pool.c", "-o", tmp_path / "pool.o"], instrument=False)
        other = [tmp_path / "pool.o"]
    else:
        of_library = ["-shared", "-fPIC"] if allocator == "shared" else ["-c"]
        other = [build(tmp_path, ALLOCATOR, *defined, *asked, *of_library, name="pool.so")]
        seen = {row["name"] for row in Tables(units(other[0])[0])["functions"]}
        # the rest is the allocators' code only
        assert seen - {"header_of"} == {f"{prefix}malloc_usable_size", f"{prefix}peek"}
    app = build(tmp_path, calls.source(), *defined, *asked, *map(str, other), f"-Wl,-rpath,{tmp_path}")
    run = record(tmp_path, app)
    assert run.returncode == 0 and "brings its own malloc" not in run.stderr, run.stderr
    arena, *printed = run.stdout.split()
    if allocator == "plain":  # nobody sees what goes through a pointer
        calls.kinds = [
            ("failed", number, old, size) if "pointer" in line else (what, number, old, size)
            for line, (what, number, old, size) in zip(calls.lines, calls.kinds)
        ]
    assert blocks_of(tmp_path / "trace.zst", int(arena, 16)) == calls.expected(printed)


LEFT = r"""
    #include <csetjmp>
    #include <cstdio>
    #include <cstdlib>
    #include <cstring>
    #include <mutex>
    #include <new>
    #include <sys/mman.h>
    #include <thread>
    #include <vector>
    static char *base;
    static size_t used, total = 1 << 15;
    static std::mutex lock;
    static jmp_buf full;
    extern "C" __attribute__((noinline)) void *pool_take(int, size_t size)
    {
        std::lock_guard<std::mutex> guard(lock);
        if (!base)
            base = (char *)mmap(nullptr, total, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (used + size > total) throw std::bad_alloc();
        void *block = base + used;
        used += (size + 15) / 16 * 16;
        return block;
    }
    extern "C" __attribute__((noinline)) void pool_give(void *block) { memset(block, 0, 1); }
    extern "C" __attribute__((noinline)) void *jumps(size_t size)
    {
        char *block = (char *)malloc(size + 16);
        if (size > 1000) { free(block); longjmp(full, 1); }
        return block + 16;
    }
    static void kept(char tag) { void *block = malloc(1000 + tag); printf("%c %p\n", tag, block); free(block); }
    int main()
    {
        setbuf(stdout, nullptr);
        std::vector<std::thread> threads;
        for (int thread = 0; thread < 3; thread++)
            threads.emplace_back([=] {
                for (int i = 0; i < 20; i++) {
                    char *block = (char *)pool_take(thread, 40);
                    memset(block, thread, 40);
                    pool_give(block);
                }
            });
        for (auto &each : threads) each.join();
        printf("p %p\n", base);
        try {
            for (;;) pool_take(0, 999);
        } catch (std::bad_alloc &) { kept('e'); }
        void *volatile small = nullptr;
        if (!setjmp(full)) { small = jumps(10); jumps(2000); } else kept('j');
        printf("s %p\n", small);
    }
"""


@pytest.mark.parametrize("flags", [("-O0",), ("-O2", "--windows"), ("-O1", "-static")])
def test_an_allocator_that_throws_jumps_or_serves_threads(tmp_path: Path, flags: tuple[str, ...]) -> None:
    asked = "--allocator=pool_take(_, size), pool_give(block), jumps(size)"
    run = record(tmp_path, build(tmp_path, LEFT, "--threads", "-pthread", asked, *flags, cxx=True))
    assert run.returncode == 0, run.stderr
    at = {line.split()[0]: int(line.split()[1], 16) for line in run.stdout.splitlines()}
    blocks = heap_events(tmp_path / "trace.zst")
    of_pool = [(name, words) for name, words in blocks if 0 <= words[0] - at["p"] < 1 << 15]
    left = ((1 << 15) - 60 * 48) // 1008
    assert sorted(of_pool) == sorted(
        [
            (name, [at["p"] + 48 * i, *size])
            for i in range(60)
            for name, size in (("heap_alloc", [40]), ("heap_free", []))
        ]
        + [("heap_alloc", [at["p"] + 60 * 48 + 1008 * i, 999]) for i in range(left)]
    )
    assert ("heap_alloc", [at["s"], 10]) in blocks
    for tag in "ej":  # what the program allocates once control has come back is its own again
        place = blocks.index(("heap_alloc", [at[tag], 1000 + ord(tag)]))
        assert blocks[place + 1] == ("heap_free", [at[tag]])


def test_a_malloc_that_is_not_seen_is_said(tmp_path: Path) -> None:
    (tmp_path / "pool.c").write_text(ALLOCATOR)
    clang(["-O1", "-c", "-DPREFIX=", tmp_path / "pool.c", "-o", tmp_path / "pool.o"], instrument=False)
    source = "#include <stdlib.h>\nint main(void) { char *volatile block = malloc(7); free(block); return 0; }"
    for option, unseen in ((), True), (("--allocator=*",), False):
        run = record(tmp_path, build(tmp_path, source, str(tmp_path / "pool.o"), *option), options=("-f",))
        assert run.returncode == 0
        assert ("app brings its own malloc, and its blocks are no objects" in run.stderr) == unseen
        assert bool(events(tmp_path / "trace.zst", "heap_alloc")) == (not unseen)


def test_what_is_no_allocator_is_left_alone_and_named(tmp_path: Path) -> None:
    source = r"""
        #include <stdio.h>
        int draw_free(int card) { return card + 1; }
        void *make(const char *name) { return (void *)name; }
        int main(void) { printf("%d%s", draw_free(1), (char *)make("!")); return 0; }
    """
    (tmp_path / "app.c").write_text(source)
    command = [*TRACEKIT, "cc", "-O0", "app.c", "-o", "app", "--allocator=draw_*", "--allocator", "make(size)"]
    run = prepared.run(command, cwd=tmp_path, env=ENVIRONMENT, capture_output=True, text=True)
    assert run.returncode == 0
    for name in ("draw_free", "make"):
        assert f"warning: {name} is not taken for an allocator" in run.stderr
        assert any(row["name"] == name for row in Tables(units(tmp_path / "app")[0])["functions"])
    assert record(tmp_path, tmp_path / "app").stdout == "2!"


def test_the_pass_knows_the_same_names() -> None:
    source = (ROOT / "recorder" / "pass" / "Allocators.cpp").read_text()
    family = source.split("MallocsFamily[] = {")[1].split("};")[0]
    assert set(re.findall(r'\{"(\w+)", "\w+"\}', family)) == set(FAMILY)


def test_what_the_option_takes() -> None:
    assert allocator_names.read("je_malloc, je_*,*,PyMem_RawFree") == ["je_malloc", "je_*", "*", "PyMem_RawFree"]
    assert allocator_names.read("palloc(_, size),give( block )") == ["palloc:_s", "give:b"]
    assert allocator_names.read("take(out,_,count,size)") == ["take:o_cs"]
    assert allocator_names.read("'palloc(_,size)'") == allocator_names.read('"palloc(_,size)"') == ["palloc:_s"]
    for wrong, why in {
        "": "takes names such as",
        "a b": "takes names such as",
        "palloc(size": "takes names such as",
        "palloc": "its parameters are not known",
        "je_*(size)": "its parameters are not known",
        "palloc(bytes)": "a parameter is size",
        "palloc(_)": "it has a size",
        "palloc(size, size)": "it has a size",
    }.items():
        with pytest.raises(TracekitError, match=why):
            allocator_names.read(wrong)


def test_bytes_that_an_allocator_gives_beyond_what_it_is_asked_for(tmp_path: Path) -> None:
    """Who asks how many there are may use them, though they were another block's before."""
    source = r"""
        #include <stddef.h>
        #include <string.h>
        void *pool_malloc(size_t);
        size_t pool_malloc_usable_size(void *);
        void pool_free(void *);
        int main(void)
        {
            char *first = pool_malloc(40), *again;
            pool_free(first);
            again = pool_malloc(24);
            again[pool_malloc_usable_size(again) - 1] = 1;
            memset(again, 0, pool_malloc_usable_size(again));
            pool_free(again);
            return again[3]; /* 15 */
        }
    """
    asked = ("-DPREFIX=pool_", "--allocator=pool_*", "-O0")
    other = build(tmp_path, ALLOCATOR, *asked, "-c", name="pool.o")
    assert record(tmp_path, build(tmp_path, source, *asked, str(other))).returncode == 0
    result = tracekit.analyze(tmp_path / "trace.zst", "memory_errors", 1).result
    assert [(row["kind"], row["instruction"]["line"]) for row in result["errors"]] == [("read_after_free", 15)]


def test_errors_in_the_blocks_of_an_allocator(tmp_path: Path) -> None:
    """What an allocator does with free blocks, and beside them, is none; what the program does is one."""
    source = r"""
        #include <stddef.h>
        void *pool_malloc(size_t), *pool_calloc(size_t, size_t), *pool_realloc(void *, size_t);
        size_t pool_peek(void *);
        void pool_free(void *);
        void *stays(void *block, size_t size) { (void)size; return block; }
        int main(void)
        {
            int *written = pool_malloc(40), *zeroed = pool_calloc(4, 4), sum = 0;
            sum += zeroed[2] ? 1 : 2;
            sum += (int)pool_peek(zeroed);
            written[3] = 1;
            written = pool_realloc(written, 400);
            sum += written[3] ? 1 : 2;
            if (written[50]) sum++;     /* 15 */
            pool_free(zeroed);
            zeroed[3] = sum;            /* 17 */
            written = stays(written, 0);
            pool_free(written);
            pool_free(written);         /* 20 */
            pool_malloc(24);
            return 0;
        }
    """
    asked = ("-DPREFIX=pool_", "--allocator=pool_*", "--allocator=stays(block, size)", "-O0")
    other = build(tmp_path, ALLOCATOR, *asked, "-c", name="pool.o")
    assert record(tmp_path, build(tmp_path, source, *asked, str(other))).returncode == 0
    result = tracekit.analyze(tmp_path / "trace.zst", "memory_errors", 1).result
    found = {(row["kind"], row["instruction"]["line"]) for row in result["errors"]}
    assert found == {("unwritten_read", 15), ("write_after_free", 17), ("double_free", 20)}
    assert [(row["blocks"], row["bytes"], row["allocated_by"]) for row in result["leaks"]] == [(1, 24, "program")]
