"""Modules made of callbacks: what they are given, by one worker or several, and what a mistake looks like."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tracekit
from tests.naive.dependence import NaiveDependence
from tests.naive.random_trace import write_walks
from tracekit.contexts.kernels.streams import LEVELS
from tracekit.formats.errors import TracekitError
from tracekit.formats.events import CODE
from tracekit.module import Module, inlined, option
from tracekit.modules.callback_runner import CallbackRunner
from tracekit.modules.options import NoOptions
from tracekit.modules.scheduler import KEPT, run
from tracekit.replay.engine import Replay

BUCKETS = 1 << 12


class Seen(NamedTuple):
    """Sums that tell apart what reached a callback: by instruction, byte, context, level."""

    executions: Any
    bytes: Any
    times: Any
    contexts: Any
    depths: Any
    frames: Any


@dataclass(frozen=True)
class Options:
    weight: int = option(3, "What an access counts.")
    stores: bool = option(True, "Whether stores count.")


@inlined
def bucket(address: int) -> int:
    return address & (BUCKETS - 1)


class Everything(Module):
    """Asks for every service."""

    Options = Options
    shard_by = "address"

    def state(self) -> Seen:
        return Seen(*(np.zeros(size, np.int64) for size in (len(self.program.ops) + 1, BUCKETS, 1, BUCKETS, 64, 3)))

    @staticmethod
    def load(
        state: Seen, instruction: int, address: int, size: int, time: int, context: int, first: int, options: Options
    ) -> None:
        state.executions[min(instruction, state.executions.size - 1)] += first * options.weight
        state.times[0] += first * time
        state.contexts[context & (BUCKETS - 1)] += first
        for byte in range(address, address + size):
            state.bytes[bucket(byte)] += 1

    @staticmethod
    def store(
        state: Seen, instruction: int, address: int, size: int, stream: int, first: int, options: Options, levels: Any
    ) -> None:
        if options.stores:
            state.executions[min(instruction, state.executions.size - 1)] += first * options.weight
            state.depths[min(levels.control[LEVELS], 63)] += first
            for byte in range(address, address + size):
                state.bytes[bucket(byte)] += 100 + stream

    @staticmethod
    def function_entry(state: Seen, function: int, first: int) -> None:
        state.frames[0] += first * (function + 1)

    @staticmethod
    def function_exit(state: Seen, unwound: int, whole: int) -> None:
        state.frames[1] += 1 + unwound

    def reduce(self, states: Sequence[Seen]) -> Seen:
        merged = Seen(*(sum(columns[1:], columns[0]) for columns in zip(*states)))
        merged.frames[1] //= len(states)
        return merged

    def result(self, state: Seen) -> dict[str, Any]:
        rows = self.contexts.rows(np.arange(BUCKETS)[state.contexts > 0])
        shown: Counter[int] = Counter()  # by row: two call sites of one line and column look alike
        for row, count in zip(rows.tolist(), state.contexts[state.contexts > 0].tolist()):
            shown[row] += count
        return {name: column.tolist() for name, column in state._asdict().items() if name != "contexts"} | {
            "contexts": dict(sorted(shown.items()))
        }


class Parts(Module):
    """Asks for the parts of other workers, too: the others' bytes are told from its own."""

    shard_by = "address"

    def state(self) -> Any:
        return tuple(np.zeros(BUCKETS, np.int64) for _ in range(2))

    @staticmethod
    def load(state: Any, address: int, size: int, start: int, mine: int) -> None:
        for byte in range(address, address + size):
            state[0][bucket(byte)] += mine
            state[1][bucket(byte)] += 1000 + byte - start

    store = load

    def reduce(self, states: Sequence[Any]) -> Any:
        assert all((state[1] == states[0][1]).all() for state in states)
        return (sum(state[0] for state in states), states[0][1])

    def result(self, state: Any) -> dict[str, Any]:
        return {"own": state[0].tolist(), "all": state[1].tolist()}


