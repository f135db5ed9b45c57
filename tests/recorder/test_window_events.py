"""Windows that lines, accesses, libraries and other windows open: what is in them is that part of the run."""

from __future__ import annotations

import random
import re
from pathlib import Path
from typing import Any

import pytest

from tests.generator import program
from tests.naive.reader import Trace
from tests.naive.reader import read as naive_read
from tests.programs.running import compile_program
from tests.programs.test_windows import Event, Recorded, located, place, recorded
from tests.recorder.recording import build, record
from tests.recorder.window_programs import CALLS
from tests.recorder.window_traces import good, info
from tracekit.formats.events import NONE

ACCESSES = ("load", "store", "atomic_load", "atomic_store")


def line_of(source: str, mark: str) -> int:
    return source[: source.index(mark)].count("\n") + 1


def windows_of(paused: list[Event]) -> list[tuple[int, int]]:
    """Where each window begins and ends among the events of a thread."""
    found, begin = [], None
    for at, (name, *_) in enumerate([*paused, ("window_end", 0, 0, 0)]):
        if name == "window_begin":
            begin = at
        elif name == "window_end" and begin is not None:
            found.append((begin, at))
            begin = None
    return found


def counted(events: list[Event]) -> int:
    return sum(name in ACCESSES for name, *_ in events)


def find(whole: Recorded, paused: Recorded, begin: int, end: int, first: int, last: int) -> int:
    """Which event of the whole run a window begins with, from `first` to `last`: contexts and events are the same."""
    whole_located, inside = located(whole.events), located(paused.events)
    start_at_most = next(at for at in range(begin, end + 1) if at == end or paused.events[at][0] in ACCESSES)
    for at in range(first, last + 1):
        frames = place(whole.events[:at]).frames
        for start in range(begin + 1, start_at_most + 1):
            length = end - start
            if (
                inside[start:end] == whole_located[at : at + length]
                and place(paused.events[begin:start]).frames == frames
            ):
                return at
    raise AssertionError(f"no place in the whole run from {first} to {last} is that of the window")


def lines(trace: Path) -> dict[int, int]:
    """The line of each operation, in its own text."""
    found: Trace = naive_read(trace.read_bytes())
    rows: list[dict[str, Any]] = found.tables["ops"]
    return {
        number: found.tables["locations"][row["location"]]["line"]
        for number, row in enumerate(rows)
        if row["location"] != NONE
    }


@pytest.mark.parametrize("level", ["-O0", "-O2"])
def test_a_window_that_a_line_opens_begins_with_what_it_does(tmp_path: Path, level: str) -> None:
    app = build(tmp_path, CALLS, level, "-g", "--windows")
    whole = recorded(app, tmp_path / "whole.zst")
    of = lines(tmp_path / "whole.zst")
    line = line_of(CALLS, "HERE")
    stores = [at for at, (name, op, *_) in enumerate(whole.events) if name == "store" and of.get(op) == line]
    for number in (1, 3, len(stores)):
        trace = tmp_path / "paused.zst"
        paused = recorded(app, trace, "--window", f"on=line:app.c:{line}#{number} till=accesses:30")
        good(trace)
        ((begin, end),) = windows_of(paused.events)
        wanted = stores[number - 1]
        at = find(whole, paused, begin, end, wanted - 60, wanted)
        assert not any(at <= store < wanted for store in stores), "it does not begin with the line before"
        assert counted(whole.events[at:wanted]) < 15
    paused = recorded(
        app, tmp_path / "each.zst", "--window", f"on=line:app.c:{line} till=line:app.c:{line_of(CALLS, 'THERE')}"
    )
    assert len(windows_of(paused.events)) == len(stores)
    none = recorded(app, tmp_path / "none.zst", "--window", f"on=line:app.c:{line}#{len(stores) + 1}")
    assert windows_of(none.events) == []


