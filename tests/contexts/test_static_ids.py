"""CAMP's static context tree: the figures of the paper, and sizes that no tree could be written out for."""

from __future__ import annotations

import numpy as np
import pytest

from tests.naive.dependence_engine import DependenceEngine
from tests.naive.dependence_programs import EventLog, feed, figure_1, figure_7
from tests.naive.dependence_rows import paths_of
from tests.naive.program_builder import ProgramBuilder
from tracekit.contexts import static_ids
from tracekit.contexts.nodes import ContextKind
from tracekit.contexts.static_ids import GREATEST_ID, static_tree
from tracekit.dependence.profile import DependenceProfile
from tracekit.formats.events import NONE
from tracekit.formats.image import BlockFlag, CallFlag, FunctionFlag


def ids(profile: DependenceProfile) -> dict[tuple[int, ...], int]:
    """CAMP id by the path of calls and loops below the root (calls by instruction, loops by minus row minus 1)."""
    found = {}
    for path, row in zip(paths_of(profile), profile.nodes):
        steps = tuple(-entry[1] - 1 if entry[0] == "loop" else entry[1] for entry in path[1:])
        found[steps] = int(row["camp_id"])
    return found


def test_figure_6_numbers_the_contexts_of_figure_1() -> None:
    figure = figure_1()
    engine = DependenceEngine(figure.program, context=True)
    feed(engine, figure.run(2, 2))
    calls, l1, l2 = figure.calls, -figure.loops["L1"] - 1, -figure.loops["L2"] - 1
    below = (l1, l2)
    assert ids(engine.result()) == {
        (): 0,
        (l1,): 1,
        below: 2,
        (*below, calls["CS1"]): 3,
        (*below, calls["CS2"]): 4,
        (*below, calls["CS2"], calls["CS4"]): 5,
        (*below, calls["CS2"], calls["CS6"]): 7,
        (*below, calls["CS2"], calls["CS6"], calls["CS7"]): 8,
        (*below, calls["CS3"]): 9,
        (*below, calls["CS3"], calls["CS7"]): 10,
    }


def test_the_external_callee_of_figure_6_is_a_node_too() -> None:
    figure = figure_1()
    tree = static_tree(figure.program)
    assert tree.call_offset[tree.call_row[figure.calls["CS5"]]] == 2  # 4 + 2 = 6


def test_figure_7_makes_a_recursion_a_leaf_and_gives_each_indirect_target_a_node() -> None:
    figure = figure_7()
    calls, functions = figure.calls, figure.functions
    for target, expected in (("inc", 2), ("dec", 3)):
        log = EventLog()
        log.enter(functions["main"])
        log.enter(functions["is_even"], calls["CS3"])
        log.enter(functions["is_odd"], calls["CS1"])
        log.enter(functions["is_even"], calls["CS2"])
        for name in ("is_even", "is_odd", "is_even"):
            log.leave(functions[name])
        log.enter(functions[target], calls["CS4"])
        log.leave(functions[target])
        log.leave(functions["main"])
        engine = DependenceEngine(figure.program, context=True)
        feed(engine, log.events)
        profile = engine.result()
        assert ids(profile) == {(): 0, (calls["CS3"],): 1, (calls["CS4"],): expected}
        leaf = profile.nodes[profile.nodes["kind"] == ContextKind.RECURSION][0]
        assert (leaf["invocations"], leaf["iterations"], leaf["most_iterations"]) == (1, 3, 3)


@pytest.fixture
def doubling() -> tuple[ProgramBuilder, list[int], list[int]]:
    """Eighty functions; each calls the next twice, so that the tree has 2^80 leaves."""
    b = ProgramBuilder()
    functions = [b.function(f"f{number}") for number in range(81)]
    second = []
    for function in functions[:-1]:
        first = b.call(b.block(function, BlockFlag.ENTRY), f"f{function + 1}")
        second.append(b.call(b.block(function, continues=first), f"f{function + 1}"))
    b.block(functions[-1], BlockFlag.ENTRY)
    return b, functions, second


