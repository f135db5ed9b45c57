"""Windows on a run: what is recorded inside is what a recording of the whole run has there, contexts included.

Random programs open and close windows at random steps, wherever these are. Each is recorded as a whole and with
`--paused`, at the same addresses; a handful for each run of the suite, TRACEKIT_LONG=N runs N.
"""

from __future__ import annotations

import random
import shutil
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.generator import program
from tests.naive.reader import read
from tests.programs.running import TRACEKIT, compile_program, replayed, run, run_here
from tests.programs.test_random import COUNT, FIRST, _named
from tracekit.formats.events import BY_CODE

STACK = 0x7FFF
"""The upper half of addresses on the stack, with `setarch -R`."""

Event = tuple[str, int, int, int]
"""Name, subject, address, size."""

pytestmark = pytest.mark.skipif(shutil.which("setarch") is None, reason="two runs need the same addresses")

WINDOWS = """\
#include "tracekit.h"
static unsigned passed, window;
static const unsigned places[] = {{{places}, ~0u}};
static inline __attribute__((always_inline)) void step(void)
{{
    if (passed++ == places[window]) {{
        if (window++ & 1)
            tracekit_window_close();
        else
            tracekit_window_open();
    }}
}}
"""


def with_windows(source: str, places: list[int]) -> str:
    """The program, with a window that opens or closes at each of these steps."""
    head, macro, rest = source.partition("#define STEP (")
    assert macro
    return head + WINDOWS.format(places=", ".join(f"{place}u" for place in places)) + "#define STEP (step(), " + rest


class Recorded(NamedTuple):
    """The events of a recording's first stream, but for hand-overs: buffers are full elsewhere in a part of the run."""

    events: list[Event]
    calls: frozenset[int]
    """The calls that open and close windows."""
    opens: frozenset[int]
    """Those that open one."""


def recorded(app: Path, trace: Path, *options: str) -> Recorded:
    done = run(["setarch", "-R", *TRACEKIT, "record", "-f", *options, "-o", trace, "--", app])
    assert b"tracekit: " in done.stderr, done
    assert b"dropped" not in done.stderr, done
    found = [(BY_CODE[kind].name, *rest) for stream, kind, *rest in replayed(trace).events if stream == 0]
    events = [event for event in found if event[0] != "hand_over"]
    return Recorded(events, *window_calls(trace))


def window_calls(trace: Path) -> tuple[frozenset[int], frozenset[int]]:
    """The instructions that call the runtime to open or close a window, and those to open one."""
    found = read(trace.read_bytes())
    calls, opens = set(), set()
    for number, row in enumerate(found.tables["calls"]):
        unit = found.unit_of["calls"][number]
        if found.text(unit, row["callee"]) == "__tk_window":
            calls.add(row["op"])
            place = found.tables["ops"][row["op"]]["location"]
            name = found.text(found.unit_of["locations"][place], found.tables["locations"][place]["function"])
            if name.startswith("tracekit_window_open"):
                opens.add(row["op"])
    return frozenset(calls), frozenset(opens)


class Place(NamedTuple):
    """What is under way: activations with their calls, open loops and stack objects, and the live heap."""

    frames: list[tuple[int, int, list[int], Counter[tuple[int, int]]]]
    heap: dict[int, int]


def place(events: list[Event]) -> Place:
    """Where events lead to, from nothing; stack objects by where they stand among those of the thread."""
    frames: list[tuple[int, int, list[int], list[tuple[int, int, int]]]] = []
    heap: dict[int, int] = {}
    for name, subject, address, size in events:
        if name == "function_entry":
            frames.append((subject, size, [], []))
        elif name == "function_exit":
            assert frames.pop()[0] == subject
        elif name == "loop_invocation":
            frames[-1][2].append(subject)
        elif name == "loop_exit":
            assert frames[-1][2].pop() == subject
        elif name == "stack_alloc":
            frames[-1][3].append((subject, address, size))
        elif name == "stack_free":
            frames[-1][3].remove([item for item in frames[-1][3] if item[1:] == (address, size)][-1])
        elif name == "heap_alloc":
            heap[address] = size
        elif name == "heap_free":
            heap.pop(address, None)
    return Place(
        [
            (function, call, loops, Counter((op, size) for op, _, size in objects))
            for function, call, loops, objects in frames
        ],
        heap,
    )


def located(events: list[Event]) -> list[Event]:
    """Stack addresses as object and offset: a window's frames may be those of clean bodies, which lie elsewhere."""
    live: dict[int, tuple[int, int]] = {}
    found: list[Event] = []
    for name, subject, address, size in events:
        if name == "stack_alloc":
            live[address] = (subject, size)
        elif name == "stack_free":
            live.pop(address, None)
        if name in ("stack_alloc", "stack_free"):
            address = 0
        elif address >> 32 == STACK:
            inside = [base for base, (_, bytes_) in live.items() if base <= address < base + bytes_]
            address = live[inside[0]][0] << 32 | address - inside[0] if inside else STACK
        found.append((name, subject, address, size))
    return found


