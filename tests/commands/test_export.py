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
from hypothesis import example, given
from hypothesis import strategies as st

import tracekit
from tests.naive.export import packets, pieces, simple_o3, written
from tests.naive.trace_file import write_walks
from tests.naive.walker import Walk
from tests.naive.window import rows
from tracekit.cli import main
from tracekit.commands import export as command
from tracekit.formats import export
from tracekit.formats.events import CODE, NONE
from tracekit.formats.export import champsim, gem5
from tracekit.imports.importing import import_trace
from tracekit.profiles.profile import CUT_OFF

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
    buffer = 8 * data.draw(st.integers(10, 60))
    batches = [[(*row[:2], row[2] % export.FORMATS[name].last, row[3]) for row in batch] for batch in batches]
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
        parts = [bytes(part) for part in export.exported(made, export.FORMATS[name])]  # the next one overwrites it
    assert all(len(part) <= buffer for part in parts)
    assert b"".join(parts) == written(name, [row for batch in batches for row in batch])  # type: ignore[misc]


@given(st.lists(st.tuples(st.integers(0, 1 << 17), st.integers(0, 16) | st.integers(32_760, 140_000)), max_size=4))
@example([(0x1234, 1 << 19), (0x8000, 8)])  # a copy of half a megabyte, as `realloc` makes
def test_dinero_keeps_16_bits_of_a_size(accesses: list[tuple[int, int]]) -> None:
    addresses, sizes = np.array(accesses, np.uint64).reshape(-1, 2).T.copy()
    kinds = np.full(len(accesses), CODE["load"], np.uint8)
    batch = SimpleNamespace(kind=kinds, subject=np.ones(len(accesses), np.uint32), address=addresses, size=sizes)
    text = b"".join(export.exported([batch], export.FORMATS["xdin"]))
    assert text == written("xdin", [(CODE["load"], 1, *access) for access in accesses])
    lines = [[int(number, 16) for number in line.split()[1:]] for line in text.splitlines()]
    assert sum(size for _, size in lines) == sum(size for _, size in accesses)
    assert all(0 < size < 1 << 16 for _, size in lines)


WHOLE = [name for name, form in export.FORMATS.items() if form.last == 2**64 - 1]
"""Formats that hold each address."""


@pytest.fixture(scope="module")
def walked(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[int, Walk]]:
    """A trace of three threads of random walks, and these."""
    path = tmp_path_factory.mktemp("export") / "trace.zst"
    return path, write_walks(path)


@pytest.fixture
def trace(walked: tuple[Path, dict[int, Walk]]) -> Path:
    """The trace alone."""
    return walked[0]


@pytest.mark.parametrize("name", WHOLE)
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


@pytest.mark.parametrize("name", WHOLE)
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


@pytest.mark.parametrize("name", ["ramulator2", "ramulator2-o3"])
def test_an_address_that_the_simulator_does_not_read(
    name: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "log").write_text(" L 7fffffffffffffff,1\n")
    import_trace("lackey", str(tmp_path / "log"), tmp_path / "good.zst")
    (tmp_path / "log").write_text(" L 10,1\n L 8000000000000000,1\n")
    import_trace("lackey", str(tmp_path / "log"), tmp_path / "bad.zst")
    assert main(["export", name, str(tmp_path / "good.zst")]) == 0
    assert capfd.readouterr().out in ("LD 0x7fffffffffffffff\n", "0 9223372036854775807\n")
    assert main(["export", name, str(tmp_path / "bad.zst"), "-o", str(tmp_path / "out")]) == 1
    assert capfd.readouterr().err == (
        "tracekit: There is an access to 0x8000000000000000, and this format ends at 0x7fffffffffffffff.\n"
    )
    assert not (tmp_path / "out").exists()


def test_bubbles(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "log").write_text(" S 30,4\n L 10,8\n S 3c,8\n S 20,8\n L 18,200\n M 80,1\n L 2,1\n")
    trace = tmp_path / "trace.zst"
    import_trace("lackey", str(tmp_path / "log"), trace)
    assert main(["export", "ramulator2-o3", str(trace), "--bubbles", "7"]) == 0
    lines = ["7 -1 48", "7 16 60", "7 -1 64", "7 -1 32", "7 24", "7 64", "7 128", "7 192", "7 128 128", "7 2"]
    assert capfd.readouterr().out.splitlines() == lines
    assert main(["export", "ramulator2-o3", str(trace), "--from", "1", "--to", "3"]) == 0
    assert capfd.readouterr().out == "0 16 60\n0 -1 64\n"
    assert main(["export", "ramulator2", str(trace), "--bubbles", "2"]) == 2
    assert "--bubbles is of ramulator2-o3" in capfd.readouterr().err


@given(st.lists(ACCESS.map(lambda row: (*row[:2], row[2] % 2**63, row[3])), max_size=40), st.integers(0, 2**31 - 1))
def test_bubbles_of_random_accesses(accesses: list[tuple[int, int, int, int]], bubbles: int) -> None:
    columns = [np.array(column, kind) for column, kind in zip(zip(*accesses), ("u1", "u4", "u8", "u8"))]
    batch = SimpleNamespace(**dict(zip(("kind", "subject", "address", "size"), columns)))
    parts = export.exported([batch] if accesses else [], export.FORMATS["ramulator2-o3"], None, bubbles)
    assert b"".join(parts) == simple_o3([access for access in accesses if access[3]], bubbles)


