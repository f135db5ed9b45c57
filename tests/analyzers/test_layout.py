"""The module ``layout`` against its reference, and what it says of structures that one can look at."""

from __future__ import annotations

import dataclasses
from random import Random
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.naive import layout as naive
from tests.naive.translation import MemoryMachine
from tests.translation.test_translation import fed, made
from tracekit.analyzers.layout import Layout, LayoutOptions, Settled, Voting
from tracekit.formats.errors import TracekitError
from tracekit.formats.events import NONE
from tracekit.formats.image import DTYPES, TypedKind
from tracekit.jit.kernel import kernel
from tracekit.layout.advice import advised, parts_of
from tracekit.layout.elements import Elements, chosen
from tracekit.layout.kernels.visits import BY_ACCESS, LINES, STRIDE_BITS
from tracekit.layout.kernels.votes import OBJECTS, VOTE, Votes, sized, voted
from tracekit.layout.lines import Part, begins, lines_touched, packed
from tracekit.layout.loads import KEPT_STRIDES, most_common_strides
from tracekit.layout.measurements import joined
from tracekit.layout.structures import Field, Structure, Structures
from tracekit.module import Module, hash_table, inlined, used_rows
from tracekit.modules.options import NoOptions, make_options
from tracekit.render.layout import structure_name, untouched_text
from tracekit.translation.kernels.translation import HEAP

KINDS = ("load", "store", "heap_alloc", "global_init")


class Log(NamedTuple):
    rows: Any
    used: Any


@inlined
def note(log: Log, kind: int, instruction: int, address: int, size: int, group: int, object: int, offset: int) -> None:
    row = log.rows[log.used[0]]
    row[0] = kind
    row[1] = instruction
    row[2] = address
    row[3] = size
    row[4] = group
    row[5] = object
    row[6] = offset
    log.used[0] += 1


class Logging(Module):
    """What the translation, which has tests of its own, gives any module."""

    def state(self) -> Log:
        return Log(np.zeros((20_000, 7), np.int64), np.zeros(1, np.int64))

    @staticmethod
    def load(log: Log, instruction: int, address: int, size: int, group: int, object: int, offset: int) -> None:
        note(log, 0, instruction, address, size, group, object, offset)

    @staticmethod
    def store(log: Log, instruction: int, address: int, size: int, group: int, object: int, offset: int) -> None:
        note(log, 1, instruction, address, size, group, object, offset)

    @staticmethod
    def heap_alloc(log: Log, instruction: int, address: int, size: int, group: int, object: int, offset: int) -> None:
        note(log, 2, instruction, address, size, group, object, offset)

    @staticmethod
    def global_init(log: Log, address: int, size: int, group: int, object: int, offset: int) -> None:
        note(log, 3, 0, address, size, group, object, offset)

    def result(self, log: Log) -> dict[str, Any]:
        return {}


def typed(program: Any, random: Random, accesses: list[int]) -> tuple[Any, naive.Types, dict[int, int]]:
    """The program with structures of random sizes, one of which each of `accesses`, or none, is said to be made to."""
    sizes = random.sample([4, 8, 12, 16, 24, 72, 200], 3)
    types, rows = np.zeros(len(sizes), DTYPES["types"]), np.zeros(len(accesses), DTYPES["typed"])
    types["size"], types["kind"], types["location"] = sizes, 1, 0xFFFFFFFF
    for row, op in zip(rows, accesses):
        number = random.randrange(len(sizes))
        row["of_kind"], row["of"], row["type"] = TypedKind.OP, op, number
        row["offset"] = random.randrange(0, sizes[number], 4)
    rows = rows[: random.randrange(len(rows) + 1)]
    numbers = {number: place for place, number in enumerate(np.unique(rows["type"]).tolist(), 1)}
    said = {int(row["of"]): (numbers[int(row["type"])], int(row["offset"])) for row in rows}
    return (
        dataclasses.replace(program, types=types, typed=rows),
        said,
        {place: sizes[number] for number, place in numbers.items()},
    )


def grouping(module: type[Module], by: str) -> type[Module]:
    """The module, whose groups are told apart so."""
    return type(module.__name__, (module,), {"groups_by": by})