def test_ids_beyond_63_bits_are_missing_and_never_wrong(
    doubling: tuple[ProgramBuilder, list[int], list[int]],
) -> None:
    builder, functions, second = doubling
    layout = builder.layout()
    log = EventLog()
    log.enter(functions[0])
    for function, call in zip(functions[1:], second):
        log.enter(function, layout.op[call])
    engine = DependenceEngine(builder.program(), context=True)
    feed(engine, log.events)
    found = [int(row["camp_id"]) for row in engine.result().nodes]
    exact, size = [0], 2 ** (len(functions))  # size of f0's tree: 2^81 - 1 nodes
    for _ in second:
        size //= 2
        exact.append(exact[-1] + size)
    assert exact[-1] > GREATEST_ID
    assert found == [-1 if number > GREATEST_ID else number for number in exact]


def test_small_ids_of_a_huge_tree_are_exact(doubling: tuple[ProgramBuilder, list[int], list[int]]) -> None:
    builder, functions, second = doubling
    layout = builder.layout()
    log = EventLog()
    start = 60  # as a root of its own
    log.enter(functions[start])
    for function, call in zip(functions[start + 1 :], second[start:]):
        log.enter(function, layout.op[call])
    engine = DependenceEngine(builder.program(), context=True)
    feed(engine, log.events)
    found = [int(row["camp_id"]) for row in engine.result().nodes]
    exact, size = [0], 2 ** (len(functions) - start)
    for _ in second[start:]:
        size //= 2
        exact.append(exact[-1] + size)
    assert found == exact


def test_a_target_that_the_tree_did_not_foresee_has_no_id() -> None:
    figure = figure_7()
    log = EventLog()
    log.enter(figure.functions["main"])
    log.enter(figure.functions["is_even"], figure.calls["CS4"])
    engine = DependenceEngine(figure.program, context=True)
    feed(engine, log.events)
    assert ids(engine.result()) == {(): 0, (figure.calls["CS4"],): -1}


def test_entries_without_a_caller_are_roots_of_their_own() -> None:
    figure = figure_1()
    engine = DependenceEngine(figure.program, context=True)
    for stream, function in ((0, "main"), (1, "work")):
        log = EventLog(stream)
        log.enter(figure.functions[function])
        feed(engine, log.events)
    profile = engine.result()
    assert list(profile.nodes["kind"]) == [ContextKind.ROOT] * 2
    assert set(profile.nodes["function"]) == {figure.functions["main"], figure.functions["work"]}
    assert list(profile.nodes["camp_id"]) == [0, 0]
    assert list(profile.nodes["parent"]) == [NONE, NONE]


def test_a_program_without_functions_has_an_empty_tree() -> None:
    tree = static_tree(ProgramBuilder().program())
    assert tree.component.shape == tree.recursive.shape == (0,)
    assert tree.recursive.dtype == np.int64


def test_call_sites_that_may_enter_the_same_functions_are_sized_once(monkeypatch: pytest.MonkeyPatch) -> None:
    b = ProgramBuilder()
    caller = b.function("caller")
    block = b.block(caller, BlockFlag.ENTRY)
    sites = 40
    for _ in range(sites):
        call = b.call(block, flags=CallFlag.INDIRECT)
        block = b.block(caller, continues=call)
    for number in range(30):
        target = b.function(f"target{number}", flags=FunctionFlag.ADDRESS_TAKEN)
        b.block(target, BlockFlag.ENTRY)
    program = b.program()
    asked: list[tuple[int, int]] = []
    size_of_run = static_ids._Sizes._size_of_run
    monkeypatch.setattr(
        static_ids._Sizes, "_size_of_run", lambda self, *run: (asked.append(run), size_of_run(self, *run))[1]
    )
    tree = static_tree(program)
    assert tree.call_offset.tolist() == [1 + 30 * site for site in range(sites)]
    assert tree.target_offset.tolist() == list(range(30))
    assert asked == [(0, 30)]