@given(
    st.lists(ACCESS, min_size=1, max_size=20),
    st.builds(lambda bits, less: max((1 << bits) - less, 0), st.integers(0, 62), st.integers(-3000, 3000)),
    st.integers(0, 63),
)
def test_packets_at_any_tick(accesses: list[tuple[int, int, int, int]], tick: int, bits: int) -> None:
    accesses = [(*row[:2], row[2] >> bits, row[3]) for row in accesses]
    columns = [np.array(column, kind) for column, kind in zip(zip(*accesses), ("u1", "u4", "u8", "u8"))]
    place = np.zeros(export.PLACE, np.int64)
    place[gem5.TICK] = tick
    out = np.zeros(1 << 16, np.uint8)
    filled = gem5.encode(columns[0], champsim.counters(columns[1]), *columns[2:], place, out)
    kept = [access for access in accesses if access[3]]
    assert gem5.begin() + out[:filled].tobytes() == packets(kept, tick)
    assert place[gem5.TICK] == tick + gem5.TICKS * sum(len(list(pieces(*access[2:], 64))) for access in kept)


def test_packets_by_googles_reader(trace: Path, tmp_path: Path) -> None:
    """The messages of gem5's packet.proto, made without its compiler."""
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

    file = descriptor_pb2.FileDescriptorProto(name="packet.proto", syntax="proto2")
    fields = {
        "PacketHeader": [("obj_id", 1, "STRING"), ("ver", 2, "UINT32"), ("tick_freq", 3, "UINT64")],
        "Packet": [
            *(("tick", 1, "UINT64"), ("cmd", 2, "UINT32"), ("addr", 3, "UINT64"), ("size", 4, "UINT32")),
            *(("flags", 5, "UINT32"), ("pkt_id", 6, "UINT64"), ("pc", 7, "UINT64")),
        ],
    }
    for name, members in fields.items():
        message = file.message_type.add(name=name)
        for member, number, kind in members:
            message.field.add(name=member, number=number, type=f"TYPE_{kind}", label="LABEL_OPTIONAL")
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    kinds = {name: message_factory.GetMessageClass(pool.FindMessageTypeByName(name)) for name in fields}

    assert main(["export", "gem5", str(trace), "-o", str(tmp_path / "out")]) == 0
    rest = (tmp_path / "out").read_bytes()
    assert rest[:4] == b"gem5"
    rest = rest[4:]
    read = []
    while rest:
        length, start = rest[0], 1
        assert length < 128  # messages are short, so their lengths are single bytes
        read.append(kinds["Packet" if read else "PacketHeader"].FromString(rest[start : start + length]))
        rest = rest[start + length :]
    header, *packets = read
    assert (header.obj_id, header.tick_freq) == ("tracekit", 10**12)
    with tracekit.open(trace) as opened:
        events = rows(opened.batches(["load", "store"]))
    known = [
        (
            4 if code == CODE["store"] else 1,
            start,
            min(address + size, start // 64 * 64 + 64) - start,
            0x400000 + 4 * op,
        )
        for _, code, op, address, size in events
        for start in (pieces(address, size, 64) if size else ())
    ]
    assert [(packet.cmd, packet.addr, packet.size, packet.pc) for packet in packets] == known
    assert [packet.tick for packet in packets] == [1000 * number for number in range(len(known))]
    assert not any(packet.HasField("flags") for packet in packets)


def test_misuse_and_failures(trace: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    assert main(["export", "dineroV", str(trace)]) == 2
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


@pytest.mark.parametrize("name", ["din", "gem5", "drmemtrace", "parquet"])
def test_a_window_without_accesses_is_told(
    name: str, trace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if name == "parquet":
        pytest.importorskip("pyarrow")
    out = tmp_path / "out"
    assert main(["export", name, str(trace), "--from", "90%", "--to", "10%", "-o", str(out)]) == 0
    assert capsys.readouterr().err == "tracekit: there was no access inside the window.\n"
    assert out.exists()
    assert main(["export", name, str(trace), "--from", "10%", "--to", "90%", "-o", str(out)]) == 0
    assert capsys.readouterr().err == ""


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


def test_of_a_trace_that_is_cut_off_there_is_what_it_holds(
    trace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cut = tmp_path / "cut.zst"
    cut.write_bytes(trace.read_bytes()[:-1])
    assert main(["export", "din", str(cut), "-o", str(tmp_path / "cut.din")]) == 0
    assert capsys.readouterr().err == f"tracekit: {CUT_OFF}\n"
    assert main(["export", "din", str(trace), "-o", str(tmp_path / "whole.din")]) == 0
    assert (tmp_path / "cut.din").read_bytes() == (tmp_path / "whole.din").read_bytes() != b""


def test_the_reader_of_the_output_goes_away(trace: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "tracekit", "export", "din", str(trace)], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait() in (0, 141)
