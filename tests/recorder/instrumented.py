"""Helpers for tests of the pass: compile C, read the units in an object file, run a program and read its records."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tracekit.formats.image import UNIT_MAGIC, OpFlag, OpKind
from tracekit.formats.unit import Unit
from tracekit.program.linker import STRINGS
from tracekit.recorder.toolchain import RUNTIME_SOURCES, find_clang, pass_plugin, runtime_file

HARNESS = Path(__file__).with_name("harness.c")
NO_ROW = 0xFFFF_FFFF


@cache
def toolchain() -> tuple[str, str]:
    """The clang to test with and the plugin for it; that and the runtime are built here if they have to be."""
    clang = find_clang()
    runtime_file("image_runtime.o", clang)
    return clang.path, pass_plugin(clang)


def clang(
    arguments: Sequence[object], *, instrument: bool = True, cxx: bool = False, options: str = "record=blocks"
) -> None:
    """Run the compiler, with the pass loaded unless told otherwise."""
    path, plugin = toolchain()
    command = [path, *(["--driver-mode=g++"] if cxx else []), "-w", *map(str, arguments)]
    if instrument:
        command.append(f"-fpass-plugin={plugin}")
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "TRACEKIT_PASS": options})
    assert done.returncode == 0, done.stderr


def units(path: Path) -> list[Unit]:
    """All units in an object file or executable, in file order."""
    data = path.read_bytes()
    found = []
    at = data.find(UNIT_MAGIC)
    while at >= 0:
        size = int.from_bytes(data[at + 16 : at + 24], "little")
        found.append(Unit.parse(data[at : at + size]))
        at = data.find(UNIT_MAGIC, at + size)
    return found


class Tables:
    """One unit with its strings resolved: rows are dicts, string fields are str."""

    def __init__(self, unit: Unit) -> None:
        self.unit = unit
        self._text = unit.tables["strings"]["byte"].tobytes()
        self._rows: dict[str, list[dict[str, Any]]] = {}

    def __getitem__(self, table: str) -> list[dict[str, Any]]:
        if table not in self._rows:
            self._rows[table] = [self._row(table, row) for row in self.unit.tables[table]]
        return self._rows[table]

    def _row(self, table: str, row: Any) -> dict[str, Any]:
        fields = {name: int(row[name]) for name in row.dtype.names}
        for name in STRINGS.get(table, ()):
            start = fields[name]
            fields[name] = self._text[start : self._text.index(b"\0", start)].decode()
        return fields

    def function(self, name: str) -> dict[str, Any]:
        return next(row for row in self["functions"] if row["name"] == name)

    def of(self, function: str, part: str) -> list[dict[str, Any]]:
        """The rows of a function in ``blocks``, ``ops``, ``loops`` or ``edges``."""
        row = self.function(function)
        first = row["first_" + part.removesuffix("s")]
        return self[part][first : first + row[part]]

    def calls_of(self, function: str) -> list[dict[str, Any]]:
        return [self["calls"][op["base"]] for op in self.of(function, "ops") if op["kind"] == OpKind.CALL]

    def line(self, location: int) -> int:
        return 0 if location == NO_ROW else self["locations"][location]["line"]


def compile_unit(
    tmp_path: Path, source: str, *flags: str, suffix: str = ".c", options: str = "record=blocks"
) -> Tables:
    """The unit of a snippet; the snippet's first line is line 1."""
    file = tmp_path / ("snippet" + suffix)
    file.write_text(source)
    clang([*flags, "-g", "-c", file, "-o", tmp_path / "snippet.o"], cxx=suffix == ".cpp", options=options)
    (unit,) = units(tmp_path / "snippet.o")
    return Tables(unit)


class Record(NamedTuple):
    """One block that ran."""

    tables: Tables
    function: dict[str, Any]
    block: int  # row of `blocks`
    words: tuple[int, ...]


