"""Whose mistake it is when compiled code raises, also code that another installation compiled."""

from __future__ import annotations

from pathlib import Path

import pytest

import tracekit
from tracekit.modules import diagnostics

PACKAGE = Path(tracekit.__file__).parent
HELPER = "containers/arena.py"


@pytest.mark.parametrize("exists", [True, False])
def test_a_file_of_another_tracekit_is_that_of_this_one(exists: bool, tmp_path: Path) -> None:
    other = tmp_path / "tracekit" / HELPER
    if exists:
        other.parent.mkdir(parents=True)
        other.write_bytes((PACKAGE / HELPER).read_bytes())
    assert not diagnostics._is_authors(str(other))
    assert str(PACKAGE / HELPER) in diagnostics._shown(str(other), 1)


def test_a_file_that_only_has_such_a_name_is_its_authors(tmp_path: Path) -> None:
    other = tmp_path / "tracekit" / HELPER
    other.parent.mkdir(parents=True)
    other.write_text("mine = 1\n")
    assert diagnostics._is_authors(str(other))
    assert diagnostics._shown(str(other), 1) == f" ({other}, line 1: mine = 1)"


@pytest.mark.parametrize("name", ["analyzers/camp.py", "nothing/of/ours.py"])
def test_what_has_callbacks_is_an_authors(name: str, tmp_path: Path) -> None:
    assert diagnostics._is_authors(str(tmp_path / "tracekit" / name))
