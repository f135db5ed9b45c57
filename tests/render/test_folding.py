"""Text on a terminal: no line is wider than it, and nothing of the text is lost."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracekit.render.dependence import unseen_lines
from tracekit.render.folding import HANGING, NARROWEST, fold, fold_lines, narrowed
from tracekit.render.registry import as_text
from tracekit.render.text import Style, table

TEXTS = st.text(alphabet="ab:<>,/ ", max_size=80)


def letters(text: str) -> str:
    return text.replace(" ", "").replace("\n", "")


@given(TEXTS, st.integers(1, 30), st.integers(0, 9))
def test_a_folded_text_fits_and_is_whole(text: str, later: int, more: int) -> None:
    lines = fold(text, later + more, later)
    assert len(lines[0]) <= later + more
    assert all(len(line) <= later for line in lines[1:])
    assert letters("".join(lines)) == letters(text)


def test_words_stay_whole_and_names_break_between_their_parts() -> None:
    assert fold("load a.c:1 std::size in work", 12) == ["load a.c:1", "std::size in", "work"]
    assert fold("store outer::inner::apply", 13) == ["store outer::", "inner::apply"]


@given(st.lists(st.text("abc", min_size=1, max_size=8), max_size=20), st.integers(0, 20), st.integers(13, 40))
def test_lines_are_folded_where_names_have_room(words: list[str], indent: int, width: int) -> None:
    line = " " * indent + " ".join(words)
    folded = fold_lines(line, width).split("\n")
    below = indent + HANGING
    if len(line) <= width or not words or width - below < NARROWEST:
        assert folded == [line]
    else:
        assert max(map(len, folded)) <= width
        assert all(each.startswith(" " * below) and each[below] != " " for each in folded[1:])
        assert all(each[indent] != " " for each in folded[:1])
        assert " ".join(each.strip() for each in folded) == line.strip()
        rooms = [width - indent] + [width - below] * (len(folded) - 1)
        for room, each, then in zip(rooms, folded, folded[1:]):
            assert len(each.strip()) + 1 + len(then.split()[0]) > room, "the next word had fitted"


def test_without_a_width_lines_stay_as_they_are() -> None:
    assert fold_lines("word " * 50 + "\n" + "x" * 300, 0) == "word " * 50 + "\n" + "x" * 300


def test_a_word_with_emphasis_is_not_cut_and_one_as_long_as_a_line_is_whole() -> None:
    marked = Style(colour=True)("aa::bb::cc::dd", "bold")
    assert fold(marked, 5) == [marked]
    assert fold("aa::bb x", 6) == ["aa::bb", "x"]
    assert fold("abcdefghij", 4) == ["abcd", "efgh", "ij"]


def test_emphasis_takes_no_room() -> None:
    style = Style(colour=True)
    line = "    " + style("seven 7", "bold") + " and more words than fit"
    assert fold_lines(line, 24) == "    " + style("seven 7", "bold") + " and more\n        words than fit"
    assert fold_lines(style("short", "bold"), 5) == style("short", "bold")


def test_a_picture_stays_whole() -> None:
    row = "0x1000  5  5  |" + "@ " * 20 + "|"
    assert fold_lines(row, 30) == row


@given(st.lists(st.integers(0, 60), min_size=1, max_size=6), st.sets(st.integers(0, 5)), st.integers(1, 120))
def test_only_texts_become_narrower_and_no_more_than_need_be(widths: list[int], right: set[int], width: int) -> None:
    numbers = frozenset(right) & frozenset(range(len(widths)))
    made = narrowed(widths, numbers, width)
    texts = [column for column in range(len(widths)) if column not in numbers]
    room = width - 2 * (len(widths) - 1) - sum(widths[column] for column in numbers)
    most = max([NARROWEST, *(made[column] for column in texts)])
    assert made == [min(old, most) if column in texts else old for column, old in enumerate(widths)]
    assert most == NARROWEST or sum(made[column] for column in texts) <= room
    assert made == widths or sum(min(widths[column], most + 1) for column in texts) > room


ROWS = [
    {
        "instruction": {"kind": "load", "function": f"outer::inner_{at}::apply", "file": "lib/deep/a.cc", "line": at},
        "count": 1000 * at,
        "of": "a value whose description does not fit beside the others in any way",
    }
    for at in range(3)
]


@pytest.mark.parametrize("width", [60, 80, 200])
def test_a_table_fits_the_terminal(width: int) -> None:
    report: dict[str, Any] = {"module": "other", "trace": "0", "result": {"rows": ROWS}}
    text = as_text(report, {}, 0, Style(False, width))
    assert max(map(len, text.splitlines())) <= width
    assert all(row["instruction"]["function"] in letters(text) for row in ROWS)


@pytest.mark.parametrize("threads", [False, True])
@pytest.mark.parametrize("width", [40, 80, 110, 200])
def test_what_a_verdict_rests_on_is_one_paragraph_of_any_width(threads: bool, width: int) -> None:
    lines = unseen_lines(threads, width=width)
    assert max(map(len, lines)) <= width
    within = [(line, after) for line, after in pairwise(lines) if not line.endswith("parallelise.")]
    assert all(len(line) + 1 + len(after.split()[0]) > min(width, 110) for line, after in within)
    assert " ".join(lines) == " ".join(unseen_lines(threads))


def test_cells_are_folded_in_their_columns() -> None:
    rows = [("RAW", "outer::inner::apply", "1"), ("WAR", "main", "20")]
    assert table(("KIND", "PLACE", "COUNT"), rows, frozenset({2}), Style(False, 25)) == [
        "KIND  PLACE         COUNT",
        "RAW   outer::           1\n      inner::apply",
        "WAR   main             20",
    ]


def test_a_last_column_without_room_is_below_and_bars_are_left_out() -> None:
    style = Style(False, 24)
    rows = [("1,000,000", "2,000,000", "2 RAW, 1 WAW")]
    assert table(("LOADS", "STORES", "CARRIES"), rows, frozenset({0, 1}), style) == [
        "    LOADS     STORES\n    CARRIES",
        "1,000,000  2,000,000\n    2 RAW, 1 WAW",
    ]
    bars = [("1,000,000", "2,000,000", "########")]
    assert table(("LOADS", "STORES", ""), bars, frozenset({0, 1}), style)[1] == "1,000,000  2,000,000"
