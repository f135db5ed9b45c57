"""The rows of a query as a table: side by side where a terminal has room for it, else one below the other."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("duckdb")

from tracekit.query.database import Result
from tracekit.query.output import table_text
from tracekit.render.text import Style

WORDS = st.text(alphabet="abc:,", min_size=1, max_size=30)


def made(texts: list[str]) -> Result:
    """One row of as many numbers as texts."""
    names = [name for number in range(len(texts)) for name in (f"number_{number}", f"text_{number}")]
    return Result(names, ["BIGINT", "VARCHAR"] * len(texts), [tuple(v for text in texts for v in (10**9, text))])


@given(st.lists(st.lists(WORDS, max_size=9).map(" ".join), min_size=1, max_size=9), st.sampled_from([40, 80, 132]))
def test_no_line_is_wider_than_the_terminal_and_nothing_is_lost(texts: list[str], width: int) -> None:
    result = made(texts)
    text = table_text(result, 0, Style(False, width))
    assert max(map(len, text.splitlines())) <= width
    if text.startswith("row 1\n"):
        kept = [line.split(maxsplit=1) if line[0] != " " else ["", line] for line in text.splitlines()[1:]]
        assert [name for name, *_ in kept if name] == result.names
        assert "".join("".join(cells) for _, *cells in kept).replace(" ", "") == "".join(
            f"{10**9}{text}" for text in texts
        ).replace(" ", "")


def test_a_row_that_is_too_wide_is_a_column_a_line() -> None:
    result = Result(["loop", "blocked_by"], ["BIGINT", "VARCHAR[]"], [(7, ["load a.c:3", "store b.c:4"]), (8, None)])
    assert table_text(result, 1, Style(False, 17)).splitlines() == [
        "row 1",
        "loop        7",
        "blocked_by  load a.c:3;",
        "            store b.c:4",
        "... and 1 more row (--limit 0 shows all)",
    ]
    assert table_text(result, 0, Style(False)).splitlines()[0] == "loop  blocked_by"
