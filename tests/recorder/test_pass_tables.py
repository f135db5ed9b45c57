"""The image tables that the pass writes: calls, loops, phis, dependences, globals, locations."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.recorder.instrumented import NO_ROW, Tables, compile_unit
from tracekit.formats.image import (
    BlockFlag,
    CallFlag,
    EdgeKind,
    FunctionFlag,
    GlobalFlag,
    LoopFlag,
    NodeKind,
    OpFlag,
    OpKind,
    PhiKind,
    TypeClass,
    TypedKind,
)

LEVELS = pytest.mark.parametrize("level", ["-O0", "-O1", "-O2", "-O3"])
NO_UNROLL = ("-fno-unroll-loops", "-fno-vectorize", "-fno-slp-vectorize")


@LEVELS
def test_every_index_is_in_its_table(level: str, tmp_path: Path) -> None:
    source = (Path(__file__).resolve().parents[2] / "fixtures" / "control_flow.c").read_text()
    tables = compile_unit(tmp_path, source, level)
    rows = {name: len(table) for name, table in tables.unit.tables.items()}
    ranges = {
        "functions": [(part, part + "s") for part in ("path", "block", "op", "loop", "edge")],
        "loops": [("phi", "phis"), ("exit", "exits")],
        "blocks": [("op", "ops")],
        "types": [("member", "members")],
    }
    for name, parts in ranges.items():
        for row in tables[name]:
            for first, count in parts:
                assert row["first_" + first] + row[count] <= rows["loop_exits" if count == "exits" else count]
    for name, column, target in [
        ("blocks", "function", "functions"),
        ("blocks", "loop", "loops"),
        ("blocks", "call", "ops"),
        ("blocks", "continues", "ops"),
        ("blocks", "location", "locations"),
        ("ops", "location", "locations"),
        ("loops", "header", "blocks"),
        ("loops", "parent", "loops"),
        ("loop_exits", "source", "blocks"),
        ("loop_exits", "target", "blocks"),
        ("locations", "source", "sources"),
        ("calls", "op", "ops"),
        ("calls", "block", "blocks"),
        ("updates", "load", "ops"),
        ("updates", "store", "ops"),
        ("update_parts", "update", "updates"),
        ("loop_fates", "location", "locations"),
        ("loop_fates", "into", "locations"),
        ("variable_updates", "variable", "variables"),
        ("members", "type", "types"),
        ("members", "location", "locations"),
        ("typed", "type", "types"),
        ("lines", "block", "blocks"),
        ("lines", "location", "locations"),
    ]:
        for row in tables[name]:
            assert row[column] == NO_ROW or row[column] < rows[target], (name, column)
    ends = {NodeKind.OP: "ops", NodeKind.PHI: "phis", NodeKind.BRANCH: "blocks"}
    for edge in tables["edges"]:
        assert edge["from"] < rows[ends[edge["from_kind"]]] and edge["to"] < rows[ends[edge["to_kind"]]]
    for path in tables["paths"]:
        block = tables["blocks"][tables["path_blocks"][path["first"]]["block"]]
        ops = tables["ops"][block["first_op"] : block["first_op"] + block["ops"]]
        assert path["words"] == sum((op["kind"] != OpKind.CALL) + bool(op["flags"] & OpFlag.DYNAMIC_SIZE) for op in ops)


@LEVELS
def test_call_sites(level: str, tmp_path: Path) -> None:
    tables = compile_unit(
        tmp_path,
        r"""
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <setjmp.h>
int cmp(const void *, const void *); void visit(void (*)(int), int); void opaque(int *); jmp_buf env;
static void each(int n) { printf("%d", n); }
int pick(int (*f)(int), double x, int *v, const char *s) {
    void *m = malloc(*v); opaque(m); free(m);
    qsort(v, 3, 4, cmp); visit(each, 1);
    if (setjmp(env)) exit(1);
    return f(2) + (int)sin(x) + (int)strlen(s); }
