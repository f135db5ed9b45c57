"""Programs that write where they should not: they end as they would without the recorder, and so does the trace.

Stray stores that run out of the program's own memory never reach the pool. A thread that knows where the pool is and
writes random words into it costs the program its trace, not its behaviour. A handful of seeds for each run of the
suite; TRACEKIT_LONG=N runs N of them, from seed TRACEKIT_SEED (by default 0) on.
"""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests import prepared
from tests.recorder.recording import ENVIRONMENT, TIMEOUT, TRACEKIT, build, record
from tracekit.commands.check import check
from tracekit.formats.reader import TraceReader
from tracekit.recorder.toolchain import find_clang

COUNT = int(os.environ.get("TRACEKIT_LONG", "6"))
FIRST = int(os.environ.get("TRACEKIT_SEED", "0"))

STRAY = r"""
    #include <stdint.h>
    #include <stdio.h>
    #include <stdlib.h>
    #include <string.h>
    #include <sys/mman.h>
    static volatile double global[512];
    int main(int argc, char **argv)
    {
        volatile double stack[512], *from = 0;
        volatile double sum = 0;
        if (!strcmp(argv[1], "heap")) from = malloc(4 << 20);
        if (!strcmp(argv[1], "arena")) from = malloc(4000);
        if (!strcmp(argv[1], "stack")) from = stack;
        if (!strcmp(argv[1], "globals")) from = global;
        if (!strcmp(argv[1], "mmap"))
            from = mmap(0, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        const long step = atol(argv[2]);
        for (int i = 0; i < 500; i++) { from[i] = i; sum += from[i]; }
        printf("%g\n", sum);
        fflush(stdout);
        for (long i = 0; i < 1L << 40; i++) from[i * step] = 1.0;
        return 0;
    }"""

FUZZED = r"""
    #include <pthread.h>
    #include <stdint.h>
    #include <stdlib.h>
    #include <time.h>
    #include <unistd.h>
    void *fuzz(void *seed);
    extern volatile int stop;
    static uint64_t sums[3];
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static uint64_t shared;
    __attribute__((noinline)) static uint64_t mix(uint64_t *table, uint64_t at, int depth)
    {
        table[at % 512] += at;
        return depth ? mix(table, at * 31 + table[at % 512], depth - 1) : table[(at >> 3) % 512];
    }
    static void *work(void *to)
    {
        uint64_t sum = 0, *table = calloc(512, 8);
        for (int i = 0; i < 60000; i++) {
            sum += mix(table, sum + i, i % 3);
            if (i % 64 == 0) {
                free(malloc(i % 100));
                pthread_mutex_lock(&lock);
                shared++;
                pthread_mutex_unlock(&lock);
            }
        }
        free(table);
        *(uint64_t *)to = sum;
        return 0;
    }
    int main(int argc, char **argv)
    {
        pthread_t fuzzer, threads[2];
        if (argc > 1)
            pthread_create(&fuzzer, 0, fuzz, argv[1]);
        for (int i = 0; i < 2; i++) pthread_create(&threads[i], 0, work, &sums[i]);
        work(&sums[2]);
        for (int i = 0; i < 2; i++) pthread_join(threads[i], 0);
        stop = 1;
        if (argc > 1)
            pthread_join(fuzzer, 0);
        struct timespec now;
        clock_gettime(CLOCK_MONOTONIC, &now);
        uint64_t end = now.tv_sec * 1000000000ull + now.tv_nsec;
        if (write(1, &end, sizeof end) != sizeof end) return 1;
        return sums[0] == sums[1] && sums[1] == sums[2] && shared == 3 * 938 ? 7 : 1;
    }"""

# Not instrumented: random words, small ones, words with a bit changed, and copies of other words of the pool; anywhere,
# in the table of buffers and what precedes it, or in the buffers that are used most.
FUZZER = r"""
    #include <stdint.h>
    #include <stdio.h>
    #include <stdlib.h>
    #include <string.h>
    #include <time.h>
    volatile int stop;
    static uint64_t state;
    static uint64_t draw(void)
    {
        uint64_t word = state += 0x9e3779b97f4a7c15u;
        word = (word ^ word >> 30) * 0xbf58476d1ce4e5b9u;
        word = (word ^ word >> 27) * 0x94d049bb133111ebu;
        return word ^ word >> 31;
    }
    static void rest(uint64_t nanoseconds)
    {
        struct timespec time = {0, (long)nanoseconds};
        nanosleep(&time, 0);
    }
    void *fuzz(void *seed)
    {
        char line[512];
        uint64_t low[16], high[16], parts = 0, table = 1 << 18;
        FILE *maps = fopen("/proc/self/maps", "r");
        while (fgets(line, sizeof line, maps))
            if (strstr(line, "tracekit-pool") && strstr(line, "rw-s") && parts < 16)
                parts += sscanf(line, "%lx-%lx", &low[parts], &high[parts]) == 2;
        fclose(maps);
        if (!parts)
            abort();
        state = strtoull(seed, 0, 0) * 0x2545f4914f6cdd1du;
        uint64_t where = draw() % 4, what = draw() % 5, writes = 1ull << draw() % 24, pause = draw() % 3;
        rest(draw() % 30000000);
        while (!stop && writes--) {
            uint64_t part = draw() % parts, size = high[part] - low[part];
            uint64_t offset = where == 0 ? draw() % size : where == 1 ? draw() % table
                              : where == 2 ? table + 4096 + draw() % (4 << 20) : draw() % 256;
            volatile uint64_t *word = (volatile uint64_t *)(low[part] + offset % size / 8 * 8);
            uint64_t other = *(volatile uint64_t *)(low[part] + draw() % size / 8 * 8);
            uint64_t kind = what < 4 ? what : draw() % 4;
            *word = kind == 0 ? draw() : kind == 1 ? draw() % 300 : kind == 2 ? *word ^ 1ull << draw() % 64 : other;
            if (pause == 2 || (pause && draw() % 1024 == 0))
                rest(draw() % 100000);
        }
        return 0;
    }"""


