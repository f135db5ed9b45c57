"""Windows with filters of their own: each function is recorded while a window is open that wants it, and no longer."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.naive.reader import read as naive_read
from tests.programs.running import replayed
from tests.recorder.recording import build, record
from tests.recorder.window_programs import filtered
from tests.recorder.window_traces import good, info
from tracekit.formats.errors import TracekitError
from tracekit.formats.events import BY_CODE
from tracekit.recorder.window_rules import all_filters, read, together

FUNCTIONS = ("leaf", "logger", "catcher", "middle", "work", "main")
"""Not `jumper`: a window that longjmp leaves stays open for longer."""

LEFT = "jumper"
"""What longjmp leaves for a function that is not recorded stays in contexts."""

Accesses = Counter[tuple[int, tuple[str, ...], str]]
"""By stream, functions that are open, outermost first, and kind."""


@dataclass(frozen=True)
class Window:
    """From a call of ``on`` to its return; ``functions``: those that it wants, or does not want; ``threads``: all if
    empty."""

    on: str
    functions: tuple[str, ...]
    excludes: bool
    threads: tuple[int, ...] = ()

    def wants(self, name: str) -> bool:
        return (name in self.functions) != self.excludes

    def as_toml(self) -> str:
        key = "without" if self.excludes else "only"
        table = f"functions = {json.dumps(list(self.functions))}"
        threads = f"only.threads = {list(self.threads)}\n" if self.threads else ""
        return f'[[window]]\non = "call:{self.on}"\n{key}.{table}\n{threads}'


def accesses_of(trace: Path, shown: Callable[[int, dict[int, list[str]]], tuple[str, ...] | None]) -> Accesses:
    """Of each access what ``shown`` says of its stream and of the functions that are open in each."""
    found = naive_read(trace.read_bytes())
    names = [
        found.text(found.unit_of["functions"][at], row["name"]) for at, row in enumerate(found.tables["functions"])
    ]
    accesses: Accesses = Counter()
    stacks: dict[int, list[str]] = {}
    for stream, kind, subject, *_ in replayed(trace).events:
        name, stack = BY_CODE[kind].name, stacks.setdefault(stream, [])
        if name == "function_entry":
            stack.append(names[subject])
        elif name == "function_exit":
            stack.pop()
        elif name in ("load", "store") and stack:
            key = shown(stream, stacks)
            if key is not None:
                accesses[stream, tuple(each for each in key if each != LEFT), name] += 1
    return accesses


def expected_of(whole: Path, windows: list[Window]) -> Accesses:
    """What windows leave of a recording of the whole run, in which one thread waits while another runs."""

    def shown(stream: int, stacks: dict[int, list[str]]) -> tuple[str, ...] | None:
        running = [stacks[0], *([stacks[stream]] if stream else [])]
        open_ones = [window for window in windows if any(window.on in stack for stack in running)]
        if not any(not window.threads or stream in window.threads for window in open_ones):
            return None
        stack = stacks[stream]
        wanted = tuple(name for name in stack if any(window.wants(name) for window in open_ones))
        return wanted if any(window.wants(stack[-1]) for window in open_ones) else None

    return accesses_of(whole, shown)


def recorded(folder: Path, app: Path, windows: list[Window]) -> Path:
    (folder / "w.toml").write_text("\n".join(window.as_toml() for window in windows))
    trace = folder / "part.zst"
    run = record(folder, app, options=("--windows", str(folder / "w.toml"), "-f", "-o", str(trace)))
    assert run.returncode == 0, run.stderr
    good(trace)
    return trace


@pytest.fixture(scope="module", params=["-O0", "-O2"])
def app(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return filtered(tmp_path_factory.mktemp("filters"), request.param)


KNOWN = [
    [Window("middle", ("leaf",), False), Window("catcher", ("leaf", "jumper"), True)],
    [Window("middle", ("leaf",), False), Window("logger", ("logger",), False)],
    [Window("main", ("leaf",), True), Window("logger", ("leaf",), False)],
    [Window("main", ("main",), False), Window("middle", ("main", "middle"), True), Window("leaf", ("middle",), False)],
    [Window("main", ("leaf",), False, (1,)), Window("catcher", ("catcher",), False, (0,))],
]


def drawn(seed: int) -> list[Window]:
    chance = random.Random(seed)
    return [
        Window(
            chance.choice(FUNCTIONS),
            tuple(chance.sample([*FUNCTIONS, "jumper"], chance.randint(1, 4))),
            chance.random() < 0.5,
            chance.choice([(), (), (0,), (1,)]),
        )
        for _ in range(chance.randint(1, 4))
    ]


@pytest.mark.parametrize("windows", [*KNOWN, *(drawn(seed) for seed in range(12))], ids=str)
def test_each_window_has_what_it_wants(tmp_path: Path, app: Path, windows: list[Window]) -> None:
    trace = recorded(tmp_path, app, windows)
    found = accesses_of(trace, lambda stream, stacks: tuple(stacks[stream]))
    assert found == expected_of(app.parent / "whole.zst", windows)


AT_ONCE = r"""
#include <pthread.h>
enum { ROUNDS = 200 };
long a[64], b[64];
__attribute__((noinline)) void leaf(void) { a[1]++; }
__attribute__((noinline)) void middle(void) { leaf(); }
__attribute__((noinline)) void other(void) { b[1]++; }
static void *begin(void *x) { other(); return x; }
int main(void)
{
    for (int round = 0; round < ROUNDS; round++) {
        pthread_t thread;
        pthread_create(&thread, 0, begin, 0);
        middle();
        pthread_join(thread, 0);
    }
}
"""
"""A thread opens a window while another one opens or closes its own, or ends."""


@pytest.mark.parametrize("level", ["-O0", "-O2"])
def test_windows_that_open_at_once_lose_nothing(tmp_path: Path, level: str) -> None:
    app = build(tmp_path, AT_ONCE, level, "-g", "-pthread", "--windows")
    trace = recorded(tmp_path, app, [Window("middle", ("leaf",), False), Window("other", ("other",), False)])
    found = accesses_of(trace, lambda stream, stacks: tuple(stacks[stream]))
    by_function = Counter[str]()
    for (_, stack, _), count in found.items():
        by_function[stack[-1]] += count
    assert by_function == {"leaf": 400, "other": 400}


def test_what_is_left_out_says_in_which_windows(tmp_path: Path, app: Path) -> None:
    trace = recorded(tmp_path, app, [Window("middle", ("leaf",), False), Window("logger", ("leaf",), True, (0,))])
    assert info(trace)["metadata"]["filters"] == [  # type: ignore[index]
        "only functions=leaf in windows by rule 1",
        "only threads=0 in windows by rule 2",
        "without functions=leaf in windows by rule 2",
    ]


def test_tables_of_windows(tmp_path: Path) -> None:
    file = tmp_path / "w.toml"
    file.write_text('[only]\nfiles = ["a.c"]\n[[window]]\non = "call:f"\nwithout = { functions = ["g"] }\n')
    asked = read(str(file))
    found = all_filters(together(asked.windows), asked.filters)
    assert [str(each) for each in found] == ["only files=a.c", "without functions=g in windows by rule 1"]
    file.write_text('[[window]]\non = "call:f"\nonly = { events = ["loads"] }\n')
    with pytest.raises(TracekitError, match="events are chosen for all windows"):
        read(str(file))
    file.write_text('[[window]]\nwithout = { functions = ["g"] }\n')
    with pytest.raises(TracekitError, match="it says nothing"):
        read(str(file))
