"""Known answers of the dependence engine, on event streams made by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.naive.dependence import RAW, WAR, WAW
from tests.naive.dependence_engine import DependenceEngine
from tests.naive.dependence_programs import EventLog, Figure1, feed, figure_1
from tests.naive.dependence_rows import from_profile
from tests.naive.program_builder import ProgramBuilder
from tracekit.containers.kernels.arena import USED
from tracekit.dependence.kernels.load_history import COLLECTIONS, FIRST_COLLECTION, first_entry
from tracekit.dependence.profile import DependenceProfile
from tracekit.formats.errors import TracekitError
from tracekit.formats.events import NONE
from tracekit.formats.image import BlockFlag, OpKind
from tracekit.program.program import Program

SOMEWHERE = 0x5000


class Bench:
    """A program of one function with two nested loops and a few operations of every kind."""

    def __init__(self) -> None:
        b = ProgramBuilder()
        self.main = b.function("main")
        self.helper = b.function("helper")
        outer = b.loop(self.main)
        b.block(self.main, BlockFlag.LOOP_HEADER, outer)
        inner = b.loop(self.main, outer)
        body = b.block(self.main, BlockFlag.LOOP_HEADER, inner)
        kinds = [OpKind.LOAD, OpKind.LOAD, OpKind.STORE, OpKind.STORE, OpKind.ATOMIC, OpKind.COPY_FROM]
        ops = [b.op(body, kind, 8) for kind in kinds]
        call = b.call(body, "helper")
        again = b.block(self.helper, BlockFlag.ENTRY)
        recursive = b.call(again, "helper")
        layout = b.layout()
        self.outer, self.inner = layout.loop[outer], layout.loop[inner]
        self.load, self.load2, self.store, self.store2, self.atomic, self.copy = (layout.op[op] for op in ops)
        self.call, self.recursive = layout.op[call], layout.op[recursive]
        self.program: Program = b.program()

    def run(self, log: EventLog, context: bool = False, workers: int = 1) -> DependenceProfile:
        engine = DependenceEngine(self.program, context, workers)
        feed(engine, log.events)
        return engine.result()


@pytest.fixture(scope="module")
def bench() -> Bench:
    return Bench()


@pytest.fixture(scope="module")
def figure() -> Figure1:
    return figure_1()


def edges(profile: DependenceProfile) -> dict[tuple[int, int, int], Any]:
    """(kind, source, destination) -> count, without contexts."""
    return {
        (int(row["kind"]), int(row["source"]), int(row["destination"])): int(row["count"])
        for row in profile.dependences
    }


def test_lamp_gives_figure_2a_with_the_fifth_line_inter(figure: Figure1) -> None:
    engine = DependenceEngine(figure.program, context=False)
    feed(engine, figure.run(3, 4))
    found = set()
    names = {RAW: "RAW", WAR: "WAR", WAW: "WAW"}
    profile = engine.result()
    for row in profile.levels.rows:
        dependence = profile.dependences[row["dependence"]]
        level = "L1" if profile.nodes[row["node"]]["loop"] == figure.loops["L1"] else "L2"
        ends = {figure.ld1: "LD1", figure.st1: "ST1"}
        edge = (names[int(dependence["kind"])], ends[int(dependence["source"])], ends[int(dependence["destination"])])
        found |= {(*edge, level, name) for name in ("intra", "inter") if row[name]}
    assert found == {
        ("WAR", "LD1", "ST1", "L1", "intra"),
        ("RAW", "ST1", "LD1", "L1", "inter"),
        ("RAW", "ST1", "LD1", "L1", "intra"),
        ("WAW", "ST1", "ST1", "L1", "intra"),
        ("WAW", "ST1", "ST1", "L1", "inter"),  # printed as Intra, a second time
        ("WAR", "LD1", "ST1", "L2", "intra"),
        ("RAW", "ST1", "LD1", "L2", "inter"),
        ("WAW", "ST1", "ST1", "L2", "inter"),
    }


def test_camp_gives_figure_3a(figure: Figure1) -> None:
    """The recurrence of sum[t] is carried by L2, that of nodes[i] by L1, and neither by both."""
    engine = DependenceEngine(figure.program, context=True)
    feed(engine, figure.run(3, 4))
    profile = engine.result()
    carried = {}
    for row in profile.levels.rows:
        dependence = profile.dependences[row["dependence"]]
        if dependence["kind"] == RAW:
            ends = tuple(int(profile.nodes[dependence[end]]["camp_id"]) for end in ("source_node", "destination_node"))
            level = int(profile.nodes[row["node"]]["camp_id"])
            carried[ends, level] = (bool(row["intra"]), bool(row["inter"]))
    assert carried == {
        ((9, 3), 1): (True, False),
        ((9, 3), 2): (False, True),
        ((7, 5), 1): (False, True),
    }


def test_a_wide_store_feeds_a_narrow_load_inside_it(bench: Bench) -> None:
    log = EventLog()
    log.store(bench.store, SOMEWHERE, 8)
    log.load(bench.load, SOMEWHERE + 3, 1)
    log.load(bench.load2, SOMEWHERE + 8, 1)
    assert edges(bench.run(log)) == {(RAW, bench.store, bench.load): 1}


def test_an_unaligned_access_across_lines_and_pages_is_one_execution(bench: Bench) -> None:
    log = EventLog()
    for address in (0x5FFF, 0x6000, 0x6001):
        log.store(bench.store, address, 1)
    log.load(bench.load, 0x5FFD, 8)
    assert edges(bench.run(log)) == {(RAW, bench.store, bench.load): 1}


def test_every_reader_since_the_last_store_is_kept(bench: Bench) -> None:
    log = EventLog()
    log.load(bench.load, SOMEWHERE)
    log.load(bench.load2, SOMEWHERE)
    log.store(bench.store, SOMEWHERE)
    log.store(bench.store2, SOMEWHERE)
    assert edges(bench.run(log)) == {
        (WAR, bench.load, bench.store): 1,
        (WAR, bench.load2, bench.store): 1,
        (WAW, bench.store, bench.store2): 1,
    }


@pytest.mark.parametrize("name", ["heap_alloc", "heap_free", "stack_alloc", "stack_free", "global_init"])
def test_objects_that_begin_or_end_take_their_history_along(bench: Bench, name: str) -> None:
    log = EventLog()
    log.store(bench.store, SOMEWHERE)
    log.store(bench.store, SOMEWHERE + 8)
    log.add(name, NONE, SOMEWHERE, 8)
    log.load(bench.load, SOMEWHERE)
    log.load(bench.load2, SOMEWHERE + 8)
    assert edges(bench.run(log)) == {(RAW, bench.store, bench.load2): 1}


def test_a_free_of_one_stream_clears_the_history_of_another(bench: Bench) -> None:
    engine = DependenceEngine(bench.program, context=False)
    one, other = EventLog(0), EventLog(1)
    one.store(bench.store, SOMEWHERE)
    other.add("heap_free", NONE, SOMEWHERE, 16)
    feed(engine, one.events + other.events)
    one.events.clear()
    one.load(bench.load, SOMEWHERE)
    feed(engine, one.events)
    assert len(engine.result().dependences) == 0


def test_streams_do_not_see_each_other(bench: Bench) -> None:
    engine = DependenceEngine(bench.program, context=False)
    one, other = EventLog(0), EventLog(1)
    one.store(bench.store, SOMEWHERE)
    other.load(bench.load, SOMEWHERE)
    feed(engine, one.events + other.events)
    assert len(engine.result().dependences) == 0


def test_an_atomic_operation_does_not_depend_on_its_own_load(bench: Bench) -> None:
    log = EventLog()
    for _ in range(3):
        log.load(bench.atomic, SOMEWHERE)
        log.store(bench.atomic, SOMEWHERE)
    log.load(bench.load, SOMEWHERE)
    log.load(bench.atomic, SOMEWHERE)
    log.store(bench.atomic, SOMEWHERE)
    assert edges(bench.run(log)) == {
        (RAW, bench.atomic, bench.atomic): 3,
        (WAW, bench.atomic, bench.atomic): 3,
        (RAW, bench.atomic, bench.load): 1,
        (WAR, bench.load, bench.atomic): 1,
    }


def test_an_overlapping_move_depends_on_earlier_moves_only(bench: Bench) -> None:
    log = EventLog()
    for _ in range(2):  # memmove(p + 4, p, 8)
        log.load(bench.copy, SOMEWHERE, 8)
        log.store(bench.copy, SOMEWHERE + 4, 8)
    log.store(bench.store, SOMEWHERE, 4)
    assert edges(bench.run(log)) == {
        (RAW, bench.copy, bench.copy): 1,
        (WAW, bench.copy, bench.copy): 1,
        (WAR, bench.copy, bench.store): 1,
    }


def test_distances_are_exact_however_long(bench: Bench) -> None:
    """A load reads what was stored 1 and 100,000 iterations ago; a scalar is read in every iteration."""
    trips = 100_001
    log = EventLog()
    for trip in range(trips):
        log.loop(bench.outer, trip)
        if trip in (0, trips - 2):
            log.store(bench.store, SOMEWHERE + 8 * (trip > 0))
        log.load(bench.load2, SOMEWHERE + 16)
    log.load(bench.load, SOMEWHERE)
    log.load(bench.load, SOMEWHERE + 8)
    log.store(bench.store2, SOMEWHERE + 16)
    log.exit(bench.outer)
    profile = bench.run(log)
    found = {
        (
            int(profile.dependences[row["dependence"]]["kind"]),
            row["intra"].item(),
            row["min_distance"].item(),
            row["max_distance"].item(),
        )
        for row in profile.levels.rows
    }
    assert found == {(RAW, False, 1, trips - 1), (WAR, True, 1, trips - 1)}


def test_irregular_iterations_keep_their_distances(bench: Bench) -> None:
    random = np.random.default_rng(5)
    log = EventLog()
    for trip in range(2_000):
        log.loop(bench.outer, trip)
        log.store(bench.store, SOMEWHERE + 8 * trip)
        trips = random.integers(0, 6)
        for inner in range(trips):
            log.loop(bench.inner, inner)
        if trips:
            log.exit(bench.inner)
    log.load(bench.load, SOMEWHERE + 8 * 17)
    log.load(bench.load, SOMEWHERE + 8 * 1_990)
    row = bench.run(log).levels.rows[0]
    assert (row["min_distance"], row["max_distance"]) == (1_999 - 1_990, 1_999 - 17)


def test_a_recursion_is_one_leaf_whose_depths_are_iterations(bench: Bench) -> None:
    log = EventLog()
    log.enter(bench.main)
    log.enter(bench.helper, bench.call)
    log.store(bench.store, SOMEWHERE)
    for _ in range(3):
        log.enter(bench.helper, bench.recursive)
    log.load(bench.load, SOMEWHERE)
    for _ in range(4):
        log.leave(bench.helper)
    log.leave(bench.main)
    profile = bench.run(log, context=True)
    (row,) = profile.levels.rows
    assert (row["intra"], row["inter"], row["min_distance"], row["max_distance"]) == (False, True, 3, 3)
    assert profile.dependences["source_node"][0] == profile.dependences["destination_node"][0] == row["node"]


def test_exposed_reads_are_those_not_written_in_the_same_iteration(bench: Bench) -> None:
    log = EventLog()
    for trip in range(3):
        log.loop(bench.outer, trip)
        log.store(bench.store, SOMEWHERE)
        log.load(bench.load, SOMEWHERE)  # private: written before read
        log.load(bench.load2, SOMEWHERE + 8)  # written by the iteration before
        log.store(bench.store2, SOMEWHERE + 8)
    log.exit(bench.outer)
    assert {int(row["instruction"]) for row in bench.run(log).exposed} == {bench.load2}


def test_what_nothing_ever_stored_is_not_exposed_if_it_is_read_with_what_the_iteration_stored(bench: Bench) -> None:
    log = EventLog()
    for trip in range(3):
        log.loop(bench.outer, trip)
        log.store(bench.store, SOMEWHERE, 2)
        log.load(bench.load, SOMEWHERE, 8)  # a structure, of which the rest is padding
        log.load(bench.load2, SOMEWHERE + 4, 4)  # nothing but what was there before
    log.exit(bench.outer)
    assert {int(row["instruction"]) for row in bench.run(log).exposed} == {bench.load2}


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_a_part_of_what_is_loaded_whole_may_lie_in_a_page_of_its_own(bench: Bench, workers: int) -> None:
    page = (SOMEWHERE + 4095) & -4096
    log = EventLog()
    for trip in range(3):
        log.loop(bench.outer, trip)
        log.store(bench.store, page - 16, 8)
        log.load(bench.load, page - 16, 32)
        log.load(bench.load2, page - 8, 32)  # nothing but what was there before
    log.exit(bench.outer)
    assert {int(row["instruction"]) for row in bench.run(log, workers=workers).exposed} == {bench.load2}


def test_partial_visits_of_a_header_are_no_iterations(bench: Bench) -> None:
    log = EventLog()
    for trips in (3, 0):
        for trip in range(trips + 1):
            log.loop(bench.outer, trip)
            log.load(bench.load, SOMEWHERE)
        log.exit(bench.outer, partial=1)
    log.loop(bench.outer, 0)  # left by the end of the program
    log.add("external_call", bench.call)
    row = bench.run(log).nodes[1]
    assert (row["invocations"], row["iterations"], row["most_iterations"], row["accesses"]) == (3, 4, 3, 5)
    assert row["external"] == bench.call


def test_a_dependence_names_its_objects(bench: Bench) -> None:
    log = EventLog()
    log.add("global_init", 7, SOMEWHERE, 8)
    log.add("heap_alloc", bench.call, SOMEWHERE + 8, 1 << 20)
    log.add("stack_alloc", bench.store, SOMEWHERE - 4, 4)
    places = (SOMEWHERE + 8, SOMEWHERE, SOMEWHERE + 0x90000, SOMEWHERE - 1, SOMEWHERE - 8, SOMEWHERE + 7)
    for address in places:
        log.store(bench.store, address, 1)
        log.load(bench.load, address, 1)
    ((count, objects, listed, _),) = from_profile(bench.run(log))["dependences"].values()
    assert (count, objects) == (6, 4)
    assert listed == [(1, bench.call), (3, 7), (2, bench.store), (0, NONE)]


def test_memory_does_not_grow_with_the_length_of_the_run(bench: Bench) -> None:
    """Ten times as many iterations over the same bytes, read by two loads at two levels, take the same memory,
    once what is left of earlier iterations has been merged."""
    sizes = []
    last = EventLog()
    last.load(bench.load, SOMEWHERE)
    for repeats in (20, 200):
        log = EventLog()
        for trip in range(repeats):
            log.loop(bench.outer, trip)
            for inner in range(20):
                log.loop(bench.inner, inner)
                log.load(bench.load, SOMEWHERE + 8 * inner)
                log.load(bench.load2, SOMEWHERE + 8 * (inner // 2))
            log.exit(bench.inner)
        engine = DependenceEngine(bench.program, context=True)
        feed(engine, log.events)
        engine.collects = True
        feed(engine, last.events)
        sizes.append(engine.result().shadow_bytes)
    assert sizes[0] == sizes[1]


def test_loads_are_merged_before_they_take_much_memory(bench: Bench) -> None:
    """Nobody asks for it here: the log grows by no more than its first million entries beyond what is kept."""
    trip = EventLog()
    trip.loop(bench.outer, 1)
    for inner in range(20):
        trip.loop(bench.inner, inner)
        trip.load(bench.load, SOMEWHERE + 8 * inner)
        trip.load(bench.load2, SOMEWHERE + 8 * (inner // 2))
    trip.exit(bench.inner)
    begin = EventLog()
    begin.loop(bench.outer, 0)
    engine = DependenceEngine(bench.program, context=True)
    feed(engine, begin.events)
    columns = [np.array(column, dtype) for column, dtype in zip(list(zip(*trip.events))[1:], ("u1", "u4", "u8", "u8"))]
    for _ in range(100):
        engine.feed_columns(0, *(np.tile(column, 2000) for column in columns))
        readers = engine.states[0].readers
        assert readers.control[USED] - first_entry(readers) < FIRST_COLLECTION + 10_000
    assert readers.control[COLLECTIONS] >= 2


def test_a_loop_open_twice_keeps_its_iterations_apart(bench: Bench) -> None:
    """LAMP has one row for both: what is known of the inner invocation's iterations says nothing of the outer's."""
    log = EventLog()
    for trip in range(12):
        log.loop(bench.outer, trip)
        if trip == 0:
            log.store(bench.store, SOMEWHERE)
        elif trip in (1, 4, 11):
            log.load(bench.load, SOMEWHERE)  # 1, 4 and, after the sixth iteration's stores, 6 iterations later
        elif trip == 5:
            for inner in range(11):
                log.loop(bench.outer, inner)
                (log.load if inner == 10 else log.store)((bench.load if inner == 10 else bench.store), SOMEWHERE)
            log.exit(bench.outer)
    profile = bench.run(log)
    (row,) = [row for row in profile.levels.rows if profile.dependences[row["dependence"]]["kind"] == RAW]
    assert (row["min_distance"], row["max_distance"]) == (1, 6)


def test_an_impossible_size_is_refused(bench: Bench) -> None:
    for name in ("store", "heap_free"):
        log = EventLog()
        log.add(name, bench.store, SOMEWHERE, 1 << 60)
        with pytest.raises(TracekitError, match="damaged"):
            bench.run(log)