@pytest.fixture(scope="module")
def stray(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("stray"), STRAY)


@pytest.mark.parametrize("step", [1, -1, 4099, -4099])
@pytest.mark.parametrize("place", ["heap", "arena", "stack", "globals", "mmap"])
def test_stray_stores_end_the_program_as_they_would_without_the_recorder(
    place: str, step: int, stray: Path, tmp_path: Path
) -> None:
    native = subprocess.run([stray, place, str(step)], capture_output=True, text=True, timeout=TIMEOUT)
    run = record(tmp_path, stray, place, step)
    assert native.returncode == -signal.SIGSEGV
    assert (run.returncode, run.stdout) == (128 + signal.SIGSEGV, native.stdout)
    assert faults(tmp_path / "trace.zst") == ([], "")


def test_a_limit_on_address_space_leaves_room_for_the_recorder(tmp_path: Path) -> None:
    source = r"""
        #include <stdlib.h>
        #include <sys/resource.h>
        int main(int argc, char **argv)
        {
            struct rlimit limit = {7ull << 30, RLIM_INFINITY};
            if (argc > 1 && setrlimit(RLIMIT_AS, &limit)) return 1;
            char *volatile p = malloc(1 << 30);
            if (p) p[5] = 1;
            return p ? 7 : 2;
        }"""
    app = build(tmp_path, source)
    assert record(tmp_path, app, "own").returncode == 7
    shell = f"ulimit -v {7 << 20}; exec {shlex.join([*TRACEKIT, 'record', str(app)])}"
    assert subprocess.run(["sh", "-c", shell], cwd=tmp_path, env=ENVIRONMENT, timeout=TIMEOUT).returncode == 7


@pytest.fixture(scope="module")
def fuzzed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("fuzzed")
    (folder / "fuzzer.c").write_text(FUZZER)
    native = [find_clang().path, "-O2", "-c", str(folder / "fuzzer.c"), "-o", str(folder / "fuzzer.o")]
    subprocess.run(native, check=True, timeout=TIMEOUT)
    return build(folder, FUZZED, str(folder / "fuzzer.o"), "-pthread")


def faults(trace: Path) -> tuple[list[str], str]:
    """What `check` finds, and why the trace is cut."""
    with TraceReader(trace) as reader:
        assert reader.complete and reader.done is not None
        return list(check(reader)), reader.done["cut"]


def ended(folder: Path, *command: object, options: tuple[str, ...] = ()) -> tuple[int, float, str]:
    """The exit status of `record`, the seconds that it took after the program had ended, and what it said."""
    run = prepared.run(
        [*TRACEKIT, "record", *options, *map(str, command)],
        cwd=folder,
        env=ENVIRONMENT,
        capture_output=True,
        timeout=30,
    )
    end = int.from_bytes(run.stdout, "little") / 1e9
    return run.returncode, time.clock_gettime(time.CLOCK_MONOTONIC) - end, run.stderr.decode()


@pytest.fixture(scope="module")
def usual(fuzzed: Path, tmp_path_factory: pytest.TempPathFactory) -> float:
    """The seconds that `record` takes to end after a program that does no harm."""
    folder = tmp_path_factory.mktemp("usual")
    seconds = []
    for _ in range(3):
        (status, after, _) = ended(folder, fuzzed)
        assert status == 7 and faults(folder / "trace.zst") == ([], "")
        seconds.append(after)
    return max(seconds)


@pytest.mark.parametrize("seed", range(FIRST, FIRST + COUNT))
def test_a_program_that_writes_into_the_pool_loses_its_trace_from_there_on(
    seed: int, fuzzed: Path, usual: float, tmp_path: Path
) -> None:
    options = (("--workers=1",), ("--workers=3", "--buffer-size=16K"), ())[seed % 3]
    status, after, said = ended(tmp_path, fuzzed, seed, options=options)
    assert status == 7, said
    if after >= usual + 1:  # busier than before: what does it take after a program that does no harm, now?
        usual = max(ended(tmp_path, fuzzed, options=("-f", "-o", "harmless.zst"))[1] for _ in range(3))
    assert after < 2 * usual + 1
    found, cut = faults(tmp_path / "trace.zst")
    assert not found or cut
    if cut:
        assert said.splitlines() == [
            f"tracekit: the trace is cut, because of this: {cut}; trace.zst holds the run up to there"
        ]
