"""Programs at the limits: what one record may hold (TK_SLACK), and what the tables say of code that is ours."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.recorder.instrumented import Tables, compile_unit
from tracekit.formats.image import PathFlag
from tracekit.recorder.toolchain import RUNTIME_SOURCES

SLACK = int(re.search(r"#define TK_SLACK (\d+)", Path(RUNTIME_SOURCES, "state.h").read_text())[1])  # type: ignore[index]


def widest(tables: Tables) -> int:
    """The most words that a record has, its id included; runs come behind another record with one check."""
    return 1 + max(path["words"] for path in tables["paths"])


def before_a_loop(stores: int, arrays: int) -> str:
    """A block with `stores` addresses of its own, then a loop of `arrays` pointers growing by strides of their own."""
    parameters = "".join(f"    int *p{k} = table[{k}]; long s{k} = strides[{k}];\n" for k in range(arrays))
    before = "".join(f"    *table[{arrays + k}] = {k};\n" for k in range(stores))
    accesses = "".join(f"        p{k}[i * s{k}] += i;\n" for k in range(arrays))
    return (
        f"void f(int *volatile *table, volatile long *strides, long n) {{\n{parameters}{before}"
        f"    long i = 0;\n    do {{\n{accesses}    }} while (++i < n);\n}}\n"
    )


@pytest.mark.parametrize("how", ["paths", "both", "blocks"])
@pytest.mark.parametrize(("stores", "arrays"), [(0, 300), (128, 120), (240, 120), (480, 20)])
def test_no_record_outgrows_the_slack(stores: int, arrays: int, how: str, tmp_path: Path) -> None:
    """Bases recorded before a loop are added to blocks that were cut for what they record themselves."""
    tables = compile_unit(tmp_path, before_a_loop(stores, arrays), "-O1", options=f"record={how}")
    assert any(path["words"] > 100 for path in tables["paths"])
    assert widest(tables) <= SLACK


def test_ways_through_the_calls_of_a_parser_are_beyond_number(tmp_path: Path) -> None:
    """Each level of precedence calls the next one three times: 3^24 ways lead to the store behind the pointer."""
    level = "static void level{0}(struct state *s) {{ level{1}(s); if (s->next) level{1}(s); else level{1}(s); }}\n"
    levels = "".join(level.format(k, k + 1) for k in reversed(range(24)))
    source = f"""struct state {{ int next, count; }};
static void level24(struct state *s) {{ s->count++; }}
{levels}void parse(struct state *s) {{ while (s->next) level0(s); }}
"""
    assert compile_unit(tmp_path, source, "-O0").of("parse", "loops")


@pytest.mark.parametrize("how", ["paths", "both"])
def test_header_phis_are_the_programs_own(how: str, tmp_path: Path) -> None:
    """A counter of iterations, and what scalar evolution adds to compute a base, are phis, too."""
    source = """
struct node { struct node *next; int value; };
extern int a[100]; void more(void);
int find(int key) { int i = 0; while (a[i] != key) i++; return i; }
void grow(int *p, int n, int m) {
    for (int i = 0; i < n; i++) { if (p[i] & 1) more(); for (int j = i * m; j < n; j += 3) p[i * m + j] ^= 1; }
}
"""
    flags = ("-O2", "-fno-unroll-loops", "-fno-vectorize")
    tables = compile_unit(tmp_path, source, *flags, options=f"record={how}")
    plain = compile_unit(tmp_path, source, *flags)
    assert any(path["flags"] & PathFlag.RUN for path in tables["paths"])
    for name in ("find", "grow"):
        assert [_phis(tables, loop) for loop in tables.of(name, "loops")] == [
            _phis(plain, loop) for loop in plain.of(name, "loops")
        ]


def _phis(tables: Tables, loop: dict[str, int]) -> list[tuple[int, str, str]]:
    rows = tables["phis"][loop["first_phi"] :][: loop["phis"]]
    return [(row["kind"], row["operator"], row["name"]) for row in rows]