class ByInstruction(Module):
    """A module that deals its instructions to workers."""

    shard_by = "instruction"

    def state(self) -> Any:
        return (np.zeros(len(self.program.ops) + 1, np.int64),)

    @staticmethod
    def load(state: Any, instruction: int) -> None:
        state[0][min(instruction, state[0].size - 1)] += 1

    def reduce(self, states: Sequence[Any]) -> Any:
        return (sum(state[0] for state in states),)

    def result(self, state: Any) -> dict[str, Any]:
        return {"loads": state[0].tolist()}


def profile(
    path: Path, module: Callable[..., Module], options: Any, workers: int, jobs: int, mixes: bool = False
) -> dict[str, Any]:
    with tracekit.open(path) as trace:
        runner = CallbackRunner(module(trace.program, options), module.__name__, workers)
        replay = Replay(trace.reader, trace.program, batch=50, kept=KEPT)
        if mixes:
            replay.mix_streams()
        run(replay.batches(), [runner], jobs)
        return runner.result()[0]


def expected(path: Path, options: Options) -> dict[str, Any]:
    """What Everything shall say, from the events one by one."""
    with tracekit.open(path) as trace:
        ops = len(trace.program.ops)
        naive = NaiveDependence(trace.program, True)
        executions, touched, depths = Counter[int](), Counter[int](), Counter[int]()
        contexts, frames, time, times = Counter[Any](), [0, 0, 0], 0, 0
        for batch in trace.batches():
            columns = (batch.kind.tolist(), batch.subject.tolist(), batch.address.tolist(), batch.size.tolist())
            for kind, subject, address, size in zip(*columns):
                naive.feed([(batch.stream, kind, subject, address, size)])
                stream = naive.streams[batch.stream]
                if kind == CODE["load"]:
                    executions[min(subject, ops)] += options.weight
                    times += time
                    contexts[stream.context] += 1
                    touched.update(Counter(byte % BUCKETS for byte in range(address, address + size)))
                elif kind == CODE["store"] and options.stores:
                    executions[min(subject, ops)] += options.weight
                    depths[min(len(stream.levels), 63)] += 1
                    for byte in range(address, address + size):
                        touched[byte % BUCKETS] += 100 + batch.stream
                elif kind == CODE["function_entry"]:
                    frames[0] += subject + 1
                elif kind == CODE["function_exit"]:
                    frames[1] += 1 + size
                time += kind in (CODE["load"], CODE["store"])
    return {
        "executions": [executions[op] for op in range(ops + 1)],
        "bytes": [touched[b] for b in range(BUCKETS)],
        "times": [times],
        "depths": [depths[depth] for depth in range(64)],
        "frames": frames,
        "contexts": sorted(contexts.values()),
    }


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 2**32), streams=st.integers(1, 3), stores=st.booleans())
def test_callbacks_are_given_what_they_ask_for_by_any_number_of_workers(
    tmp_path_factory: Any, seed: int, streams: int, stores: bool
) -> None:
    path = tmp_path_factory.mktemp("t") / "trace.zst"
    write_walks(path, seed, streams)
    options = Options(stores=stores)
    alone = profile(path, Everything, options, 1, 1)
    wanted = expected(path, options)
    assert {**alone, "contexts": sorted(alone["contexts"].values())} == wanted
    for workers, jobs in ((2, 1), (3, 2), (1, 2)):
        assert profile(path, Everything, options, workers, jobs) == alone
    parts = profile(path, Parts, NoOptions(), 1, 1)
    assert profile(path, Parts, NoOptions(), 3, 2) == parts
    loads = profile(path, ByInstruction, NoOptions(), 1, 1)
    assert profile(path, ByInstruction, NoOptions(), 3, 2) == loads


class Uncounted(Everything):
    """Has no use for iterations."""

    counts_iterations = False


def test_contexts_and_levels_are_the_same_without_iterations(tmp_path: Path) -> None:
    write_walks(tmp_path / "trace.zst", 3, 2)
    counted, uncounted = (
        profile(tmp_path / "trace.zst", module, Options(), 1, 1) for module in (Everything, Uncounted)
    )
    assert counted == uncounted and len(counted["contexts"]) > 1 and sum(counted["depths"][1:]) > 0
    with tracekit.open(tmp_path / "trace.zst") as trace:
        of_both, of_one = (
            CallbackRunner(module(trace.program, Options()), "", 1).columns.keys() for module in (Everything, Uncounted)
        )
    assert of_both - of_one == {"loop_iteration"} and of_one < of_both


