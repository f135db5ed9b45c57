"""Sizes of memory, as options take them."""

from __future__ import annotations

import pytest

from tracekit import sizes


@pytest.mark.parametrize(
    "text, size", [("65536", 65536), ("256K", 262144), ("64KiB", 65536), ("1m", 1 << 20), ("2GB", 2 << 30)]
)
def test_sizes(text: str, size: int) -> None:
    assert sizes.parsed(text) == size


@pytest.mark.parametrize("text", ["", "K", "0", "-1", "1.5M", "1T"])
def test_what_is_no_size(text: str) -> None:
    with pytest.raises(ValueError, match="a size is a number of bytes"):
        sizes.parsed(text)
