"""``tracekit record`` as a user meets it: names of files, exit statuses, messages, what passes through."""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path

import pytest

from tests.needs import needs
from tests.recorder.recording import ENVIRONMENT, TRACEKIT, build, read, record
from tracekit.formats.errors import TracekitError
from tracekit.formats.reader import TraceReader
from tracekit.recorder.toolchain import find_clang, runtime_file


@pytest.fixture(scope="module")
def echo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Copies its input to its output, complains, and returns its number of arguments."""
    return build(
        tmp_path_factory.mktemp("echo"),
        r"""
        #include <stdio.h>
        int count[256];
        int main(int argc, char **argv)
        {
            int c;
            while ((c = getchar()) != EOF) { count[c]++; putchar(c); }
            fprintf(stderr, "done %s\n", argv[0]);
            return argc - 1;
        }""",
        name="echo",
    )


@pytest.fixture(scope="module")
def endless(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Writes records as fast as it can until it is told to stop by SIGTERM or SIGHUP; returns the signal's number."""
    return build(
        tmp_path_factory.mktemp("endless"),
        r"""
        #include <signal.h>
        #include <stdio.h>
        #include <stdlib.h>
        volatile int stop, table[4096];
        void handle(int number) { stop = number; }
        int main(int argc, char **argv)
        {
            long limit = argc > 1 ? atol(argv[1]) : -1;
            signal(SIGTERM, handle);
            signal(SIGHUP, handle);
            puts("ready");
            fflush(stdout);
            for (long i = 0, x = 1; !stop && i != limit; i++, x = x * 6364136223846793005 + 1442695040888963407)
                table[(x >> 33) & 4095] += table[(x >> 48) & 4095];
            return stop;
        }""",
        name="endless",
    )


def test_everything_passes_through(tmp_path: Path, echo: Path) -> None:
    run = record(tmp_path, echo, "a", "b", stdin="some\ninput")
    assert run.returncode == 2 and run.stdout == "some\ninput"
    first, last = run.stderr.splitlines()
    assert first == f"done {echo}"
    assert re.fullmatch(
        r"tracekit: [\d.]+ ?[kMG]? accesses, [\d.]+ [kMG]?B -> trace.zst; "
        r"see: tracekit analyze --module=camp trace.zst",
        last,
    )


def test_an_older_trace_is_moved_aside(tmp_path: Path, echo: Path) -> None:
    record(tmp_path, echo)
    first = (tmp_path / "trace.zst").read_bytes()
    record(tmp_path, echo)
    assert (tmp_path / "trace.zst.old").read_bytes() == first
    assert (tmp_path / "trace.zst").read_bytes() != first
    assert not list(tmp_path.glob("*.partial"))


@pytest.mark.parametrize("options", [("-o", "folder"), ("-f", "-o", "folder")])
def test_a_folder_is_no_trace_to_write(options: tuple[str, ...], tmp_path: Path, echo: Path) -> None:
    (tmp_path / "folder").mkdir()
    run = record(tmp_path, echo, options=options)
    assert (run.returncode, run.stdout) == (125, "")
    assert run.stderr == "tracekit: folder is a folder; name a file in it\n"
    assert not list(tmp_path.glob("*.partial"))