class Wrong(Module):
    """Makes a mistake that only the compiler finds."""

    def state(self) -> Any:
        return (np.zeros(1, np.int64),)

    @staticmethod
    def load(state: Any, address: int) -> None:
        state[0][0] += address.nothing  # type: ignore[attr-defined]

    def result(self, state: Any) -> dict[str, Any]:
        return {}


def test_a_callback_that_does_not_compile_names_the_authors_line(tmp_path: Path) -> None:
    write_walks(tmp_path / "trace.zst", 1, 1)
    wanted = r"'Wrong' does not compile: .*nothing.*test_runner.py.*line \d+: .*address.nothing"
    with pytest.raises(TracekitError, match=wanted):
        profile(tmp_path / "trace.zst", Wrong, NoOptions(), 1, 1)


class Adds(Wrong):
    """Types that do not go together."""

    @staticmethod
    def load(state: Any, address: int) -> None:
        state[0][0] += "one"


class Allocates(Wrong):
    """Makes an array."""

    @staticmethod
    def load(state: Any, address: int) -> None:
        state[0][0] += np.zeros(4, np.int64)[0]


class Lists(Wrong):
    """Makes a list."""

    @staticmethod
    def load(state: Any, address: int) -> None:
        seen = [address]
        state[0][0] += len(seen)


class Undefined(Wrong):
    """Uses a name that there is not."""

    @staticmethod
    def load(state: Any, address: int) -> None:
        state[0][0] += adress  # type: ignore[name-defined] # noqa: F821


def ordinary(state: Any) -> None:
    state[0][0] += 1


class Calls(Wrong):
    """Calls a function that is not compiled."""

    @staticmethod
    def load(state: Any, address: int) -> None:
        ordinary(state)


@inlined
def helps(state: Any, address: int) -> None:
    state[0][0] += address.missing  # type: ignore[attr-defined]


class Helped(Wrong):
    """The mistake is in a function that it calls."""

    @staticmethod
    def load(state: Any, address: int) -> None:
        helps(state, address)


class Raises(Wrong):
    """Raises an exception."""

    @staticmethod
    def load(state: Any, address: int) -> None:
        raise ValueError("no such address")


class Dictionary(Wrong):
    """Keeps what callbacks cannot take."""

    def state(self) -> Any:
        return {}


class Stateless(Wrong):
    """Has no state, by mistake."""

    def state(self) -> Any:
        return (np.zeros(4, np.int64)[9],)


