"""Damaged traces with valid checksums, replayed by compiled paths that check their bounds, and by the kernels."""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Iterator

import numpy as np
import pytest

from tests.formats.test_hostile import parts, wrap
from tests.formats.traces import arities, payload_of
from tests.naive.random_program import RandomProgram
from tests.naive.random_trace import runs_of
from tests.naive.walker import Walk
from tests.replay.mutations import mutated, outcome, verdict
from tracekit.formats.chunk_codec import encode
from tracekit.replay.compiled import compiler
from tracekit.replay.compiled.bounds import OutsideTableError
from tracekit.replay.compiled.cost_model import SETTING
from tracekit.replay.compiled.path_code import PathCode


@pytest.fixture(autouse=True, scope="module")
def _always() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(SETTING, "always")
        yield


def test_mutations_come_to_the_same_with_compiled_paths() -> None:
    came = Counter[str]()
    for seed in range(60):
        records, text = verdict(seed)
        assert ": the same " in text, seed
        came["records"] += records
        came[text.split(": ")[1]] += 1
    assert came["the same error"] > 10
    assert came["the same events, some by compiled paths"] > 10
    assert came["records"] > 500


def test_a_mutation_is_the_same_each_time() -> None:
    assert mutated(7) == mutated(7)
    assert len({mutated(seed)[0] for seed in range(20)}) == 20


def test_runs_that_claim_any_number_of_iterations_pause() -> None:
    """So that a replay can be ended in the middle of one, here by a log that is full."""
    found = 0
    for seed in range(40):
        rng = random.Random(seed)
        made = RandomProgram(rng)
        walk = Walk(made, rng, [], budget=60)
        walk.run()
        records, runs = walk.records(), runs_of(made)
        longer = [(number, [(1 << 22, 1 << 40)[seed % 2]] if number in runs else words) for number, words in records]
        if longer == records:
            continue
        found += 1
        image = made.layout.image()
        words = np.array([word for _, values in longer for word in values], np.uint64)
        chunk = encode(np.array([number for number, _ in longer], np.uint32), words, arities([image])).build()
        data = wrap([payload_of(image)], [(0, len(longer), chunk)])
        with_paths = outcome(data, True)
        assert len(with_paths.events) == 1 << 14
        assert with_paths.same(outcome(data, False))
        if found == 6:
            break
    assert found == 6


def _left(patch: pytest.MonkeyPatch, method: str, by: object) -> str:
    """What is said of path code whose `method` was replaced by one that leaves a table."""
    patch.setattr(PathCode, method, by)
    patch.setattr(compiler, "path_key", lambda *given: os.urandom(16))  # wrong code is never found on disk
    for seed in range(20):
        image, chunk = parts(seed)
        try:
            outcome(wrap([image], [chunk]), True)
        except OutsideTableError as error:
            return str(error)
    return ""


def test_path_code_that_leaves_a_table_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    level, base = PathCode._level, PathCode._base
    with monkeypatch.context() as patch:
        text = _left(patch, "_level", lambda self, frame, at: level(self, frame, at + (1 << 10)))
        assert "reaches outside of its iterations" in text
    with monkeypatch.context() as patch:
        text = _left(patch, "_level", lambda self, frame, at: level(self, frame, at - (1 << 10)))
        assert "reaches outside of its iterations" in text
    with monkeypatch.context() as patch:
        text = _left(patch, "_base", lambda self, which: base(self, which + (1 << 20)))
        assert "reaches outside of its words" in text
    with monkeypatch.context() as patch:
        patch.setattr("tracekit.replay.compiled.path_code.ROW", 1 << 20)
        assert "reaches outside of its frames" in _left(patch, "_level", level)
