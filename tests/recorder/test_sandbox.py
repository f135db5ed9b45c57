"""Programs that put themselves into a sandbox (seccomp) live on in it, and are recorded to their end."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.recorder.recording import build, record
from tracekit.formats.reader import TraceReader

PROGRAM = r"""
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static volatile unsigned cell[1 << 16];

__attribute__((noinline)) static void work(unsigned steps)
{
    unsigned at = 1;
    for (unsigned step = 0; step < steps; step++) {
        at = at * 1664525 + 1013904223;
        cell[at >> 16] += at;
    }
}

int main(int count, char **arguments)
{
    struct sock_filter rules[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_write, 2, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 1, 0), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    struct sock_fprog filter = {5, rules};
    int is_strict = strcmp(arguments[1], "strict") == 0;
    work(1000);
    if (is_strict)
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT);
    else if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter))
        return 1;
    work(12000000);
    write(1, "done\n", 5);
    if (is_strict)
        syscall(SYS_exit, 4);
    _exit(4);
}
"""
LEAST = 24_000_000
"""Accesses: more than the pool holds."""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("sandbox"), PROGRAM)


@pytest.mark.parametrize("mode", ["strict", "filter"])
def test_a_sandbox_needs_to_allow_nothing_to_the_recorder(tmp_path: Path, program: Path, mode: str) -> None:
    run = record(tmp_path, program, mode)
    assert (run.returncode, run.stdout) == (4, "done\n"), run.stderr
    with TraceReader(tmp_path / "trace.zst") as reader:
        assert reader.done is not None and reader.done["cut"] == "" and reader.done["status"] == 4
        assert reader.done["totals"]["accesses"] > LEAST
