"""The module ``bandwidth`` against caches that are Python objects, access by access."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.analyzers import test_access_modules
from tests.analyzers.test_cache import SHAPES, accesses, text_of
from tests.naive import modules as naive
from tracekit.analyzers.bandwidth import BandwidthOptions
from tracekit.formats.errors import TracekitError
from tracekit.modules.options import make_options

RULES = {"replacement": "lru", "inclusive": False, "seed": 1}


@settings(max_examples=100, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    count=st.sampled_from((0, 1, 30, 700)),
    lines=st.sampled_from((4, 50, 200)),
    line=st.sampled_from((64, 128)),
    shape=st.sampled_from(SHAPES),
    write=st.sampled_from(("back", "through")),
    prefetch=st.sampled_from(("none", "next-line")),
)
def test_bandwidth(
    seed: int, count: int, lines: int, line: int, shape: tuple[tuple[int, int], ...], write: str, prefetch: str
) -> None:
    events = accesses(seed, count, lines)
    options: dict[str, Any] = {"write": write, "prefetch": prefetch}
    result = test_access_modules.profile("bandwidth", events, {"levels": text_of(shape, line), **options}, 1, 50)
    assert result["slices"] == naive.bandwidth(events, shape, line, **options, **RULES)
    for name in ("loaded_bytes", "stored_bytes", "memory_read_bytes", "memory_written_bytes"):
        assert result["summary"][name] == sum(row[name] for row in result["slices"])
    moved = ((row["memory_read_bytes"] + row["memory_written_bytes"]) / row["accesses"] for row in result["slices"])
    assert result["summary"]["peak_memory_bytes_per_access"] == round(max(moved, default=0), 4)


@pytest.mark.parametrize("given", [{"levels": "32K"}, {"write": "x"}, {"prefetch": "x"}])
def test_options_that_make_no_sense(given: dict[str, str]) -> None:
    with pytest.raises(TracekitError):
        make_options(BandwidthOptions, given)