""",
        level,
        "-fno-inline",
    )
    calls = {call["callee"]: call for call in tables.calls_of("pick")}
    flags = {name: CallFlag(call["flags"]) for name, call in calls.items()}
    assert flags["malloc"] == flags["free"] == CallFlag.ALLOCATES or flags["free"] == CallFlag.ALLOCATES
    assert flags["malloc"] & CallFlag.ALLOCATES
    assert flags["opaque"] == CallFlag.MAY_CALL_BACK
    assert flags["qsort"] == flags["visit"] == CallFlag.MAY_CALL_BACK
    assert flags["exit"] == CallFlag.NO_RETURN
    assert flags["_setjmp"] & CallFlag.RETURNS_TWICE
    assert flags["sin"] == CallFlag.PURE | CallFlag.LEAF
    assert flags["strlen"] == CallFlag.PURE
    assert flags[""] == CallFlag.INDIRECT and calls[""]["signature"] == "i32 (i32)"
    for name, target in [("qsort", "cmp"), ("visit", "each")]:
        row = calls[name]
        assert [t["name"] for t in tables["call_targets"][row["first_target"] :][: row["targets"]]] == [target]
    assert tables.function("each")["flags"] == FunctionFlag.LOCAL | FunctionFlag.ADDRESS_TAKEN
    assert tables.function("pick")["flags"] == FunctionFlag.RETURNS_TWICE
    blocks = tables.of("pick", "blocks")
    for block in blocks:
        if block["call"] != NO_ROW:
            followers = [other for other in blocks if other["continues"] == block["call"]]
            ends = CallFlag(tables["calls"][tables["ops"][block["call"]]["base"]]["flags"]) & CallFlag.NO_RETURN
            assert len(followers) == (0 if ends else 1)
    assert sum(bool(block["flags"] & BlockFlag.LANDING) for block in blocks) == 1


@pytest.mark.parametrize("option", ["-fbuiltin", "-fno-builtin"])
def test_calls_that_allocate(option: str, tmp_path: Path) -> None:
    tables = compile_unit(
        tmp_path,
        r"""
#include <stdlib.h>
void *made(size_t) __asm__("_Znwm"); void *made_or_null(size_t, const void *) __asm__("_ZnwmRKSt9nothrow_t");
void *many(size_t, size_t) __asm__("_ZnamSt11align_val_t"); void *other(size_t) __asm__("_Znwx");
void gone(void *) __asm__("_ZdlPv"); void many_gone(void *, size_t) __asm__("_ZdaPvm"); void *volatile kept;
void run(int n) {
    kept = malloc(n); kept = realloc(kept, 2 * n); free(kept); kept = made(n); kept = made_or_null(n, kept); gone(kept);
    kept = many(n, 64); many_gone(kept, n); kept = other(n); }
""",
        "-O1",
        option,
    )
    flags = {call["callee"]: CallFlag(call["flags"]) for call in tables.calls_of("run")}
    assert not flags.pop("_Znwx") & CallFlag.ALLOCATES
    assert len(flags) == 8 and all(flag & CallFlag.ALLOCATES for flag in flags.values()), flags


@LEVELS
def test_addresses_of_functions_of_other_units(level: str, tmp_path: Path) -> None:
    tables = compile_unit(
        tmp_path,
        """
