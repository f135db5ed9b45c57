"""How each figure is measured: builds, runs, recordings, decoding and analysis, one function each."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import fetch
from programs import Program

TRACEKIT = (sys.executable, "-m", "tracekit")
ROOT = Path(__file__).parents[1]


@dataclass(frozen=True)
class Run:
    """One run of a command."""

    seconds: float
    status: int
    stdout: bytes
    peak_bytes: int
    """Greatest resident memory of the process itself."""


def run(command: list[str], stdin: Path | None = None, keep_output: bool = True) -> Run:
    """Run a command and wait for it; its standard error goes to ours."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    output = fetch.cache() / f"output-{os.getpid()}"
    with open(stdin or os.devnull, "rb") as source, open(output, "wb") as sink:
        begin = time.perf_counter()
        process = subprocess.Popen(command, stdin=source, stdout=sink, env=environment)
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - begin
    process.returncode = os.waitstatus_to_exitcode(status)
    stdout = output.read_bytes() if keep_output else b""
    output.unlink()
    return Run(seconds, process.returncode, stdout, usage.ru_maxrss * 1024)


RECORDER = ["paths"]
"""How tracekit cc instruments: what --record names."""
VALUES: list[str] = []
"""More of its options: what it records beside addresses."""


def kept_as() -> str:
    """The options that tell builds and traces of one program apart, in a file's name."""
    return "".join([RECORDER[0], *VALUES])


def build(program: Program, *, instrumented: bool) -> Path:
    """The program's executable, natively -O2 by tracekit's clang or by tracekit cc; built once."""
    sys.path.insert(0, str(ROOT))
    from tracekit.recorder import toolchain

    clang = toolchain.find_clang()
    tag = "native"
    if instrumented:
        tag = f"{kept_as()}-{toolchain.pass_folder_name(clang)}-{toolchain.runtime_folder_name()}"
    path = fetch.cache() / "bin" / f"{program.name}-{tag}"
    if path.exists():
        return path
    path.parent.mkdir(parents=True, exist_ok=True)
    plus = program.language == "c++"
    compiler = (
        [*TRACEKIT, "c++" if plus else "cc", f"--record={RECORDER[0]}", *VALUES]
        if instrumented
        else [clang.path, *(["--driver-mode=g++"] if plus else [])]
    )
    command = [*compiler, "-O2", "-w", *program.flags(), *map(str, program.sources()), *program.libraries]
    partial = path.with_suffix(".partial")
    subprocess.run([*command, "-o", str(partial)], check=True, env={**os.environ, "PYTHONPATH": str(ROOT)})
    partial.rename(path)
    return path


def trace_path(program: Program, size: int) -> Path:
    """Where the trace of the program on an input of that size is kept."""
    folder = fetch.cache() / "traces"
    folder.mkdir(parents=True, exist_ok=True)
    return folder / f"{program.name}-{size}{''.join(VALUES)}.zst"


def native(program: Program, size: int) -> Run:
    """One native run."""
    arguments, stdin = program.arguments(size)
    return run([str(build(program, instrumented=False)), *arguments], stdin)


def unrecorded(program: Program, size: int) -> Run:
    """One run of the instrumented program by itself: its buffers go round, nothing is encoded."""
    arguments, stdin = program.arguments(size)
    return run([str(build(program, instrumented=True)), *arguments], stdin)


def recorded(program: Program, size: int, workers: int = 0) -> Run:
    """One run under `tracekit record`, collector and compression included; leaves the trace. Workers 0: its default."""
    arguments, stdin = program.arguments(size)
    chosen = ["--workers", str(workers)] if workers else []
    command = [*TRACEKIT, "record", *chosen, "-f", "-o", str(trace_path(program, size)), "--"]
    return run([*command, str(build(program, instrumented=True)), *arguments], stdin)


def info(trace: Path) -> dict[str, Any]:
    """What `tracekit info --json` says of a trace."""
    found: dict[str, Any] = json.loads(run([*TRACEKIT, "info", "--json", str(trace)]).stdout)
    return found


def passes_check(trace: Path) -> bool:
    """Whether `tracekit check` accepts the trace."""
    return run([*TRACEKIT, "check", str(trace)], keep_output=False).status == 0


# -- in this process, kernels warm; processor time: that of one core, whatever else runs ----------------------------


def decode_seconds(trace: Path) -> float:
    """Decompress and decode every chunk of a trace into records."""
    sys.path.insert(0, str(ROOT))
    from tracekit.formats.reader import TraceReader
    from tracekit.formats.records import RecordSource
    from tracekit.program.program import Program as Image

    with TraceReader(trace) as reader:
        source = RecordSource(reader, Image.from_images(reader.images()).arity)
        begin = time.process_time()
        for stream in source.streams():
            for _ in source.records(stream):
                pass
        return time.process_time() - begin


def replay_seconds(trace: Path, module_name: str | None, threads: int = 1, **options: object) -> float:
    """Processor time to decode and derive: all events or, with a module, those that it wants, fed to it.

    With several threads it is the time on the clock, for what they gain.
    """
    sys.path.insert(0, str(ROOT))
    from tracekit.analysis.passes import prepare
    from tracekit.formats.reader import TraceReader
    from tracekit.modules import registry
    from tracekit.modules.options import make_options
    from tracekit.modules.scheduler import run as feed
    from tracekit.program.program import Program as Image
    from tracekit.replay.engine import Replay

    clock = time.process_time if threads == 1 else time.perf_counter
    with TraceReader(trace) as reader:
        image = Image.from_images(reader.images())
        if module_name is None:
            replay, runners = Replay(reader, image), {}
        else:
            chosen = make_options(registry.load(module_name).Options, options)
            replay, runners = prepare(reader, image, {module_name: chosen}, threads)
        begin = clock()
        feed(replay.batches(), list(runners.values()), threads)
        return clock() - begin


def analyze(trace: Path, module_name: str = "camp") -> Run:
    """One whole `tracekit analyze`."""
    return run([*TRACEKIT, "analyze", "-m", module_name, "--format", "json", str(trace)], keep_output=False)
