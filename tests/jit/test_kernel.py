"""Compiled kernels are kept apart by what their sources, and those that they import, say."""

from __future__ import annotations

import importlib.metadata
import os
import shutil
import subprocess
import sys
import traceback
from pathlib import Path
from typing import Any, NamedTuple

import numba
import numpy as np
import pytest

from tests.jit import called_again
from tracekit.jit import cache, object_cache
from tracekit.jit import kernel as jit
from tracekit.jit.callee import CalleeLibrary
from tracekit.jit.callee_cache import CalleeCache

SHARED = """
import sys
import traceback
from pathlib import Path
import numpy as np
import tracekit
from tracekit.containers.kernels import added

found = added.twice(np.arange(3), 1)
print(Path(tracekit.__file__).parents[1].name, found, int(not added.twice.was_compiled))
"""


@pytest.fixture(autouse=True)
def _without_callees_on_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """test_callee_cache.py is about these."""
    monkeypatch.setattr(CalleeCache, "load_overload", lambda *_: None)


def installed(folder: Path, step: int) -> Path:
    """A copy of this tracekit, with one kernel more that calls one of another file."""
    package = Path(cache.__file__).parents[1]
    shutil.copytree(package, folder / "tracekit", ignore=shutil.ignore_patterns("__pycache__"))
    kernels = folder / "tracekit/containers/kernels"
    (kernels / "steps.py").write_text(
        f"from tracekit.jit.kernel import kernel\n@kernel\ndef stepped(column, row):\n    return column[row] + {step}\n"
    )
    (kernels / "added.py").write_text(
        "from tracekit.containers.kernels.steps import stepped\nfrom tracekit.jit.kernel import kernel\n"
        "@kernel\ndef twice(column, row):\n    return stepped(column, row) + stepped(column, row)\n"
    )
    return folder


def test_installations_share_what_they_compile_and_a_callee_that_differs_is_not_shared(tmp_path: Path) -> None:
    said = []
    for folder in (installed(tmp_path / "a", 1), installed(tmp_path / "b", 1), installed(tmp_path / "c", 5)):
        environment = {**os.environ, "PYTHONPATH": str(folder), "XDG_CACHE_HOME": str(tmp_path / "cache")}
        environment.pop("NUMBA_CACHE_DIR", None)
        words = [sys.executable, "-c", SHARED]
        done = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True)
        said.append(done.stdout.split() or done.stderr)
    assert said == [["a", "4", "0"], ["b", "4", "1"], ["c", "12", "0"]]


def test_a_kernel_of_another_package_is_its_own_wherever_its_twin_is(tmp_path: Path) -> None:
    names = []
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "twin.py").write_text("from helper import LIMIT\n")
        names.append(cache.folder_for.__wrapped__(tmp_path / name / "twin.py").name)
    assert names[0] != names[1]


@pytest.mark.parametrize("package", ["numba", "llvmlite", "numpy"])
def test_another_version_of_the_compiler_has_another_folder(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = cache.folder_for.__wrapped__(Path(__file__))
    now = importlib.metadata.version
    monkeypatch.setattr(importlib.metadata, "version", lambda name: "0.0" if name == package else now(name))
    monkeypatch.setattr(cache, "versions", cache.versions.__wrapped__)
    assert cache.folder_for.__wrapped__(Path(__file__)) != folder


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
    cache.digest.cache_clear()
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


def test_a_kernel_may_not_make_an_array() -> None:
    with pytest.raises(numba.errors.NumbaError):
        jit.kernel(_refused)(3)


@jit.kernel
def _twice(value: Any) -> Any:
    return value + value


def test_a_cache_that_can_only_be_read_serves_what_it_holds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: Any, **named: Any) -> None:
        raise PermissionError("read-only")

    def again() -> Any:
        return jit.Kernel(_twice.function, _twice._options)  # as a new process would make it

    monkeypatch.setattr(object_cache, "home", lambda: tmp_path)
    assert again()(2) == 4
    (kept,) = (path for path in tmp_path.rglob("*") if path.is_file())
    monkeypatch.setattr("tempfile.NamedTemporaryFile", refuse)
    kernel = again()
    assert kernel(3) == 6 and not kernel.was_compiled
    assert kernel(1.5) == 3.0 and kernel.was_compiled
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == [kept]
    kept.write_bytes(kept.read_bytes()[:-1])
    assert again()(4) == 8
    kept.unlink()
    kept.mkdir()  # neither can this be read, even by root
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


