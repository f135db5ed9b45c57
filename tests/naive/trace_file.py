"""Writes traces made by hand: programs of the builder, records as lists."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tests.naive.program_builder import Layout
from tests.naive.random_program import RandomProgram
from tests.naive.walker import Walk
from tracekit.formats.chunk_codec import encode
from tracekit.formats.image_frame import build_image
from tracekit.formats.unit import Unit
from tracekit.formats.writer import TraceWriter
from tracekit.program.program import Program

Record = tuple[int, list[int]]


def write_trace(
    path: Path,
    layout: Layout,
    streams: Mapping[int, Sequence[Record]],
    totals: Mapping[str, Any] | None = None,
    done: bool = True,
    chunk: int = 50,
    cut: str = "",
) -> None:
    """A trace of one image; its end record has these totals, or the true ones, and says why the trace is `cut`."""
    from tracekit.replay.totals import Counter
    from tracekit.replay.totals import totals as true_totals

    image = layout.image()
    program = Program.from_images([image])
    counter = Counter(program)
    with TraceWriter(path) as writer:
        writer.meta({"command": ["./app"]})
        unit = Unit.build(image.units[0].tables)
        payload = build_image(0, image.first_path, image.span, image.name, [unit], image.functions, image.globals)
        writer.image(0, payload)
        for stream, records in streams.items():
            for first in range(0, len(records), chunk):
                part = records[first : first + chunk]
                ids = np.array([identity for identity, _ in part], np.uint32)
                words = np.array([word for _, given in part for word in given], np.uint64)
                if totals is None:
                    counter.add(ids, words)
                writer.chunk(stream, len(part), encode(ids, words, program.arity).build())
        if done:
            known = true_totals(program, counter) if totals is None else totals
            writer.done({"status": 0, "totals": known, **({"cut": cut} if cut else {})})


def write_walks(path: Path, streams: int = 3, seed: int = 3) -> dict[int, Walk]:
    """A trace of several threads of random walks through one program, and these."""
    rng = random.Random(seed)
    made = RandomProgram(rng)
    walks = {stream: Walk(made, rng, [], 2000, (stream + 1) << 40) for stream in range(streams)}
    for walk in walks.values():
        walk.run()
    write_trace(path, made.layout, {stream: walk.records() for stream, walk in walks.items()})
    return walks
