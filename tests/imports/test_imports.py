"""Imported traces against their files read line by line, and against what wrote them."""

from __future__ import annotations

import gzip
import lzma
import re
import struct
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

import tracekit
from tests.commands.test_merge import record
from tests.naive import imports as naive
from tests.naive import reader
from tests.needs import needs
from tracekit.cli import main
from tracekit.formats.errors import TracekitError
from tracekit.formats.events import CODE
from tracekit.imports import binaries, champsim, importing, lackey, modules, trace_builder
from tracekit.imports.files import pieces

ADDRESS = st.one_of(st.integers(1, 300), st.integers(0, 2**64 - 1).map(lambda address: address or 1))
SIZE = st.one_of(st.sampled_from([1, 4, 8, 64, 65]), st.integers(1, 10**18))
COUNTER = st.one_of(st.integers(0, 40), st.integers(0, 2**64 - 1))


def accesses(path: Path) -> list[naive.Access]:
    """The accesses of an imported trace as those of tests.naive.imports."""
    with tracekit.open(path) as trace:
        counter = {int(row["op"]): int(row["counter"]) for row in trace.tables["counters"]}
        return [
            (kind, counter.get(instruction), address, size)
            for batch in trace.batches(["load", "store"], ["subject", "address", "size"])
            for kind, instruction, address, size in zip(
                batch.kind.tolist(), batch.subject.tolist(), batch.address.tolist(), batch.size.tolist()
            )
        ]


def imported(folder: Path, form: str, data: bytes, **options: Any) -> list[naive.Access]:
    """Those of a trace made of `data`, which has to pass every check."""
    (folder / "in").write_bytes(data)
    importing.import_trace(form, str(folder / "in"), folder / "out.zst", **options)
    assert main(["check", str(folder / "out.zst")]) == 0
    return accesses(folder / "out.zst")


LINE = st.one_of(
    st.builds("I  {:08x},{}".format, COUNTER, st.integers(1, 15)),
    st.builds(" {} {:08x},{}".format, st.sampled_from("LSM"), ADDRESS, SIZE),
    st.sampled_from(["==12== Command: ls", "--12-- warning", "### unhandled dwarf2 abbrev form code 0x25", ""]),
)


@given(st.lists(LINE, max_size=40), st.integers(1, 60), st.integers(6, 20))
def test_random_lines_in_random_pieces(
    tmp_path_factory: pytest.TempPathFactory, lines: list[str], piece: int, chunk: int
) -> None:
    text = "".join(line + "\n" for line in lines)
    data = text.encode()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(trace_builder, "CHUNK", chunk)
        patched.setattr("tracekit.imports.files.BLOCK", piece)
        assert imported(tmp_path_factory.mktemp("lackey"), "lackey", data) == list(naive.lackey(text))


INSTRUCTION = st.builds(
    lambda ip, branch, taken, memory: struct.pack("<QBB6x6Q", ip, branch, taken, *memory),
    COUNTER,
    st.integers(0, 1),
    st.integers(0, 1),
    st.lists(st.one_of(st.just(0), ADDRESS), min_size=6, max_size=6),
)