int add(int), drop(int), called(int);
int (*table[])(int) = {add, drop, add};
int run(int n) { return called(table[n](n)); }
""",
        level,
    )
    assert sorted(row["name"] for row in tables["address_taken"]) == ["add", "drop"]


LOOPS = """
int a[100], b[100], total; double d[100];
int sums(int n) {
    int s = 0;
    for (int i = 0; i < n; i++)
        s += a[i];
    return s;
}
int nested(int n) {
    int s = 0;
    for (int i = 0; i < n; i++)
        for (int j = 0; j < i; j++)
            s ^= a[j];
    return s;
}
int search(int x) {
    for (int i = 0; i < 100; i++) {
        if (a[i] == x)
            return i;
        b[i] = 0;
    }
    return -1;
}
struct L { struct L *next; int v; };
int chase(struct L *l) {
    int last = 0;
    while (l) {
        last = last * 3 + l->v;
        l = l->next;
    }
    return last;
}
double best(void) {
    double m = 0;
    for (int i = 0; i < 100; i++)
        m = d[i] < m ? d[i] : m;
    return m;
}
void memory(int n) {
    for (int i = 0; i < n; i++) {
        total += a[i];
        b[a[i]] *= 3;
    }
}
"""


def line_of(text: str) -> int:
    return LOOPS[: LOOPS.index(text)].count("\n") + 1


@pytest.fixture(params=["-O0", "-O1", "-O2"], scope="module")
def loops(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Tables:
    return compile_unit(tmp_path_factory.mktemp("loops"), LOOPS, request.param, *NO_UNROLL)


def phis(tables: Tables, loop: dict[str, int]) -> list[tuple[int, str]]:
    return sorted((phi["kind"], phi["operator"]) for phi in tables["phis"][loop["first_phi"] :][: loop["phis"]])


def test_lines_and_nesting(loops: Tables) -> None:
    (only,) = loops.of("sums", "loops")
    start, end = line_of("for (int i = 0; i < n"), line_of("s += a[i]")
    assert (loops.line(only["location"]), only["end_line"], only["depth"], only["parent"]) == (start, end, 1, NO_ROW)
    outer, inner = loops.of("nested", "loops")
    assert [loops.line(loop["location"]) for loop in (outer, inner)] == [
        line_of("for (int j") - 1,
        line_of("for (int j"),
    ]
    assert (inner["depth"], loops["loops"][inner["parent"]]) == (2, outer)
    assert loops["blocks"][inner["header"]]["flags"] & BlockFlag.LOOP_HEADER


def test_what_phis_carry(loops: Tables) -> None:
    (only,) = loops.of("sums", "loops")
    assert phis(loops, only) == [(PhiKind.INDUCTION, "+1"), (PhiKind.REDUCTION, "+")]
    for loop in loops.of("nested", "loops"):
        assert phis(loops, loop) == [(PhiKind.INDUCTION, "+1"), (PhiKind.REDUCTION, "^")]
    (chase,) = loops.of("chase", "loops")
    assert phis(loops, chase) == [(PhiKind.RECURRENCE, ""), (PhiKind.RECURRENCE, "")]


def test_how_loops_end(loops: Tables) -> None:
    (only,) = loops.of("sums", "loops")
    assert only["flags"] & LoopFlag.COUNTABLE
    assert not only["flags"] & (LoopFlag.EXITS_EARLY | LoopFlag.EXITS_ON_DATA)
    (search,) = loops.of("search", "loops")
    assert search["flags"] & LoopFlag.EXITS_EARLY and search["flags"] & LoopFlag.EXITS_ON_DATA
    assert not search["flags"] & LoopFlag.COUNTABLE and search["exits"] == 2
    (chase,) = loops.of("chase", "loops")
    assert chase["flags"] & LoopFlag.EXITS_ON_DATA and not chase["flags"] & LoopFlag.EXITS_EARLY


def test_updates_of_memory(loops: Tables) -> None:
    first = loops.function("memory")["first_op"]
    found = {
        (
            row["operator"],
            loops.line(loops["ops"][row["load"]]["location"]),
            loops.line(loops["ops"][row["store"]]["location"]),
        )
        for row in loops["updates"]
        if row["load"] >= first
    }
    multiplied, added = line_of("b[a[i]] *= 3"), line_of("total += a[i]")
    assert ("*", multiplied, multiplied) in found
    (loop,) = loops.of("memory", "loops")
    # From -O1 on, total lives in a register while the loop runs.
    assert ("+", added, added) in found or (PhiKind.REDUCTION, "+") in phis(loops, loop)


def test_dependences_within_loops(loops: Tables) -> None:
    ops = loops["ops"]
    rows = {name: (loops.function(name)["first_op"], loops.function(name)["ops"]) for name in ("chase", "search")}

    def edges(function: str) -> list[dict[str, int]]:
        return loops.of(function, "edges")

    first, count = rows["chase"]
    follow = next(k for k in range(first, first + count) if loops.line(ops[k]["location"]) == line_of("l = l->next"))
    value = next(k for k in range(first, first + count) if loops.line(ops[k]["location"]) == line_of("last = last"))
    (chase,) = loops.of("chase", "loops")
    headers = set(range(chase["first_phi"], chase["first_phi"] + chase["phis"]))
    register = {
        (e["from_kind"], e["from"], e["to_kind"], e["to"]) for e in edges("chase") if e["kind"] == EdgeKind.REGISTER
    }
    pointer = next(
        to for kind, source, to_kind, to in register if (kind, source, to_kind) == (NodeKind.OP, follow, NodeKind.PHI)
    )
    assert pointer in headers
    assert {(NodeKind.PHI, pointer, NodeKind.OP, follow), (NodeKind.PHI, pointer, NodeKind.OP, value)} <= register
    (last,) = headers - {pointer}
    assert {(NodeKind.OP, value, NodeKind.PHI, last), (NodeKind.PHI, last, NodeKind.PHI, last)} <= register
    first, count = rows["search"]
    stores = [k for k in range(first, first + count) if ops[k]["kind"] == OpKind.STORE]
    loads = [k for k in range(first, first + count) if ops[k]["kind"] == OpKind.LOAD]
    branches = {
        e["to"]
        for e in edges("search")
        if (e["from_kind"], e["from"], e["to_kind"]) == (NodeKind.OP, loads[0], NodeKind.BRANCH)
    }
    controlled = {
        e["to"]
        for e in edges("search")
        if e["kind"] == EdgeKind.CONTROL and e["from"] in branches and e["to_kind"] == NodeKind.OP
    }
    assert set(stores) <= controlled


@LEVELS
def test_globals(level: str, tmp_path: Path) -> None:
    tables = compile_unit(
        tmp_path,
        """
