"""Kinds of events that are left out: what is recorded is the rest of a whole recording, values included."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.generator import program
from tests.naive.reader import read as naive_read
from tests.programs.running import TRACEKIT, replayed, run
from tests.programs.test_random import _named
from tests.recorder.recording import build
from tests.recorder.window_traces import good, info
from tracekit.formats.errors import TracekitError
from tracekit.formats.events import BY_CODE
from tracekit.formats.image import OpKind
from tracekit.recorder.window_filters import Filter, Of, left_out, parse

PROGRAM = r"""
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
struct node { struct node *next; long value; char text[40]; };
atomic_long total;
long table[256];
__attribute__((noinline)) void fill(struct node *node, long n)
{
    struct node kept = *node;
    for (long i = 0; i < n; i++) table[i & 255] += i;
    memmove(node->text + 1, node->text, (size_t)n % 30);
    memcpy(node->text, kept.text, sizeof kept.text);
    memset(node->text, (int)n, (size_t)n % 40);
    atomic_fetch_add(&total, n);
}
int main(void)
{
    struct node *first = NULL;
    for (long i = 0; i < 20; i++) {
        struct node *node = calloc(1, sizeof *node);
        node->next = first;
        node->value = i;
        first = node;
        fill(node, i * 3);
    }
    long sum = 0;
    for (struct node *node = first; node; node = node->next) sum += node->value + (long)strlen(node->text);
    printf("%ld %ld %ld\n", sum, (long)total, table[7]);
}
"""

pytestmark = pytest.mark.skipif(shutil.which("setarch") is None, reason="two runs need the same addresses")

Event = tuple[int, ...]


def recorded(app: Path, trace: Path, *options: str) -> list[Event]:
    """The events, but for what differs between two runs: stream, kind, instruction, address, size."""
    done = run(["setarch", "-R", *TRACEKIT, "record", "-f", *options, "-o", trace, "--", app])
    assert b" -> " in done.stderr, done.stderr  # the status is the program's
    assert b"dropped" not in done.stderr
    good(trace)
    found = naive_read(trace.read_bytes())
    assert list(found.events()) == _named(replayed(trace).events)
    return [event for event in replayed(trace).events if BY_CODE[event[1]].name not in ("program_start", "hand_over")]


def kinds(*names: str) -> Callable[[Event], bool]:
    """Whether an event is none of these."""
    return lambda event: BY_CODE[event[1]].name not in names


@pytest.mark.parametrize("seed", [None, 1, 6, 11])
@pytest.mark.parametrize("extra", [(), ("--values=all", "--pointers"), ("--record=both",), ("--record=blocks",)])
def test_what_is_left_is_the_rest_of_the_whole(tmp_path: Path, seed: int | None, extra: tuple[str, ...]) -> None:
    app = build(tmp_path, PROGRAM if seed is None else program(seed), "-O2", "-w", *extra)
    whole = recorded(app, tmp_path / "whole.zst")
    ops = naive_read((tmp_path / "whole.zst").read_bytes()).tables["ops"]
    destinations = {1 + number for number, row in enumerate(ops) if row["kind"] == OpKind.COPY_FROM}
    for options, gone in (
        (("--without", "events=loads"), ("load",)),
        (("--only", "events=loads,values,pointers"), ("store",)),
        (("--without", "events=loads,stores"), ("load", "store")),
        (("--without", "events=values,pointers"), ("pointer_creation",)),
    ):
        found = recorded(app, tmp_path / "part.zst", *options)
        realloc = {event[2:] for event in whole if BY_CODE[event[1]].name == "heap_realloc"}
        assert not realloc, "what realloc copies is recorded all the same"
        # The store of a copy whose load is left out is an instruction of its own.
        found = [(stream, kind, op - (op in destinations), *rest) for stream, kind, op, *rest in found]
        assert found == [event for event in whole if kinds(*gone)(event)], options
    assert len(whole) > 100


def test_a_trace_without_loads_is_smaller_and_says_so(tmp_path: Path) -> None:
    app = build(tmp_path, PROGRAM, "-O2", "-w", "--values=all")
    whole = recorded(app, tmp_path / "whole.zst")
    recorded(app, tmp_path / "part.zst", "--without", "events=loads,values")
    facts, before = info(tmp_path / "part.zst"), info(tmp_path / "whole.zst")
    assert facts["metadata"]["filters"] == ["without events=loads", "without events=values"]  # type: ignore[index]
    assert facts["loads"] == 0
    assert facts["stores"] == before["stores"]
    assert facts["values_recorded"] < before["values_recorded"] / 2  # type: ignore[operator]
    assert whole


def test_what_texts_mean() -> None:
    assert parse("events=loads", True) == [Filter(Of.EVENT, "loads", excludes=True)]
    assert left_out(parse("events=loads", True)) == {"loads"}
    assert left_out(parse("events=loads", False)) == {"stores", "values", "pointers"}
    assert left_out(parse("functions=f", False)) == frozenset()
    with pytest.raises(TracekitError, match="events are loads, stores, values, pointers, not 'calls'"):
        parse("events=calls", False)