@settings(deadline=None, max_examples=120)
@given(seed=st.integers(0, 2**32), window=st.sampled_from([8, 64]), by=st.sampled_from(["site", "caller"]))
def test_it_is_its_reference(seed: int, window: int, by: str) -> None:
    random = Random(seed)
    program, sites = made()
    program, types, sizes = typed(program, random, sites.access)
    machine = MemoryMachine(random, sites, stack=False, by=by)
    machine.begin_threads()
    machine.run(1 + seed % 400)
    log = fed(grouping(Logging, by)(program, NoOptions()), machine.events, 20).finished()
    rows: list[naive.Row] = [(KINDS[row[0]], *row[1:]) for row in log.rows[: log.used[0]].tolist()]

    voting = fed(grouping(Voting, by)(program, NoOptions()), machine.events, 20)
    voting.finished()
    elements: Elements = voting.result()[0]["elements"]
    kinds = {group: voting.module.groups.describe(group)["kind"] for group in range(len(voting.module.groups))}
    wanted = naive.elements(rows, types, sizes, kinds)
    for group, element in wanted.items():
        found = elements.rows[group]
        modes = {LINES: "lines", BY_ACCESS: "by access"}
        assert modes.get(int(found["mode"]), "uniform") == element.mode
        if element.mode == "uniform":
            assert (elements.structures[group], found["size"], found["start"]) == (
                element.structure,
                element.size,
                element.start,
            )
            assert (found["stride"] if found["stride"] < 1 << 40 else 0) == element.stride
            assert found["low"] == element.low
            assert not element.stride or found["high"] == element.high

    options = Settled(window=window, by=by)
    object.__setattr__(options, "elements", elements)
    state = fed(Layout(program, options), machine.events, 20).finished()
    reference = naive.NaiveVisits(wanted, types, sizes, window)
    for row in rows:
        if row[0] in ("load", "store"):
            structure = reference.place(row)[0]
            if structure:
                reference.row(structure)
            reference.access(row)
    reference.finish()
    in_bulk = {
        ((key >> 32, key & 0xFFFFFFFF), cell): count
        for key, changes in used_rows(state.in_bulk)[1:].tolist()
        for cell, count in enumerate(np.cumsum(changes)[:64].tolist())
        if count
    }
    assert in_bulk == reference.in_bulk
    names = {row: structure for structure, row in reference.rows.items()}
    masks = used_rows(state.masks)["key"].tolist()
    visits = {
        (names[key >> 32], frozenset(cell for cell in range(64) if masks[key & 0xFFFFFFFF] >> cell & 1)): count
        for key, count in used_rows(state.patterns)[1:].tolist()
    }
    assert visits == reference.visits
    for number, row in enumerate(used_rows(state.structures)[1:], 1):
        name = names[number]
        assert (row["in_order"], row["near"]) == (reference.in_order[name], reference.near[name])
        for event in ("load", "store"):
            assert row[f"{event}s"].tolist() == [reference.counts[name, event, cell] for cell in range(64)]
    assert {op: count for op, count in enumerate(state.ops["begun"].tolist()) if count} == {
        min(op, len(program.ops)): count for op, count in reference.begun.items()
    }
    follow = {
        (names[key >> 32], names[key & 0xFFFFFFFF], name): count
        for key, *counts in used_rows(state.follow)[1:].tolist()
        for name, count in zip(("visits", "paired"), counts)
    }
    assert follow == reference.follow
    strides = used_rows(state.strides)[1:]
    keys, shift = strides["key"].astype(np.int64), 64 - STRIDE_BITS
    assert dict(
        zip(zip((keys >> STRIDE_BITS).tolist(), ((keys << shift) >> shift).tolist()), strides["count"])
    ) == dict(reference.strides)


@given(st.dictionaries(st.tuples(st.integers(0, 4), st.integers(-20, 20)), st.integers(1, 5)))
def test_the_strides_that_come_most_are_kept(counts: dict[tuple[int, int], int]) -> None:
    rows = np.array([(*key, count) for key, count in counts.items()], np.int64).reshape(-1, 3)
    expected = {}
    for load in {load for load, _ in counts}:
        mine = [(-count, stride) for (each, stride), count in counts.items() if each == load]
        expected[load] = [(stride, -count) for count, stride in sorted(mine)[:KEPT_STRIDES]]
    found = most_common_strides(rows[:, 0], rows[:, 1], rows[:, 2])
    assert {load: list(strides.items()) for load, strides in found.items()} == expected


