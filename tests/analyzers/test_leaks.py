"""How blocks that were never freed are reached: against references, and beside memcheck."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tracekit
from tests.naive.leaks import Memory, reaches
from tests.needs import needs
from tests.programs.running import FIXTURES, compile_program, record
from tracekit.containers import shadow
from tracekit.jit.kernel import kernel
from tracekit.memory_errors.kernels import contents
from tracekit.memory_errors.reachability import REACHES, reached

FOLDER = FIXTURES / "reached"
BASE = 0x7000_0000_0000 - 64


@kernel
def _feed(made: Any, row: Any, address: Any, size: Any, value: Any) -> None:
    contents.stored(made, row, address, size, value, 0)


@kernel
def _loaded(made: Any, row: Any, address: Any, size: Any) -> None:
    contents.loaded(made, row, address, size, 0)


@settings(deadline=None, max_examples=300)
@given(seed=st.integers(0, 2**32))
def test_reached_is_its_reference(seed: int) -> None:
    random = Random(seed)
    blocks, at = [], 0x1000
    for _ in range(random.randint(0, 9)):
        size = random.choice((0, 1, 8, 24, 40))
        blocks.append((at, at + size))
        at += size + random.choice((8, 16))
    words = {}
    for start, end in [*blocks, (0x8000, 0x8000 + 24)]:
        for address in range(start, end - 7, 8):
            if random.random() < 0.5:
                words[address] = random.choice(
                    [1, 2, 2**64 - 1, *(start + random.choice((0, 0, 0, 8, 8, 3)) for start, _ in blocks)]
                )
    libraries = [random.random() < 0.15 for _ in blocks]
    addresses = sorted(words)
    found = reached(
        np.array([start for start, _ in blocks], np.int64),
        np.array([end for _, end in blocks], np.int64),
        np.array(libraries, np.bool_),
        np.array(addresses, np.int64),
        np.array([words[address] for address in addresses], np.uint64),
    )
    assert [REACHES[how] for how in found] == reaches(blocks, libraries, words)


@settings(deadline=None, max_examples=150)
@given(seed=st.integers(0, 2**32))
def test_contents_are_their_reference(seed: int) -> None:
    """Stores, copies, and ends of objects, of any size and at any place; whatever follows from bytes that are hidden
    stays hidden until whole words are written."""
    random, memory = Random(seed), Memory()
    made = contents.Contents(shadow.empty("u8"), np.arange(5, dtype=np.uint8), np.zeros((1, 3), np.int64))
    for _ in range(random.randint(1, 60)):
        address, size = BASE + random.randrange(128), random.choice((1, 2, 4, 8, 8, 8, 16, 30, 64))
        kind = random.choice((contents.NOTHING, contents.VALUE, contents.VALUE, contents.COPY, contents.ORDER, 7))
        if kind == contents.VALUE:
            size = min(size, 8)
            value = random.getrandbits(8 * size)
            _feed(made, kind, address, size, value - (value >> 63 << 64))
            memory.put(address, list(value.to_bytes(size, "little")))
        elif kind == contents.COPY:
            source = BASE + random.randrange(128)
            _loaded(made, kind, source, size)
            _feed(made, kind, address, size, 0)
            memory.put(address, memory.get(source, size))
        elif kind != contents.ORDER:
            _feed(made, contents.NOTHING, address, size, 0)
            memory.put(address, [0] * size)
    numbers, values = shadow.words(made.words)
    assert dict(zip((numbers << 3).tolist(), values.tolist())) == memory.words()


def test_what_is_not_known_of_a_store_is_hidden() -> None:
    made = contents.Contents(shadow.empty("u8"), np.arange(5, dtype=np.uint8), np.zeros((1, 3), np.int64))
    _feed(made, contents.VALUE, 0x1000, 16, 5)  # a vector: the first eight bytes are known
    _feed(made, contents.UNKNOWN, 0x1014, 4, 0)
    _feed(made, contents.VALUE, 0x1011, 1, 7)  # a part of a word says nothing of the rest
    _loaded(made, contents.COPY, 0x1000, 16)
    _feed(made, contents.COPY, 0x2000, 16, 0)
    _feed(made, contents.COPY, 0x3000, 8, 0)  # nothing was loaded
    _feed(made, contents.VALUE, 0x1008, 8, 9)
    numbers, values = shadow.words(made.words)
    hidden = int(contents.HIDDEN)
    assert dict(zip((numbers << 3).tolist(), values.tolist())) == {
        0x1000: 5,
        0x1008: 9,
        0x1010: hidden,
        0x2000: 5,
        0x2008: hidden,
        0x3000: hidden,
    }


# -- programs --------------------------------------------------------------------------------------

SOURCES = sorted(path for path in FOLDER.iterdir() if path.suffix in (".c", ".cpp"))


def found_in(source: Path, folder: Path, level: str) -> set[tuple[int, str, int]]:
    """Line, how it is reached, blocks; of what the program allocated."""
    program = compile_program([source], folder / "app", ["-g", level, "--values"], instrumented=True)
    result = tracekit.analyze(record(program).trace, "memory_errors", 1).result
    assert result["errors"] == []
    rows = [row for row in result["leaks"] if row["allocated_by"] == "program"]
    assert not any(row["unsure"] for row in rows)
    return by_line((row["object"]["site"]["line"], row["reach"], row["blocks"]) for row in rows)


def by_line(rows: Any) -> set[tuple[int, str, int]]:
    counts: dict[tuple[int, str], int] = {}
    for line, reach, blocks in rows:
        counts[line, reach] = counts.get((line, reach), 0) + blocks
    return {(line, reach, blocks) for (line, reach), blocks in counts.items()}


def said(source: Path) -> set[tuple[int, str, int]]:
    lines = enumerate(source.read_text().splitlines(), 1)
    return {
        (number, kind, int(blocks))
        for number, line in lines
        for kind, blocks in re.findall(r"([a-z]+_[a-z]+) (\d)", line)
    }


@pytest.mark.parametrize("level", ["-O0", "-O1"])
@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.name)
def test_how_the_blocks_of_each_line_are_reached(source: Path, level: str, tmp_path: Path) -> None:
    assert found_in(source, tmp_path, level) == said(source)


@needs("valgrind")
@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.name)
def test_memcheck_says_the_same(source: Path, tmp_path: Path) -> None:
    program = compile_program([source], tmp_path / "plain", ["-gdwarf-4", "-O0"], instrumented=False)
    log = tmp_path / "memcheck.txt"
    flags = ["--leak-check=full", "--show-leak-kinds=all", f"--log-file={log}"]
    subprocess.run(["valgrind", *flags, program], check=True, capture_output=True)
    rows = []
    for record_of in re.split(r"\n==\d+== \n", log.read_text()):
        head = re.search(r"in ([\d,]+) blocks are ([a-z ]+) in loss record", record_of)
        place = re.search(rf"\({re.escape(source.name)}:(\d+)\)", record_of)
        if head and place:
            rows.append((int(place.group(1)), head.group(2).replace(" ", "_"), int(head.group(1))))
    assert by_line(rows) == said(source)
