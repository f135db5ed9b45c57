"""The module ``cache`` against caches that are Python objects."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.analyzers.test_access_modules import batches, program, some_events
from tests.naive import caches as naive
from tracekit.analyzers.cache import Cache, CacheOptions
from tracekit.analyzers.reuse import Reuse, ReuseOptions
from tracekit.caches import levels
from tracekit.formats.errors import TracekitError
from tracekit.modules.callback_runner import CallbackRunner
from tracekit.modules.options import make_options
from tracekit.modules.scheduler import run

SHAPES = (
    ((1, 1),),
    ((4, 2),),
    ((1, 8),),
    ((2, 2), (4, 4)),
    ((4, 4), (2, 2)),  # the second one is smaller
    ((2, 1), (2, 2), (8, 4)),
    ((1, 2), (2, 4), (4, 8), (1, 1)),
)


def text_of(shape: tuple[tuple[int, int], ...], line: int) -> str:
    return ",".join(f"{sets * ways * line}:{ways}:{line}" for sets, ways in shape)


def profile(events: list[naive.Event], **options: Any) -> dict[str, Any]:
    runner = CallbackRunner(Cache(program(8), make_options(CacheOptions, options)), "cache", 1)
    run(batches(events, 50), [runner], 1)
    return runner.result()[0]


def accesses(seed: int, count: int, lines: int) -> list[naive.Event]:
    """Of a few lines, some again and again, and some that span many."""
    rng = random.Random(seed)
    near = [
        (0, rng.choice(("load", "load", "store")), rng.randrange(8), int(64 * lines * rng.random() ** 2), 8, 0)
        for _ in range(count)
    ]
    far = [event for event in some_events(rng, count // 8) if event[1] in ("load", "store")]
    last = [(0, rng.choice(("load", "store")), rng.randrange(8), 2**64 - rng.choice((1, 64, 130)), 1, 0) for _ in far]
    return sorted([*near, *far, *last], key=lambda _: rng.random())


def strided(rng: random.Random, count: int) -> list[naive.Event]:
    """Instructions that advance, in turn, and stumble now and then."""
    at = [rng.randrange(1 << 14) for _ in range(8)]
    steps = [rng.choice((0, 8, 8, -8, 64, 200, -130, 4096)) for _ in range(8)]
    made = []
    for _ in range(count):
        subject = rng.randrange(8)
        at[subject] = (at[subject] + steps[subject]) % 2**64 if rng.random() < 0.9 else rng.randrange(1 << 14)
        made.append((rng.randrange(2), rng.choice(("load", "store")), subject, at[subject], 8, 0))
    return made


RULES = st.fixed_dictionaries(
    {
        "replacement": st.sampled_from(levels.POLICIES),
        "write": st.sampled_from(("back", "through")),
        "inclusive": st.booleans(),
        "exclusive": st.booleans(),
        "prefetch": st.sampled_from(levels.PREFETCHERS),
        "private": st.integers(0, 2),
        "cores": st.integers(1, 3),
        "seed": st.integers(0, 2**63 - 1),
    }
).filter(lambda rules: not (rules["exclusive"] and (rules["inclusive"] or rules["write"] == "through")))


@settings(max_examples=300, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    count=st.sampled_from((0, 1, 30, 300)),
    lines=st.sampled_from((4, 12, 50, 200)),
    line=st.sampled_from((64, 128)),
    shape=st.sampled_from(SHAPES),
    rules=RULES,
)
@example(  # what a core has written goes to an exclusive level that drives out a clean line
    seed=0,
    count=300,
    lines=4,
    line=64,
    shape=((2, 1), (2, 2), (8, 4)),
    rules={
        "replacement": "lru",
        "write": "back",
        "inclusive": False,
        "exclusive": True,
        "prefetch": "none",
        "private": 1,
        "cores": 2,
        "seed": 0,
    },
)
@example(  # an access at the end of the address space, and a stride from there
    seed=27081954,
    count=300,
    lines=4,
    line=64,
    shape=((4, 2),),
    rules={
        "replacement": "lru",
        "write": "back",
        "inclusive": False,
        "exclusive": False,
        "prefetch": "stride",
        "private": 0,
        "cores": 1,
        "seed": 0,
    },
)
def test_cache(
    seed: int, count: int, lines: int, line: int, shape: tuple[tuple[int, int], ...], rules: dict[str, Any]
) -> None:
    rules["private"] = min(rules["private"], len(shape))
    rng = random.Random(seed)
    events = [(rng.randrange(4), *event[1:]) for event in accesses(seed, count, lines)]
    if rules["prefetch"] == "stride":
        events += strided(rng, count)
    result = profile(events, levels=text_of(shape, line), **rules)
    wanted = naive.simulate(events, shape, line, **rules)
    counted = [(row["hits"], row["misses"], row["write_backs"], row["prefetches"]) for row in result["levels"]]
    assert counted == wanted["levels"]
    touches = wanted["touches"]
    assert result["summary"] == {
        "line": line,
        "touches": len(touches),
        "memory_writes": wanted["memory_writes"],
        **(dict(zip(("invalidations", "transfers"), wanted["coherence"])) if rules["private"] else {}),
    }
    rows = {int(row["instruction"]["id"].rpartition(":")[2]): row for row in result["instructions"]}
    assert rows.keys() == {subject for subject, _, _ in touches}
    for subject, row in rows.items():
        own = [level for other, level, _ in touches if other == subject]
        assert row.get("invalidations", 0) == sum(taken for other, _, taken in touches if other == subject)
        assert row["touches"] == len(own)
        assert row["misses"] == [sum(level > above for level in own) for above in range(len(shape))]
    if touches:
        (unknown,) = result["objects"]  # no object was made
        assert unknown["object"] == {"kind": "unknown"}
        assert unknown["misses"] == [row["misses"] for row in result["levels"]]
        assert unknown.get("invalidations", 0) == wanted["coherence"][0]


@settings(max_examples=20, deadline=None)
@given(seeds=st.lists(st.integers(0, 2**32), min_size=2, max_size=3), count=st.sampled_from((0, 9, 200)))
def test_joined_profiles_have_the_sums(seeds: list[int], count: int) -> None:
    shape = {"levels": "512:2:64,2K:4:64"}
    results = [{"result": profile(accesses(seed, count, 60), **shape)} for seed in seeds]
    joined = Cache.merge(results, None)["result"]
    for place, level in enumerate(joined["levels"]):
        for name in ("hits", "misses", "write_backs", "prefetches"):
            assert level[name] == sum(each["result"]["levels"][place][name] for each in results)
        assert level["misses"] == sum(row["misses"][place] for row in joined["instructions"])
        assert level["misses"] == sum(row["misses"][place] for row in joined["objects"])
    for name in ("touches", "memory_writes"):
        assert joined["summary"][name] == sum(each["result"]["summary"][name] for each in results)
    assert Cache.merge([Cache.merge(results[:1], None), *results[1:]], None)["result"] == joined
    assert Cache.merge(results[::-1], None)["result"] == joined


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**32), ways=st.sampled_from((1, 4, 32)))
def test_one_set_with_lru_misses_what_reuse_distances_say(seed: int, ways: int) -> None:
    events = accesses(seed, 400, 50)
    runner = CallbackRunner(Reuse(program(8), make_options(ReuseOptions, {"sizes": str(64 * ways)})), "reuse", 1)
    run(batches(events, 50), [runner], 1)
    reused = runner.result()[0]
    result = profile(events, levels=f"{64 * ways}:{ways}:64")
    (object_,) = reused["objects"]
    assert [result["levels"][0]["misses"]] == object_["misses"]
    assert [row["misses"] for row in result["instructions"]] == [row["misses"] for row in reused["instructions"]]


@pytest.mark.parametrize("exclusive", [False, True])
@pytest.mark.parametrize("shape", ["512:2:64,4K:4:64", "512:2:64"])
def test_cores_hand_a_line_to_one_another(shape: str, exclusive: bool) -> None:
    """Ten stores in turn by two cores: each but the first takes the line from the other, which has changed it."""
    rules = {"levels": shape, "private": 1, "cores": 2, "exclusive": exclusive}
    result = profile([(k % 2, "store", 3, 64, 8, 0) for k in range(10)], **rules)
    summary = result["summary"]
    assert (summary["invalidations"], summary["transfers"]) == (9, 9)
    assert result["levels"][0]["hits"] == 0
    assert summary["memory_writes"] == (9 if shape == "512:2:64" else 0)
    assert result["instructions"][0]["invalidations"] == result["objects"][0]["invalidations"] == 9
    read = profile([(k % 2, "store" if k < 2 else "load", 3, 64, 8, 0) for k in range(10)], **rules)
    assert (read["summary"]["invalidations"], read["summary"]["transfers"]) == (1, 2)
    assert read["levels"][0]["misses"] == 3  # from then on both have it
    assert profile([(k % 2, "store", 3, 64 * (k % 2), 8, 0) for k in range(10)], **rules)["levels"][0]["misses"] == 2
    joined = Cache.merge([{"result": result}, {"result": read}], None)["result"]
    assert (joined["summary"]["invalidations"], joined["summary"]["transfers"]) == (10, 11)
    assert joined["instructions"][0]["invalidations"] == 10


def test_an_exclusive_level_adds_its_room() -> None:
    """Six lines, again and again, in a set of two and one of four: they miss once, inclusive levels each time."""
    events = [(0, "load", 0, 64 * (k % 6), 8, 0) for k in range(60)]
    shape = {"levels": "128:2:64,256:4:64"}
    assert profile(events, exclusive=True, **shape)["levels"][1]["misses"] == 6
    assert profile(events, inclusive=True, **shape)["levels"][1]["misses"] == 60


def test_a_stride_is_seen_after_three_times() -> None:
    events = [(0, "load", 2, 256 * k, 8, 0) for k in range(50)]
    shape = {"levels": "4K:4:64"}
    assert profile(events, **shape)["levels"][0]["misses"] == 50
    steady = profile(events, prefetch="stride", **shape)["levels"][0]
    assert (steady["misses"], steady["prefetches"]) == (4, 47)
    near = profile([(0, "load", 2, 960 + 8 * k, 8, 0) for k in range(80)], prefetch="stride", **shape)["levels"][0]
    assert near["misses"] == 1
    down = profile([(0, "load", 2, 9000 - 8 * k, 8, 0) for k in range(80)], prefetch="stride", **shape)["levels"][0]
    assert down["misses"] == 1


def test_a_seed_gives_the_same_misses_and_another_seed_others() -> None:
    events = accesses(1, 2000, 200)
    shape = {"levels": "1K:8:64", "replacement": "random"}
    misses = [profile(events, seed=seed, **shape)["levels"][0]["misses"] for seed in (7, 7, 8, 9, 10)]
    assert misses[0] == misses[1] and len(set(misses)) > 1


@pytest.mark.parametrize(
    "given",
    [
        {"levels": "32K"},
        {"levels": "32K:x:64"},
        {"levels": "bananas:8:64"},
        {"levels": "32K:8:48"},
        {"levels": "32K:0:64"},
        {"levels": "48K:8:64"},  # 96 sets
        {"levels": "1000:8:64"},
        {"levels": "8G:16:64"},
        {"levels": "32K:8:64,1M:16:128"},
        {"levels": ",".join(["32K:8:64"] * 9)},
        {"levels": "48K:12:64", "replacement": "plru"},
        {"replacement": "mru"},
        {"write": "x"},
        {"prefetch": "x"},
        {"private": 4},
        {"cores": 0, "private": 1},
        {"exclusive": True, "inclusive": True},
        {"exclusive": True, "write": "through"},
        {"seed": "-1"},
    ],
)
def test_options_that_make_no_sense(given: dict[str, str]) -> None:
    with pytest.raises(TracekitError):
        make_options(CacheOptions, given)
