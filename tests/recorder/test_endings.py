"""However a process ends, its trace is whole; and without `tracekit record` it has none."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.recorder.recording import ENVIRONMENT, TRACEKIT, build, read, record
from tracekit.formats.reader import TraceReader

COUNTING = r"""
    #include <fcntl.h>
    #include <sys/mman.h>
    #include <unistd.h>
    volatile long *finished;
    __attribute__((noinline)) void step(long i) { __atomic_store_n(finished, i, __ATOMIC_RELEASE); }
    int main(int argc, char **argv)
    {
        int fd = open(argv[1], O_RDWR);
        finished = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        for (long i = 1; argc; i++) step(i);
    }"""


@pytest.mark.parametrize("delay", [0.0, 0.003, 0.02, 0.1])
def test_kill_loses_nothing_that_was_finished(tmp_path: Path, delay: float) -> None:
    app = build(tmp_path, COUNTING)
    page = tmp_path / "page"
    page.write_bytes(bytes(4096))
    run = subprocess.Popen(
        [*TRACEKIT, "record", str(app), str(page)], cwd=tmp_path, env=ENVIRONMENT, stderr=subprocess.PIPE
    )
    while not any(page.read_bytes()[:8]):
        time.sleep(0.001)
    time.sleep(delay)
    pid = int(subprocess.run(["pgrep", "-f", f"^{app}"], capture_output=True, text=True, check=True).stdout)
    os.kill(pid, signal.SIGKILL)
    _, errors = run.communicate(timeout=60)
    assert run.returncode == 128 + signal.SIGKILL, errors
    finished = int.from_bytes(page.read_bytes()[:8], "little")
    with TraceReader(tmp_path / "trace.zst") as reader:
        assert reader.complete and reader.done is not None
        assert reader.done["signal"] == signal.SIGKILL and reader.done["unknown_words"] == 0
    if finished < 1_000_000:  # Python decodes the rest too slowly
        steps = sum(found.name == "step" for found in read(tmp_path / "trace.zst"))
        assert finished - 1 <= steps <= finished + 1  # the last step's store precedes its record


ENDINGS = [
    ("return 3;", 3),
    ("exit(4);", 4),
    ("_exit(5);", 5),
    ("quick_exit(6);", 6),
    ("abort();", 134),
    ("*(volatile int *)8 = 1;", 139),
    ("raise(SIGTERM);", 143),
    ("for (;;) alarm(1), pause();", 142),
]


@pytest.fixture(scope="module")
def ending_program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    cases = "".join(f"case {k}: {ending}\n" for k, (ending, _) in enumerate(ENDINGS))
    return build(
        tmp_path_factory.mktemp("endings"),
        """
        #include <signal.h>
        #include <stdlib.h>
        #include <unistd.h>
        volatile int count;
        __attribute__((noinline)) void last(void) { count++; }
        int main(int argc, char **argv) { last(); switch (atoi(argv[argc - 1])) { CASES } }
        """.replace("CASES", cases),
        "-Wno-everything",
    )


@pytest.mark.parametrize("number", range(len(ENDINGS)), ids=[ending for ending, _ in ENDINGS])
def test_every_ending_closes_the_trace(tmp_path: Path, ending_program: Path, number: int) -> None:
    run = record(tmp_path, ending_program, number)
    assert run.returncode == ENDINGS[number][1]
    assert re.fullmatch(
        r"tracekit: \d+ accesses, .* -> trace.zst; see: tracekit analyze --module=camp trace.zst\n", run.stderr
    )
    with TraceReader(tmp_path / "trace.zst") as reader:
        assert reader.complete
    assert sum(found.name == "last" for found in read(tmp_path / "trace.zst")) == 1


def test_without_record_nothing_is_said_or_changed(tmp_path: Path) -> None:
    app = build(tmp_path, '#include <stdio.h>\nint main(void) { for (int i = 0; i < 99; i++) printf("%d\\n", i); }')
    run = subprocess.run([app], capture_output=True, text=True, check=True)
    assert run.stdout == "".join(f"{i}\n" for i in range(99)) and run.stderr == ""


def test_without_record_a_malloc_of_the_program_runs_as_ever(tmp_path: Path) -> None:
    source = """
        #include <stddef.h>
        #include <stdio.h>
        #include <string.h>
        static _Alignas(16) char heap[1 << 20];
        static size_t used, calls;
        void *malloc(size_t size) {
            void *block = heap + used;
            calls++;
            used += (size + 31) / 16 * 16;
            ((size_t *)block)[0] = size;
            return (size_t *)block + 2;
        }
        void free(void *block) { if (block) ((size_t *)block)[-2] = 0; }
        void *calloc(size_t count, size_t size) { return memset(malloc(count * size), 0, count * size); }
        void *realloc(void *block, size_t size) {
            void *moved = malloc(size);
            return block ? memcpy(moved, block, ((size_t *)block)[-2]) : moved;
        }
        int main(void) {
            size_t before = calls;
            for (int i = 0; i < 9; i++) free(malloc(100));
            printf("%zu\\n", calls - before);
            return 0;
        }
        """
    run = subprocess.run([build(tmp_path, source)], capture_output=True, text=True, check=True)
    assert run.stdout == "9\n" and run.stderr == ""
