"""The C encoder against formats/chunk_codec.py: the same columns, to the byte, however records are dealt to calls."""

from __future__ import annotations

import zlib
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tracekit.formats.chunk import Chunk
from tracekit.formats.chunk_codec import encode
from tracekit.formats.events import BY_CODE, FIRST_PATH, NONE, RECORDED
from tracekit.recorder.encoder import UNUSED, Encoder
from tracekit.recorder.native import crc32, library

LOW = 0x5555_5555_4000
MODULUS = 1 << 64
ARITIES = np.array([0, 1, 2, 5, UNUSED, 3, 4, 9], np.uint16)
PATHS = [k for k, words in enumerate(ARITIES) if words != UNUSED]
EVENTS = sorted(RECORDED)

WORDS = st.one_of(
    st.integers(0, 64).map(lambda k: 0x7FFF_0000_0000 + 8 * k),
    st.integers(0, (1 << 64) - 1),
    st.integers(0, 300),
    st.integers(-(1 << 33), 1 << 33).map(lambda k: k % (1 << 64)),
    st.sampled_from(
        [
            0,
            127,
            128,
            32767,
            32768,
            (1 << 31) - 1,
            1 << 31,
            (1 << 64) - 128,
            (1 << 64) - 129,
            1 << 63,
            (1 << 23) - 1,
            1 << 23,
            (1 << 47) - 1,
            1 << 47,
            (1 << 64) - (1 << 47),
            (1 << 64) - (1 << 47) - 1,
        ]
    ),
)

Record = tuple[int, list[int]]
"""A path (offset from LOW) as its index + FIRST_PATH, or an event's code; and its words."""


def arity_of(number: int) -> int:
    return int(ARITIES[number - FIRST_PATH]) if number >= FIRST_PATH else len(BY_CODE[number].words)


@st.composite
def records(draw: st.DrawFn) -> list[Record]:
    numbers = draw(
        st.lists(st.one_of(st.sampled_from([FIRST_PATH + k for k in PATHS]), st.sampled_from(EVENTS)), max_size=60)
    )
    return [(n, draw(st.lists(WORDS, min_size=arity_of(n), max_size=arity_of(n)))) for n in numbers]


def raw(sequence: list[Record], low: int = LOW) -> np.ndarray:
    """What the program writes: ids are addresses, event codes themselves."""
    words: list[int] = []
    for number, values in sequence:
        words += [low + number - FIRST_PATH if number >= FIRST_PATH else number, *values]
    return np.array(words, np.uint64)


def chosen(sequence: list[Record]) -> np.ndarray:
    """The predictors of the slots of records, in their order: what predicts most words that do not go on in step."""
    before = [0] * 8
    last: dict[tuple[int, int], int] = {}
    stride: dict[tuple[int, int], int] = {}
    references: dict[tuple[int, int], list[int]] = {}
    hits: dict[tuple[int, int], Counter[int]] = {}
    for number, words in sequence:
        for slot, word in (((number, k), word) for k, word in enumerate(words)):
            hits.setdefault(slot, Counter())
            step, old = (word - last.get(slot, 0)) % MODULUS, references.get(slot, [0] * 8)
            if step != stride.get(slot, 0):
                hits[slot].update(
                    back | shift << 4
                    for back in range(8)
                    for shift in range(4)
                    if (before[-1 - back] - old[-1 - back] << shift) % MODULUS == step
                )
            last[slot], stride[slot], references[slot] = word, step, before
            before = [*before[1:], word]
    order = [back | shift << 4 for back in range(8) for shift in range(4)]  # the nearest and least shifted of several
    return np.array([max(order, key=lambda predictor: found[predictor]) for found in hits.values()], np.uint8)


def reference(sequence: list[Record], thread: int = 0, kind: int = 0, sample: int | None = None) -> bytes:
    """``sample``: the records by which the predictors are chosen, None for all."""
    arity = np.full(FIRST_PATH + len(ARITIES), NONE, np.uint32)
    for number in [*EVENTS, *(FIRST_PATH + k for k in PATHS)]:
        arity[number] = arity_of(number)
    ids = np.array([number for number, _ in sequence], np.uint32)
    words = np.array([word for _, values in sequence for word in values], np.uint64)
    return encode(ids, words, arity, thread, kind, chosen(sequence[:sample])).build()


def records_in(sequence: list[Record], words: int) -> int:
    """How many of the records `words` raw words hold."""
    ends = np.cumsum([1 + len(values) for _, values in sequence])
    return int(np.searchsorted(ends, words, "right"))


def encoder(vector: bool = True) -> Encoder:
    made = Encoder(limit=1 << 12, buffer_words=1 << 12, vector=vector)
    assert made.add_image(LOW, ARITIES, loaded=1) == FIRST_PATH
    return made


@pytest.mark.parametrize("vector", [False, True])
@settings(max_examples=300, deadline=None)
@given(sequence=records(), piece=st.integers(1, 40))
def test_columns_are_those_of_the_reference(vector: bool, sequence: list[Record], piece: int) -> None:
    made, words = encoder(vector), raw(sequence)
    if vector and made.lanes == 1:
        pytest.skip("this processor has no AVX-512 with VBMI2")
    done, sample = 0, 0
    while done < len(words):  # a piece that ends inside a record leaves it for the next
        taken = made.encode(words[done : done + piece], stream=3, thread=2, kind=1)
        sample = sample or records_in(sequence, taken)
        done, piece = done + taken, piece if taken else piece + 1
    chunks = made.unfinished()
    assert [bytes(chunk.payload) for chunk in chunks] == ([reference(sequence, 2, 1, sample)] if sequence else [])
    assert all((chunk.stream, chunk.records) == (3, len(sequence)) for chunk in chunks)
    made.close()


