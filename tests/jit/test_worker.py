"""The process that compiles: what it makes, and that it never holds up the end of a replay."""

from __future__ import annotations

import ctypes
import os
import random
import signal
import threading
import time
from pathlib import Path
from typing import Any

import pytest

import tracekit
from tests.naive.random_program import RandomProgram
from tests.naive.trace_file import write_trace
from tests.naive.walker import Walk
from tests.replay.event_log import EventLog
from tracekit.jit import machine_code, object_cache
from tracekit.jit.worker import EndedError, Worker
from tracekit.replay.compiled import compiler
from tracekit.replay.engine import Replay

FOUR = "define i64 @four(i64 %a, i64 %b, i64 %c, i64 %d) {\n  %two = mul i64 %a, 2\n  ret i64 %two\n}"


def long_text() -> str:
    """A function that LLVM is at for minutes."""
    lines = ["define i64 @long(ptr %p) {", "begin:", "  %v0 = load i64, ptr %p", "  br label %b0"]
    for k in range(20_000):
        lines += [f"b{k}:", f"  %a{k} = getelementptr i64, ptr %p, i64 %v{k}", f"  %v{k + 1} = load i64, ptr %a{k}"]
        lines += [
            f"  %c{k} = icmp eq i64 %v{k + 1}, {k}",
            f"  br i1 %c{k}, label %b{(k * 7919) % 19_000}, label %b{k + 1}",
        ]
    return "\n".join([*lines, "b20000:", "  ret i64 %v0", "}"])


def test_it_makes_the_same_code() -> None:
    worker = Worker()
    try:
        made = worker.call(machine_code.object_of, FOUR)
        assert worker.call(machine_code.object_of, FOUR, [], ["four"])
    finally:
        worker.end()
    assert made == machine_code.object_of(FOUR)
    loaded = machine_code.Loaded(made, {}, ["four"])
    assert ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * 4)(loaded.functions["four"])(21, 0, 0, 0) == 42


def test_what_llvm_refuses_is_said_and_the_process_goes_on() -> None:
    worker = Worker()
    try:
        with pytest.raises(RuntimeError, match="expected top-level entity"):
            worker.call(machine_code.object_of, "nonsense")
        assert worker.call(machine_code.object_of, FOUR)
        assert worker.seconds > 0
    finally:
        worker.end()


def test_an_end_does_not_wait_for_llvm() -> None:
    worker = Worker()
    came: list[BaseException] = []

    def work() -> None:
        try:
            worker.call(machine_code.object_of, long_text())
        except EndedError as error:
            came.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    time.sleep(1)
    assert thread.is_alive()
    begun = time.monotonic()
    worker.end()
    thread.join()
    assert time.monotonic() - begun < 1
    assert len(came) == 1
    with pytest.raises(EndedError):
        worker.call(machine_code.object_of, FOUR)
    worker.end()


def test_a_process_that_breaks_off_is_an_error() -> None:
    worker = Worker()
    worker.call(machine_code.object_of, FOUR)
    assert worker._process is not None
    os.kill(worker._process.pid, signal.SIGKILL)
    with pytest.raises(RuntimeError, match="broken off with status -9"):
        worker.call(machine_code.object_of, FOUR)
    worker.end()


def test_without_a_process_it_does_the_work_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.executable", "/nowhere/python")
    worker = Worker()
    assert worker.call(machine_code.object_of, FOUR) == machine_code.object_of(FOUR)
    worker.end()


def test_the_end_of_a_replay_does_not_wait_for_llvm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(object_cache, "read", lambda key: None)
    monkeypatch.setattr(object_cache, "write", lambda key, contents: None)
    monkeypatch.setattr(compiler, "FIRST_BATCHES", 0)
    monkeypatch.setattr(compiler, "ENOUGH", 1)
    monkeypatch.setattr(compiler, "LONG_ENOUGH", 0)
    at_llvm = threading.Event()
    waited: list[float] = []
    call, end = Worker.call, compiler.CompiledPaths.end

    def slow(self: Worker, function: Any, *rest: Any) -> Any:
        if function is not machine_code.object_of:
            return call(self, function, *rest)
        at_llvm.set()
        return call(self, function, long_text())

    def late(self: compiler.CompiledPaths) -> None:
        assert at_llvm.wait(300)
        begun = time.monotonic()
        end(self)
        waited.append(time.monotonic() - begun)

    monkeypatch.setattr(Worker, "call", slow)
    monkeypatch.setattr(compiler.CompiledPaths, "end", late)
    made = RandomProgram(random.Random(1))
    walk = Walk(made, random.Random(1), [], budget=100)
    walk.run()
    write_trace(tmp_path / "t.zst", made.layout, {0: walk.records()}, totals={}, chunk=1)
    with tracekit.open(tmp_path / "t.zst") as trace:
        replay = Replay(trace.reader, trace.program)
        replay.compiled = compiler.CompiledPaths([EventLog()], b"", 0)
        for _ in replay.batches():
            pass
        assert replay.compiled.failure is None
    assert len(waited) == 1
    assert waited[0] < 1