@pytest.mark.parametrize("level", ["-O0", "-O2"])
def test_a_window_of_accesses_is_that_stretch(tmp_path: Path, level: str) -> None:
    app = build(tmp_path, CALLS, level, "-g", "--windows")
    whole = recorded(app, tmp_path / "whole.zst")
    places = [at for at, (name, *_) in enumerate(whole.events) if name in ACCESSES]
    for start, length in ((1, 1), (100, 40), (250, 200)):
        trace = tmp_path / "paused.zst"
        paused = recorded(app, trace, "--window", f"on=accesses:{start} for=accesses:{length}")
        good(trace)
        ((begin, end),) = windows_of(paused.events)
        at = find(whole, paused, begin, end, places[start - 1] + 1, places[start - 1] + 60)
        assert start <= counted(whole.events[:at]) < start + 30
        assert length <= counted(paused.events[begin:end]) < length + 30
    often = recorded(app, tmp_path / "often.zst", "--window", "every=accesses:100 for=accesses:20")
    good(tmp_path / "often.zst")
    assert len(windows_of(often.events)) == pytest.approx(len(places) / 100, abs=2)


QUIET = r"""
#include <stdio.h>
long seen[4], text[64];
__attribute__((noinline)) long count(const long *from, const long *end)
{
    long kinds = 0;
    while (from < end) {
        long kind = *from++;
        if (kind == 0) { seen[0]++; continue; }
        if (kind == 1) { seen[1] += from < end ? *from : 7; kinds++; continue; }
        if (kind == 2) break;
        seen[3] += kind;
    }
    return kinds;
}
int main(void)
{
    long sum = 0;
    for (long i = 0; i < 64; i++) text[i] = i * 7 % 5 == 2 && i % 4 ? 0 : i * 7 % 5;
    for (long k = 0; k < 6; k++)
        for (long i = 0; i < 4; i++) sum += count(text + k + i, text + 40 + k);
    printf("%ld %ld\n", sum, seen[0] + seen[1] + seen[3]);
}
"""


def test_a_window_that_opens_in_a_loop_whose_iterations_only_its_check_sees(tmp_path: Path) -> None:
    app = build(tmp_path, QUIET, "-O2", "-g", "--windows")
    whole = recorded(app, tmp_path / "whole.zst")
    places = [at for at, (name, *_) in enumerate(whole.events) if name in ACCESSES]
    for start in (90, 131, 152, 203, 254, 307):
        trace = tmp_path / "paused.zst"
        paused = recorded(app, trace, "--window", f"on=accesses:{start} for=accesses:25")
        good(trace)
        ((begin, end),) = windows_of(paused.events)
        find(whole, paused, begin, end, places[start - 1] + 1, places[start - 1] + 60)


