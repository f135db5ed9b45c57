"""The order of the files of tests."""

from __future__ import annotations

from pathlib import Path

from tests.conftest import pytest_collection_modifyitems
from tests.order import LONGEST_FIRST

TESTS = Path(__file__).parent


def test_every_file_that_is_named_exists_and_is_named_once() -> None:
    assert [name for name in LONGEST_FIRST if not (TESTS / name).is_file()] == []
    assert len(set(LONGEST_FIRST)) == len(LONGEST_FIRST)


def test_long_files_come_first_and_nothing_else_changes_places() -> None:
    class Item:
        def __init__(self, path: str, name: str) -> None:
            self.path, self.name = TESTS / path, name

    found = [("z.py", "a"), (LONGEST_FIRST[1], "b"), ("y.py", "c"), (LONGEST_FIRST[0], "d"), (LONGEST_FIRST[0], "a")]
    items = [Item(*each) for each in found]
    pytest_collection_modifyitems(items)  # type: ignore[arg-type]
    assert [item.name for item in items] == ["d", "a", "b", "a", "c"]