@settings(deadline=None, max_examples=100)
@given(data=st.data())
def test_lines_are_those_that_bytes_lie_in(data: st.DataObject) -> None:
    sizes = data.draw(st.lists(st.sampled_from([1, 4, 8, 24, 100]), min_size=1, max_size=6))
    places, size = packed([Part(str(number), "", 0, size) for number, size in enumerate(sizes)])
    used = data.draw(st.lists(st.booleans(), min_size=len(sizes), max_size=len(sizes)))
    pitch = size + data.draw(st.sampled_from([0, 8, 16, 24, 40, 64]))
    is_array, in_order = data.draw(st.booleans()), data.draw(st.sampled_from([0.0, 0.25, 1.0]))
    found = lines_touched(places, pitch, is_array, in_order, np.array([used]))[0]
    starts = begins(pitch, is_array)
    alone = sum(naive.lines(places, used, [start]) for start in starts) / len(starts)
    cycle = [number * pitch for number in range(64)]
    together = naive.lines(places, used, cycle) / 64
    assert found == pytest.approx((1 - in_order) * alone + in_order * together)


def structure(patterns: dict[int, int], in_order: int = 0, array: bool = False) -> dict[str, Any]:
    """Four fields of 8, 8, 40 and 8 bytes; patterns: bits of the fields -> visits."""
    places = [(0, 8), (8, 8), (16, 40), (56, 8)]
    cells = [((1 << size) - 1) << offset for offset, size in places]
    visits = sum(patterns.values())
    return {
        "group": {"kind": "heap", "site": None},
        "type": "node",
        "size": 64,
        "shift": 0,
        "array": array,
        "fields": [[name, "", 8 * offset, 8 * size] for name, (offset, size) in zip("abcd", places)],
        "also": [],
        "objects": 100,
        "visits": visits,
        "in_order": in_order,
        "near": in_order,
        "loads": [0] * 64,
        "stores": [0] * 64,
        "in_bulk": [0] * 64,
        "unplaced": 0,
        "patterns": [
            [sum(cell for bit, cell in enumerate(cells) if fields >> bit & 1), count]
            for fields, count in patterns.items()
        ],
    }