extern int declared; int plain[3]; static const long constant = 4; static char local; __thread int own;
typedef struct S { int x, y; } S; S object = {1, 2}; char *text = "a literal";
long use(void) { static int inside; return declared + constant + local++ + own + inside++ + (&constant != 0); }
""",
        level,
        "-fkeep-static-consts",
    )
    rows = {row["source_name"]: row for row in tables["globals"]}
    assert {name: row["size"] for name, row in rows.items() if name != "constant"} == {
        "plain": 12,
        "local": 1,
        "own": 4,
        "object": 8,
        "text": 8,
        "inside": 4,
    }
    assert rows["own"]["flags"] == GlobalFlag.THREAD_LOCAL
    assert rows["local"]["flags"] == rows["inside"]["flags"] == GlobalFlag.LOCAL
    assert rows["inside"]["name"] == "use.inside" and rows["object"]["type"] == "S"
    assert tables.line(rows["object"]["location"]) == 3
    assert rows["constant"]["flags"] == GlobalFlag.LOCAL | GlobalFlag.CONSTANT


def test_locations_of_inlined_code(tmp_path: Path) -> None:
    tables = compile_unit(
        tmp_path,
        """
static inline int get(const int *p) {
    return *p;
}
int twice(const int *p) {
    return get(p) + get(p + 1);
}
""",
        "-O1",
    )
    first, second = tables.of("twice", "ops")
    for op in (first, second):
        location = tables["locations"][op["location"]]
        assert (location["line"], location["function"]) == (3, "get")
        caller = tables["locations"][location["inlined_at"]]
        assert (caller["line"], caller["function"], caller["inlined_at"]) == (6, "twice", NO_ROW)


@LEVELS
def test_types_and_flags_of_accesses(level: str, tmp_path: Path) -> None:
    tables = compile_unit(
        tmp_path,
        """
typedef float v4 __attribute__((vector_size(16)));
volatile int i; double d; void *p; v4 v; struct { unsigned a : 3, b : 7; } bits; _Bool flag; __int128 wide;
void f(void) { i = 1; }
void g(double x, void *y, v4 z, int n) { d = x; p = y; v = z; bits.b = n; flag = n; wide = n; }
""",
        level,
    )
    (store,) = tables.of("f", "ops")
    assert (store["flags"], store["type_class"], store["size"]) == (OpFlag.VOLATILE, TypeClass.INTEGER, 4)
    stores = [(op["type_class"], op["size"]) for op in tables.of("g", "ops") if op["kind"] == OpKind.STORE]
    assert stores[:3] == [(TypeClass.FLOAT, 8), (TypeClass.POINTER, 8), (TypeClass.VECTOR, 16)]
    assert stores[4:] == [(TypeClass.INTEGER, 1), (TypeClass.INTEGER, 16)]


def test_the_unit_row(tmp_path: Path) -> None:
    (unit,) = compile_unit(tmp_path, "int x;", options="record=blocks,at=machine")["unit"]
    assert unit["at"] == "machine" and "clang" in unit["producer"] and unit["target"]
    (unit,) = compile_unit(tmp_path, "int x;")["unit"]
    assert unit["at"] == "source"


def test_an_unknown_option_is_refused(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="TRACEKIT_PASS: no such option: at=dusk"):
        compile_unit(tmp_path, "int x;", options="record=blocks,at=dusk")


@LEVELS
def test_a_choice_depends_on_its_branch(level: str, tmp_path: Path) -> None:
    tables = compile_unit(
        tmp_path,
        """