@given(st.lists(INSTRUCTION, max_size=30), st.integers(1, 200), st.integers(6, 20), st.integers(1, 64))
def test_random_instructions_in_random_pieces(
    tmp_path_factory: pytest.TempPathFactory, instructions: list[bytes], piece: int, chunk: int, size: int
) -> None:
    data = b"".join(instructions)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(trace_builder, "CHUNK", chunk)
        patched.setattr("tracekit.imports.files.BLOCK", piece)
        found = imported(tmp_path_factory.mktemp("champsim"), "champsim", data, size=size)
    assert found == list(naive.champsim(data, size))


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What lackey says of a program that loads, stores and updates."""
    folder = tmp_path_factory.mktemp("valgrind")
    (folder / "app.c").write_text(PROGRAM)
    subprocess.run(["cc", "-g", "-O1", "-no-pie", "-fno-inline", "app.c", "-o", "app"], cwd=folder, check=True)
    command = ["valgrind", "--tool=lackey", "--trace-mem=yes", "--basic-counts=yes", "--log-file=log", "./app"]
    subprocess.run(command, cwd=folder, check=True)
    return folder / "log"


PROGRAM = """\
#include <stdio.h>
volatile int numbers[1000], total;
void fill(void)
{
    for (int i = 0; i < 1000; i++)
        numbers[i] = i;
}
void add(void)
{
    for (int i = 0; i < 1000; i++)
        total += numbers[i];
}
int main(void)
{
    for (int i = 0; i < 5; i++)
        fill(), add();
    return total == 1;
}
"""


@needs("valgrind")
def test_the_counts_are_valgrinds(log: Path, tmp_path: Path) -> None:
    pytest.importorskip("elftools")
    text = log.read_text()
    out = tmp_path / "out.zst"
    assert main(["import", "lackey", str(log), "-o", str(out), "--binary", str(log.parent / "app")]) == 0
    known = Counter(line[1] for line in text.splitlines() if re.match(r" [LSM] ", line))
    found = accesses(out)
    assert len(found) == known["L"] + known["S"] + 2 * known["M"] > 15000
    assert found == list(naive.lackey(text))
    with tracekit.open(out) as trace:
        executed = re.search(r"guest instrs:\s+([\d,]+)", text)
        assert executed is not None
        assert trace.metadata["imported"] == {
            "format": "lackey",
            "instructions": int(executed[1].replace(",", "")),
        }
        functions = Counter(
            trace.program.instruction(int(op))["function"]
            for batch in trace.batches(["store"], ["subject"])
            for op in batch.subject
        )
    assert functions["fill"] == functions["add"] == 5000


@needs("valgrind")
def test_lines_of_the_source(log: Path, tmp_path: Path) -> None:
    pytest.importorskip("elftools")
    out = tmp_path / "out.zst"
    importing.import_trace("lackey", str(log), out, [(str(log.parent / "app"), 0)])
    rows = tracekit.analyze(out, "dependence", counts=True).result["dependences"]
    top = max(rows, key=lambda row: row["count"] if row["source"]["function"] == "fill" else 0)
    assert (top["count"], top["source"]["line"], top["destination"]["line"]) == (5000, 6, 11)
    assert top["source"]["file"] == str(log.parent / "app.c")
    assert top["destination"]["function"] == "add"


@needs("valgrind")
@pytest.mark.parametrize("form", ["lackey", "champsim"])
def test_there_and_back(form: str, log: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.zst"
    importing.import_trace("lackey", str(log), out)
    first, second = (tmp_path / name for name in ("first", "second"))
    for target in (first, second):
        assert main(["export", form, str(out), "-o", str(target)]) == 0
        importing.import_trace(form, str(target), out)
    assert first.read_bytes() == second.read_bytes()
    assert first.stat().st_size > 100000
    if form == "champsim":
        assert {access[1] for access in accesses(out)} == {access[1] for access in naive.lackey(log.read_text())}


COMPRESSED: dict[str, Callable[[bytes], bytes]] = {
    "gz": gzip.compress,
    "xz": lzma.compress,
    "zst": zstandard.ZstdCompressor(write_content_size=False).compress,
}

if find_spec("lz4"):
    COMPRESSED["lz4"] = partial(import_module("lz4.frame").compress, content_checksum=True)


@pytest.mark.parametrize("form", sorted(COMPRESSED))
def test_compressed_files(form: str, tmp_path: Path) -> None:
    data = "".join(f" L {8 * place * place % 99991:08x},8\n" for place in range(50000)).encode()
    compressed = COMPRESSED[form](data)
    two = COMPRESSED[form](data[:1000]) + COMPRESSED[form](data[1000:])
    for given_bytes in (compressed, two):
        (tmp_path / "in").write_bytes(given_bytes)
        with (tmp_path / "in").open("rb") as file:
            assert b"".join(pieces(file, "in")) == data
    for cut in (7, len(compressed) // 2, len(compressed) - 1):
        (tmp_path / "in").write_bytes(compressed[:cut])
        with (tmp_path / "in").open("rb") as file, pytest.raises(TracekitError, match=r"^in ends too early, after"):
            list(pieces(file, "in"))
    wrong = bytearray(compressed)
    wrong[len(wrong) // 2] ^= 255
    wrong[len(wrong) // 2 + 7] ^= 255
    (tmp_path / "in").write_bytes(wrong)
    with (tmp_path / "in").open("rb") as file:
        try:
            assert b"".join(pieces(file, "in")) != data
        except TracekitError as error:
            message = str(error)
        else:
            message = "in is damaged" if form == "zst" else ""  # frames of this one have no checksum
    assert message.startswith(("in is damaged", "in ends too early"))


WRONG: list[tuple[str, bytes, str]] = [
    ("lackey", b" L 10,8\nhello\n", "Line 2 of {file} is none of lackey's: 'hello'."),
    ("lackey", b"\n L 10,0\n", "Line 2 of {file} is none of lackey's: ' L 10,0'."),
    ("lackey", b" L 10,8\n L 1", "{file} ends too early, inside line 2."),
    ("lackey", b" L 12345678123456781,8\n", "Line 1 of {file} is none of lackey's: ' L 12345678123456781,8'."),
    ("lackey", b" L 10,12345678901234567890\n", "Line 1 of {file} is none of lackey's: ' L 10,12345678901234567890'."),
    ("lackey", b" X 10,8\n", "Line 1 of {file} is none of lackey's: ' X 10,8'."),
    ("lackey", b"I 10,8\n", "Line 1 of {file} is none of lackey's: 'I 10,8'."),
    ("lackey", b"\xff\xfe\n", r"Line 1 of {file} is none of lackey's: '\\xff\\xfe'."),
    ("lackey", b" \n", "Line 1 of {file} is none of lackey's: ' '."),
    ("champsim", bytes(64) + bytes(63), "{file} ends too early, at byte 127, inside an instruction."),
    (
        "champsim",
        bytes(64) + bytes([0] * 8 + [2] + [0] * 55),
        "{file} is no trace of ChampSim's, or damaged: at byte 64 there is no instruction.",
    ),
]


@pytest.mark.parametrize("form, data, message", WRONG)
def test_what_is_damaged(
    form: str, data: bytes, message: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "in"
    file.write_bytes(data)
    assert main(["import", form, str(file), "-o", str(tmp_path / "out.zst")]) == 1
    assert capfd.readouterr().err == f"tracekit: {message.format(file=file)}\n"
    assert list(tmp_path.iterdir()) == [file]


@given(st.binary(max_size=300), st.sampled_from(["lackey", "champsim"]))
def test_any_bytes(tmp_path_factory: pytest.TempPathFactory, data: bytes, form: str) -> None:
    folder = tmp_path_factory.mktemp("bytes")
    try:
        imported(folder, form, data)
    except TracekitError as error:
        message = str(error)
    else:
        return
    assert message.endswith(".")
    assert not (folder / "out.zst").exists()


def test_a_line_without_an_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lackey, "LONGEST", 1000)
    with (
        trace_builder.TraceBuilder() as begun,
        pytest.raises(TracekitError, match=r"^Line 2 of x is none of lackey's: 'aaaa"),
    ):
        lackey.read(iter([b"\n", *[b"a" * 600] * 5]), begun, "x")


def test_too_many_instructions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trace_builder, "MOST_INSTRUCTIONS", 100)
    text = "".join(f"I  {place:08x},1\n L 10,1\n" for place in range(1000))
    with pytest.raises(TracekitError, match="more than 100 different instructions and sizes"):
        imported(tmp_path, "lackey", text.encode())


def test_misuse(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    file, out = tmp_path / "in", str(tmp_path / "out.zst")
    file.write_bytes(b"")
    assert main(["import", "gem5", str(file), "-o", out]) == 2
    assert main(["import", "lackey", str(file)]) == 2
    assert main(["import", "lackey", str(file), "-o", out, "--access-bytes", "4"]) == 2
    assert main(["import", "lackey", str(file), "-o", out, "--binary", "app@xyz"]) == 2
    capfd.readouterr()
    assert main(["import", "lackey", str(tmp_path / "none"), "-o", out]) == 1
    assert capfd.readouterr().err == f"tracekit: Cannot read {tmp_path / 'none'}: No such file or directory.\n"
    assert main(["import", "lackey", str(file), "-o", str(tmp_path / "no" / "out")]) == 1
    assert capfd.readouterr().err == f"tracekit: Cannot write into {tmp_path / 'no'}: No such file or directory.\n"
    assert list(tmp_path.iterdir()) == [file]


def test_a_recording_is_kept(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    log, recorded, imported = tmp_path / "log", tmp_path / "recorded.zst", tmp_path / "imported.zst"
    log.write_text(" L 1000,8\n")
    record(recorded, [(4096, 8192)])
    kept = recorded.read_bytes()
    assert main(["import", "lackey", str(log), "-o", str(recorded)]) == 1
    assert "is the trace of a run: give the import another name" in capfd.readouterr().err
    assert recorded.read_bytes() == kept
    for _ in range(2):
        assert main(["import", "lackey", str(log), "-o", str(imported)]) == 0


def test_files_that_are_no_binaries(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("elftools")
    file, out = tmp_path / "in", str(tmp_path / "out.zst")
    for data in (b"", b"\x7fELF\x02\x01\x01" + bytes(57), b"\x7fELF" + bytes(range(200))):
        file.write_bytes(data)
        assert main(["import", "lackey", "/dev/null", "-o", out, "--binary", str(file)]) == 1
        message = capfd.readouterr().err
        assert message.startswith((f"tracekit: {file} is no ELF file whose symbols", f"tracekit: {file} holds no code"))
        assert message.count("\n") == 1
    assert main(["import", "lackey", "/dev/null", "-o", out, "--binary", str(tmp_path / "none")]) == 1
    assert capfd.readouterr().err == f"tracekit: Cannot read {tmp_path / 'none'}: No such file or directory.\n"
    assert list(tmp_path.iterdir()) == [file]


def test_without_pyelftools(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "elftools", None)
    with pytest.raises(
        TracekitError, match=r"needs pyelftools, which is not installed: pip install 'tracekit\[symbols\]'"
    ):
        binaries.load(sys.executable, 0)


SOME = b"I  00401000,4\n L 10,8\n S 20,8\nI  00401004,4\n M 20,8\n"
RUN = ["accesses", "bandwidth", "cache", "dependence", "footprint", "heatmap", "reuse", "tlb"]


@pytest.mark.parametrize("module", RUN)
def test_modules_that_run(module: str, tmp_path: Path) -> None:
    assert len(imported(tmp_path, "lackey", SOME)) == 4
    assert tracekit.analyze(tmp_path / "out.zst", module).result


def test_modules_that_do_not_run(tmp_path: Path) -> None:
    from tracekit.modules import registry

    imported(tmp_path, "lackey", SOME)
    message = (
        r"needs more than loads and stores( with these options)?; a trace imported from lackey has nothing else\.$"
    )
    refused: Sequence[str] = [name for name in registry.names() if name not in RUN]
    for name in refused:
        with pytest.raises(TracekitError, match=f"{message}|^The trace is imported: it holds no values"):
            tracekit.analyze(tmp_path / "out.zst", name)
    assert {"advise", "camp", "lamp", "histobin", "value_pattern", "perspective", "points_to"} <= set(refused)
    with pytest.raises(TracekitError, match="stores with these options; a trace"):
        tracekit.analyze(tmp_path / "out.zst", "dependence", distance=True)


def test_how_instructions_are_shown(tmp_path: Path) -> None:
    imported(tmp_path, "lackey", b" L 10,8\n" + SOME)
    rows = tracekit.analyze(tmp_path / "out.zst", "accesses").result["instructions"]
    shown = {(row["instruction"]["file"], row["instruction"]["kind"]) for row in rows}
    assert shown == {
        ("no program counter", "load"),
        ("0x401000", "load"),
        ("0x401000", "store"),
        ("0x401004", "load"),
        ("0x401004", "store"),
    }


@needs("valgrind")
def test_views_of_it(log: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("elftools")
    out, page = tmp_path / "out.zst", tmp_path / "out.html"
    importing.import_trace("lackey", str(log), out, [(str(log.parent / "app"), None)])
    assert main(["annotate", str(out), "app.c"]) == 0
    line = next(line for line in capfd.readouterr().out.splitlines() if "numbers[i] = i;" in line)
    assert line.split()[0] == "5,000"
    assert main(["annotate", str(out)]) == 0
    assert "(no debug information)" in capfd.readouterr().out
    assert main(["report", str(out), "-o", str(page)]) == 0
    assert "numbers[i] = i;" in page.read_text()
    capfd.readouterr()
    assert main(["advise", str(out)]) == 1
    assert capfd.readouterr().err.startswith("tracekit: The module advise needs more than loads and stores;")


def test_two_readers_agree(tmp_path: Path) -> None:
    found = imported(tmp_path, "lackey", SOME)
    read = reader.read((tmp_path / "out.zst").read_bytes())
    assert read.meta["imported"] == {"format": "lackey", "instructions": 2}
    counter = {row["op"]: row["counter"] for row in read.tables["counters"]}
    first, *others = read.events()
    assert first[:2] == (0, "function_entry")
    assert found == [(CODE[name], counter.get(op), address, size) for _, name, op, address, size in others]


def test_places_in_binaries() -> None:
    binary = binaries.Binary(
        "lib.so",
        0x10000,
        [(0x100, 0x400)],
        [0x100, 0x200, 0x300],
        [(0x50, "first"), (0, "second"), (0x10, "third")],
        [0x200, 0x220, 0x230],
        [("a.c", 3, 7), None, ("a.c", 9, 1)],  # type: ignore[list-item]
    )
    known = binaries.Binaries([binary])
    place = binaries.Place
    assert known.place(0x10000) == place()
    assert known.place(0x10100) == place("first", binary="lib.so")
    assert known.place(0x10150) == place("[lib.so]", binary="lib.so")
    assert known.place(0x1021F) == place("second", "a.c", 3, 7, "lib.so")
    assert known.place(0x10225) == place("second", binary="lib.so")
    assert known.place(0x10320) == place("[lib.so]", "a.c", 9, 1, "lib.so")
    assert known.place(0x10400) == place()


def test_champsim_in_pieces_of_any_size() -> None:
    data = struct.pack("<Q8x6Q", 1, 2, 0, 3, 0, 0, 0) * 10
    with trace_builder.TraceBuilder() as begun:
        assert champsim.read((data[at : at + 7] for at in range(0, len(data), 7)), begun, "x") == {
            "instructions": 10,
            "access_bytes": 1,
        }


MODULES = """\
Module Table: version 5, count 4
Columns: id, containing_id, start, end, entry, offset, preferred_base, (custom fields), path
  0,   0, 0x00007f0000000000, 0x00007f0000001000, 0x00, 0000000000000000, 0x0000000000000000, v#1,0, /bogus/app
  1,   0, 0x00007f0000001000, 0x00007f0000002000, 0x00, 0000000000001000, 0x0000000000001000, v#1,0, /bogus/app
  2,   2, 0x00007f0000401000, 0x00007f0000402000, 0x00, 0000000000000000, 0x0000000000000000, /usr/lib/libc.so.6
  3,   3, 0x00007ffd00000000, 0x00007ffd00001000, 0x00, 0000000000000000, 0x0000000000000000, v#1,4096,\x7fELF\x02\x01
