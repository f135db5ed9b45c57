"""`tracekit export` against accesses written one by one."""

from __future__ import annotations

import os
import re
import resource
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import click
import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

import tracekit
from tests.naive.export import written
from tests.naive.trace_file import write_walks
from tests.naive.walker import Walk
from tests.naive.window import rows
from tracekit.cli import main
from tracekit.commands import export as command
from tracekit.formats import export
from tracekit.formats.events import CODE, NONE
from tracekit.formats.export import champsim

ACCESS = st.tuples(
    st.sampled_from([CODE["load"], CODE["store"]]),
    st.one_of(st.integers(0, 1 << 20), st.just(NONE)),
    st.integers(0, 2**64 - 1000) | st.integers(0, 1000),
    st.integers(0, 16) | st.integers(0, 900),
)


@given(st.lists(st.lists(ACCESS, min_size=1, max_size=40), max_size=3), st.sampled_from(command.FORMATS), st.data())
def test_random_accesses_with_buffers_of_any_size(
    batches: list[list[tuple[int, ...]]], name: str, data: st.DataObject
) -> None:
    buffer = 8 * data.draw(st.integers(8, 60))
    made = [
        SimpleNamespace(
            kind=np.array([row[0] for row in batch], np.uint8),
            subject=np.array([row[1] for row in batch], np.uint32),
            address=np.array([row[2] for row in batch], np.uint64),
            size=np.array([row[3] for row in batch], np.uint64),
        )
        for batch in batches
    ]
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(export, "BUFFER", buffer)
        parts = list(export.exported(made, export.FORMATS[name]))
    assert all(len(part) <= buffer for part in parts)
    assert b"".join(parts) == written(name, [row for batch in batches for row in batch])  # type: ignore[misc]


@pytest.fixture(scope="module")
def walked(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[int, Walk]]:
    """A trace of three threads of random walks, and these."""
    path = tmp_path_factory.mktemp("export") / "trace.zst"
    return path, write_walks(path)


@pytest.fixture
def trace(walked: tuple[Path, dict[int, Walk]]) -> Path:
    """The trace alone."""
    return walked[0]


@pytest.mark.parametrize("name", command.FORMATS)
@pytest.mark.parametrize("window", [{}, {"thread": 1}, {"from": "25%", "to": "75%"}])
def test_a_trace_and_its_windows(name: str, window: dict[str, object], trace: Path, tmp_path: Path) -> None:
    with tracekit.open(trace) as opened:
        events = rows(opened.batches(["load", "store"], window=window or None))
    assert len(events) > 20
    options = [str(word) for part, value in window.items() for word in (f"--{part}", value)]
    out = tmp_path / "out"
    done = CliRunner().invoke(command.command, [name, str(trace), "-o", str(out), *options])
    assert (done.exit_code, done.output) == (0, "")
    assert out.read_bytes() == written(name, [event[1:] for event in events])
    assert CliRunner().invoke(command.command, [name, str(trace), *options]).stdout_bytes == out.read_bytes()


@pytest.mark.parametrize("name", command.FORMATS)
def test_a_thread_alone(name: str, walked: tuple[Path, dict[int, Walk]]) -> None:
    path, walks = walked
    known = [(CODE[event[0]], *event[1:4]) for event in walks[1].events if event[0] in ("load", "store")]
    assert len(known) > 100
    done = CliRunner().invoke(command.command, [name, str(path), "--thread", "1"])
    assert done.stdout_bytes == written(name, known)


def test_the_formats_are_those_of_the_help() -> None:
    assert tuple(export.FORMATS) == command.FORMATS
    text = command.command.get_help(click.Context(command.command))
    for name, form in export.FORMATS.items():
        assert re.search(rf"^ +{name} +{re.escape(form.help)}$", text, re.MULTILINE)


def test_an_instruction_of_champsim_has_64_bytes() -> None:
    fields = {name: offset for name, (_, offset) in champsim.INPUT_INSTR.fields.items()}  # type: ignore[union-attr,misc]
    assert champsim.INPUT_INSTR.itemsize == 64
    assert fields == {
        "ip": 0,
        "is_branch": 8,
        "branch_taken": 9,
        "destination_registers": 10,
        "source_registers": 12,
        "destination_memory": 16,
        "source_memory": 32,
    }


def test_misuse_and_failures(trace: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    assert main(["export", "gem5", str(trace)]) == 2
    assert main(["export", "din", str(trace), "--from", "x"]) == 2
    capfd.readouterr()
    assert main(["export", "din", str(tmp_path / "none.zst"), "-o", str(out)]) == 1
    assert capfd.readouterr().err.count("\n") == 1
    assert main(["export", "din", str(trace), "--thread", "9", "-o", str(out)]) == 1
    assert "no stream 9" in capfd.readouterr().err
    assert main(["export", "din", str(trace), "-o", str(tmp_path / "none" / "out")]) == 1
    assert capfd.readouterr().err == (
        f"tracekit: Cannot write the accesses to {tmp_path / 'none' / 'out'}: No such file or directory.\n"
    )
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_leaves_the_older_file(trace: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.write_bytes(b"before")
    done = subprocess.run(
        [sys.executable, "-m", "tracekit", "export", "champsim", str(trace), "-o", str(out)],
        capture_output=True,
        text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (512, 512)),
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"tracekit: Cannot write the accesses to {out}: File too large.\n"
    assert list(tmp_path.iterdir()) == [out]
    assert out.read_bytes() == b"before"


def test_the_reader_of_the_output_goes_away(trace: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "tracekit", "export", "din", str(trace)], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait() in (0, 141)