@pytest.mark.parametrize("seed", [2, 9, 11])
def test_random_programs(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    source = tmp_path / "app.c"
    source.write_text(program(seed))
    app = compile_program([source], tmp_path / "app", [f"-O{seed % 4}", "-g", "--windows"], instrumented=True)
    whole = recorded(app, tmp_path / "whole.zst")
    of = lines(tmp_path / "whole.zst")
    places = [at for at, (name, op, *_) in enumerate(whole.events) if name in ACCESSES and op in of]
    for number in range(3):
        trace = tmp_path / f"{number}.zst"
        wanted = rng.choice(places[: len(places) // 2])
        line = of[whole.events[wanted][1]]
        wanted = next(at for at in places if of[whole.events[at][1]] == line)
        paused = recorded(app, trace, "--window", f"on=line:app.c:{line} till=accesses:{rng.randint(1, 60)}")
        good(trace)
        begin, end = windows_of(paused.events)[0]
        find(whole, paused, begin, end, max(wanted - 400, 0), wanted)


def test_conditions_of_several_events_and_other_windows(tmp_path: Path) -> None:
    app = build(tmp_path, CALLS, "-O1", "-g", "--windows")

    def begins(*rules: str) -> int:
        options = [part for rule in rules for part in ("--window", rule)]
        assert record(tmp_path, app, options=("-f", "-o", "t.zst", *options)).returncode == 0
        good(tmp_path / "t.zst")
        found = info(tmp_path / "t.zst")["windows"]
        assert isinstance(found, list)
        return len(found)

    assert begins("on=any(call:parse#1,call:inner#30)") == 2
    assert begins("on=all(call:parse#1,call:inner#2) till=return:inner") == 1
    assert begins("on=all(call:parse,call:nothing)") == 0
    assert begins("on=any(call:nothing,all(call:parse#1,call:inner#2)) till=return:inner") == 1
    assert begins("on=all(call:parse,any(call:nothing,call:other))") == 0
    assert (
        begins("on=all(any(call:nothing,call:parse#1),call:inner#2) till=all(return:inner,any(call:parse,1min))") == 1
    )
    assert begins("on=call:parse#2 name=first", "on=end:first till=return:inner") == 1, "one behind the other"
    assert begins("on=return:parse#1 till=end:2", "on=call:inner#20 name=other") == 1, "they overlap: one window"
    assert begins("on=load:app till=call:parse") == 1
    assert begins("on=into:app#1") == 1
    assert begins("on=call:parse till=any(1min,call:inner#3)") == 2
    file = tmp_path / "w.toml"
    file.write_text(
        '[[window]]\nname = "a"\non = {any = ["call:parse#1", {all = ["1min", "call:inner"]}]}\n'
        '[[window]]\non = "end:a"\nfor = "accesses:5"\n'
    )
    assert record(tmp_path, app, options=("-f", "-o", "t.zst", "--windows", str(file))).returncode == 0
    assert len(info(tmp_path / "t.zst")["windows"]) == 1, "the second opens where the first ends"  # type: ignore[arg-type]


def test_a_window_over_the_whole_run(tmp_path: Path) -> None:
    app = build(tmp_path, CALLS, "-O2", "-g", "--windows")
    whole = recorded(app, tmp_path / "whole.zst")
    names = ("load", "store", "function_entry", "function_exit", "loop_iteration")
    wanted = [event for event in located(whole.events) if event[0] in names]
    for rule in ("on=start", "on=load:app", "on=start till=accesses:1G", "on=start till=line:app.c:1"):
        paused = recorded(app, tmp_path / "paused.zst", "--window", rule)
        assert [event for event in located(paused.events) if event[0] in names] == wanted


def test_threads_libraries_and_signals(tmp_path: Path) -> None:
    build(
        tmp_path,
        "long a[64]; long fill(long n) { long s = 0; for (long i = 0; i < n; i++) s += a[i & 63] += i; return s; }",
        "-shared",
        "-fPIC",
        "--windows",
        name="libfill.so",
    )
    app = build(
        tmp_path,
        r"""
        #include <dlfcn.h>
        #include <pthread.h>
        #include <signal.h>
        #include <stdio.h>
        long own[64];
        static volatile sig_atomic_t seen;
        static void on_signal(int number) { seen = number; }
        static __attribute__((noinline)) void turn(long *cell) { for (int i = 0; i < 10; i++) *cell += i; }
        static void *work(void *cell) { for (int k = 0; k < 50; k++) turn(cell); return 0; }
        int main(void)
        {
            pthread_t threads[4];
            for (int k = 0; k < 4; k++) pthread_create(&threads[k], 0, work, &own[16 * k]);
            for (int k = 0; k < 4; k++) pthread_join(threads[k], 0);
            void *library = dlopen("./libfill.so", RTLD_NOW);
            long (*fill)(long) = (long (*)(long))dlsym(library, "fill");
            turn(own);
            long sum = fill(5) + fill(6);
            turn(own);
            dlclose(library);
            signal(SIGUSR1, on_signal);
            raise(SIGUSR1);
            turn(own);
            printf("%ld %d\n", sum, (int)seen);
        }""",
        "-O1",
        "-g",
        "-pthread",
        "--windows",
    )
    for rule, fewest, most in (
        ("on=into:libfill.so", 2, 2),
        ("on=load:libfill.so till=unload:libfill.so", 1, 1),
        ("on=signal:USR1", 1, 1),
        ("on=accesses:300 for=accesses:500", 1, 1),
        ("on=call:turn#77", 1, 1),
    ):
        run = record(tmp_path, app, options=("-f", "-o", "t.zst", "--window", rule))
        assert run.returncode == 0 and re.fullmatch(r"\d+ 10\n", run.stdout), run
        good(tmp_path / "t.zst")
        found = info(tmp_path / "t.zst")["windows"]
        assert isinstance(found, list) and fewest <= len(found) <= most, (rule, found)
        assert all(window["accesses"] > 0 for window in found), rule
