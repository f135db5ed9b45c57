"""Names of stacks of open loops: two stacks of one name are the same, however many there are."""

from __future__ import annotations

from random import Random
from typing import Any, NamedTuple

from tracekit.contexts.kernels.contexts import name_loops
from tracekit.contexts.kernels.streams import NO_LOOPS
from tracekit.contexts.kernels.tree import LAST_NAME, NAMED_BITS
from tracekit.contexts.state import nothing_at_hand


class Names(NamedTuple):
    """What ``name_loops`` reads of Contexts."""

    named: Any


def test_a_name_is_that_of_one_stack() -> None:
    random, names = Random(1), Names(nothing_at_hand()[1])
    stack_of: dict[int, tuple[int, ...]] = {NO_LOOPS: ()}
    lately = [NO_LOOPS]
    for _ in range(4 << NAMED_BITS):  # more stacks than there are places: names are given up, and never given again
        around = random.choice((NO_LOOPS, *lately[-3:]))
        node = random.randrange(1 << NAMED_BITS)
        name = int(name_loops(names, around, node))
        assert name != 0
        lately.append(name)
        assert stack_of.setdefault(name, (*stack_of[around], node)) == (*stack_of[around], node)
    assert len(stack_of) > 1 << NAMED_BITS


def test_the_same_stack_keeps_its_name() -> None:
    names = Names(nothing_at_hand()[1])
    assert name_loops(names, NO_LOOPS, 7) == name_loops(names, NO_LOOPS, 7)


def test_a_place_without_names_gives_none() -> None:
    names = Names(nothing_at_hand()[1])
    names.named["name"] = LAST_NAME + names.named["name"] % (1 << NAMED_BITS)
    assert name_loops(names, NO_LOOPS, 7) == 0
    assert name_loops(names, 0, 7) == 0
