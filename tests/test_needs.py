"""What is skipped for want of a package says so in one way, and the end of a run says what to type."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tests import needs
from tests.conftest import summary


def test_the_list_at_the_end_names_each_reason_once_and_one_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    apt = tmp_path / "apt-cache"
    apt.write_text("#!/bin/sh\necho '  cmake | 3.25.1-1 | a mirror'\necho '   zstd | 1.5.4 | a mirror'\n")
    apt.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    reasons = Counter(
        {
            f"{needs.REASON}cmake": 2,
            f"{needs.REASON}clang-17 llvm-17-dev": 1,
            f"{needs.REASON}zstd": 11,
            "no such processor": 1,
        }
    )
    assert summary(reasons) == [
        "    1  no such processor",
        "    1  without the package clang-17 llvm-17-dev",
        "    2  without the package cmake",
        "   11  without the package zstd",
        "To run them as well: sudo apt-get install cmake zstd",
        "Not among this system's packages: clang-17 llvm-17-dev",
    ]


def test_a_need_that_is_not_met_skips_with_its_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(needs.NEEDS, "a thing", needs.Need("thing libthing-dev", lambda: False))
    monkeypatch.setitem(needs.NEEDS, "another", needs.Need("another", lambda: "/usr/bin/another"))
    assert needs.needs("a thing").args == (True,)
    assert needs.needs("another").args == (False,)
    with pytest.raises(pytest.skip.Exception, match="without the package thing libthing-dev"):
        needs.require("a thing")
    needs.require("another")


def test_each_package_is_asked_for_once() -> None:
    assert needs.packages([needs.NEEDS["gold"], needs.NEEDS["c++filt"], needs.NEEDS["cmake"]]) == "binutils cmake"
