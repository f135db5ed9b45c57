"""Generated kernels and their cache: processes that compile at once, folders that cannot be written, notebooks."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tracekit
from tracekit.module import Module
from tracekit.modules.codegen import plan
from tracekit.modules.kernel_files import kernel_of
from tracekit.modules.options import NoOptions

ROOT = Path(tracekit.__file__).resolve().parents[1]

SCRIPT = """
import sys
import numpy as np
from typing import Any, NamedTuple
from tracekit.formats.events import CODE
from tracekit.module import Module, inlined
from tracekit.modules.options import NoOptions
from tracekit.modules.callback_runner import CallbackRunner
from tracekit.modules.selected import Selected

STEP = 1

@inlined
def add(state, address):
    state[0][0] += STEP * address

class Tiny(Module):
    def state(self):
        return (np.zeros(1, np.int64),)

    @staticmethod
    def load(state, address):
        add(state, address)

    def result(self, state):
        return {"sum": int(state[0][0])}

if __name__ == "__main__":
    runner = CallbackRunner(Tiny(None, NoOptions()), "Tiny", 1)
    kinds = np.full(10, CODE["load"], np.uint8)
    runner.feed(Selected(0, kinds, None, np.arange(10, dtype=np.uint64), None, None), 0)
    print(runner.result()[0]["sum"], runner.explained.split(":")[0])
"""


def start(script: Path, cache: Path | str, **environment: str) -> subprocess.Popen[str]:
    variables = {**os.environ, "PYTHONPATH": str(ROOT), "XDG_CACHE_HOME": str(cache), **environment}
    return subprocess.Popen(
        [sys.executable, str(script)], env=variables, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def said(process: subprocess.Popen[str]) -> str:
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    return out.strip()


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "tiny.py"
    path.write_text(SCRIPT)
    return path


def test_processes_that_compile_at_once_do_not_disturb_each_other(script: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    first = [start(script, cache) for _ in range(3)]
    waited = "45 kernel from the cache"
    assert sorted(said(process) for process in first) == ["45 kernel compiled", waited, waited]
    assert said(start(script, cache)) == "45 kernel from the cache"
    (generated,) = (cache / "tracekit/kernels/generated").glob("*.py")
    assert generated.name.startswith("Tiny_")


def test_a_constant_or_a_helper_that_changes_is_compiled_anew(script: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    assert said(start(script, cache)) == "45 kernel compiled"
    script.write_text(SCRIPT.replace("STEP = 1", "STEP = 2"))
    assert said(start(script, cache)) == "90 kernel compiled"


@pytest.mark.parametrize("locators", ["", "UserProvidedCacheLocator"])
def test_a_cache_that_cannot_be_written_is_done_without(script: Path, locators: str) -> None:
    """/proc cannot be written even by root; with that one locator Numba has no other folder either."""
    environment = {"NUMBA_CACHE_LOCATOR_CLASSES": locators} if locators else {}
    assert said(start(script, "/proc/nowhere", **environment)) == "45 kernel compiled"


def typed_in(text: str) -> type[Module]:
    """A class as a notebook has it: without a file."""
    names: dict[str, Any] = {"Module": Module, "np": np, "__name__": "notebook"}
    exec(compile(text, "<notebook>", "exec"), names)
    found: type[Module] = names["Typed"]
    return found


def test_what_is_typed_into_a_notebook_is_told_apart_by_its_code() -> None:
    text = """
class Typed(Module):
    def state(self):
        return (np.zeros(1, np.int64),)

    @staticmethod
    def load(state, address):
        state[0][0] += 1

    def result(self, state):
        return {}
"""
    made = [plan(typed_in(each)(None, NoOptions())) for each in (text, text, text.replace("+= 1", "+= 2"))]  # type: ignore[arg-type]
    files = [kernel_of(each, "Typed")[0].function.__code__.co_filename for each in made]  # type: ignore[attr-defined]
    assert files[0] == files[1] != files[2]
