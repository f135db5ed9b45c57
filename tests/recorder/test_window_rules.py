"""Windows that open by themselves: what their text means, and that they open there and nowhere else."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.programs.running import run_here
from tests.programs.test_windows import Event, located, place, recorded
from tests.recorder.recording import build, record
from tests.recorder.window_programs import CALLS
from tests.recorder.window_traces import good, info
from tracekit.formats.errors import TracekitError
from tracekit.recorder.window_events import Condition, Happening, Kind, condition
from tracekit.recorder.window_rules import Asked, WindowRule, parse, read, sampled, together

MS, S = 1_000_000, 1_000_000_000


def on(*happenings: Happening, every: bool = False) -> Condition:
    return Condition(happenings, every)


def call(name: str, number: int = 0) -> Condition:
    return on(Happening(Kind.CALL, name, number))


START = on(Happening(Kind.TIME, number=1))


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("on=call:parse", WindowRule(call("parse"))),
        ("on=call:ns::parse#12", WindowRule(call("ns::parse", 12))),
        ("on=call:parse till=return:parse", WindowRule(call("parse"))),
        ("on=call:parse till=return:other", WindowRule(call("parse"), on(Happening(Kind.RETURN, "other")))),
        ("on=call:parse#2 for=1.5ms", WindowRule(call("parse", 2), length=1_500_000)),
        ("on=2s", WindowRule(begin=2 * S)),
        ("on=start", WindowRule(begin=1)),
        ("on=2s for=500us", WindowRule(begin=2 * S, length=500_000)),
        ("on=1s till=1min", WindowRule(begin=S, length=59 * S)),
        ("till=20ms", WindowRule(length=20 * MS)),
        ("every=1s for=20ms", WindowRule(length=20 * MS, every=S)),
        ("on=3s every=100ms for=100ms", WindowRule(begin=3 * S, length=100 * MS, every=100 * MS)),
        ("on=line:src/a.c:12#3", WindowRule(on(Happening(Kind.LINE, "src/a.c", 3, 12)))),
        ("on=accesses:10M for=1s", WindowRule(on(Happening(Kind.ACCESSES, number=10_000_000)), length=S)),
        ("on=call:f for=accesses:5", WindowRule(call("f"), accesses=5)),
        ("on=call:f till=accesses:5", WindowRule(call("f"), accesses=5)),
        (
            "on=call:f till=any(accesses:5,2s)",
            WindowRule(call("f"), on(Happening(Kind.TIME, number=2 * S)), accesses=5),
        ),
        (
            "every=accesses:1k for=accesses:20",
            WindowRule(on(Happening(Kind.ACCESSES)), accesses=20, every_accesses=1000),
        ),
        (
            "on=load:libz.so till=unload:libz.so",
            WindowRule(on(Happening(Kind.LOAD, "libz.so")), on(Happening(Kind.UNLOAD, "libz.so"))),
        ),
        ("on=into:libz.so", WindowRule(on(Happening(Kind.INTO, "libz.so")))),
        ("on=end:warm name=hot", WindowRule(on(Happening(Kind.END, "warm")), name="hot")),
        ("till=signal:USR1", WindowRule(START, on(Happening(Kind.SIGNAL, line=10)))),
        ("on=any(call:f, call:g#2)", WindowRule(on(Happening(Kind.CALL, "f"), Happening(Kind.CALL, "g", 2)))),
        (
            "on=all(2s,call:f<int, 3>) till=all(call:g,call:h)",
            WindowRule(
                on(Happening(Kind.TIME, number=2 * S), Happening(Kind.CALL, "f<int, 3>"), every=True),
                on(Happening(Kind.CALL, "g"), Happening(Kind.CALL, "h"), every=True),
            ),
        ),
    ],
)
def test_what_a_text_means(text: str, rule: WindowRule) -> None:
    assert parse(text) == rule


@pytest.mark.parametrize(
    "text",
    [
        *("", "on", "on=", "on=5", "on=call:", "on=call:f#0", "on=1s on=2s", "at=1s", "on=0s", "for=-1s", "on=-1s"),
        *(
            "on=line:a.c",
            "on=line:3",
            "on=any()",
            "on=any(a)",
            "on=call:f every=accesses:5",
            "on=signal:NONE",
            "till=all(accesses:1,1s)",
        ),
        *("name=x", "on=any(1s,2s,3s,4s,5s)", "on=accesses:0", "for=accesses:x", "every=accesses:5 for=1s", "on=at:3"),
        *("on=call:f every=1s", "every=1s", "every=1s for=2s", "on=2s till=1s"),
        *("on=1s for=1s till=3s", "on=call:" + "f" * 300, "on=99999999999999999999s", "on=1h", "on=call:f#" + "9" * 30),
    ],
)
def test_what_means_nothing_is_refused_in_one_sentence(text: str) -> None:
    with pytest.raises(TracekitError) as caught:
        parse(text)
    assert "\n" not in str(caught.value)


CONDITIONS = st.recursive(
    st.sampled_from(["call:f", "2s", "accesses:5", "return:g"]),
    lambda inner: st.tuples(st.sampled_from(["all", "any"]), st.lists(inner, min_size=1, max_size=4)),
    max_leaves=4,
)


@given(CONDITIONS)
def test_which_events_are_enough(tree: object) -> None:
    """Texts and tables mean the same, and what a plain reading of the tree says."""

    def text(node: Any) -> str:
        return node if isinstance(node, str) else f"{node[0]}({','.join(map(text, node[1]))})"

    def table(node: Any) -> Any:
        return node if isinstance(node, str) else {node[0]: [table(part) for part in node[1]]}

    def is_enough(node: Any, left: list[bool]) -> bool:
        if isinstance(node, str):
            return left.pop(0)
        each = [is_enough(part, left) for part in node[1]]
        return all(each) if node[0] == "all" else any(each)

    found = condition(text(tree))
    assert condition(table(tree)) == found
    count = len(found.happenings)
    assert text(tree).count(":") + text(tree).count("2s") == count
    for seen in range(1 << count):
        assert found.enough >> seen & 1 == is_enough(tree, [bool(seen >> k & 1) for k in range(count)])


@given(st.text(alphabet="on=call:#ties.frv0129msuy(), ", max_size=40))
def test_any_text_is_a_rule_or_refused(text: str) -> None:
    try:
        rule = parse(text)
    except TracekitError:
        return
    assert rule.on.happenings or rule.length or rule.begin
    assert all(0 <= number < 1 << 63 for number in (rule.begin, rule.length, rule.every, rule.accesses))


def test_a_share_of_the_time() -> None:
    assert sampled("2%") == WindowRule(length=20 * MS, every=S)
    assert sampled("0.5%") == WindowRule(length=5 * MS, every=S)
    for text in ("2", "0%", "101%", "x%", "%", "-1%"):
        with pytest.raises(TracekitError):
            sampled(text)


def test_a_file_of_windows(tmp_path: Path) -> None:
    file = tmp_path / "windows.toml"
    file.write_text('[[window]]\non = "call:f"\n[[window]]\nevery = "1s"\nfor = "20ms"\n')
    assert read(str(file)) == Asked([WindowRule(call("f")), WindowRule(length=20 * MS, every=S)])
    file.write_text(
        '[[window]]\nname = "a"\non = {all = ["call:f", "2s"]}\n[[window]]\non = "end:a"\ntill = {any = ["1min"]}\n'
    )
    first, second = together(read(str(file)).windows)
    assert first == WindowRule(on(Happening(Kind.CALL, "f"), Happening(Kind.TIME, number=2 * S), every=True), name="a")
    assert second.on == on(Happening(Kind.END, "a", line=0)), "the first window's place"
    with pytest.raises(TracekitError, match="no window b"):
        together([parse("on=end:b")])
    for text in ("[[window]\n", "[[window]]\non = 3\n", "[[window]]\nat = 'x'\n", "a = 1\n", "window = 3\n", "\xff"):
        file.write_bytes(text.encode("latin-1"))
        with pytest.raises(TracekitError):
            read(str(file))
    with pytest.raises(TracekitError, match="cannot be read"):
        read(str(tmp_path / "none.toml"))
    with pytest.raises(TracekitError, match="17 windows"):
        together([parse("on=call:f")] * 17)
    with pytest.raises(TracekitError, match="30 calls"):
        together([parse("on=any(call:a,call:b,call:c) till=return:a")] * 8)


def matching_exit(events: list[Event], entry: int) -> int:
    depth = 0
    for at in range(entry, len(events)):
        depth += {"function_entry": 1, "function_exit": -1}.get(events[at][0], 0)
        if depth == 0:
            return at
    raise AssertionError


@pytest.mark.parametrize("level", ["-O0", "-O2"])
def test_a_window_of_the_nth_call_is_that_call(tmp_path: Path, level: str) -> None:
    app = build(tmp_path, CALLS, level, "--windows")
    whole = recorded(app, tmp_path / "whole.zst").events
    function = next(
        subject
        for name, subject, _, call in whole
        if name == "function_entry" and whole_name(tmp_path, subject) == "parse"
    )
    entries = [at for at, (name, subject, *_) in enumerate(whole) if name == "function_entry" and subject == function]
    for number in random.Random(1).sample(range(1, len(entries) + 1), 4):
        trace = tmp_path / f"{number}.zst"
        paused = recorded(app, trace, "--window", f"on=call:parse#{number}").events
        good(trace)
        start = entries[number - 1]
        wanted = located(whole)[start : matching_exit(whole, start) + 1]
        begin = next(at for at, (name, *_) in enumerate(paused) if name == "window_begin")
        end = next(at for at, (name, *_) in enumerate(paused) if name == "window_end")
        assert located(paused)[end - len(wanted) : end] == wanted
        assert place(paused[begin : end - len(wanted)]).frames == place(whole[:start]).frames
    each = recorded(app, tmp_path / "each.zst", "--window", "on=call:parse").events
    assert sum(name == "window_begin" for name, *_ in each) == 9, "calls inside the window open no other"


def whole_name(folder: Path, function: int) -> str:
    from tests.naive.reader import read as naive_read

    trace = naive_read((folder / "whole.zst").read_bytes())
    return trace.text(trace.unit_of["functions"][function], trace.tables["functions"][function]["name"])


def test_windows_by_time(tmp_path: Path) -> None:
    app = build(
        tmp_path,
        r"""
        #include <unistd.h>
        long table[256];
        static __attribute__((noinline)) void tick(void) { for (int i = 0; i < 256; i++) table[i] += i; }
        int main(void) { for (int k = 0; k < 1200; k++) { for (int i = 0; i < 20; i++) tick(); usleep(500); } }""",
        "--windows",
    )
    record(tmp_path, app, options=("--window", "on=200ms for=100ms", "-o", "once.zst"))
    (once,) = info(tmp_path / "once.zst")["windows"]  # type: ignore[misc]
    assert once["begin"] >= 0.2 and once["end"] >= 0.3 and once["accesses"] > 0
    record(tmp_path, app, options=("--window", "every=100ms for=20ms", "-o", "often.zst"))
    good(tmp_path / "often.zst")
    often = info(tmp_path / "often.zst")["windows"]
    assert isinstance(often, list) and len(often) >= 4
    periods = [int(window["begin"] * 10) for window in often]
    assert len(set(periods)) == len(periods), "one window in each period"
    assert record(tmp_path, app, options=("--sample", "2%", "-o", "sample.zst")).returncode == 0
    assert len(info(tmp_path / "sample.zst")["windows"]) >= 1  # type: ignore[arg-type]


ALONE = r"""
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/single_threaded.h>
#include <sys/wait.h>
#include <unistd.h>

