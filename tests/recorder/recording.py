"""Building programs with ``tracekit cc``, recording them, and reading back what their streams hold."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np

from tests import prepared
from tests.recorder.instrumented import toolchain
from tracekit.formats.chunk_codec import Decoder
from tracekit.formats.events import BY_CODE, FIRST_PATH, NONE, RECORDED
from tracekit.formats.reader import TraceReader

ROOT = Path(__file__).resolve().parents[2]
TRACEKIT = [sys.executable, "-m", "tracekit"]
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT)}
TIMEOUT = 60


class Recorded(NamedTuple):
    """A record of a stream: an event's or a function's name, and the words."""

    stream: int
    name: str
    words: list[int]


def build(folder: Path, source: str, *flags: str, name: str = "app", cxx: bool = False) -> Path:
    """Compile and link a program (or, with -shared, a library) from one source text."""
    file = folder / f"{name}.{'cpp' if cxx else 'c'}"
    file.write_text(source)
    toolchain()  # may have to be built, which takes longer than TIMEOUT where much else goes on
    run = prepared.run(
        [*TRACEKIT, "c++" if cxx else "cc", "-O1", str(file), "-o", str(folder / name), *flags],
        env=ENVIRONMENT,
        text=True,
        timeout=TIMEOUT,
    )
    assert run.returncode == 0, run.stderr
    return folder / name


def record(
    folder: Path,
    *command: object,
    options: tuple[str, ...] = (),
    stdin: str = "",
    environment: dict[str, str] | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run ``tracekit record``; the trace is ``folder/trace.zst`` unless the options name another."""
    return prepared.run(
        [*TRACEKIT, "record", *options, *map(str, command)],
        cwd=folder,
        input=stdin,
        text=True,
        env={**ENVIRONMENT, **(environment or {})},
        timeout=TIMEOUT,
    )


def read(trace: Path) -> list[Recorded]:
    """Every record, stream by stream."""
    with TraceReader(trace) as reader:
        names, arity = _paths(reader)
        found: list[Recorded] = []
        for stream in reader.streams():
            decoder = Decoder(arity)
            for frame in reader.chunk_frames(stream):
                decoder.start(reader.chunk(frame))
                while (batch := decoder.batch()) is not None:
                    ids, words = batch[0].tolist(), batch[1].tolist()
                    at = 0
                    for number in ids:
                        count = int(arity[number])
                        found.append(Recorded(stream, names[number], words[at : at + count]))
                        at += count
        return found


def events(trace: Path, *names: str) -> list[Recorded]:
    """The records of these events."""
    return [record for record in read(trace) if record.name in names]


def _paths(reader: TraceReader) -> tuple[dict[int, str], np.ndarray]:
    images = reader.images()
    arity = np.full(max([FIRST_PATH, *(image.first_path + image.span for image in images)]), NONE, np.uint32)
    names: dict[int, str] = {}
    for code in RECORDED:
        arity[code], names[code] = len(BY_CODE[code].words), BY_CODE[code].name
    for image in images:
        for row in image.functions:
            unit = image.units[int(row["unit"])]
            function = unit.tables["functions"][int(row["function"])]
            for path in range(int(function["paths"])):
                number = image.first_path + int(row["first"]) + path
                names[number] = unit.text(int(function["name"]))
                arity[number] = unit.tables["paths"][int(function["first_path"]) + path]["words"]
    return names, arity