@pytest.mark.parametrize("options", [("-o", "pipe"), ("-f", "-o", "pipe")])
def test_a_device_or_pipe_is_never_replaced(options: tuple[str, ...], tmp_path: Path, echo: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    run = record(tmp_path, echo, options=options)
    assert (run.returncode, run.stderr) == (125, "tracekit: pipe is no regular file; a trace has to be one\n")
    assert (tmp_path / "pipe").is_fifo()


def test_a_named_trace_is_overwritten_only_when_forced(tmp_path: Path, echo: Path) -> None:
    (tmp_path / "mine").write_text("precious")
    run = record(tmp_path, echo, options=("-o", "mine"))
    assert run.returncode == 125
    assert run.stderr == "tracekit: mine exists; add -f to overwrite it, or name another file\n"
    assert (tmp_path / "mine").read_text() == "precious"
    assert record(tmp_path, echo, options=("-f", "-o", "mine")).returncode == 0
    assert TraceReader(tmp_path / "mine").complete


def test_names_may_hold_process_and_host(tmp_path: Path, echo: Path) -> None:
    assert record(tmp_path, echo, options=("-o", "t-%h-%p-100%%")).returncode == 0
    (trace,) = tmp_path.glob("t-*")
    assert re.fullmatch(rf"t-{re.escape(socket.gethostname())}-\d+-100%", trace.name)
    run = record(tmp_path, echo, options=("-o", "t-%q"))
    assert run.returncode == 125 and "%q means nothing" in run.stderr


def test_programs_that_cannot_be_run(tmp_path: Path, echo: Path) -> None:
    (tmp_path / "plain").write_text("text")
    (tmp_path / "broken").write_text("#!/no/such/interpreter\n")
    (tmp_path / "broken").chmod(0o755)
    shutil.copy(echo, tmp_path / "copy")
    for command, status in [
        ("./nothing", 127),
        ("no-such-command", 127),
        ("./plain", 126),
        ("/tmp", 126),
        ("./broken", 127),
    ]:
        run = record(tmp_path, command)
        assert (run.returncode, run.stdout) == (status, ""), command
        assert re.fullmatch(r"tracekit: .*\n", run.stderr), run.stderr
    assert not list(tmp_path.glob("trace*"))
    found = record(tmp_path, "copy", environment={"PATH": f"{tmp_path}:{os.environ['PATH']}"})
    assert found.returncode == 0


@pytest.mark.parametrize("options", [("--no-such-option",), ("--buffer-size", "3"), ("--buffer-size", "x"), ()])
def test_usage_errors(tmp_path: Path, options: tuple[str, ...]) -> None:
    run = record(tmp_path, *(["true"] if options else []), options=options)
    assert run.returncode == 125 and run.stderr


def test_a_program_without_instrumented_code(tmp_path: Path) -> None:
    run = record(tmp_path, "true")
    assert run.returncode == 125
    assert re.fullmatch(r"tracekit: /.*/true holds no instrumented code: build it with `tracekit cc` .*\n", run.stderr)
    run = record(tmp_path, "true", options=("--late",))
    assert run.returncode == 125 and "nothing that true ran was instrumented" in run.stderr
    assert not list(tmp_path.glob("trace*"))


@pytest.mark.parametrize(("words", "found_by"), [("a/lib/libx.so", ""), ("-La/lib -lx", "a/lib"), ("-La/lib -lx", ".")])
def test_an_instrumented_library_that_is_found_by_a_relative_name(tmp_path: Path, words: str, found_by: str) -> None:
    (tmp_path / "a/lib").mkdir(parents=True)
    library = build(tmp_path, "int x[9]; int f(int n) { return x[n] = n; }", "-shared", "-fPIC", name="a/lib/libx.so")
    (tmp_path / "libx.so").symlink_to(library)
    (tmp_path / "main.c").write_text("int f(int); int main(void) { return f(7); }")
    subprocess.run(["cc", "main.c", *words.split(), "-o", "app"], cwd=tmp_path, check=True)
    run = record(tmp_path, "./app", environment={"LD_LIBRARY_PATH": found_by})
    assert run.returncode == 7, run.stderr
    assert "f" in {found.name for found in read(tmp_path / "trace.zst")}


def test_a_static_program_is_refused_with_the_reason(tmp_path: Path) -> None:
    source = "int x[9]; int main(int n, char **v) { return x[n & 7] + !v; }"
    build(tmp_path, source, "-c", name="app.o")
    stub = runtime_file("image_runtime.o")
    subprocess.run([find_clang().path, "-static", stub, tmp_path / "app.o", "-o", tmp_path / "app"], check=True)
    run = record(tmp_path, tmp_path / "app")
    assert run.returncode == 125 and "is statically linked" in run.stderr
    assert subprocess.run([tmp_path / "app"]).returncode == 0


def test_a_script_that_runs_an_instrumented_program(tmp_path: Path, echo: Path) -> None:
    script = tmp_path / "script"
    script.write_text(f"#!/bin/sh\necho before\n'{echo}' x </dev/null\necho after $?\n")
    script.chmod(0o755)
    run = record(tmp_path, script)
    assert run.stdout == "before\nafter 1\n" and run.returncode == 0
    assert "main" in {found.name for found in read(tmp_path / "trace.zst")}


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_signals_to_end_are_handed_on(tmp_path: Path, endless: Path, number: signal.Signals) -> None:
    run = subprocess.Popen(
        [*TRACEKIT, "record", str(endless)],
        cwd=tmp_path,
        env=ENVIRONMENT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert run.stdout is not None and run.stdout.readline() == b"ready\n"
    run.send_signal(number)
    run.communicate(timeout=60)
    assert run.returncode == number
    assert TraceReader(tmp_path / "trace.zst").complete


def children(process: int) -> list[int]:
    return [int(word) for word in Path(f"/proc/{process}/task/{process}/children").read_text().split()]


def wait_until_written(trace: Path) -> None:
    """Until so much of it is on disk that it is a trace."""
    for _ in range(600):
        with contextlib.suppress(TracekitError, OSError):
            TraceReader(trace).close()
            return
        time.sleep(0.1)
    raise AssertionError("nothing was written for a minute")


def test_a_killed_collector_does_not_disturb_the_program(tmp_path: Path, endless: Path) -> None:
    run = subprocess.Popen(
        [*TRACEKIT, "record", str(endless), "300000000"],
        cwd=tmp_path,
        env=ENVIRONMENT,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert run.stdout is not None and run.stdout.readline() == "ready\n"
    wait_until_written(tmp_path / "trace.zst.partial")
    program, collector = children(run.pid)
    os.kill(collector, signal.SIGKILL)
    _, errors = run.communicate(timeout=60)
    assert run.returncode == 125
    assert errors == (
        "tracekit: the trace is cut, because of this: the collector was killed; trace.zst holds the run up to there\n"
    )
    assert not TraceReader(tmp_path / "trace.zst").complete
    assert not os.path.exists(f"/proc/{program}")


@needs("zstd")
def test_a_full_disk_cuts_the_trace_and_leaves_the_program_alone(tmp_path: Path, endless: Path) -> None:
    limit = 12_000  # KiB: files grow no further, as on a full disk
    run = subprocess.run(
        ["bash", "-c", f'ulimit -S -f {limit}; exec "$0" "$@"', *TRACEKIT, "record", str(endless), "30000000"],
        cwd=tmp_path,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert run.returncode == 125 and run.stdout == "ready\n"
    assert run.stderr.startswith("tracekit: the trace is cut, because of this: File too large; trace.zst holds")
    with TraceReader(tmp_path / "trace.zst") as reader:
        assert reader.done is not None and reader.done["cut"] == "File too large"
        assert "totals" not in reader.done and len(reader.chunk_frames()) > 0
    subprocess.run(["zstd", "-tq", tmp_path / "trace.zst"], check=True)


@pytest.fixture(scope="module")
def standing(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Its status has a bit for each of stdin, stdout and stderr that is open."""
    source = """#include <fcntl.h>
        int main(void) {
            int open = 0;
            for (int fd = 0; fd < 3; fd++)
                if (fcntl(fd, F_GETFD) >= 0) open |= 1 << fd;
            return open;
        }"""
    return build(tmp_path_factory.mktemp("standing"), source)


@pytest.mark.parametrize("closed, status", [("<&-", 6), (">&-", 5), ("2>&-", 3), ("<&- >&- 2>&-", 0)])
@pytest.mark.parametrize("option", ["", "--follow-fork"])
def test_closed_streams_stay_closed_and_nothing_of_the_recorder_takes_their_place(
    tmp_path: Path, standing: Path, closed: str, status: int, option: str
) -> None:
    command = f"{shlex.join(TRACEKIT)} record {option} {standing} {closed}"
    run = subprocess.run(["bash", "-c", command], cwd=tmp_path, env=ENVIRONMENT, capture_output=True, text=True)
    assert run.returncode == status and "Traceback" not in run.stderr
    assert TraceReader(tmp_path / "trace.zst").complete


@pytest.mark.parametrize("limit", [9, 11, 13, 15, 17])
@pytest.mark.parametrize("option", ["", "--follow-fork"])
def test_a_limit_on_descriptors_is_named_or_does_no_harm(
    tmp_path: Path, standing: Path, limit: int, option: str
) -> None:
    command = f"ulimit -n {limit}; {shlex.join(TRACEKIT)} record {option} {standing}"
    run = subprocess.run(["bash", "-c", command], cwd=tmp_path, env=ENVIRONMENT, capture_output=True, text=True)
    assert "Traceback" not in run.stderr
    assert run.returncode == 7 or (run.returncode in (1, 125) and "tracekit: " in run.stderr), run.stderr
    if run.returncode == 1:
        assert "`ulimit -n`" in run.stderr


def test_metadata_names_the_host_only_on_request(tmp_path: Path, echo: Path) -> None:
    record(tmp_path, echo, "secret-free")
    meta = TraceReader(tmp_path / "trace.zst").meta
    assert meta["command"] == [str(echo), "secret-free"] and "clang" in meta["compiler"]
    assert {"command", "compiler", "library", "started", "target", "tracekit"} == set(meta)
    record(tmp_path, echo, options=("--with-host",), environment={"MARKED": "yes"})
    host = TraceReader(tmp_path / "trace.zst").meta["host"]
    assert host["name"] == socket.gethostname() and host["directory"] == str(tmp_path)
    assert host["environment"]["MARKED"] == "yes"


@pytest.mark.parametrize("options", [(), ("--follow-fork",)])
def test_the_program_gets_the_users_environment(
    tmp_path: Path, options: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the command line sets for itself (tracekit/environment.py) is not passed on."""
    program = build(
        tmp_path,
        r"""
        #include <stdio.h>
        extern char **environ;
        int main(void) { for (char **each = environ; *each; each++) puts(*each); return 0; }""",
        name="shows",
    )

    monkeypatch.delitem(ENVIRONMENT, "OPENBLAS_NUM_THREADS", raising=False)

    def shown(environment: dict[str, str]) -> set[str]:
        return set(record(tmp_path, program, options=options, environment=environment).stdout.splitlines())

    def names(environment: set[str]) -> set[str]:
        return {line.partition("=")[0] for line in environment}

    before = shown({"MARKED": "yes", "OPENBLAS_NUM_THREADS": "7"})
    assert {"MARKED=yes", "OPENBLAS_NUM_THREADS=7"} <= before
    assert names(before) - names(shown({})) == {"MARKED", "OPENBLAS_NUM_THREADS"}


def test_sources_on_request(tmp_path: Path, echo: Path) -> None:
    record(tmp_path, echo, options=("--with-sources",))
    assert echo.with_suffix(".c").read_bytes() in TraceReader(tmp_path / "trace.zst").sources().values()