def test_what_is_used_together_is_split_off() -> None:
    row = advised(structure({0b1001: 900, 0b0010: 100}, in_order=1000, array=True))
    assert row["together"] == [["a", "d"]]
    assert row["apart"] == [["a", "b"], ["b", "d"]]
    assert (row["unseen"], row["only_in_bulk"]) == (["c"], [])
    split = row["advice"][0]
    assert (split["kind"], split["keep"], split["move"]) == ("split", ["a", "d"], ["b", "c"])
    # 1000 elements of 64 bytes are a line each; 16 bytes are a quarter of one; b of the 48 bytes that are left, 3/4
    assert (row["lines"], split["lines"]) == (1000, 900 // 4 + 75)
    assert split["bytes_saved"] == 64 * (1000 - 300)


def test_what_is_always_used_whole_is_left_alone() -> None:
    assert advised(structure({0b1111: 1000}))["advice"] == []


def test_structures_of_several_runs_add() -> None:
    one, two = structure({0b1: 3, 0b10: 1}), structure({0b1: 2, 0b100: 5})
    (both,) = joined([[one], [two]])
    assert both["visits"] == 11 and dict(both["patterns"]) == {
        **dict(structure({0b1: 5})["patterns"]),
        **dict(structure({0b10: 1, 0b100: 5})["patterns"]),
    }
    assert joined([[two], [one]]) == joined([[one], [two]])


def test_bit_fields_are_one_part() -> None:
    made = structure({1: 1})
    made["fields"] = [["low", "unsigned int", 0, 3], ["high", "unsigned int", 3, 5], ["next", "int", 32, 32]]
    assert [(part.name, part.offset, part.size) for part, _ in parts_of(made)] == [("low, high", 0, 1), ("next", 4, 4)]
    flags = [[f"flag{bit}", "bool", bit, 1] for bit in range(12)]
    made["fields"] = [*flags, ["next", "char", 16, 8], ["mode", "unsigned int", 24, 8]]
    listed = [(part.offset, part.size) for part, _ in parts_of(made)]
    assert listed == [(0, 2), (2, 1), (3, 1)]  # code reads both bytes of flags at once, whichever flag is meant


def test_an_array_of_open_length_stays_the_last() -> None:
    """Behind a structure of 64 bytes, as many as a mask has bits, it has no byte in it; else what is left of it."""
    made = structure({0b1001: 900, 0b0010: 100}, in_order=1000, array=True)
    made["fields"].append(["items", "int[0]", 8 * 64, 0])
    row = advised(made)
    assert [(field["field"], field["size"]) for field in row["fields"]][-1] == ("items", 0)
    assert (row["open"], row["unseen"], row["holes"]) == (["items"], ["c"], 0)
    split = row["advice"][0]
    assert (split["kind"], split["keep"], split["move"]) == ("split", ["a", "d", "items"], ["b", "c"])
    assert untouched_text(row)[-1].endswith("behind 64 bytes is not looked at: items")
    made = structure({0b1001: 900, 0b0010: 100}, in_order=1000, array=True)
    made["fields"][3:] = [["items", "int[0]", 8 * 60, 0], ["d", "int", 8 * 56, 32]]
    made["fields"].sort(key=lambda field: field[2])
    row = advised(made)
    assert [(field["field"], field["offset"], field["size"]) for field in row["fields"]][-2:] == [
        ("d", 56, 4),
        ("items", 60, 4),
    ]
    assert (row["open"], row["holes"]) == (["items"], 0)
    for advice in row["advice"]:
        assert advice.get("order", advice.get("keep"))[-1] == "items"


def test_a_mark_inside_a_structure_has_no_bytes() -> None:
    made = structure({0b0001: 10})
    made["fields"].insert(1, ["mark", "char[0]", 64, 0])
    row = advised(made)
    listed = [(field["field"], field["offset"], field["size"]) for field in row["fields"]]
    assert listed == [("a", 0, 8), ("mark", 8, 0), ("b", 8, 8), ("c", 16, 40), ("d", 56, 8)]
    assert (row["open"], row["holes"]) == ([], 0)


def test_a_long_list_of_fields_begins_with_the_first() -> None:
    flags = ", ".join(f"flag{bit}" for bit in range(20))
    row = {**advised(structure({0b0001: 10})), "only_in_bulk": [], "unseen": [flags, "second"]}
    first = ", ".join(f"flag{bit}" for bit in range(12))
    assert untouched_text(row) == [f"no access recorded: {first}, ... and 1 more"]
    assert untouched_text({**row, "unseen": ["x" * 100]}) == [f"no access recorded: {'x' * 100}"]


@pytest.mark.parametrize("given", [{"window": "100"}, {"window": "4"}, {"latency": "0"}, {"min_share": "101"}])
def test_options_that_make_no_sense(given: dict[str, str]) -> None:
    with pytest.raises(TracekitError, match=next(iter(given)).replace("_", ".")):
        make_options(LayoutOptions, given)


def test_what_a_damaged_table_claims_of_a_structure_is_not_looked_at() -> None:
    program, sites = made()
    types, members = np.zeros(2, DTYPES["types"]), np.zeros(2, DTYPES["members"])
    types["kind"], types["location"], types["size"] = 1, NONE, (1 << 63, 16)
    types["members"] = 0, 2
    members["type"], members["location"] = NONE, NONE
    members["offset"], members["size"] = (0, 1 << 63), 64
    typed = np.zeros(2, DTYPES["typed"])
    typed["of_kind"], typed["of"], typed["type"] = TypedKind.OP, sites.access[:2], (0, 1)
    structures = Structures(dataclasses.replace(program, types=types, members=members, typed=typed))
    assert structures.of_row.tolist() == [0, 1]
    known = structures.all[1]
    assert known is not None and [(field.offset, field.size) for field in known.fields] == [(0, 64)]


def test_what_only_copies_touch_is_told_from_what_nothing_touches() -> None:
    made = structure({0b0001: 10})
    made["in_bulk"] = [12 if cell < 16 else 0 for cell in range(64)]
    row = advised(made)
    assert (row["only_in_bulk"], row["unseen"]) == (["b"], ["c", "d"])
    assert untouched_text(row) == [
        "only in bulk (copies, memset, the library; how often): b (12)",
        "no access recorded: c, d",
    ]
    assert len(untouched_text({**row, "unplaced": 3})) == 3
    row = advised({**made, "also": ["other"]})
    assert untouched_text(row) == []
    assert untouched_text({"never": ["c"]}) == ["no load or store of at most 16 bytes: c"]
    assert len(untouched_text({**row, "advice": [{}], "unplaced": 3})) == 1


def votes_of(rows: list[tuple[int, int]], types: naive.Types, sizes: dict[int, int]) -> Votes:
    """What a first pass says of an object of 640 bytes, group 1, with these accesses: (instruction, offset)."""
    of_op = [types.get(op, (0, 0)) for op in range(8)]
    state = Votes(
        hash_table(VOTE, 1 << 8),
        hash_table(OBJECTS, 1 << 8),
        np.array([structure for structure, _ in of_op]),
        np.array([place for _, place in of_op]),
        np.array([0, *(sizes[number] for number in sorted(sizes))]),
    )
    played(state, np.array(rows, np.int64))
    return state


@kernel
def played(state: Votes, rows: Any) -> None:
    sized(state, 1, 0, 640)
    for op, offset in rows:
        voted(state, op, 1, offset, 8)


class OneGroup:
    """A site on the heap."""

    def __len__(self) -> int:
        return 2

    def kind(self, group: int) -> int:
        return HEAP


@pytest.mark.parametrize("period", [16, 32, 48, 64, 128])
@pytest.mark.parametrize("says_outer", [False, True])
def test_a_part_of_larger_elements_is_no_array(period: int, says_outer: bool) -> None:
    """Accesses to a text of 16 bytes, the second half of a point of 32."""
    text, point = (
        Structure("Text", 16, (Field("p", "char *", 0, 64), Field("n", "long", 64, 64))),
        Structure(
            "Point",
            32,
            (
                Field("x", "double", 0, 64),
                Field("y", "double", 64, 64),
                Field("name.p", "char *", 128, 64),
                Field("name.n", "long", 192, 64),
            ),
        ),
    )
    known = object.__new__(Structures)
    known.all, known.sizes = [None, text, point], np.array([0, 16, 32])
    known._parts = {1: set(), 2: {1}}
    types, sizes = {1: (1, 0), 2: (2, 0)}, {1: 16, 2: 32}
    starts = range(16, 640 - 16, period)
    rows = [(1, start) for start in starts for _ in range(100)] + ([(2, 0)] if says_outer else [])
    elements = chosen(votes_of(rows, types, sizes), OneGroup(), known)
    log: list[naive.Row] = [("heap_alloc", 0, 0, 640, 1, 0, 0), *(("load", op, at, 8, 1, 0, at) for op, at in rows)]
    wanted = naive.elements(log, types, sizes, {1: "heap"}, {(1, 2): [16]})[1]
    found = elements.rows[1]
    assert (elements.structures[1], found["size"], found["start"], found["stride"]) == (
        wanted.structure,
        wanted.size,
        wanted.start,
        wanted.stride,
    )
    if says_outer and period % 32 == 0:
        assert (wanted.structure, wanted.stride, wanted.start) == (2, 32, 0)
    else:
        assert (wanted.structure, wanted.stride) == (1, period)


def test_what_lies_between_elements_is_not_advised_about() -> None:
    """A structure of 16 bytes every 128: a line each, whatever their size says; else there would be a split."""
    alone = structure({0b0001: 1000}, 1000, True)
    given = {**alone, "size": 16, "fields": alone["fields"][:2]}
    assert advised(given)["lines"] == 250 and advised(given)["advice"]
    made = {**given, "each": 128}
    row = advised(made)
    assert (row["lines"], row["advice"], row["each"]) == (1000, [], 128)
    assert structure_name(row).startswith("node every 128 bytes of ")


def test_members_that_hold_nothing_are_left_out() -> None:
    """An empty class has a byte in its own right; a marker of Rust has none; neither has an array of open length."""
    program, sites = made()
    types, members = np.zeros(2, DTYPES["types"]), np.zeros(4, DTYPES["members"])
    types["kind"], types["location"], types["size"], types["members"] = 1, NONE, (8, 1), (4, 0)
    types["first_member"] = 0, 4
    members["type"], members["location"] = (1, NONE, NONE, NONE), NONE
    members["offset"], members["size"] = (0, 0, 0, 64), (8, 64, 0, 0)
    strings = bytes(program.strings) + b"u32[]\0"
    members["type_name"] = 0, 0, 0, len(program.strings)
    typed = np.zeros(1, DTYPES["typed"])
    typed["of_kind"], typed["of"] = TypedKind.OP, sites.access[0]
    known = Structures(dataclasses.replace(program, types=types, members=members, typed=typed, strings=strings)).all[1]
    assert known is not None and [(field.offset, field.size) for field in known.fields] == [(0, 64), (64, 0)]