\x05\x07, /bogus/[vdso]
"""
MAPS = """\
7f0000000000-7f0000001000 r--p 00000000 08:01 1234                       /bogus/app
7f0000001000-7f0000002000 r-xp 00001000 08:01 1234                       /bogus/app
7f0000300000-7f0000400000 rw-p 00000000 00:00 0
7f0000401000-7f0000402000 r-xp 00000000 08:01 1235                       /usr/lib/libc.so.6
7ffd5e1d5000-7ffd5e1f6000 rw-p 00000000 00:00 0                          [stack]
"""


@pytest.mark.parametrize("text", [MODULES, MAPS])
def test_lists_of_modules(text: str, tmp_path: Path) -> None:
    (tmp_path / "list").write_text(text)
    first, second, *others = modules.read(str(tmp_path / "list"))
    assert others == ([] if text == MAPS else [("vdso", [(0x7FFD00000000, 0x7FFD00001000)])])
    assert first == ("/bogus/app", [(0x7F0000000000, 0x7F0000001000), (0x7F0000001000, 0x7F0000002000)])
    assert second == ("/usr/lib/libc.so.6", [(0x7F0000401000, 0x7F0000402000)])
    known = binaries.known([], str(tmp_path / "list"))
    assert known.place(0x7F0000001234) == binaries.Place("[app]", binary="app")
    assert known.place(0x7F0000401000) == binaries.Place("[libc.so.6]", binary="libc.so.6")
    assert known.place(0x7F0000400FFF) == binaries.Place()


def test_lists_that_are_none(tmp_path: Path) -> None:
    for text in ("", "hello\n", "Module Table: version 5, count 0\n"):
        (tmp_path / "list").write_text(text)
        with pytest.raises(TracekitError, match="is no list of modules"):
            modules.read(str(tmp_path / "list"))


@given(st.binary(max_size=300), st.integers(0, 2**64 - 1))
def test_damaged_binaries(tmp_path_factory: pytest.TempPathFactory, noise: bytes, place: int) -> None:
    pytest.importorskip("elftools")
    whole = Path("/bin/true").read_bytes()
    at = place % len(whole)
    damaged = tmp_path_factory.mktemp("elf") / "app"
    damaged.write_bytes(whole[:at] + noise + whole[at + len(noise) :])
    try:
        binaries.load(str(damaged), 0).place(at)
    except TracekitError as error:
        message = str(error)
    else:
        return
    assert message.endswith(".")


def test_a_binary_where_the_list_says(tmp_path: Path) -> None:
    pytest.importorskip("elftools")
    (tmp_path / "app.c").write_text(PROGRAM)
    for option, first in (("-pie", 0x7F0000000000), ("-no-pie", 0x400000)):
        subprocess.run(["cc", "-g", option, "app.c", "-o", "app"], cwd=tmp_path, check=True)
        (tmp_path / "list").write_text(MAPS.replace("7f000000", f"{first >> 16:x}"))
        found = subprocess.run(["nm", "app"], cwd=tmp_path, check=True, capture_output=True, text=True).stdout
        own = int(next(line.split()[0] for line in found.splitlines() if line.endswith(" T add")), 16)
        known = binaries.known([(str(tmp_path / "app"), None)], str(tmp_path / "list"))
        place = known.place(own + (first if option == "-pie" else 0))
        assert place == ("add", str(tmp_path / "app.c"), 9, 1, "app")
    with pytest.raises(TracekitError, match=r"list lists no cat: say where it was, /bin/cat@BASE\.$"):
        binaries.known([("/bin/cat", None)], str(tmp_path / "list"))
