"""What Numba does for each function, and nobody needs, is not done."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numba.core import analysis, dispatcher, ir, postproc, types  # noqa: F401  (the dispatcher first, as in callee.py)
from numba.core.registry import cpu_target
from numba.core.typing import templates

from tracekit.jit import cache
from tracekit.jit import kernel as jit
from tracekit.jit.callee import CalleeLibrary
from tracekit.jit.callee_cache import CalleeCache
from tracekit.jit.inference import remembered
from tracekit.jit.lowering import CalleeLower

_templates: Any = templates


@pytest.fixture(autouse=True)
def _without_callees_on_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CalleeCache, "load_overload", lambda *_: None)
    monkeypatch.setattr(CalleeCache, "save_overload", lambda *_: None)


def compiled(function: Any, *arguments: Any) -> Any:
    """The library of a kernel that other kernels link."""
    callee: Any = jit.kernel(function)
    given = tuple(callee.callee.typeof_pyval(argument) for argument in arguments)
    callee.callee.compile(given)
    return callee.callee.overloads[given].library


def _odd(column: Any, most: Any) -> int:
    found = 0
    for row in range(column.size):
        if column[row] & 1 and found < most:
            found += 1
    return found


def test_nobody_looks_for_what_lives_where_and_nothing_is_deleted(monkeypatch: pytest.MonkeyPatch) -> None:
    lowered: list[type] = []
    lower: Any = CalleeLower.lower_inst

    def noting(self: Any, instruction: Any) -> None:
        lowered.append(type(instruction))
        lower(self, instruction)

    monkeypatch.setattr(CalleeLower, "lower_inst", noting)
    monkeypatch.setattr(analysis, "compute_live_variables", None)
    numbas: Any = postproc.PostProcessor
    assert isinstance(compiled(_odd, np.arange(8), 3), CalleeLibrary)
    assert ir.Assign in lowered and ir.Del not in lowered
    assert postproc.PostProcessor is numbas  # for whoever else uses Numba


@pytest.mark.parametrize("given", [types.boolean, types.int64], ids=str)
def test_a_branch_asks_once_what_bool_gives(given: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    context: Any = cpu_target.typing_context
    assert remembered(context, bool, (given,)).return_type == types.boolean
    monkeypatch.setattr(_templates._OverloadFunctionTemplate, "generic", None)
    assert remembered(context, bool, (given,)).return_type == types.boolean


def test_the_files_behind_a_function_are_hashed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    file = next(iter(cache._file("tracekit.containers.kernels.shadow")))
    first = cache.digest(file)
    monkeypatch.setattr(cache, "_source", None)
    assert cache.digest(file) == first