void visit(int *);
void f(int *a, int *out, int n) {
    for (int i = 0; i < n; i++) {
        int x = 1;
        if (a[i]) { visit(a + i); x = 2; }
        out[i] = x;
    }
}
""",
        level,
        *NO_UNROLL,
    )
    ops = tables["ops"]
    first, count = tables.function("f")["first_op"], tables.function("f")["ops"]
    load = next(k for k in range(first, first + count) if ops[k]["kind"] == OpKind.LOAD)
    store = next(k for k in range(first, first + count) if ops[k]["kind"] == OpKind.STORE)
    edges = tables.of("f", "edges")
    tested = {
        e["to"]
        for e in edges
        if e["from_kind"] == NodeKind.OP and e["from"] == load and e["to_kind"] == NodeKind.BRANCH
    }
    assert tested & {
        e["from"]
        for e in edges
        if e["from_kind"] == NodeKind.BRANCH
        and e["kind"] == EdgeKind.CONTROL
        and e["to_kind"] == NodeKind.OP
        and e["to"] == store
    }


STRUCTURES = """\
struct inner { int a, b; };
typedef struct { struct inner in; char name[6]; unsigned low : 3, high : 5; struct inner *to; } outer;
outer all[4];
long use(outer *o, int i) {
  all[i].in.b = 1;
  return o->to->b + o->in.a;
}
"""


@LEVELS
def test_structures_and_the_members_that_are_accessed(level: str, tmp_path: Path) -> None:
    tables = compile_unit(tmp_path, STRUCTURES, level)
    names = [row["name"] for row in tables["types"]]
    assert sorted(names) == ["inner", "outer"]
    outer = tables["types"][names.index("outer")]
    members = tables["members"][outer["first_member"] : outer["first_member"] + outer["members"]]
    assert outer["size"] == 24
    assert [(row["name"], row["type_name"], row["offset"], row["size"]) for row in members] == [
        ("in", "inner", 0, 64),
        ("name", "char[6]", 64, 48),
        ("low", "unsigned int", 112, 3),
        ("high", "unsigned int", 115, 5),
        ("to", "inner *", 128, 64),
    ]
    assert [row["type"] for row in members] == [names.index("inner"), *[NO_ROW] * 4]
    typed = [(row["of_kind"], names[row["type"]], row["offset"]) for row in tables["typed"]]
    assert (TypedKind.GLOBAL, "outer", 0) in typed
    accesses = {(name, offset) for kind, name, offset in typed if kind == TypedKind.OP}
    assert accesses == {("outer", 4), ("outer", 16), ("inner", 4), ("outer", 0)}


@LEVELS
def test_a_structure_without_a_name_is_called_as_its_typedef(level: str, tmp_path: Path) -> None:
    """Here only accesses speak of it; no variable and no member is of that type."""
    source = "typedef struct { int used, size; } buffer; int left(buffer *b) { return b->size - b->used; }"
    tables = compile_unit(tmp_path, source, level)
    assert [row["name"] for row in tables["types"]] == ["buffer"]


CLEANS_UP = """
declare i32 @PERSONALITY(...)
declare void @fails()
declare void @cleans()
define void @goes_on() personality ptr @PERSONALITY {
  invoke void @fails() to label %done unwind label %cleanup
done:
  ret void
cleanup:
  %caught = landingpad { ptr, i32 } cleanup
  call void @cleans()
  resume { ptr, i32 } %caught
}
"""


@pytest.mark.parametrize(
    "personality, calls", [("rust_eh_personality", ["_Unwind_Resume"]), ("__gxx_personality_v0", [])]
)
@LEVELS
def test_what_goes_on_unwinding_calls_rusts_personality(
    level: str, personality: str, calls: list[str], tmp_path: Path
) -> None:
    tables = compile_unit(tmp_path, CLEANS_UP.replace("PERSONALITY", personality), level, suffix=".ll")
    assert [call["callee"] for call in tables["calls"]] == ["fails", "cleans", *calls]