class Resultless(Wrong):
    """Has no result, by mistake."""

    @staticmethod
    def load(state: Any, address: int) -> None:
        state[0][0] += 1

    def result(self, state: Any) -> dict[str, Any]:
        return {"rows": 1 // (int(state[0][0]) * 0)}


NO_MEMORY = "does not compile: callbacks run without memory management: .* make arrays in state"


@pytest.mark.parametrize(
    ("module", "message"),
    [
        (Adds, r"does not compile: there is no iadd\(int64, .*test_runner.py, line \d+: state\[0\]\[0\] \+= \"one\""),
        (Allocates, NO_MEMORY + r".*test_runner.py, line \d+: .*np.zeros\(4, np.int64\)"),
        (Lists, NO_MEMORY + r".*test_runner.py, line \d+: seen = \[address\]"),
        (Undefined, r"name 'adress' is not defined \(.*test_runner.py, line \d+: state\[0\]\[0\] \+= adress"),
        (Calls, r"ordinary is an ordinary function; .* @inlined .*test_runner.py, line \d+: ordinary\(state\)"),
        (Helped, r"Unknown attribute 'missing' of type int64 \(.*test_runner.py, line \d+: .*address.missing"),
        (Raises, r"failed: ValueError: no such address \(.*test_runner.py, line \d+: raise ValueError"),
        (Dictionary, r"does not compile: callbacks cannot take what state\(\) returns: arrays, .*test_runner.py"),
        (Stateless, r"failed: IndexError: .*test_runner.py, line \d+: return \(np.zeros\(4, np.int64\)\[9\],\)"),
        (Resultless, r"failed: ZeroDivisionError: .*test_runner.py, line \d+: return \{\"rows\": 1 // "),
    ],
)
@pytest.mark.parametrize("mixes", [False, True])
def test_mistakes_are_told_with_the_authors_line(
    module: type[Module], message: str, mixes: bool, tmp_path: Path
) -> None:
    write_walks(tmp_path / "trace.zst", 1, 3)
    with pytest.raises(TracekitError, match=message) as caught:
        profile(tmp_path / "trace.zst", module, NoOptions(), 1, 1, mixes)
    assert "\n" not in str(caught.value)


BEYOND = '''"""Counts where there is no room."""

import numpy as np

from tracekit.module import Module, inlined


@inlined
def count(counts, row):
    counts[row] += 1


class Beyond(Module):
    def state(self):
        return (np.zeros(4, np.int64),)

    @staticmethod
    def load(state, instruction):
        count(state[0], instruction + 4)

    def result(self, state):
        return {}


MODULE = Beyond
'''


def test_an_index_beyond_an_array_is_told_if_that_is_asked_for(tmp_path: Path) -> None:
    write_walks(tmp_path / "trace.zst", 1, 1)
    (tmp_path / "beyond.py").write_text(BEYOND)
    # In a process of its own: what is asked for holds for a whole process, and without it this one might end.
    command = [sys.executable, "-m", "tracekit", "analyze", "-m", "./beyond.py", "trace.zst"]
    ended = subprocess.run(
        command, cwd=tmp_path, env={**os.environ, "TRACEKIT_CHECK_BOUNDS": "1"}, capture_output=True, text=True
    )
    assert (ended.returncode, ended.stdout) == (1, "")
    assert re.fullmatch(
        r"tracekit: Module 'beyond' failed: IndexError: index is out of bounds "
        r"\(.*/beyond\.py, line 10: counts\[row\] \+= 1\)\.\n",
        ended.stderr,
    )


class Misspelt(Wrong):
    load = None  # type: ignore[assignment]

    @staticmethod
    def laod(state: Any, address: int) -> None:
        state[0][0] += 1


class NotStatic(Wrong):
    def load(self, state: Any, address: int) -> None:  # type: ignore[override]
        state[0][0] += 1


class Stateless(Wrong):
    @staticmethod
    def load() -> None:  # type: ignore[override]
        pass


class Idle(Module):
    def state(self) -> Any:
        return ()

    def result(self, state: Any) -> dict[str, Any]:
        return {}


class Undelivered(Idle):
    @staticmethod
    def library_load(state: Any, address: int) -> None:
        pass


@pytest.mark.parametrize(
    ("module", "message"),
    [
        (Misspelt, r"Misspelt\.laod is named for no event; did you mean load\?"),
        (NotStatic, r"NotStatic\.load is a callback: it has to be a @staticmethod"),
        (Stateless, r"Stateless\.load takes no state"),
        (Idle, "Idle has no callback"),
        (Undelivered, r"Undelivered\.library_load is never called: recorded only; delivered as load"),
    ],
)
def test_a_callback_that_is_none_is_told(module: type[Module], message: str) -> None:
    with pytest.raises(TracekitError, match=message):
        CallbackRunner(module(None, NoOptions()), module.__name__, 1)  # type: ignore[arg-type]


class Unknown(Wrong):
    """Asks for a field that a load does not have."""

    @staticmethod
    def load(state: Any, loop: int) -> None:  # type: ignore[override]
        state[0][0] += loop


def test_a_field_that_an_event_does_not_have_is_named() -> None:
    with pytest.raises(TypeError, match=r"Unknown\.load asks for 'loop'; the event load has the fields instruction"):
        CallbackRunner(Unknown(None, NoOptions()), "Unknown", 1)  # type: ignore[arg-type]
