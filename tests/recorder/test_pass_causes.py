"""What the exits of a loop depend on: the table `causes`."""

from __future__ import annotations

from pathlib import Path

from tests.recorder.instrumented import Tables, compile_unit
from tracekit.formats.image import CauseKind, CauseOf


def causes(tables: Tables, kind: CauseKind) -> set[int]:
    """Rows of `ops` that exits depend on."""
    return {row["index"] for row in tables["causes"] if row["of_kind"] == CauseOf.EXIT and row["kind"] == kind}


def test_all_that_a_call_is_given_is_followed(tmp_path: Path) -> None:
    """The first operand differs in each iteration anyway; the second is a load that the loop's store may change."""
    source = """
extern int found(int, int) __attribute__((pure));
extern int a[100], limit;
void f(int *out) { for (int i = 0; !found(a[i], limit); i++) out[i] = 1; }
"""
    tables = compile_unit(tmp_path, source, "-O1")
    assert len(causes(tables, CauseKind.CALL)) == 1
    assert len(causes(tables, CauseKind.LOAD)) == 2


def test_loads_that_depend_on_many_loads_are_followed_once(tmp_path: Path) -> None:
    """Each value comes from eight that each come from eight: 8**14 ways lead to the first (a function of tcc)."""
    step = "        v = a[v] + b[v] + c[v] + d[v] + e[v] + g[v] + h[v] + k[v];\n"
    source = f"""
extern int *a, *b, *c, *d, *e, *g, *h, *k;
int f(int v, int *out) {{
    do {{
        *out = v;
{step * 14}    }} while (v);
    return v;
}}
"""
    tables = compile_unit(tmp_path, source, "-O1")
    assert len(causes(tables, CauseKind.LOAD)) >= 8 * 14
