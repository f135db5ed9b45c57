"""Compile a program with and without tracekit, run it, record it, and read the recording back.

Everything goes through the commands that a user types; only analyses run inside this process, so that their
kernels are loaded once for all tests.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests import prepared
from tests.recorder.instrumented import toolchain

FIXTURES = Path(__file__).parents[2] / "fixtures"
TRACEKIT = (sys.executable, "-m", "tracekit")
SECONDS = 120
"""No program, compilation or recording here takes as long as this."""


@dataclass(frozen=True)
class Outcome:
    """How a run ended: its standard output and its status, 128 + n after signal n."""

    stdout: bytes
    status: int
    stderr: bytes = b""


@dataclass(frozen=True)
class Recording:
    """A recorded run and the trace that it left."""

    outcome: Outcome
    trace: Path


def run(command: Sequence[str | Path], stdin: bytes = b"") -> Outcome:
    """Run a command to its end."""
    done = prepared.run([str(word) for word in command], input=stdin, timeout=SECONDS)
    status = done.returncode if done.returncode >= 0 else 128 - done.returncode
    return Outcome(done.stdout, status, done.stderr)


def compile_program(sources: Sequence[Path], output: Path, flags: Sequence[str], *, instrumented: bool) -> Path:
    """Compile and link C or C++ (told by the first source's name), natively with the clang that tracekit uses."""
    from tracekit.recorder.toolchain import find_clang

    plus = sources[0].suffix != ".c"
    if instrumented:
        toolchain()  # may have to be built, which takes longer than SECONDS where much else goes on
        compiler = [*TRACEKIT, "c++" if plus else "cc"]
    else:
        compiler = [find_clang().path, *(["--driver-mode=g++"] if plus else [])]
    outcome = run([*compiler, "-w", *(["-std=c++17"] if plus else []), *flags, *sources, "-o", output])
    assert outcome.status == 0, outcome.stderr.decode()
    return output


def build_flags(source: Path) -> list[str]:
    """The options in the source's line `// build: ...`, if it has one."""
    for line in source.read_text().splitlines():
        if line.startswith("// build:"):
            return line.removeprefix("// build:").split()
    return []


def record(program: Path, arguments: Sequence[str | Path] = (), stdin: bytes = b"") -> Recording:
    """Run an instrumented program under `tracekit record`; its trace lies beside it."""
    trace = program.with_name(program.name + ".trace.zst")
    outcome = run([*TRACEKIT, "record", "-f", "-o", trace, "--", program, *arguments], stdin)
    return Recording(outcome, trace)


def run_here(*arguments: str | Path) -> Outcome:
    """Run a tracekit command in this process, whose kernels are loaded."""
    from tracekit.cli import main

    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2))
    with redirect_stdout(out), redirect_stderr(err):
        status = main([str(word) for word in arguments])
    out.flush(), err.flush()
    return Outcome(out.buffer.getvalue(), status, err.buffer.getvalue())


def tracekit(*arguments: str | Path) -> str:
    """The standard output of a tracekit command that is run in this process. Fails if the command does."""
    outcome = run_here(*arguments)
    assert outcome.status == 0, f"tracekit {arguments}: {outcome}"
    return outcome.stdout.decode()


def profiles(trace: Path, *modules: str, **options: Any) -> dict[str, Any]:
    """Module -> its result, all from one replay with the same options."""
    from tracekit.api import analyze_all
    from tracekit.modules import registry

    found = analyze_all(trace, {name: registry.load(name).Options(**options) for name in modules}, jobs=1)
    return {profile.report["module"]: profile.report["result"] for profile in found}


@dataclass
class Replayed:
    """A trace's program and its events, (stream, kind, subject, address, size) each."""

    program: Any
    events: list[tuple[int, int, int, int, int]]


@contextmanager
def opened(trace: Path) -> Iterator[tuple[Any, Any]]:
    """The program and the replay engine of a trace."""
    from tracekit.formats.reader import TraceReader
    from tracekit.formats.records import RecordSource
    from tracekit.program.program import Program
    from tracekit.replay.engine import Replay

    with TraceReader(trace) as reader:
        program = Program.from_images(reader.images())
        yield program, Replay(RecordSource(reader, program.arity), program)


def replayed(trace: Path) -> Replayed:
    """All events of a small trace."""
    rows = []
    with opened(trace) as (program, replay):
        for batch in replay.batches():
            columns = (batch.kind, batch.subject, batch.address, batch.size)
            rows += [(batch.stream, *row) for row in zip(*(column.tolist() for column in columns))]
    return Replayed(program, rows)


def dependence_profile(trace: Path, *, context: bool) -> tuple[Any, Any]:
    """The program of a trace, and what the dependence engine leaves."""
    from tests.naive.dependence_engine import DependenceEngine

    with opened(trace) as (program, replay):
        engine = DependenceEngine(program, context)
        for batch in replay.batches():
            engine.feed(batch)
        return program, engine.result()


def context_nodes(trace: Path) -> dict[tuple[int, ...], int]:
    """The context tree that CAMP sees in a trace: lines of loops and call sites from main on -> context id."""
    from tracekit.contexts.nodes import ContextKind
    from tracekit.formats.events import NONE

    program, profile = dependence_profile(trace, context=True)
    paths: list[tuple[int, ...]] = []
    nodes = profile.nodes
    for row in nodes:
        around = paths[row["parent"]] if row["parent"] != NONE else ()
        if row["kind"] == ContextKind.ROOT:
            paths.append(())
        elif row["loop"] != NONE:
            paths.append((*around, program.loop(int(row["loop"]))["line"]))
        else:
            paths.append((*around, program.instruction(int(row["call"]))["line"]))
    return dict(zip(paths, nodes["camp_id"].tolist()))
