"""Where loops of optimised code begin, also where the optimiser has dropped what clang says of it."""

from __future__ import annotations

from pathlib import Path

import pytest

import tracekit
from tests.recorder.instrumented import compile_unit
from tests.recorder.recording import build, record

READER = """
struct reader { const char *at, *end; unsigned sum; };
static void skip_spaces(struct reader *r)
{
    while (r->at != r->end) { // LOOP
        char c = *r->at;
        if (c == ' ' || c == '\\t' || c == '\\n' || c == '\\r')
            ++r->at;
        else
            break;
    }
}
int value(struct reader *r);
int array(struct reader *r)
{
    int n = 0;
    for (;;) { // LOOP
        skip_spaces(r);
        if (r->at == r->end || *r->at == ']')
            return n;
        if (!value(r))
            return -1;
        n++;
        skip_spaces(r);
    }
}
"""
LISTS = """
struct object { int type; unsigned char mark; struct object *a, *b, *c; };
static struct object **next_of(struct object *o)
{
    switch (o->type) {
    case 3: return &o->a;
    case 5: return &o->b;
    case 8: return &o->c;
    default: __builtin_unreachable();
    }
}
struct object **correct(struct object **p)
{
    struct object *o;
    while ((o = *p) != 0) { // LOOP
        struct object **next = next_of(o);
        if (o->mark & 8)
            goto remove;
        if (o->mark & 4) {
            o->mark ^= 5;
            goto remain;
        }
        if (!(o->mark & 3))
            goto remain;
        o->mark |= 32;
    remove:
        *p = *next;
        continue;
    remain:
        p = next;
    }
    return p;
}
"""
TEMPLATE = """
#include <cstddef>
template <typename T> static inline const T *beyond(const T *at, const T *end)
{
    while (at != end) { // LOOP
        T c = *at;
        if (c == ' ' || c == '\\t' || c == '\\n' || c == '\\r')
            ++at;
        else
            break;
    }
    return at;
}
const char *narrow(const char *a, const char *b) { return beyond(a, b); }
const wchar_t *wide(const wchar_t *a, const wchar_t *b) { return beyond(a, b); }
"""


@pytest.mark.parametrize("level", ["-O0", "-O1", "-O2", "-O3"])
@pytest.mark.parametrize("source", [READER, LISTS, TEMPLATE], ids=["reader", "lists", "template"])
def test_loops_begin_where_the_source_has_them(source: str, level: str, tmp_path: Path) -> None:
    tables = compile_unit(tmp_path, source, level, suffix=".cpp" if source is TEMPLATE else ".c")
    expected = {number for number, line in enumerate(source.splitlines(), 1) if "// LOOP" in line}
    found = [(tables["functions"][row["function"]]["name"], tables.line(row["location"])) for row in tables["loops"]]
    assert {line for _, line in found} == expected, found
    assert len(found) >= len(expected)


CONDITIONS = r"""
#include <stdio.h>
int failed, a[100], sum;
int step(int i) { sum += a[i]; return failed; }
int both(int n) {
    int error = 0;
    for (int i = 0; i < n && !error; ++i)
        error = step(i);
    return error;
}
int either(int n, int m) {
    int i = 0;
    while ((i < n || i < m) && (sum >= 0 || sum < -9))
        sum += a[i++];
    return i;
}
int main(void) {
    printf("%d %d\n", both(1) + both(4), either(2, 3));
    printf("%d\n", (sum || a[3]) && failed);
}
"""


@pytest.mark.parametrize("level", ["-O0", "-O1"])
def test_a_visit_whose_first_operand_ends_the_loop_is_no_iteration(level: str, tmp_path: Path) -> None:
    program = build(tmp_path, CONDITIONS, level, "-g", "-fno-inline")
    assert record(tmp_path, program).stdout == "0 3\n0\n"
    loops = tracekit.analyze(tmp_path / "trace.zst", "camp", jobs=1).result["loops"]
    found = [(row["loop"]["function"], row["iterations"], row["invocations"]) for row in loops]
    assert ("both", 4, 1) in found, found
