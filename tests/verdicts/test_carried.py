"""What loops carry for many blockers at once, against one blocker after another."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests.naive import carried as naive
from tracekit.dependence.profile import CARRIED, DEPENDENCE, LISTED_OBJECTS
from tracekit.formats.events import NONE
from tracekit.verdicts.carried import CarriedPairs, PlacedBlocker
from tracekit.verdicts.loop_facts import Reason
from tracekit.verdicts.verdicts import Blocker


@st.composite
def profiles(draw: Any) -> Any:
    """Dependences of few instructions, and the levels that carry them."""
    dependences = np.zeros(draw(st.integers(1, 8)), DEPENDENCE)
    for row in dependences:
        row["kind"] = draw(st.integers(0, 2))
        for field in ("source", "destination", "source_node", "destination_node"):
            row[field] = draw(st.integers(0, 2))
        objects = draw(st.integers(0, LISTED_OBJECTS + 1))
        listed = sorted(draw(st.permutations(range(7)))[: min(objects, LISTED_OBJECTS)])
        row["objects"], row["object_list"] = objects, [*listed, *[NONE] * (LISTED_OBJECTS - len(listed))]
    carried = np.zeros(draw(st.integers(0, 12)), CARRIED)
    for row in carried:
        row["dependence"] = draw(st.integers(0, len(dependences) - 1))
        row["node"] = draw(st.integers(0, 2))
        low, high = sorted((draw(st.integers(1, 9)), draw(st.integers(1, 9))))
        row["min_distance"], row["max_distance"], row["carried"] = low, high, draw(st.integers(1, 1 << 40))
    return SimpleNamespace(dependences=dependences, levels=SimpleNamespace(carried=carried))


@given(profiles(), st.data())
def test_what_is_carried_for_many_blockers_is_that_of_each(profile: Any, data: Any) -> None:
    carried = profile.levels.carried
    ends = profile.dependences[carried["dependence"]]
    places = sorted(set(zip(ends["source"].tolist(), ends["destination"].tolist(), carried["node"].tolist())))
    copies = st.lists(st.sampled_from(places), min_size=1, max_size=3, unique=True) if places else st.nothing()
    blockers = data.draw(st.lists(copies, max_size=4)) if places else []
    placed = [[PlacedBlocker(Blocker(Reason.DEPENDENCE, *ends), node) for *ends, node in copy] for copy in blockers]
    found = CarriedPairs(profile).of(placed)
    assert [tuple(each) for each in found] == [naive.carried_pair(profile, copy) for copy in blockers]
