"""The heads of tables without rows: what modules declare of their columns, against what their rows have."""

from __future__ import annotations

from typing import Any

import pytest

from tests.programs.running import compile_program, record
from tracekit.api import analyze_all
from tracekit.modules import registry
from tracekit.modules.contract import Preset
from tracekit.modules.display import Display
from tracekit.profiles.profile import flat
from tracekit.render import export
from tracekit.render.export.tables import declared

SOURCE = """
#include <pthread.h>
#include <stdlib.h>
struct node { struct node *next; long value; };
static long *shared;
static void *work(void *thread)
{
    for (int i = 0; i < 100; i++)
        *shared += i;
    return thread;
}
__attribute__((noinline)) static struct node *push(struct node *list, long value)
{
    struct node *made = malloc(sizeof *made);
    made->next = list;
    made->value = value;
    return made;
}
int main(void)
{
    pthread_t threads[2];
    struct node *list = NULL;
    long sum = 0;
    for (long k = 0; k < 300; k++)
        list = push(list, k);
    for (int round = 0; round < 3; round++)
        for (struct node *node = list; node; node = node->next)
            sum += node->value;
    shared = calloc(1, sizeof *shared);
    for (int k = 0; k < 2; k++)
        pthread_create(&threads[k], NULL, work, NULL);
    for (int k = 0; k < 2; k++)
        pthread_join(threads[k], NULL);
    free(shared);
    sum += *shared;
    list = NULL;
    return sum & 1;
}
"""

MODULES = [name for name in registry.names() if not issubclass(registry.load(name), Preset)]


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Module -> the report of a program in which most tables have rows."""
    folder = tmp_path_factory.mktemp("heads")
    (folder / "app.c").write_text(SOURCE)
    flags = ["-g", "-O1", "--values=loads", "--pointers", "-pthread"]
    trace = record(compile_program([folder / "app.c"], folder / "app", flags, instrumented=True)).trace
    found = analyze_all(trace, {name: registry.load(name).Options() for name in MODULES}, jobs=1)
    return {profile.module: profile.report for profile in found}


def head(report: dict[str, Any], table: str) -> list[str]:
    first = export.FORMATS["csv"].write(report, table).decode().split("\r\n")[0]
    return first.split(",") if first else []


def test_tables_without_rows_have_the_columns_of_those_with_rows(reports: dict[str, Any]) -> None:
    filled = 0
    for module, report in reports.items():
        tables = {name: list(rows) for name, rows in report["result"].items() if isinstance(rows, list)}
        assert tables.keys() == registry.display(module).columns.keys(), module
        for name, rows in tables.items():
            empty = head({**report, "result": {name: []}}, name)
            assert empty and not any(":" in column for column in empty), (module, name)
            known = dict.fromkeys(column for row in rows for column in flat(row))
            assert not known or set(empty) <= known.keys(), (module, name, set(empty) - known.keys())
            filled += bool(rows)
    assert filled > 40


def test_a_module_that_declares_nothing_has_no_head() -> None:
    report = {"module": "someone's", "result": {"rows": []}}
    assert export.FORMATS["csv"].write(report, "rows") == b"\r\n"


def test_kinds_are_nested_and_other_words_stay() -> None:
    assert list(declared("a b:context c:d")) == ["a", "b.id", "b.root", "b.path", "c:d"]
    assert list(declared("x:made"))[1:3] == ["x.site.id", "x.site.kind"]


def test_columns_that_make_no_sense_are_refused() -> None:
    with pytest.raises(ValueError, match="columns is a dict"):
        Display(columns={"rows": ["a"]})  # type: ignore[dict-item]
