"""The chunk codec: what goes in comes out, in batches of any size; damage is an error, never more."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tracekit.formats.chunk import MAX_RECORDS, Chunk, Columns
from tracekit.formats.chunk_codec import Decoder, encode
from tracekit.formats.errors import TracekitError
from tracekit.formats.events import NONE

IDS = 300
WORDS = st.one_of(
    st.integers(0, 64).map(lambda k: 0x7FFF_0000_0000 + 8 * k),
    st.integers(0, (1 << 64) - 1),
    st.integers(0, 300),
    st.integers(-(1 << 33), 1 << 33).map(lambda k: k % (1 << 64)),
    st.sampled_from(
        [0, (1 << 64) - 1, 1 << 63, (1 << 23) - 1, 1 << 23, (1 << 47) - 1, 1 << 47, (1 << 64) - (1 << 47) - 1]
    ),
)


@st.composite
def sequences(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(arity, ids, words): a few ids of random arity, records of them, words near each other and far."""
    arity = np.full(IDS, NONE, np.uint32)
    known = draw(st.lists(st.integers(1, IDS - 1), min_size=1, max_size=8, unique=True))
    for number in known:
        arity[number] = draw(st.integers(0, 5))
    ids = np.array(draw(st.lists(st.sampled_from(known), max_size=60)), np.uint32)
    size = int(arity[ids].sum())
    words = np.array(draw(st.lists(WORDS, min_size=size, max_size=size)), np.uint64)
    return arity, ids, words


PREDICTOR = st.builds(lambda back, shift: back | shift << 4, st.integers(0, 7), st.integers(0, 3))
PREDICTORS = st.lists(PREDICTOR, max_size=12)


def predictors_of(ids: np.ndarray, arity: np.ndarray, values: list[int]) -> np.ndarray:
    """At most as many predictors as the ids have slots."""
    return np.array(values[: int(arity[np.unique(ids)].sum())], np.uint8)


def decode(chunk: Chunk, arity: np.ndarray, records: int = 64, words: int = 64) -> tuple[np.ndarray, np.ndarray]:
    decoder = Decoder(arity, records, words)
    decoder.start(chunk)
    ids, values = [np.empty(0, np.uint32)], [np.empty(0, np.uint64)]
    while (batch := decoder.batch()) is not None:
        assert 0 < len(batch[0]) <= records
        ids.append(batch[0].copy())
        values.append(batch[1].copy())
    return np.concatenate(ids), np.concatenate(values)


@settings(max_examples=200, deadline=None)
@given(sequences(), st.integers(1, 9), st.integers(1, 9), PREDICTORS)
def test_decoding_gives_what_was_encoded(
    sequence: tuple[np.ndarray, np.ndarray, np.ndarray], records: int, words: int, predictors: list[int]
) -> None:
    arity, ids, values = sequence
    payload = encode(ids, values, arity, 3, 1, predictors_of(ids, arity, predictors)).build()
    chunk = Chunk.parse(payload)
    assert (chunk.thread, chunk.kind, chunk.records, chunk.words) == (3, 1, len(ids), len(values))
    for got, expected in zip(decode(chunk, arity, records, words), (ids, values)):
        np.testing.assert_array_equal(got, expected)


@settings(max_examples=50, deadline=None)
@given(sequences(), st.integers(1, 9), st.integers(1, 9), st.integers(1, 3))
def test_so_many_batches_stay_as_they_are(
    sequence: tuple[np.ndarray, np.ndarray, np.ndarray], records: int, words: int, kept: int
) -> None:
    arity, ids, values = sequence
    decoder = Decoder(arity, records, words, kept)
    decoder.start(encode(ids, values, arity))
    latest: list[tuple[np.ndarray, np.ndarray]] = []
    copies: list[tuple[np.ndarray, np.ndarray]] = []
    while (batch := decoder.batch()) is not None:
        latest = [*latest, batch][-kept:]
        copies.append((batch[0].copy(), batch[1].copy()))
        for (own_ids, own_words), (old_ids, old_words) in zip(reversed(latest), reversed(copies)):
            np.testing.assert_array_equal(own_ids, old_ids)
            np.testing.assert_array_equal(own_words, old_words)
    assert [word for _, own in copies for word in own.tolist()] == values.tolist()