@jit.kernel
def _scaled(column: Any, times: Any = 2) -> Any:
    return column[0] * times


@jit.kernel
def _described(flag: Any, number: Any, column: Any) -> Any:
    return not flag, number, column[0], np.float64(number) / 2


@jit.kernel
def _checked(column: Any) -> Any:
    if column.size == 0:
        raise ValueError("no row")
    return column[0]


def test_what_a_kernel_gives_without_numba() -> None:
    """Every kind of number, also by the code that the first kernel left on disk."""
    for kernel in (_described, jit.Kernel(_described.function, _described._options)):
        column = np.array([-3], np.int32)
        assert kernel(True, -5, column) == (False, -5, -3, -2.5)
        assert kernel(False, np.uint64(2**64 - 2), column.astype(np.uint64)) == (True, 2**64 - 2, 2**64 - 3, 2.0**63)
        assert type(kernel(True, 1, column)[0]) is bool
    assert (_scaled(column), _scaled(column, 5), _scaled(column, times=7)) == (-6, -15, -21)
    with pytest.raises(ValueError, match="no row") as raised:
        _checked(column[:0])
    assert traceback.extract_tb(raised.value.__traceback__)[-1].filename == __file__


def test_kernels_are_called_without_numba_once_they_are_compiled() -> None:
    """In a process of its own, with arrays of other layouts, too; a caller tells tuples that stay the same once."""
    text = "import sys; from tests.jit import called_again; called_again.run(); assert 'numba' not in sys.modules"
    called_again.run()
    assert subprocess.run([sys.executable, "-c", text]).returncode == 0


class _Columns(NamedTuple):
    first: Any
    second: Any
    flag: Any
    rate: Any
    pair: Any


@jit.kernel
def _of_second(columns: Any, index: Any) -> Any:
    return columns.second[index]


@jit.kernel
def _of_either(columns: Any, others: Any, index: Any) -> Any:
    chosen = others if columns.flag else columns
    total = _of_second(chosen, index) + _of_second(columns, index)
    if others.flag and columns.rate > 1.5:
        total += columns.pair[1][index]
    return total


@jit.kernel
def _turned(columns: Any, index: Any) -> Any:
    made = _Columns(columns.second, columns.first, not columns.flag, columns.rate, (columns.first, columns.second))
    return _of_either(made, columns, index), len(made.pair[0]), made.flag


@pytest.mark.parametrize("flag", [False, True])
@pytest.mark.parametrize("rate", [1.0, 2.0])
def test_parts_of_states_are_handed_on_as_they_are(flag: bool, rate: float) -> None:
    """Chosen between two, taken out of a tuple in a tuple, put into a new one."""
    first, second = np.arange(5), np.arange(10, 17)
    columns = _Columns(first, second, flag, rate, (second, first))
    total = first[3] + (second[3] if not flag else first[3])
    if flag and rate > 1.5:
        total += second[3]
    assert _turned(columns, 3) == (total, 5, not flag)


def test_a_function_has_the_arguments_that_it_uses() -> None:
    """Of a state of 32 values: the data, and what an index from behind needs."""
    first, second = np.arange(5), np.arange(10, 17)
    columns = _Columns(first, second, True, 2.0, (second, first))
    callee = _of_second.callee
    types = tuple(callee.typeof_pyval(argument) for argument in (columns, 1))
    callee.compile(types)
    used = callee.overloads[types].library.used
    of_second = range(7, 14)
    assert 0 < len(used) < len(of_second)
    index = 2 * 7 + 2 + 2 * 7
    assert set(used) <= {*of_second, index}
