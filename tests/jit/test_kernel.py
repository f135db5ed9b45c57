"""Compiled kernels are kept apart by what their sources, and those that they import, say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest

from tracekit.jit import cache
from tracekit.jit import kernel as jit
from tracekit.jit.callee import CalleeLibrary


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package of three files, each of which imports the next; a fourth stands alone."""
    package = tmp_path / "tracekit_for_a_test"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "first.py").write_text("from tracekit_for_a_test import (\n    second,\n)\n")
    (package / "second.py").write_text("from tracekit_for_a_test.third import LIMIT\n")
    (package / "third.py").write_text("LIMIT = 1\n")
    (package / "other.py").write_text("")
    monkeypatch.syspath_prepend(str(tmp_path))
    return package


def digest(path: Path) -> str:
    """What a process that starts now finds."""
    cache._source.cache_clear()
    cache._file.cache_clear()
    cache._package.cache_clear()
    return cache.digest(path)


def test_a_change_in_anything_imported_means_another_folder(source: Path) -> None:
    before = digest(source / "first.py")
    assert digest(source / "first.py") == before
    (source / "other.py").write_text("x = 1")
    assert digest(source / "first.py") == before
    (source / "third.py").write_text("LIMIT = 2\n")
    assert digest(source / "first.py") != before


def test_the_derive_kernel_depends_on_the_event_table_and_not_on_camp() -> None:
    names = set()
    waiting = list(cache._file("tracekit.replay.kernels.derive"))
    while waiting:
        path = waiting.pop()
        if path.name not in names:
            names.add(path.name)
            waiting += cache._source(path)[1]
    assert {"events.py", "image.py", "layouts.py", "accesses.py", "kernel.py", "callee.py"} <= names
    assert not {"dependence.py", "relations.py"} & names


def test_kernels_are_cached_in_the_users_cache_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    folder = cache.folder_for.__wrapped__(Path(__file__))
    assert folder.parent == tmp_path / "tracekit" / "kernels" and folder.is_dir()


def test_a_cache_folder_that_cannot_be_made_is_no_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert not cache.folder_for.__wrapped__(Path(__file__)).exists()


def _refused(n: int) -> float:
    return float(np.ones(n).sum())


def _allowed(n: int) -> float:
    return float(np.ones(n).sum())


def test_a_kernel_may_not_make_an_array_but_an_allocating_one_may() -> None:
    # A function each: the first would otherwise find what the second left in the cache, and compile nothing.
    with pytest.raises(numba.errors.NumbaError):
        jit.kernel(_refused)(3)
    assert jit.allocating_kernel(_allowed)(3) == 3.0


@jit.kernel
def _twice(value: Any) -> Any:
    return value + value


def test_a_cache_that_can_only_be_read_serves_what_it_holds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: Any, **named: Any) -> None:
        raise PermissionError("read-only")

    def again() -> Any:
        return jit.Kernel(_twice.function, _twice._options)  # as a new process would make it

    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    monkeypatch.setattr(jit, "folder_for", lambda file: tmp_path / "kernels")
    assert again()(2) == 4
    kept = sorted(tmp_path.rglob("*"))
    assert [path.suffix for path in kept if path.is_file()] == [".nbc", ".nbi"]
    monkeypatch.setattr("tempfile.TemporaryFile", refuse)
    kernel = again()
    assert kernel(3) == 6 and kernel.dispatcher.stats.cache_hits
    assert kernel(1.5) == 3.0 and sum(kernel.dispatcher.stats.cache_misses.values()) == 1
    assert sorted(tmp_path.rglob("*")) == kept
    kept[-1].unlink()
    kept[-1].mkdir()  # neither can this be read, even by root
    assert again()(4) == 8


@jit.inlined
def _add(column: Any, row: Any, value: Any) -> None:
    if column is not None:
        column[row] += value


@jit.kernel
def _fold(column: Any, times: Any) -> Any:
    for _ in range(times):
        _add(column, 0, 1)
        _add(column, 1, 2)
        _add(None, 0, 3)
    return column[0] + column[1]


@jit.kernel
def _folds(column: Any) -> Any:
    return _fold(column, 3) + _fold(column, 4)


def test_a_kernel_that_others_call_is_a_part_of_them_and_is_called_from_python_too() -> None:
    assert _folds(np.zeros(2, np.int64)) == 9 + 21
    assert _fold(np.zeros(2, np.int64), 5) == 15
    column = np.zeros(2, np.int64)
    _add(column, 1, 7)
    assert list(column) == [0, 7]


def test_constants_do_not_compile_a_callee_anew() -> None:
    jit.uncached(_folds.function)(np.zeros(2, np.int64))
    assert len(_fold.callee.signatures) == 1 and len(_add.callee.signatures) == 2


def test_a_callee_has_no_machine_code_and_is_inlined_only_if_it_says_so() -> None:
    jit.uncached(_folds.function)(np.zeros(2, np.int64))  # which is inlined: its callee does not take that over
    for helper, is_inlined in ((_fold, False), (_add, True)):
        for made in helper.callee.overloads.values():
            assert type(made.library) is CalleeLibrary
            function = made.library.get_function(made.fndesc.llvm_func_name)
            assert (b"alwaysinline" in function.attributes) == is_inlined