class Access(NamedTuple):
    """One operation that ran, other than a call."""

    kind: OpKind
    address: int
    size: int
    line: int
    function: str


@dataclass
class Run:
    """What a program printed and recorded."""

    output: str
    status: int
    records: list[Record]
    globals: dict[str, int]  # name -> address

    def accesses(self, *kinds: OpKind) -> list[Access]:
        """The operations of these kinds in the order in which they ran."""
        return [access for record in self.records for access in _accesses(record) if access.kind in kinds]


def _accesses(record: Record) -> Iterator[Access]:
    block = record.tables["blocks"][record.block]
    words = iter(record.words)
    for op in record.tables["ops"][block["first_op"] : block["first_op"] + block["ops"]]:
        if op["kind"] == OpKind.CALL:
            continue
        address = next(words)
        size = next(words) if op["flags"] & OpFlag.DYNAMIC_SIZE else op["size"]
        yield Access(OpKind(op["kind"]), address, size, record.tables.line(op["location"]), record.function["name"])
    assert next(words, None) is None, "a record has more words than its operations"


class _Dump:
    """Reads what harness.c wrote."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def number(self) -> int:
        self._at += 8
        return int.from_bytes(self._data[self._at - 8 : self._at], "little")

    def rows(self, columns: int) -> list[tuple[int, ...]]:
        return [tuple(self.number() for _ in range(columns)) for _ in range(self.number())]

    def units(self) -> Iterator[tuple[int, Unit]]:
        while address := self.number():
            size = self.number()
            self._at += size
            yield address, Unit.parse(self._data[self._at - size : self._at])

    def rest(self) -> list[int]:
        return np.frombuffer(self._data, "<u8", offset=self._at).tolist()


def _read(dump: _Dump) -> tuple[list[Record], dict[str, int]]:
    functions, global_rows = dump.rows(4), dump.rows(3)
    tables = {address: Tables(unit) for address, unit in dump.units()}
    by_id = {}
    for ids, unit, function, paths in functions:
        row = tables[unit]["functions"][function]
        assert row["paths"] == paths
        for k in range(paths):
            path = tables[unit]["paths"][row["first_path"] + k]
            by_id[ids + k] = (tables[unit], row, tables[unit]["path_blocks"][path["first"]]["block"], path["words"])
    records = []
    stream = dump.rest()
    at = 0
    while at < len(stream):
        table, row, block, arity = by_id[stream[at]]
        records.append(Record(table, row, block, tuple(stream[at + 1 : at + 1 + arity])))
        at += 1 + arity
    assert at == len(stream)
    addresses = {tables[unit]["globals"][row]["name"]: address for address, unit, row in global_rows}
    return records, addresses


def build(tmp_path: Path, sources: Sequence[Path], *flags: str, options: str = "record=blocks") -> Path:
    """An instrumented program, with the harness for a runtime."""
    cxx = any(source.suffix == ".cpp" for source in sources)
    harness = tmp_path / "harness.o"
    clang(["-O1", "-I", RUNTIME_SOURCES, "-c", HARNESS, "-o", harness], instrument=False)
    program = tmp_path / "program"
    clang([*flags, "-g", *sources, harness, "-o", program, "-lm"], cxx=cxx, options=options)
    return program


def run(program: Path, *arguments: str) -> Run:
    dump = program.with_name("dump")
    dump.unlink(missing_ok=True)
    done = subprocess.run(
        [program, *arguments], capture_output=True, text=True, timeout=60, env={**os.environ, "TK_DUMP": str(dump)}
    )
    records, addresses = _read(_Dump(dump.read_bytes())) if dump.exists() else ([], {})
    return Run(done.stdout, done.returncode, records, addresses)


def build_and_run(tmp_path: Path, source: str, *flags: str, suffix: str = ".c", options: str = "record=blocks") -> Run:
    file = tmp_path / ("program" + suffix)
    file.write_text(source)
    return run(build(tmp_path, [file], *flags, options=options))
