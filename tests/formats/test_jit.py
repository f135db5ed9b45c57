"""Compiled kernels are kept apart by what all kernels' sources say."""

from __future__ import annotations

from pathlib import Path

import numba
import numpy as np
import pytest

from tracekit.formats import jit


def package(root: Path, helper: str = "1", prose: str = "") -> Path:
    (root / "room" / "kernels").mkdir(parents=True, exist_ok=True)
    (root / "room" / "kernels" / "helper.py").write_text("from tracekit.formats.jit import inlined\n" + helper)
    (root / "room" / "other.py").write_text(prose)
    return root


def test_a_changed_kernel_anywhere_means_another_folder(tmp_path: Path) -> None:
    before = jit.kernels_digest(package(tmp_path))
    assert jit.kernels_digest(package(tmp_path)) == before
    assert jit.kernels_digest(package(tmp_path, prose="x = 1")) == before
    assert jit.kernels_digest(package(tmp_path, helper="2")) != before


def test_kernels_are_cached_in_the_users_cache_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    folder = jit.cache_folder.__wrapped__()
    assert folder.parent == tmp_path / "tracekit" / "kernels" and folder.is_dir()


def test_a_cache_folder_that_cannot_be_made_is_no_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert not jit.cache_folder.__wrapped__().exists()


def _refused(n: int) -> float:
    return float(np.ones(n).sum())


def _allowed(n: int) -> float:
    return float(np.ones(n).sum())


def test_a_kernel_may_not_make_an_array_but_an_allocating_one_may() -> None:
    # A function each: the first would otherwise find what the second left in the cache, and compile nothing.
    with pytest.raises(numba.errors.NumbaError):
        jit.kernel(_refused)(3)
    assert jit.allocating_kernel(_allowed)(3) == 3.0


def test_a_changed_constant_of_the_kernels_means_another_folder(tmp_path: Path) -> None:
    constants = package(tmp_path) / "room" / "kernels" / "limits.py"
    constants.write_text("LIMIT = 1")
    before = jit.kernels_digest(tmp_path)
    constants.write_text("LIMIT = 2")
    assert jit.kernels_digest(tmp_path) != before