@settings(max_examples=50, deadline=None)
@given(records(), records())
def test_each_chunk_stands_alone(first: list[Record], second: list[Record]) -> None:
    made = encoder()
    for sequence in (first, second):
        made.encode(raw(sequence))
        assert [bytes(chunk.payload) for chunk in made.unfinished()] == ([reference(sequence)] if sequence else [])
    made.close()


@pytest.mark.parametrize("vector", [False, True])
def test_words_are_predicted_by_earlier_ones(vector: bool) -> None:
    made = encoder(vector)
    rng = np.random.default_rng(5)
    sequence: list[Record] = []
    for index in rng.integers(0, 1 << 30, 200).tolist():
        sequence += [
            (FIRST_PATH + 3, [index, 7 + 8 * index, 3, 900 + 4 * index, index // 3]),
            (FIRST_PATH + 1, [11 + 2 * index]),
            (FIRST_PATH + 7, [*rng.integers(0, 1 << 40, 8).tolist(), index]),
        ]
    made.encode(raw(sequence))
    payload = made.unfinished()[0].payload
    assert bytes(payload) == reference(sequence)
    columns = Chunk.parse(bytes(payload)).columns
    assert columns.predictors.tolist()[:6] == [0, 3 << 4, 0, 2 | 2 << 4, 0, 4 | 1 << 4]
    assert len(columns.residuals) < 200 * (6 + 6 + 8 * 6 + 6)


@settings(deadline=None)
@given(st.binary(max_size=300), st.integers(0, 3), st.integers(0, 1 << 32))
def test_checksums_are_those_of_zlib(data: bytes, times: int, before: int) -> None:
    for part in (data, data * times * 9):
        assert crc32(part) == zlib.crc32(part)
        assert library().tk_crc32(before % (1 << 32), part, len(part)) == zlib.crc32(part, before % (1 << 32))


def test_counts_are_of_all_chunks_and_streams() -> None:
    made = encoder()
    path = (FIRST_PATH + 1, [7])
    made.encode(raw([path, path, (35, [])]))
    made.unfinished()
    made.encode(raw([path]), stream=9)
    counts = made.counts()
    assert counts[FIRST_PATH + 1] == 3 and counts[35] == 1 and counts.sum() == 4


def test_iterations_of_runs_are_summed_up() -> None:
    made = Encoder(limit=1 << 12, buffer_words=1 << 12)
    runs = np.array([k in (1, 2, 4) for k in range(len(ARITIES))])  # only the first of these is a path of one word
    assert made.add_image(LOW, ARITIES, 1, runs) == FIRST_PATH
    records: list[Record] = [(FIRST_PATH + 1, [1 << 35]), (FIRST_PATH + 2, [5, 6]), (FIRST_PATH + 1, [0]), (30, [3])]
    made.encode(raw(records))
    made.unfinished()
    made.add_image(LOW + 0x1000, ARITIES, 2, runs)
    made.encode(raw([(FIRST_PATH + 1, [7])]), stream=9)
    made.encode(raw([(FIRST_PATH + 1, [9])], LOW + 0x1000), epoch=2)
    iterations = made.iterations()
    assert iterations[FIRST_PATH + 1] == (1 << 35) + 7 and iterations[FIRST_PATH + len(ARITIES) + 1] == 9
    assert iterations.sum() == (1 << 35) + 16 and made.counts()[FIRST_PATH + 1] == 3


@pytest.mark.parametrize("stop", [0, 99, LOW + 4, LOW + len(ARITIES), LOW - 1], ids=str)
def test_stops_at_what_is_no_record(stop: int) -> None:
    made = encoder()
    assert made.encode(np.array([LOW, LOW + 1, 5, stop, LOW], np.uint64)) == 3


def test_stops_at_a_record_cut_short() -> None:
    made = encoder()
    assert made.encode(np.array([LOW, LOW + 2, 5], np.uint64)) == 1


def test_an_image_that_takes_the_place_of_another_is_told_apart_by_the_epoch() -> None:
    made = encoder()
    second = made.add_image(LOW, np.array([1, 1], np.uint16), loaded=3)
    assert second == FIRST_PATH + len(ARITIES)
    made.encode(np.array([LOW, 1], np.uint64), epoch=1)  # image 0: path 0 has no words, and 1 is no record
    assert made.counts()[FIRST_PATH] == 1


def test_ids_before_their_image_is_registered_are_its() -> None:
    made = Encoder(limit=1 << 12, buffer_words=1 << 12)
    words = np.array([LOW + 1, 5], np.uint64)
    assert made.encode(words, epoch=0) == 0
    made.add_image(LOW, ARITIES, loaded=4)
    assert made.encode(words, epoch=0) == 2


def test_tables_of_a_stream_grow_with_the_images() -> None:
    made = encoder()
    made.encode(raw([(FIRST_PATH + 3, [1, 2, 3, 4, 5])] * 3))
    more = np.full(70_000, 2, np.uint16)
    first = made.add_image(LOW + 0x1000, more, loaded=2)
    made.encode(np.array([LOW + 0x1000 + 69_999, 8, 9] * 3, np.uint64), epoch=2)
    counts = made.counts()
    assert counts[FIRST_PATH + 3] == 3 and counts[first + 69_999] == 3
