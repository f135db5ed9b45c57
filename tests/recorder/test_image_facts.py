"""The collector's totals, which it counts while it encodes, against those that a reader counts from the records."""

from __future__ import annotations

import random

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.naive.random_program import RandomProgram
from tests.naive.walker import Walk
from tracekit.formats.events import CODE, FIRST_PATH
from tracekit.formats.unit import Unit
from tracekit.recorder.collector import totals as collected
from tracekit.recorder.encoder import Encoder
from tracekit.recorder.image_facts import path_facts
from tracekit.recorder.registered import RegisteredImage
from tracekit.replay.totals import Counter
from tracekit.replay.totals import totals as counted

LOW = 0x5555_5555_4000


def registered(made: RandomProgram) -> RegisteredImage:
    """The program's image as a process would register it."""
    image = made.layout.image()
    unit = image.units[0].tables
    rows = np.zeros(len(image.functions), [(name, "<u4") for name in ("first", "unit", "function", "paths")])
    for name in ("first", "unit", "function"):
        rows[name] = image.functions[name]
    rows["paths"] = unit["functions"]["paths"][image.functions["function"]]
    return RegisteredImage(image.name, LOW, image.span, 0, rows, image.globals, [Unit.build(unit)])


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 2**32))
def test_recorder_and_reader_count_the_same(seed: int) -> None:
    rng = random.Random(seed)
    made = RandomProgram(rng)
    walk = Walk(made, rng, [])
    walk.run()
    records = [*walk.records(), (CODE["library_load"], [8, 4]), (CODE["dropped"], [])]
    image = registered(made)
    facts = path_facts(image, [Unit.parse(unit) for unit in image.units])
    encoder, counter = Encoder(limit=1 << 12, buffer_words=1 << 12), Counter(made.program)
    encoder.add_image(LOW, facts.words, 1, facts.run)
    for number, words in records:
        raw = [LOW + number - FIRST_PATH if number >= FIRST_PATH else number, *words]
        assert encoder.encode(np.array(raw, np.uint64), epoch=1) == len(raw)
        counter.add(np.array([number], np.uint32), np.array(words, np.uint64))
    assert collected([facts], encoder.counts(), encoder.iterations()) == counted(made.program, counter)
    accesses = sum(name in ("load", "store") for name, *_ in walk.events)
    silent = any(op["size"] == 0 or op["flags"] & 4 for op in made.b.ops if op["kind"] <= 6)
    assert silent or counted(made.program, counter)["accesses"] == 1 + accesses - library_accesses(walk)
    encoder.close()


def library_accesses(walk: Walk) -> int:
    """Accesses of heap_realloc, which is no path's and no library_load."""
    calls = {walk.row(op) for op in range(len(walk.b.ops)) if walk.b.ops[op]["kind"] == 7}
    library = sum(
        name.startswith("library_") and bool(words[1]) for name, words in walk.visits if isinstance(name, str)
    )
    empty = sum(name.startswith("library_") and not words[1] for name, words in walk.visits if isinstance(name, str))
    inside = sum(name in ("load", "store") and subject in calls for name, subject, *_ in walk.events)
    return inside - library - empty