def test_a_decoder_starts_every_chunk_from_nothing() -> None:
    arity = np.full(IDS, NONE, np.uint32)
    arity[256:260] = [0, 1, 2, 700]
    rng = np.random.default_rng(7)
    decoder = Decoder(arity, 16, 16)
    for _ in range(5):
        ids = rng.integers(256, 260, 50).astype(np.uint32)
        words = rng.integers(0, 1 << 20, int(arity[ids].sum())).astype(np.uint64)
        decoder.start(Chunk.parse(encode(ids, words, arity).build()))
        got: list[int] = []
        while (batch := decoder.batch()) is not None:
            got += batch[1].tolist()
        assert got == words.tolist()


def test_the_columns_are_those_of_the_specification() -> None:
    arity = np.full(IDS, NONE, np.uint32)
    arity[256] = 1
    columns = encode(np.full(3, 256, np.uint32), np.array([1000, 1008, 1016], np.uint64), arity).columns
    assert [column.tolist() for column in columns] == [[256, 256], [195, 194, 0], [], [0xE8, 3, 8] + [0] * 8, []]


def test_an_access_in_step_costs_one_symbol() -> None:
    """A loop's record with strided words is predicted whole from the third time on."""
    arity = np.full(IDS, NONE, np.uint32)
    arity[256] = 2
    steps = np.arange(1000, dtype=np.uint64)
    words = np.stack([0x10_0000 + 8 * steps, 0x20_0000 + 24 * steps], axis=1).astype(np.uint64).ravel()
    columns = encode(np.full(1000, 256, np.uint32), words, arity).columns
    assert len(columns.symbols) == 1000
    assert sum(len(column) for column in columns) < 1020


def test_a_predictor_predicts_a_word_by_an_earlier_one() -> None:
    """Random indices; the second word is an element of 4 bytes, the fourth one of 8 bytes with the same index."""
    arity = np.full(IDS, NONE, np.uint32)
    arity[256], arity[257] = 3, 1
    index = np.random.default_rng(3).integers(0, 1 << 20, 500).astype(np.uint64)
    words = np.stack(
        [
            0x40_0000 + index % np.uint64(50),
            0x1000_0000 + 4 * index,
            0x800 + index // np.uint64(7),
            0x9000_0000 + 8 * index,
        ],
        axis=1,
    ).ravel()
    ids = np.tile(np.array([256, 257], np.uint32), 500)
    plain = encode(ids, words, arity)
    chunk = encode(ids, words, arity, predictors=np.array([0, 0, 0, 1 | 1 << 4], np.uint8))
    assert len(chunk.columns.predictors) == 4
    assert len(plain.columns.residuals) - len(chunk.columns.residuals) > 3 * 495
    for part in (plain, chunk):
        np.testing.assert_array_equal(decode(Chunk.parse(part.build()), arity, 7, 5)[1], words)


def test_encode_refuses_what_is_no_sequence_of_records() -> None:
    arity = np.full(IDS, NONE, np.uint32)
    arity[256] = 2
    for ids, words in (([257], []), ([256], [1]), ([256], [1, 2, 3]), ([5000], [])):
        with pytest.raises(ValueError, match=r"record|words"):
            encode(np.array(ids, np.uint32), np.array(words, np.uint64), arity)


def test_a_path_with_too_many_words_is_refused() -> None:
    with pytest.raises(TracekitError, match="words"):
        Decoder(np.array([NONE, 65535], np.uint32))


@settings(max_examples=200, deadline=None)
@given(sequences(), PREDICTORS, st.data())
def test_a_damaged_chunk_is_an_error_or_another_chunk(
    sequence: tuple[np.ndarray, np.ndarray, np.ndarray], predictors: list[int], data: st.DataObject
) -> None:
    arity, ids, values = sequence
    payload = bytearray(encode(ids, values, arity, predictors=predictors_of(ids, arity, predictors)).build())
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(payload) - 1))
        payload[at] = data.draw(st.integers(0, 255))
    try:
        chunk = Chunk.parse(bytes(payload))
        got, words = decode(chunk, arity)
    except TracekitError:
        return
    assert len(got) == chunk.records and len(words) == chunk.words == int(arity[got].sum())