def stretches(whole: Recorded) -> list[tuple[int, int]]:
    """Between which events of a whole recording each window lies: after the open, up to the close."""
    marks = [
        at for at, (name, subject, *_) in enumerate(whole.events) if name == "external_call" and subject in whole.calls
    ]
    ends = [*marks[1::2], len(whole.events)][: (len(marks) + 1) // 2]
    return list(zip(marks[::2], ends))


def windows(paused: Recorded) -> list[tuple[int, int, int]]:
    """Of each window: window_begin, the first event inside, window_end or what comes after all."""
    found = []
    begin = None
    for at, (name, *_) in enumerate([*paused.events, ("window_end", 0, 0, 0)]):
        if name == "window_begin":
            begin = at
        elif name == "window_end" and begin is not None:
            inside = next(
                k
                for k in range(begin, at)
                if paused.events[k][0] == "external_call" and paused.events[k][1] in paused.calls
            )
            found.append((begin, inside, at))
            begin = None
    return found


def many_lives(values: int, calls: int) -> str:
    """A function with so many values alive at so many calls, behind each of which a window may have opened."""
    numbers = range(values)
    each = [f"x{k % values} += through(x{(k * 7 + 1) % values}, &key[x{k % values} & 7]);" for k in range(calls)]
    half = calls // 2
    return f"""
#include <stdio.h>
#define STEP (0)
static long seen[64];
__attribute__((noinline)) static long through(long value, long *key)
{{
    (void)STEP;
    seen[value & 63] += value;
    *key ^= value;
    return value * 3 + 1;
}}
__attribute__((noinline)) static long many(long *from, int rounds)
{{
    long key[8] = {{0}};
    long {", ".join(f"x{k} = from[{k}]" for k in numbers)};
    for (int i = 0; i < rounds; i++) {{
        if (i & 1) {{
            {" ".join(each[:half])}
        }} else {{
            {" ".join(each[half:])}
        }}
    }}
    {" ".join(f"from[{k}] = x{k};" for k in numbers)}
    return key[3];
}}
int main(void)
{{
    long values[{values}];
    for (int k = 0; k < {values}; k++)
        values[k] = k;
    long last = many(values, 5);
    printf("%ld %ld %ld\\n", last, values[0], values[{values - 1}]);
    return 0;
}}
"""


@pytest.mark.parametrize("level", ["-O1", "-O2"])
def test_windows_in_a_function_that_hands_over_thousands_of_values(level: str, tmp_path: Path) -> None:
    source = tmp_path / "app.c"
    source.write_text(with_windows(many_lives(64, 80), [3, 60, 101, 102, 150, 190]))
    app = compile_program([source], tmp_path / "app", [level, "--windows"], instrumented=True)
    (tmp_path / "plain.c").write_text(many_lives(64, 80))
    plain = compile_program([tmp_path / "plain.c"], tmp_path / "plain", [level], instrumented=False)
    whole = recorded(app, tmp_path / "whole.zst")
    paused = recorded(app, tmp_path / "paused.zst", "--paused")
    compare(whole, paused)
    again = run([*TRACEKIT, "record", "--paused", "-o", tmp_path / "again.zst", "--", app])
    assert run([app]).stdout == again.stdout == run([plain]).stdout


MOVING_OBJECTS = r"""
#include <alloca.h>
#include <stdio.h>
#include <string.h>
#define STEP (0)
long table[512];
__attribute__((noinline)) static long leaf(long *to, long n) {
    long s = 0;
    (void)STEP;
    for (long i = 0; i < n; i++) {
        to[i] += i;
        s += to[i] ^ table[i & 511]++;
    }
    return s;
}
__attribute__((noinline)) static long deep(long d, long n)
{
    long *own = alloca((n + d) * sizeof *own), s = 0;
    char fixed[32];
    memset(own, 0, (n + d) * sizeof *own);
    memset(fixed, (int)d, sizeof fixed);
    if (d > 0) s = deep(d - 1, n);
    for (long k = 0; k < 3; k++) {
        s += leaf(own, n + d);
        for (long j = 0; j < n; j++)
            s += own[j] * j;
    }
    long *late = alloca((s & 15) * 8 + 8);
    late[0] = s;
    s += leaf(own, n) + leaf(late, 1);
    return s + fixed[d & 31];
}
__attribute__((noinline, unused)) static long loop(long n)
{
    long s = 0, *list = NULL;
    for (long k = 0; k < n; k++) {
        long *node = alloca((2 + k % 3) * sizeof *node);
        node[0] = (long)list;
        node[1] = k;
        list = node;
        if (k % 7 == 0)
            s += leaf(node + 1, 1);
        for (int j = 0; j < 5; j++)
            table[j] += node[1];
    }
    for (long *at = list; at; at = (long *)at[0])
        s += at[1];
    return s;
}
struct big { long a[5]; };
__attribute__((noinline)) static long given(struct big it, long d)
{
    long s = it.a[d % 5];
    it.a[0] += leaf(it.a, 5);
    if (d > 0)
        s = given(it, d - 1);
    for (long k = 0; k < 3; k++) {
        s += leaf(it.a + 1, 3);
        for (long j = 0; j < 4; j++)
            s += it.a[j] * j;
    }
    return s + it.a[4];
}
int main(void)
{
    struct big big = {{1, 2, 3, 4, 5}};
    long s = 0;
    for (long i = 0; i < 40; i++)
        s += deep(i % 6, 5 + i % 9) + given(big, i % 6) + LOOP;
    printf("%ld\n", s);
    return 0;
}
"""
"""Objects of `alloca` and parameters on the stack, under way where windows open; also objects of a loop, of which the
newest alone is known."""


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("loop", ["0", "loop(30 + i % 40)"])
def test_objects_without_a_place_of_their_own_under_way(loop: str, seed: int, tmp_path: Path) -> None:
    places = sorted(random.Random(seed).sample(range(500), 8))
    source = tmp_path / "app.c"
    source.write_text(f"#define LOOP {loop}\n" + with_windows(MOVING_OBJECTS, places))
    app = compile_program([source], tmp_path / "app", [f"-O{1 + seed % 2}", "--windows"], instrumented=True)
    names = run(["nm", app]).stdout.decode()
    assert "deep.tk" in names and "given.tk" in names
    paused = recorded(app, tmp_path / "paused.zst", "--paused")
    assert run_here("check", tmp_path / "paused.zst").status == 0
    whole = recorded(app, tmp_path / "whole.zst")
    if loop == "0":
        compare(whole, paused)
    else:
        assert len(stretches(whole)) == len(windows(paused)) == 4
        again = run([*TRACEKIT, "record", "--paused", "-o", tmp_path / "again.zst", "--", app])
        assert again.stdout == run([app]).stdout


@pytest.mark.parametrize("seed", range(FIRST, FIRST + COUNT))
def test_the_events_inside_are_those_of_the_whole_run(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    source = tmp_path / "app.c"
    places = sorted(rng.sample(range(rng.choice((60, 600, 3000))), 2 * rng.randint(1, 4)))
    source.write_text(with_windows(program(seed), places))
    flags = [f"-O{seed % 4}", "--windows", f"--record={('paths', 'both', 'blocks')[seed // 4 % 3]}"]
    app = compile_program([source], tmp_path / "app", flags, instrumented=True)
    whole = recorded(app, tmp_path / "whole.zst")
    paused = recorded(app, tmp_path / "paused.zst", "--paused")
    assert run_here("check", tmp_path / "paused.zst").status == 0
    assert _named(replayed(tmp_path / "paused.zst").events) == read((tmp_path / "paused.zst").read_bytes()).events()
    compare(whole, paused)


def compare(whole: Recorded, paused: Recorded) -> None:
    """Window by window: where it opens, and what happens in it."""
    wanted, found = stretches(whole), windows(paused)
    assert len(wanted) == len(found)
    located_whole, located_inside = located(whole.events), located(paused.events)
    for (start, stop), (begin, inside, end) in zip(wanted, found, strict=True):
        before, resumed = place(whole.events[:start]), place(paused.events[begin:inside])
        assert resumed.frames == before.frames
        assert place(paused.events[:begin]).heap == before.heap
        last = len(paused.events) if stop == len(whole.events) else end
        assert located_inside[inside:last] == located_whole[start:stop]


INLINE_FUNCTIONS = """
extern long sink;
long step(long);
template <typename T> struct Held {
    T value;
    explicit Held(T given) : value(step(given)) {}
    __attribute__((noinline)) ~Held() { sink += step(value); }
    __attribute__((noinline)) T twice() { T kept[4] = {value}; kept[step(1) & 3] += value; return step(kept[0]); }
};
template <typename T> __attribute__((noinline)) inline T sum(int count)
{
    T result = 0;
    for (int i = 0; i < count; i++)
        for (int k = 0; k < 3; k++) {
            Held<T> held(i + k);
            result += held.twice();
        }
    return result;
}
"""
"""Both files have each of these; the linker keeps one, with what tells where in it a window may open."""


def test_inline_functions_of_two_files(tmp_path: Path) -> None:
    (tmp_path / "held.hpp").write_text(INLINE_FUNCTIONS)
    (tmp_path / "other.cpp").write_text('#include "held.hpp"\nlong other(int n) { return sum<long>(n); }\n')
    main = (
        "#include <cstdio>\n#define STEP (0)\nlong sink;\nlong other(int);\n"
        "__attribute__((noinline)) long step(long value) { (void)STEP; return value + sink % 2; }\n"
        '#include "held.hpp"\nint main() { printf("%ld %ld\\n", sum<long>(9), other(7)); return 0; }\n'
    )
    (tmp_path / "main.cpp").write_text(with_windows(main, [5, 40, 61, 62, 120, 170]))
    flags = ["-O1", "--windows"]
    app = compile_program([tmp_path / "main.cpp", tmp_path / "other.cpp"], tmp_path / "app", flags, instrumented=True)
    compare(recorded(app, tmp_path / "whole.zst"), recorded(app, tmp_path / "paused.zst", "--paused"))
