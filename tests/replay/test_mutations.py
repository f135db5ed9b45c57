"""Damaged traces with valid checksums, replayed by compiled paths that check their bounds, and by the kernels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest

from tests.formats.test_hostile import parts, wrap
from tests.replay.mutations import mutated, outcome, verdict
from tracekit.replay.compiled import object_cache
from tracekit.replay.compiled.bounds import OutsideTableError
from tracekit.replay.compiled.compiler import SETTING
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


def _left(patch: pytest.MonkeyPatch, method: str, by: object) -> str:
    """What is said of path code whose `method` was replaced by one that leaves a table."""
    patch.setattr(PathCode, method, by)
    patch.setattr(object_cache, "read", lambda key: None)
    patch.setattr(object_cache, "write", lambda key, contents: None)
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
