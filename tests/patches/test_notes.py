"""What a patch says beside its diff: which loops have no directive in it, and why."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from tracekit.patches.patch import make_patch
from tracekit.program.sources import Sources

TEXT = """\
void f(int n, int m, double *a, double *b) {
  for (int i = 0; i < n; i++)
    for (int j = 0; j < m; j++)
      a[i] += j;
  for (int i = 0; i < n; i++)
    b[i] = 0;
}
"""


def row(line: int, end: int, pragma: str = "", missing: str = "") -> dict[str, Any]:
    place = {"file": "/src/f.c", "line": line, "column": 3 + 2 * (line == 3), "end_line": end, "depth": 1 + (line == 3)}
    openmp = {"pragma": pragma or None, "missing": missing or None, "rounding": False}
    return {"loop": place, "openmp": openmp, "cases": [{}]}


def test_a_loop_that_the_source_shares_out_covers_those_inside_although_its_head_is_none_of_openmp_s() -> None:
    text = TEXT.replace("  for (int i", "#pragma omp parallel for\n  for (int i", 1)
    outer, inner = row(3, 5, missing="write it as a for statement"), row(4, 5, "#pragma omp parallel for")
    inner["loop"]["column"], outer["loop"]["column"] = 5, 3
    assert notes(outer, inner, text=text) == ["f.c:3 is left out: a directive of OpenMP stands before it already."]
    assert notes({**outer, "openmp": None}, inner, text=text) == []  # by this run it is not parallel


def notes(*rows: dict[str, Any], text: str = TEXT) -> list[str]:
    found = SimpleNamespace(content=text.encode(), path=Path("/src/f.c"))
    sources = cast(Sources, SimpleNamespace(compiled=lambda name: found))
    patch = make_patch(rows, sources, ["/src"])
    assert bool(patch.diff) == (text == TEXT)
    return [note for note in patch.notes if "apply the patch there" not in note]


def test_a_loop_inside_one_that_has_a_directive_needs_none() -> None:
    outer, inner = row(2, 4, "#pragma omp parallel for"), row(3, 4, missing="its bound changes")
    assert notes(inner, outer) == ["f.c:3 needs no directive: it lies in the loop at f.c:2, which has one."]
    assert notes(outer, row(3, 4, "#pragma omp parallel for")) == []


def test_a_loop_beside_one_that_has_a_directive_is_left_out() -> None:
    outer, other = row(2, 4, "#pragma omp parallel for"), row(5, 6, missing="its bound changes")
    assert notes(outer, other) == ["f.c:5 is left out: its bound changes."]


@pytest.mark.parametrize("missing", ["", "its bound changes"])
def test_a_loop_inside_one_that_the_source_shares_out_gets_none(missing: str) -> None:
    text = TEXT.replace("  for (int i", "#ifdef USE_OMP\n#pragma omp parallel for\n#endif\n  for (int i", 1)
    rows = row(5, 7, "#pragma omp parallel for"), row(6, 7, "" if missing else "#pragma omp parallel for", missing)
    rows[1]["loop"]["column"] = 5
    inner = ["f.c:6 needs no directive: it lies in the loop at f.c:5, which has one."] if missing else []
    assert notes(*rows, text=text) == [*inner, "f.c:5 is left out: a directive of OpenMP stands before it already."]


@pytest.mark.parametrize(
    ("compilation", "root", "names"),
    [
        ("", "/app/src", ["core/a.c", "core/deep/a.c", "io/a.c"]),
        ("/app", "/app", ["src/core/a.c", "src/core/deep/a.c", "src/io/a.c"]),
        ("/app/src/core", "/app/src", ["core/a.c", "core/deep/a.c", "io/a.c"]),
        ("/build", "/app/src", ["core/a.c", "core/deep/a.c", "io/a.c"]),
    ],
)
def test_files_of_several_folders_are_named_from_one(compilation: str, root: str, names: list[str]) -> None:
    """They were named from a folder of their own each, so that no folder took the patch, and some had one name."""
    wholes = [f"{root}/{name}" for name in names]
    rows = [row(5, 6, "#pragma omp parallel for") for _ in wholes]
    for each, whole in zip(rows, wholes):
        each["loop"]["file"] = whole
    found = SimpleNamespace(content=TEXT.encode(), path=None)
    patch = make_patch(rows, cast(Sources, SimpleNamespace(compiled=lambda name: found)), (), compilation)
    assert [line[6:] for line in patch.diff.decode().splitlines() if line.startswith("--- ")] == names
    assert patch.notes == [
        f"{name} is named from {root}: apply the patch there (patch -p1, git apply)." for name in names
    ]