long table[256];
static __thread long own[1 << 17];

static __attribute__((noinline)) void tick(long *to) { for (int i = 0; i < 256; i++) to[i] += i; }

static void work(void)
{
    for (int k = 0; k < 100; k++) {
        tick(table);
        tick(own + 1000 * k);
        free(malloc(100));
        usleep(1000);
    }
}

static void *thread(void *main)
{
    pthread_join(*(pthread_t *)main, NULL);
    work();
    puts("over");
    return NULL;
}

int main(void)
{
    static pthread_t self;
    pthread_t other;
    self = pthread_self();
    work();
    printf("%d\n", __libc_single_threaded);
    fflush(stdout);
    if (fork() == 0) {
        work();
        printf("%d\n", __libc_single_threaded);
        return 0;
    }
    wait(NULL);
    pthread_create(&other, NULL, thread, &self);
    pthread_exit(NULL);
}
"""


@pytest.mark.parametrize("flags", [(), ("-static",)])
def test_the_clock_is_no_thread_of_the_c_library(tmp_path: Path, flags: tuple[str, ...]) -> None:
    """Which would take locks if it had two; and the process ends with its last thread."""
    app = build(tmp_path, ALONE, "--windows", "-O1", "-pthread", *flags)
    done = record(tmp_path, app, options=("--follow-fork", "--window", "every=20ms for=10ms"))
    assert done.stdout.split() == ["1", "1", "over"]
    for trace in (tmp_path / "trace.zst", *tmp_path.glob("trace.*.zst")):
        good(trace)
        assert len(info(trace)["windows"]) >= 4  # type: ignore[arg-type]


def test_what_windows_cannot_be(tmp_path: Path) -> None:
    app = build(tmp_path, "int main(void) { return 0; }")
    for options in (("--window", "on=1s"), ("--sample", "2%")):
        outcome = run_here("record", *options, str(app))
        assert outcome.status == 125 and b"built without --windows" in outcome.stderr
    for options in (("--window", "on=never"), ("--sample", "2"), ("--windows", "none.toml")):
        outcome = run_here("record", *options, str(app))
        assert outcome.status == 125 and outcome.stderr.count(b"\n") == 1


def test_a_run_without_a_window_is_told(tmp_path: Path) -> None:
    app = build(tmp_path, CALLS, "-O1", "--windows")

    def said(*options: str) -> str:
        return record(tmp_path, app, options=options).stderr

    none = "tracekit: no window opened: the trace holds allocations, locks and threads alone"
    assert none + "\n" in said("--paused")
    assert none + "; a function that the compiler has inlined is not called" in said("--window", "on=call:gone")
    assert "no window" not in said("--window", "on=call:parse#2")
