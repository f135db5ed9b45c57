"""The module ``tlb`` against caches of pages that are Python objects, and against ``cache``."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.analyzers import test_access_modules
from tests.analyzers.test_cache import SHAPES, accesses
from tests.naive import caches as naive
from tracekit.analyzers.tlb import Tlb, TlbOptions
from tracekit.caches import levels
from tracekit.formats.errors import TracekitError
from tracekit.modules.options import make_options


def profile(events: list[naive.Event], **options: Any) -> dict[str, Any]:
    result: dict[str, Any] = test_access_modules.profile("tlb", events, options, 1, 50)
    return result


@settings(max_examples=100, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    count=st.sampled_from((0, 1, 30, 300)),
    pages=st.sampled_from((4, 12, 50)),
    page=st.sampled_from((64, 4096, 1 << 21)),
    shape=st.sampled_from(SHAPES),
    replacement=st.sampled_from(levels.POLICIES),
)
def test_tlb(
    seed: int, count: int, pages: int, page: int, shape: tuple[tuple[int, int], ...], replacement: str
) -> None:
    events = [
        (stream, name, subject, address // 64 * page + address % 64, size, value)
        for stream, name, subject, address, size, value in accesses(seed, count, pages)
        if address < 1 << 20
    ]
    text = ",".join(f"{sets * ways}:{ways}" for sets, ways in shape)
    result = profile(events, levels=text, page=str(page), replacement=replacement, seed=7)
    rules = {"replacement": replacement, "write": "back", "inclusive": False, "prefetch": "none", "seed": 7}
    wanted = naive.simulate(
        [(stream, "load", *rest) for stream, name, *rest in events if name in ("load", "store")], shape, page, **rules
    )
    assert [(row["hits"], row["misses"]) for row in result["levels"]] == [counts[:2] for counts in wanted["levels"]]
    assert [row["entries"] for row in result["levels"]] == [sets * ways for sets, ways in shape]
    walks = sum(level == len(shape) for _, level, _ in wanted["touches"])
    assert result["summary"] == {"page": page, "touches": len(wanted["touches"]), "walks": walks}
    assert walks == sum(row["misses"][-1] for row in result["instructions"])


def test_joined_profiles_have_the_sums() -> None:
    first, second = ({"result": profile(accesses(seed, 200, 60), levels="4:2,8:4", page="64")} for seed in (1, 2))
    joined = Tlb.merge([first, second], None)["result"]
    for place, level in enumerate(joined["levels"]):
        for name in ("hits", "misses"):
            assert level[name] == sum(each["result"]["levels"][place][name] for each in (first, second))
        assert level["entries"] == first["result"]["levels"][place]["entries"]
    for name in ("touches", "walks"):
        assert joined["summary"][name] == sum(each["result"]["summary"][name] for each in (first, second))


@pytest.mark.parametrize(
    "given, why",
    [
        ({"levels": "64"}, "ENTRIES:WAYS"),
        ({"levels": "64:x"}, "ENTRIES:WAYS"),
        ({"levels": "0:4"}, "power of two"),
        ({"levels": "12:4"}, "entries / ways"),
        ({"levels": "64:0"}, "ways are 1 to"),
        ({"levels": "4194304:4"}, "at most 1,048,576 entries"),
        ({"page": "3000"}, "a page is a power of two"),
        ({"page": "2G"}, "a page is a power of two"),
        ({"levels": "48:12", "replacement": "plru"}, "tree-PLRU"),
    ],
)
def test_options_that_make_no_sense(given: dict[str, str], why: str) -> None:
    with pytest.raises(TracekitError, match=why):
        make_options(TlbOptions, given)