@pytest.mark.parametrize(
    "column, values, reason",
    [
        ("symbols", [0], "id"),
        ("literals", [299], "id"),
        ("literals", [1 << 31], "id"),
        ("literals", [], "columns"),
        ("symbols", [0xC7], "columns"),
        ("symbols", [0xC0], "columns"),
        ("symbols", [0xCB], "codes"),
        ("codes", [0], "columns"),
        ("residuals", [1] * 9, "columns"),
        ("residuals", [1] * 11, "columns"),
        ("predictors", [8], "predictor"),
        ("predictors", [64], "predictor"),
    ],
)
def test_each_kind_of_damage_has_its_reason(column: str, values: list[int], reason: str) -> None:
    arity = np.full(IDS, NONE, np.uint32)
    arity[256] = 1
    columns = encode(np.array([256], np.uint32), np.array([1000], np.uint64), arity).columns
    changed = columns._replace(**{column: np.array(values, getattr(columns, column).dtype)})
    with pytest.raises(TracekitError, match=reason):
        decode(Chunk.parse(Chunk(0, 0, 1, 1, changed).build()), arity)


def test_codes_that_belong_to_no_word_are_zero() -> None:
    arity = np.full(IDS, NONE, np.uint32)
    arity[256] = 5
    columns = encode(np.array([256], np.uint32), np.full(5, 1000, np.uint64), arity).columns
    assert len(columns.codes) == 2
    for k, bit in ((0, 0x40), (0, 0x80), (1, 0x08), (1, 0x40)):
        codes = columns.codes.copy()
        codes[k] |= bit
        with pytest.raises(TracekitError, match="codes for more words"):
            decode(Chunk.parse(Chunk(0, 0, 1, 5, columns._replace(codes=codes)).build()), arity)


@pytest.mark.parametrize(("records", "words"), [(MAX_RECORDS + 1, 0), (0, MAX_RECORDS + 1)])
def test_a_chunk_has_no_more_records_and_words_than_the_format_allows(records: int, words: int) -> None:
    """Also one whose counts agree: readers make room for so many."""
    nothing = np.empty(0, np.uint8)
    columns = Columns(np.empty(0, np.uint32), np.zeros(records, np.uint8), nothing, np.zeros(8, np.uint8), nothing)
    with pytest.raises(TracekitError, match=f"claims {records} records and {words} words"):
        Chunk.parse(Chunk(0, 0, records, words, columns).build())


def test_relations_that_belong_to_no_word_are_an_error() -> None:
    arity = np.full(IDS, NONE, np.uint32)
    arity[256] = 1
    chunk = encode(np.full(3, 256, np.uint32), np.arange(3, dtype=np.uint64), arity)
    for predictors, good in (([0x12], True), ([0, 0x12], False)):
        columns = chunk.columns._replace(predictors=np.array(predictors, np.uint8))
        changed = Chunk.parse(Chunk(0, 0, 3, 3, columns).build())
        if good:
            decode(changed, arity)
        else:
            with pytest.raises(TracekitError, match="columns hold"):
                decode(changed, arity)


def test_a_chunk_cannot_claim_more_than_it_holds() -> None:
    nothing = np.empty(0, np.uint8)
    empty = Columns(np.empty(0, np.uint32), nothing, nothing, np.zeros(8, np.uint8), nothing)
    for records, words in ((1, 0), (0xFFFFFFFF, 0), (0, 0xFFFFFFFF), (MAX_RECORDS + 1, 0)):
        with pytest.raises(TracekitError):
            decode(Chunk.parse(Chunk(0, 0, records, words, empty).build()), np.full(IDS, NONE, np.uint32))
    with pytest.raises(TracekitError, match="counts"):
        Chunk.parse(Chunk(0, 0, 0, 0, empty._replace(residuals=np.zeros(7, np.uint8))).build())
    with pytest.raises(TracekitError, match="counts"):
        Chunk.parse(Chunk(0, 0, 0, 0, empty._replace(predictors=np.zeros(1, np.uint8))).build())
    symbols = np.zeros(1000, np.uint8)
    arity = np.full(IDS, NONE, np.uint32)
    arity[0] = 65534  # no reader has such an id 0; it stands for a forged path of many words
    with pytest.raises(TracekitError, match="columns hold"):
        decode(Chunk.parse(Chunk(0, 0, 1000, 100_000, empty._replace(symbols=symbols)).build()), arity, 1000, 1 << 17)
