"""Grammars of streams: the stream again, the two invariants, and the published algorithm."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.naive.sequitur import Bodies, Sequitur, broken, expansion
from tracekit.containers.kernels.arena import USED
from tracekit.jit.kernel import kernel
from tracekit.whomp.grammar import Rules, Written, empty_grammar
from tracekit.whomp.kernels.pending import CLOSED_EACH, append, flush

ENDLESS = 1 << 62


@kernel
def append_all(grammar: Any, stream: Any, block: Any) -> None:
    """Append a stream."""
    for time in range(stream.size):
        append(grammar, stream[time], (time + 1) % block == 0)


def written(stream: Any, block: int = ENDLESS) -> Written:
    grammar = empty_grammar()
    append_all(grammar, np.array(stream, np.int64), block)
    return Written.of(grammar)


def bodies(made: Written, rules: Rules) -> Bodies:
    symbols = [(symbol >> 1,) if symbol & 1 else made.values[symbol >> 1].item() for symbol in rules.symbols.tolist()]
    return [symbols[low:high] for low, high in zip(rules.first, rules.first[1:])]


def shape(found: Bodies) -> list[Any]:
    """Rules by the order of their first use, as the reference numbers them."""
    order = [0]
    for rule in order:
        order += [each[0] for each in dict.fromkeys(found[rule]) if isinstance(each, tuple) and each[0] not in order]
    return [[(order.index(each[0]),) if isinstance(each, tuple) else each for each in found[rule]] for rule in order]


def streams() -> Any:
    alphabet = st.integers(1, 5).flatmap(lambda letters: st.lists(st.integers(-1, letters), max_size=200))
    pieces = st.lists(st.lists(st.integers(0, 3), max_size=8), min_size=1, max_size=4)
    repeated = pieces.flatmap(
        lambda some: st.lists(st.sampled_from(some), max_size=40).map(lambda each: [a for b in each for a in b])
    )
    long = st.lists(st.permutations(range(9)), min_size=1, max_size=3)
    cut = long.flatmap(
        lambda some: st.lists(st.tuples(st.sampled_from(some), st.integers(1, 9)), max_size=40).map(
            lambda each: [a for piece, length in each for a in piece[:length]]
        )
    )
    return alphabet | repeated | cut


@settings(deadline=None, max_examples=600)
@given(streams())
@example([0, 0, 0, 1, 0, 0, 1, 1, 1, 0, 1, 1, 1])
@example([int(each) for each in "111111111011111000011111011111100"])  # a rule ends with what stands before it twice
def test_it_is_the_published_algorithm(stream: list[int]) -> None:
    made, naive = written(stream), Sequitur(stream).rules()
    found = [bodies(made, rules) for rules in made.blocks()]
    assert [shape(each) for each in found] == ([naive] if stream else [])
    for each in found:
        assert expansion(each) == stream
        assert not broken(each)
        lengths, counts = next(made.blocks()).sizes()
        assert lengths.tolist() == [len(expansion(each, rule)) for rule in range(len(each))]
        assert counts[0] == 1 and counts[1:].min(initial=2) >= 2


@settings(deadline=None, max_examples=100)
@given(streams(), st.integers(1, 50))
def test_blocks(stream: list[int], block: int) -> None:
    made = written(stream, block)
    assert [value for values in made.expanded() for value in values.tolist()] == stream
    assert made.length == len(stream)
    assert sum(1 for _ in made.blocks()) == -(-len(stream) // block)


def test_rules_are_numbered_alike_however_many_values_wait() -> None:
    """While a rule is followed it is not made: that ends where it always did, so that files stay the same."""
    random = np.random.default_rng(0)
    pieces = random.integers(0, 1000, (3, 300))
    cuts = random.integers(0, 300, (1500, 2))
    stream = np.concatenate([pieces[random.integers(3)][low : low + length] for low, length in cuts])
    assert len(stream) > 2 * CLOSED_EACH
    grammar = empty_grammar()
    for start in range(0, len(stream), CLOSED_EACH):
        append_all(grammar, stream[start : start + CLOSED_EACH], ENDLESS)
        flush(grammar)
    at_once, in_parts = written(stream), Written.of(grammar)
    assert np.array_equal(at_once.written, in_parts.written)
    assert np.array_equal(at_once.values, in_parts.values)


def test_later_blocks_take_the_room_of_the_first() -> None:
    def used(blocks: int) -> tuple[int, int]:
        grammar = empty_grammar()
        append_all(grammar, np.array([1, 2, 3, 1, 2, 4, 5, 6] * blocks, np.int64), 8)
        return int(grammar.nodes.control[USED]), int(grammar.rules.control[USED])

    assert used(100) == used(1)


@pytest.mark.parametrize(
    ("stream", "wanted"),
    [
        ("abcdbc", [["a", (1,), "d", (1,)], ["b", "c"]]),
        ("abcdbcabcdbc", [[(1,), (1,)], ["a", (2,), "d", (2,)], ["b", "c"]]),
    ],
)
def test_the_grammars_of_the_paper(stream: str, wanted: Any) -> None:
    """Of Nevill-Manning and Witten, section 2."""
    made = written([ord(each) for each in stream])
    (found,) = (shape(bodies(made, rules)) for rules in made.blocks())
    assert [[each if isinstance(each, tuple) else chr(each) for each in body] for body in found] == wanted


def test_the_list_of_the_paper() -> None:
    """Fig. 3: instructions 1 2 1 2 ..., group 0 0 ..., objects 0 0 1 1 ..., offsets 0 4 0 4 ..."""
    count = 512
    sizes = {
        name: written(stream).size()["symbols"]
        for name, stream in (
            ("instruction", [1, 2] * count),
            ("group", [0] * (2 * count)),
            ("object", [each // 2 for each in range(2 * count)]),
            ("offset", [0, 4] * count),
        )
    }
    assert sizes == {"instruction": 20, "group": 20, "object": 2 * count, "offset": 20}


def test_long_streams_are_linear_in_memory() -> None:
    random = np.random.default_rng(1)
    stream = random.integers(0, 50, 200_000).tolist()
    made = written(stream)
    assert [value for values in made.expanded() for value in values.tolist()] == stream
    assert made.size()["symbols"] < len(stream)
