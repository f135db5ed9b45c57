"""Which traces files, folders and patterns stand for."""

from __future__ import annotations

from pathlib import Path

import pytest

from tracekit.formats.errors import TracekitError
from tracekit.many.paths import traces_of


def test_a_folder_is_its_traces_by_name(tmp_path: Path) -> None:
    for name in ("b.zst", "a.zst", "a.zst.old", "notes.txt"):
        (tmp_path / name).touch()
    (tmp_path / "sub.zst").mkdir()
    assert traces_of([str(tmp_path)]) == [str(tmp_path / "a.zst"), str(tmp_path / "b.zst")]


def test_a_pattern_is_what_it_matches(tmp_path: Path) -> None:
    for name in ("run-2.zst", "run-1.zst", "other.zst"):
        (tmp_path / name).touch()
    assert traces_of([str(tmp_path / "run-*.zst")]) == [str(tmp_path / "run-1.zst"), str(tmp_path / "run-2.zst")]
    (tmp_path / "a[1].zst").touch()  # a file of that name is no pattern
    assert traces_of([str(tmp_path / "a[1].zst")]) == [str(tmp_path / "a[1].zst")]


def test_each_trace_counts_once_in_the_order_given(tmp_path: Path) -> None:
    for name in ("a.zst", "b.zst"):
        (tmp_path / name).touch()
    (tmp_path / "link.zst").symlink_to(tmp_path / "a.zst")
    given = [tmp_path / "b.zst", tmp_path, tmp_path / "a.zst", "gone.zst"]
    assert traces_of(given) == [str(tmp_path / "b.zst"), str(tmp_path / "a.zst"), "gone.zst"]


def test_what_stands_for_nothing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TracekitError, match=r"holds no trace: none of its files ends in \.zst"):
        traces_of([str(tmp_path)])
    with pytest.raises(TracekitError, match=r"No file matches .*\*.zst"):
        traces_of([str(tmp_path / "*.zst")])
