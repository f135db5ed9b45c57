"""Callees on disk: what one process has compiled another one links, as long as it is the same code."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tracekit.jit import cache

STEPS = """
import numpy as np
from tracekit.jit.kernel import inlined, kernel

@inlined
def inside(column, row):
    return column[row] + {step}

@kernel
def stepped(column, row):
    return min(inside(column, row), 1 << 40)

@kernel
def counted(column, left):
    if left == 0:
        return 0
    return stepped(column, 0) + counted(column, left - 1)

@kernel
def first(state):
    return state.one[0] * 10 + state.other[0]

@kernel
def last(rows):
    return rows[rows.size - 1].last
"""
ONE = """
from tracekit.containers.kernels.steps import counted, first, last, stepped
from tracekit.jit.kernel import kernel

@kernel
def twice(column, row):
    return 2 * stepped(column, row)

@kernel
def summed(column, times):
    return counted(column, times)

@kernel
def shown(state):
    return first(state)

@kernel
def alone(rows):
    return last(rows)

@kernel
def both(some, others):
    return 10 * last(some) + last(others)
"""
SHOWS = """
import sys
from collections import namedtuple
import numpy as np
from numba.core import event
from tracekit.containers.kernels import {file}
from tracekit.jit import worker

worker.is_here = True  # so that nothing is compiled in another process
compiled = []

class Listener(event.Listener):
    def on_start(self, event):
        name = event.data["dispatcher"].py_func.__name__
        if compiled[-1:] != [name]:  # a kernel, and the function that it calls
            compiled.append(name)

    def on_end(self, event):
        pass

event.register("numba:compile", Listener())
print({what}, ",".join(compiled))
"""


FIRST, LAST = "('first', 'i8')", "('last', 'i8')"


@pytest.fixture
def shows(tmp_path: Path) -> Callable[..., tuple[str, str]]:
    """``shows(what, file, step)``: what an expression gives in a new process, and the functions that were compiled."""
    package = Path(cache.__file__).parents[1]
    shutil.copytree(package, tmp_path / "tracekit", ignore=shutil.ignore_patterns("__pycache__"))
    kernels = tmp_path / "tracekit/containers/kernels"
    for name in ("one", "other"):
        (kernels / f"{name}.py").write_text(ONE)
    environment = {**os.environ, "PYTHONPATH": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    environment.pop("NUMBA_CACHE_DIR", None)
    environment["PYTHONDONTWRITEBYTECODE"] = "1"  # Python sees no change of a file within a second

    def shown(what: str, file: str = "one", step: int = 1) -> tuple[str, str]:
        (kernels / "steps.py").write_text(STEPS.replace("{step}", str(step)))
        text = SHOWS.replace("{file}", file).replace("{what}", what.replace("FILE", file))
        done = subprocess.run(
            [sys.executable, "-c", text], cwd=tmp_path, env=environment, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        value, _, compiled = done.stdout.strip("\n").partition(" ")
        return value, compiled

    return shown


def callees(folder: Path) -> list[Path]:
    return sorted((folder / "cache/tracekit/kernels").glob("*/callee-*"))


def test_another_kernel_links_what_the_first_has_compiled(
    shows: Callable[..., tuple[str, str]], tmp_path: Path
) -> None:
    call = "FILE.twice(np.arange(3), 2)"
    assert shows(call) == ("6", "twice,stepped,inside,impl")
    assert len(callees(tmp_path)) == 3
    assert shows(call) == ("6", "")
    assert shows(call, "other") == ("6", "twice")
    assert shows("FILE.twice(np.arange(3.0), 2)", "other") == ("6.0", "twice,stepped,inside,impl")


def test_what_has_changed_is_compiled_again(shows: Callable[..., tuple[str, str]]) -> None:
    call = "FILE.twice(np.arange(3), 2)"
    assert shows(call)[0] == "6"
    assert shows(call, step=5) == ("14", "twice,stepped,inside,impl")
    assert shows(call, "other") == ("6", "twice")


def test_a_function_that_calls_itself(shows: Callable[..., tuple[str, str]]) -> None:
    assert shows("FILE.summed(np.arange(3), 4)")[0] == "4"
    assert shows("FILE.summed(np.arange(3), 4)", "other") == ("4", "summed")


def test_tuples_are_told_apart_by_their_fields(shows: Callable[..., tuple[str, str]]) -> None:
    """Two programs may have a class of one name, whose fields have the same types in another order."""
    call = "FILE.shown(namedtuple('State', '{fields}')(np.arange(1, 2), np.arange(3, 4)))"
    for file, fields, found in (("one", "one other", "13"), ("other", "other one", "31"), ("other", "one other", "13")):
        assert shows(call.replace("{fields}", fields), file)[0] == found


def test_records_are_told_apart_by_their_fields(shows: Callable[..., tuple[str, str]]) -> None:
    """Numba numbers the types of records in each process anew, and names functions by these numbers."""
    short, long = (
        f"np.array([({values})], [{fields}])" for values, fields in (("1,", LAST), ("2, 3", f"{FIRST}, {LAST}"))
    )
    assert shows(f"FILE.alone({short})")[0] == "1"
    assert shows(f"FILE.alone({long})")[0] == "3"
    assert shows(f"FILE.both({short}, {long})") == ("13", "both")


@pytest.mark.parametrize("damage", [b"", b"not a callee", None])
def test_a_file_that_cannot_be_read_is_compiled_again(
    damage: bytes | None, shows: Callable[..., tuple[str, str]], tmp_path: Path
) -> None:
    call = "FILE.twice(np.arange(3), 2)"
    shows(call)
    for path in callees(tmp_path):
        path.write_bytes(path.read_bytes()[:-9] if damage is None else damage)
    assert shows(call, "other") == ("6", "twice,stepped,inside,impl")
    assert shows("FILE.twice(np.arange(3), np.int32(2))", "other")[0] == "6"


def test_a_folder_that_cannot_be_written_is_read(shows: Callable[..., tuple[str, str]], tmp_path: Path) -> None:
    shows("FILE.twice(np.arange(3), 2)")
    for path in callees(tmp_path):
        path.parent.chmod(0o555)
    before = callees(tmp_path)
    assert shows("FILE.twice(np.arange(3), 2)", "other") == ("6", "twice")
    if os.geteuid():  # root writes all the same
        shows("FILE.twice(np.arange(3.0), 2)", "other")
        assert callees(tmp_path) == before
