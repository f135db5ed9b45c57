"""Kernels compiled in other processes: the same code, found again, and compiled here where they cannot be."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracekit.dependence.kernels.sharding import Part
from tracekit.jit import background, native, object_cache, values
from tracekit.jit import kernel as jit
from tracekit.jit.worker import EndedError, Worker


@jit.kernel
def _sum_of(pair: Any, step: Any) -> Any:
    return pair[0][0] + pair[1] * step


@jit.kernel
def _refused(pair: Any) -> Any:
    return pair.nothing


class Mine(NamedTuple):
    """A class that is not tracekit's."""

    left: Any
    right: Any


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(object_cache, "home", lambda: tmp_path)
    yield
    background._end()
    background._idle.clear()


def run(program: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """A new process in a folder, with a cache of its own."""
    environment = {**os.environ, "XDG_CACHE_HOME": str(folder / "cache")}
    environment.pop("NUMBA_CACHE_DIR", None)
    words = [sys.executable, "-c", program]
    return subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, timeout=120)


def _found(name: str) -> Any:
    return globals()[name]


def again(kernel: Any) -> Any:
    """The kernel as a new process would find it."""
    made = jit.Kernel(kernel.function, kernel._options)
    made.recipe = _found, (kernel.__name__,)
    return made


def test_a_kernel_is_compiled_in_another_process(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = again(_sum_of)
    monkeypatch.setattr("tracekit.jit.native_code.code_of", lambda *_: pytest.fail("compiled here"))
    assert kernel((np.array([40]), 1), 2) == 42
    assert kernel((np.array([0.5]), 1), 2) == 2.5  # by the same process
    assert len(background._all) == 1


def test_this_process_does_not_import_numba(tmp_path: Path) -> None:
    program = (
        "import sys, numpy as np\nfrom tracekit.program import components\n"
        "found = components.components(3, np.array([0, 1, 2]), np.array([1, 0, 1]))\n"
        "print(*found, components._tarjan.was_compiled, 'numba' in sys.modules)"
    )
    done = run(program, tmp_path)
    assert done.stdout.split() == ["0", "0", "1", "True", "False"], done.stderr


def test_somebody_elses_module_is_not_imported_again(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(
        "from tracekit.jit.kernel import kernel\n@kernel\ndef twice(value):\n    return 2 * value\n"
        "print('once')\nprint(twice(21))\n"
    )
    done = run("import script", tmp_path)
    assert done.stdout.split() == ["once", "42"], done.stderr
    with pytest.raises(ImportError, match="is not imported for its class Mine"):
        values.example(values.kind_and_words(Mine(1, 2))[0])


def test_two_are_compiled_at_once() -> None:
    one, other = again(_sum_of), again(_sum_of)
    one.native.begin(((np.array([1]), 1), 2))
    assert other((np.array([0.5]), 1), 2) == 2.5
    assert one((np.array([40]), 1), 2) == 42
    assert background._all == background._idle and len(background._idle) == 1  # the other one has ended
    assert (one.native.compiled, other.native.compiled) == (1, 1)


def test_what_is_there_is_not_begun() -> None:
    again(_sum_of)((np.array([40]), 1), 2)
    kernel = again(_sum_of)
    kernel.native.begin(((np.array([40]), 1), 2))
    assert not kernel.native._coming
    assert kernel((np.array([40]), 1), 2) == 42 and not kernel.was_compiled


def test_who_asks_for_what_was_begun_waits_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    may_go_on = threading.Event()
    call = Worker.call

    def slow(self: Worker, *arguments: Any) -> Any:
        assert may_go_on.wait(60)
        return call(self, *arguments)

    monkeypatch.setattr(Worker, "call", slow)
    kernel = again(_sum_of)
    kernel.native.begin(((np.array([1]), 1), 2))
    threading.Timer(0.2, may_go_on.set).start()
    assert kernel((np.array([40]), 1), 2) == 42
    assert kernel.native.compiled == 1


def test_who_asks_before_the_thread_has_started_is_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel, answers = again(_sum_of), []

    class Late(threading.Thread):
        def start(self) -> None:
            answers.append(kernel((np.array([40]), 1), 2))  # as another thread does that comes in between
            super().start()

    monkeypatch.setattr(native, "threading", SimpleNamespace(Thread=Late))
    kernel.native.begin(((np.array([1]), 1), 2))
    assert answers == [42]


def test_what_does_not_compile_is_said_by_the_compiler_here() -> None:
    kernel = again(_refused)
    kernel.native.begin(((1, 2),))
    with pytest.raises(Exception, match="nothing") as raised:
        kernel((1, 2))
    assert type(raised.value).__module__.startswith("numba.")


def test_a_kernel_that_no_other_process_finds_is_compiled_here() -> None:
    @jit.kernel
    def within(value: Any) -> Any:
        return value + 1

    assert within(1) == 2
    assert not background._all


def test_a_process_that_was_killed_is_replaced() -> None:
    assert again(_sum_of)((np.array([40]), 1), 2) == 42
    process = background._all[0]._process
    assert process is not None
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert again(_sum_of)((np.array([0.5]), 1), 2) == 2.5
    assert not background._all  # compiled here
    assert again(_sum_of)((np.array([True]), 1), 2) == 3
    assert len(background._all) == 1


def test_the_end_of_this_process_does_not_wait_for_a_kernel(tmp_path: Path) -> None:
    program = (
        "import time, numpy as np\nfrom tracekit.jit import background\nfrom tracekit.program import components\n"
        "rows = np.zeros(1, np.int64)\ncomponents._tarjan.native.begin((rows,) * 8)\n"
        "while not background._all: time.sleep(0.01)\nprint('over')"
    )
    done = run(program, tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "over\n", "")


def test_somebody_elses_kernel_is_not_begun_here(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = again(_sum_of)
    kernel.recipe = None
    with monkeypatch.context() as patch:
        patch.setattr("tracekit.jit.native_code.code_of", lambda *_: pytest.fail("compiled here"))
        kernel.native.begin(((np.array([1]), 1), 2))
        (thread,) = kernel.native._coming.values()
        thread.join()
    assert kernel.native.compiled == 0
    assert kernel((np.array([40]), 1), 2) == 42


def test_an_answer_that_nobody_waited_for_is_not_that_to_the_next_call(monkeypatch: pytest.MonkeyPatch) -> None:
    worker = Worker()
    assert worker.call(abs, -1) == 1

    def interrupted(pipe: Any) -> Any:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(pickle, "load", interrupted)
        with pytest.raises(KeyboardInterrupt):
            worker.call(abs, -2)
    assert not worker.may_work
    with pytest.raises(EndedError):
        worker.call(abs, -3)


scalars = st.sampled_from([3, True, 0.5, 1 << 63, None, np.uint8(1), np.int32(-1), np.bool_(False)])
dtypes = st.sampled_from(
    [np.dtype(name) for name in ("u1", "i8", "u8", "f8", "?")] + [np.dtype([("a", "<u4"), ("b", "<i8")])]
)


@st.composite
def arrays(draw: Any) -> Any:
    """Arrays of any layout."""
    dtype, dimensions = draw(dtypes), draw(st.integers(1, 3))
    made = np.zeros((4,) * dimensions, dtype, order=draw(st.sampled_from("CF")))
    if draw(st.booleans()):
        made = made[::2]
    if draw(st.booleans()):
        made = np.ndarray(made.shape, dtype, np.zeros(made.size * dtype.itemsize + 1, np.uint8), offset=1)
    made.flags.writeable = draw(st.booleans())
    return made


kinds = st.recursive(
    scalars | arrays(),
    lambda inner: st.tuples(inner, inner) | st.builds(Part, inner, inner, inner) | st.just(()),
    max_leaves=6,
)


@given(kinds)
def test_examples_are_of_their_kind(value: Any) -> None:
    kind, _ = values.kind_and_words(value)
    assert values.kind_and_words(values.example(pickle.loads(pickle.dumps(kind))))[0] == kind
