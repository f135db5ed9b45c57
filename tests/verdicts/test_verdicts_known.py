"""Verdicts with known answers: small loops of C, and what a replay of each finds."""

from __future__ import annotations

import pytest

from tests.naive import verdicts as naive
from tests.naive.scenario import Block, Context, Dependence, Loop, Op, Scenario, Variable
from tests.naive.verdicts import Answer
from tests.verdicts import scenario_tables
from tracekit.verdicts.verdicts import judge

HEADER, BODY, AFTER, CALLEE = range(4)
LOOP = 1  # the context of the one loop of most cases; 0 is main


def loop(*kinds: str, **changes: object) -> Scenario:
    """``for (i = 0; i < n; i++) { ... }`` in main, its body's operations of the given kinds, numbered from 0."""
    row = Loop(0, HEADER, exits=[HEADER], phis=[("induction", "+", "i")])
    for name, value in changes.items():
        setattr(row, name, value)
    return Scenario(
        ops=[Op(kind, BODY) for kind in kinds],
        blocks=[Block(0, 0), Block(0, 0), Block(0), Block(1)],
        loops=[row],
        edges=[
            ("register", ("phi", 0), ("branch", HEADER)),
            ("control", ("branch", HEADER), ("phi", 0)),
            *[("control", ("branch", HEADER), ("op", op)) for op in range(len(kinds))],
        ],
        contexts=[Context("root"), Context("loop", 0, 0, iterations=9)],
        objects=["global"],
    )


def flow(
    kind: str,
    source: int,
    destination: int,
    *,
    carried: bool,
    context: int = LOOP,
    level: int = LOOP,
    to: int | None = None,
    objects: tuple[int, ...] = (0,),
) -> Dependence:
    return Dependence(
        kind, source, context, destination, context if to is None else to, objects, [(level, not carried, carried)]
    )


def verdict(scenario: Scenario, level: int = LOOP) -> Answer:
    """The answer on which tracekit and the naive reference agree."""
    judged = judge(scenario_tables.program(scenario), scenario_tables.profile(scenario))
    answer = scenario_tables.as_answer(next(each for each in judged if each.node == level))
    assert answer == naive.judge(scenario, level)
    return answer


def test_initialising_an_array_is_doall() -> None:
    assert verdict(loop("store")) == Answer("doall", set(), set(), (0, 0, 0))


def test_one_iteration_says_nothing() -> None:
    case = loop("store")
    case.contexts[LOOP].iterations = 1
    assert verdict(case).verdict == "not-exercised"


def test_a_of_i_from_a_of_i_minus_1_is_sequential() -> None:
    case = loop("load", "store")
    case.edges.append(("register", ("op", 0), ("op", 1)))
    case.dependences.append(flow("RAW", 1, 0, carried=True))
    assert verdict(case) == Answer("sequential", set(), {("dependence", 1, 0)}, (1, 0, 0))


def test_an_exit_that_was_never_taken_is_no_obstacle_even_if_what_it_reads_changes() -> None:
    """``if (*status) return -1;`` in a loop whose iterations store ``*status``."""
    case = loop("load", "store", "store")
    case.loops[0].exit_causes = [[("load", 0, True), ("before", 0, False), ("behind", 2, False)]]
    case.dependences.append(flow("RAW", 1, 0, carried=False))
    case.counts = {0: 9, 1: 9, 2: 8}
    assert verdict(case).blocked_by == {("exit", 0, None)}
    case.counts[2] = 9
    assert verdict(case) == Answer("doall", set(), set(), (0, 0, 0), not_taken={0})


def test_a_sum_in_a_register_is_a_reduction() -> None:
    case = loop("load", phis=[("induction", "+", "i"), ("reduction", "+", "sum")])
    assert verdict(case) == Answer("doall-with", {("reduction", "register", 1, "+")}, set(), (0, 0, 0))


def global_sum() -> Scenario:
    """``total += a[i]``, total in memory: load a[i], load total, store total."""
    case = loop("load", "load", "store")
    case.edges.append(("register", ("op", 1), ("op", 2)))
    case.edges.append(("register", ("op", 0), ("op", 2)))
    case.updates = [(1, 2, "+")]
    case.dependences = [
        flow("RAW", 2, 1, carried=True),
        flow("WAR", 1, 2, carried=False),
        flow("WAW", 2, 2, carried=True),
    ]
    return case


def test_a_sum_in_memory_is_a_reduction() -> None:
    assert verdict(global_sum()) == Answer("doall-with", {("reduction", "memory", 0, "+")}, set(), (1, 0, 1))


def test_a_sum_that_something_else_reads_is_none() -> None:
    case = global_sum()
    case.ops.append(Op("load", BODY))
    case.dependences.append(flow("RAW", 2, 3, carried=False))
    assert verdict(case).transformations == set()
    assert ("dependence", 2, 1) in verdict(case).blocked_by


def test_a_sum_whose_old_value_is_used_is_none() -> None:
    case = global_sum()
    case.ops.append(Op("store", BODY))
    case.edges.append(("register", ("op", 1), ("op", 3)))  # b[i] = total++
    assert ("dependence", 2, 1) in verdict(case).blocked_by


def test_two_operators_on_one_location_are_no_reduction() -> None:
    case = global_sum()
    case.ops += [Op("load", BODY), Op("store", BODY)]
    case.updates.append((3, 4, "*"))
    case.dependences += [flow("RAW", 2, 3, carried=False), flow("RAW", 4, 1, carried=True)]
    assert verdict(case).transformations == set()
    assert ("dependence", 4, 1) in verdict(case).blocked_by


def test_two_sums_into_one_location_are_a_reduction() -> None:
    case = global_sum()
    case.ops += [Op("load", BODY), Op("store", BODY)]
    case.updates.append((3, 4, "+"))
    case.dependences += [flow("RAW", 2, 3, carried=False), flow("RAW", 4, 1, carried=True)]
    assert verdict(case).verdict == "doall-with"


def largest() -> Scenario:
    """``if (a[i] > most) { most = a[i]; where = i; }``: load a[i], load most, store most, store where."""
    case = loop("load", "load", "store", "store")
    case.edges = [("register", ("op", tail), head) for tail, head in ((0, ("op", 2)), (1, ("branch", BODY)))]
    case.updates = [(1, 2, "max")]
    case.parts = [(0, "decision", BODY, ""), (0, "position", 3, "argmax")]
    case.dependences = [
        flow("RAW", 2, 1, carried=True),
        flow("WAR", 1, 2, carried=True),
        flow("WAW", 2, 2, carried=True),
        flow("WAW", 3, 3, carried=True),
    ]
    return case


def test_a_maximum_with_its_place_is_two_reductions() -> None:
    recipe = {("reduction", "memory", 0, "max"), ("reduction", "memory", 0, "argmax")}
    assert verdict(largest()) == Answer("doall-with", recipe, set(), (1, 1, 2))


def test_a_maximum_whose_place_is_read_is_none() -> None:
    case = largest()
    case.ops.append(Op("load", BODY))
    case.dependences.append(flow("RAW", 3, 4, carried=True))
    assert {("dependence", 2, 1), ("dependence", 3, 4)} <= verdict(case).blocked_by


def test_a_maximum_that_decides_something_else_is_none() -> None:
    case = largest()
    case.edges.append(("register", ("op", 1), ("branch", 0)))
    assert ("dependence", 2, 1) in verdict(case).blocked_by


@pytest.mark.parametrize("operator", ["min", "max"])
def test_minimum_and_maximum_are_reductions(operator: str) -> None:
    case = loop("load", phis=[("induction", "+", "i"), ("reduction", "max", operator)])
    assert verdict(case).verdict == "doall-with"


def scratch() -> Scenario:
    """``for (...) { fill tmp; read tmp; }``: store tmp, load tmp, store out[i]."""
    case = loop("store", "load", "store")
    case.dependences = [
        flow("RAW", 0, 1, carried=False),
        flow("WAR", 1, 0, carried=True),
        flow("WAW", 0, 0, carried=True),
    ]
    return case


def test_a_scratch_array_becomes_private() -> None:
    assert verdict(scratch()) == Answer("doall-with", {("private", "memory", 0, "")}, set(), (0, 1, 1))


def test_a_scratch_array_read_before_it_is_written_does_not() -> None:
    case = scratch()
    case.exposed = {(1, LOOP, LOOP)}
    assert verdict(case).transformations == set()
    assert ("dependence", 1, 0) in verdict(case).blocked_by


def test_a_table_of_which_a_part_was_filled_before_the_loop_is_not_private() -> None:
    case = scratch()
    case.ops += [Op("store", AFTER)]
    case.dependences.append(Dependence("RAW", 3, 0, 1, LOOP, (0,)))
    case.exposed = {(1, LOOP, LOOP)}
    assert ("dependence", 0, 0) in verdict(case).blocked_by


def test_memory_of_unknown_origin_is_not_private() -> None:
    case = scratch()
    case.objects = ["unknown"]
    assert ("dependence", 0, 0) in verdict(case).blocked_by


def in_registers(*flags: str) -> Scenario:
    """``for (...) { t = a[i]; b[i] = t * t; }``, t declared outside: load a[i], store b[i]; t is in no memory."""
    case = loop("load", "store", in_source=True)
    case.variables = [Variable(0, "t", frozenset(flags)), Variable(0, "u", frozenset({"induction"}))]
    return case


@pytest.mark.parametrize(
    "flags, kind",
    [
        ((), "private"),
        (("used_after", "pointee"), "private"),
        (("used_after",), "lastprivate"),
        (("used_after", "sometimes", "global"), "lastprivate"),
    ],
)
def test_a_variable_that_the_optimiser_keeps_in_a_register_is_private_in_the_source(
    flags: tuple[str, ...], kind: str
) -> None:
    assert verdict(in_registers(*flags)) == Answer("doall-with", {(kind, "source", 0, "")}, set(), (0, 0, 0))


@pytest.mark.parametrize("flag", ["read_first", "reached", "varying", "induction"])
def test_what_the_source_does_not_show_to_be_written_first_is_not(flag: str) -> None:
    assert verdict(in_registers(flag)) == Answer("doall", set(), set(), (0, 0, 0))


def test_an_image_without_the_variables_of_the_source_gives_the_verdict_of_before() -> None:
    case = in_registers()
    case.loops[0].in_source = False
    assert verdict(case).verdict == "doall"


def test_a_variable_that_the_loop_accumulates_in_is_no_private_one() -> None:
    case = in_registers("used_after", "sometimes")  # if (a[i]) t = true
    case.loops[0].phis = [("induction", "+", "i"), ("reduction", "max", "t")]
    assert verdict(case).transformations == {("reduction", "register", 1, "max")}
    case.loops[0].phis[1] = ("reduction", "max", "")  # the optimiser has lost its name
    assert verdict(case).transformations == {("reduction", "register", 1, "max")}
    case.variables[0] = Variable(0, "t", frozenset({"used_after"}))
    assert len(verdict(case).transformations) == 2


@pytest.mark.parametrize("line, same", [(0, True), (3, True), (4, False)])
def test_a_variable_in_memory_is_named_once(line: int, same: bool) -> None:
    case = scratch()
    case.loops[0].in_source = True
    case.names = {0: ("t", 3)}
    case.variables = [Variable(0, "t", frozenset({"global", "used_after"}), line)]
    kinds = [step[:3] for step in sorted(verdict(case).transformations, key=repr)]
    expected = [("lastprivate", "memory", 0)] if same else [("lastprivate", "source", 0), ("private", "memory", 0)]
    assert kinds == expected


def list_walk() -> Scenario:
    """``for (; p; p = p->next) sum += p->value``: load value, load next."""
    case = loop("load", "load", exits_on_data=True, phis=[("recurrence", "", "p"), ("reduction", "+", "sum")])
    case.edges = [
        ("register", ("op", 1), ("phi", 0)),
        ("register", ("phi", 0), ("op", 1)),
        ("register", ("phi", 0), ("op", 0)),
        ("register", ("phi", 0), ("branch", HEADER)),
    ]
    return case


def test_a_list_walk_is_never_doall() -> None:
    answer = verdict(list_walk())
    assert answer.verdict == "pipeline"  # one stage follows the pointers, another works
    assert {("recurrence", 0, None), ("exit", 0, None)} <= answer.blocked_by


def test_a_list_walk_that_only_walks_is_sequential() -> None:
    case = list_walk()
    case.ops = case.ops[1:]
    case.edges = [("register", ("op", 0), ("phi", 0)), ("register", ("phi", 0), ("op", 0))]
    assert verdict(case).verdict == "sequential"


def test_a_histogram_is_a_reduction_of_its_array() -> None:
    case = global_sum()  # h[a[i]]++: the addresses differ, the triple is the same
    case.dependences.append(flow("WAR", 1, 2, carried=True))
    assert verdict(case) == Answer("doall-with", {("reduction", "memory", 0, "+")}, set(), (1, 1, 1))


def test_break_on_data_blocks() -> None:
    case = loop("load", exits_early=True, exits_on_data=True, exits=[HEADER, BODY])
    case.edges.append(("register", ("op", 0), ("branch", BODY)))
    assert verdict(case) == Answer("sequential", set(), {("exit", 1, None)}, (0, 0, 0))


def test_printf_blocks() -> None:
    case = loop("load", "call")
    case.contexts[LOOP].external = 1
    case.edges.append(("register", ("op", 0), ("op", 1)))
    assert verdict(case) == Answer("pipeline", set(), {("external", 1, None)}, (0, 0, 0))


def test_two_calls_with_unseen_effects_stay_together() -> None:
    case = loop("call", "call")
    case.contexts[LOOP].external = 0
    assert verdict(case).verdict == "sequential"  # rand(); printf(): their order may matter
    case.ops[1].pure = True
    assert verdict(case).verdict == "pipeline"


def test_a_pipeline() -> None:
    case = loop("load", "store", "load", "store")  # s = f(s, in[i]) in memory; out[i] = s
    case.edges += [("register", ("op", 0), ("op", 1)), ("register", ("op", 2), ("op", 3))]
    case.dependences = [flow("RAW", 1, 0, carried=True), flow("RAW", 1, 2, carried=False)]
    assert verdict(case) == Answer("pipeline", set(), {("dependence", 1, 0)}, (1, 0, 0))


def test_a_carried_dependence_back_into_the_first_stage_leaves_no_pipeline() -> None:
    case = loop("load", "store", "load", "store")
    case.edges += [("register", ("op", 0), ("op", 1)), ("register", ("op", 2), ("op", 3))]
    case.dependences = [flow("RAW", 1, 2, carried=False), flow("RAW", 3, 0, carried=True)]
    assert verdict(case).verdict == "sequential"


def counted_in_memory() -> Scenario:
    """``for (int t = 0; t < n; t++) look(&t)`` at -O0: the test, the callee and the step load t."""
    case = loop("load", "call", "load", "store", phis=[], in_source=True, exit_causes=[[("load", 0, True)]])
    case.edges = [("control", ("branch", HEADER), ("op", op)) for op in range(4)]
    case.ops.append(Op("load", CALLEE, name="at", by_pointer=True))
    for op in (0, 2, 3):
        case.ops[op].name = "t"
    case.objects, case.names = ["stack"], {0: ("t", 3)}
    case.contexts.append(Context("call", LOOP, None, 1))
    case.dependences = [flow("RAW", 3, to, carried=True) for to in (0, 2)]
    case.dependences += [flow("RAW", 3, 4, carried=True, to=2), flow("WAW", 3, 3, carried=True)]
    case.variables = [Variable(0, "t", frozenset({"induction", "reached", "watched"}), 3)]
    return case


def test_a_counter_in_memory_that_the_head_alone_assigns_is_none_of_its_dependences() -> None:
    assert verdict(counted_in_memory()) == Answer("doall", set(), set(), (3, 0, 1))


def test_a_counter_that_something_else_assigns_is() -> None:
    case = counted_in_memory()
    case.ops[4].kind = "store"  # change(&t)
    case.dependences[2] = flow("WAW", 3, 4, carried=True, to=2)
    case.dependences.append(Dependence("RAW", 4, 2, 2, LOOP, (0,), [(LOOP, True, False)]))
    blocked = verdict(case).blocked_by
    assert {("dependence", 3, 0), ("dependence", 3, 4), ("exit", 0, None)} <= blocked


def test_a_counter_that_pointers_from_outside_lead_to_is_read_by_its_name_alone() -> None:
    case = counted_in_memory()
    case.variables[0].flags |= {"elsewhere"}
    assert ("dependence", 3, 4) in verdict(case).blocked_by  # look(&t) reads it
    case.dependences = [each for each in case.dependences if each.destination != 4]
    assert verdict(case).verdict == "doall"


@pytest.mark.parametrize("flags", [{"induction", "reached"}, {"reached", "watched"}])
def test_a_counter_that_the_run_does_not_show_is_a_variable(flags: set[str]) -> None:
    case = counted_in_memory()
    case.variables[0].flags = frozenset(flags)
    assert verdict(case).verdict in ("pipeline", "sequential")


def test_another_variable_of_the_same_name_is_no_counter() -> None:
    case = counted_in_memory()
    case.names = {0: ("t", 4)}
    assert verdict(case).verdict in ("pipeline", "sequential")


def two_callers() -> Scenario:
    """A loop of a function that main calls twice; its accesses depend on each other in the second call only."""
    s = Scenario(
        ops=[Op("call", 0), Op("call", 0), Op("load", 1), Op("store", 1)],
        blocks=[Block(0), Block(1, 0)],
        loops=[Loop(1, 1, exits=[1], phis=[("induction", "+", "i")])],
        edges=[("register", ("op", 2), ("op", 3))],
        contexts=[
            Context("root"),
            Context("call", 0, None, 0),
            Context("loop", 1, 0, iterations=5),
            Context("call", 0, None, 1),
            Context("loop", 3, 0, iterations=5),
        ],
        objects=["heap"],
    )
    s.dependences.append(flow("RAW", 3, 2, carried=True, context=4, level=4))
    return s


def test_a_loop_may_be_parallel_in_one_caller_and_not_in_another() -> None:
    assert verdict(two_callers(), 2).verdict == "doall"
    assert verdict(two_callers(), 4).verdict == "sequential"


def figure_1(contexts: bool) -> Scenario:
    """L2 of the CAMP paper's Fig. 1: three calls, whose accesses are LD1 and ST1 below CS1, CS2 and CS3."""
    s = loop("call", "call", "call")  # CS1, CS2, CS3
    s.ops += [Op("load", CALLEE), Op("store", CALLEE)]
    s.edges += [("register", ("op", 0), ("op", 2)), ("register", ("op", 1), ("op", 2))]
    if contexts:
        s.contexts += [Context("call", LOOP, None, cs) for cs in range(3)]
        cs1, cs3 = 2, 4
        s.dependences = [flow("RAW", 4, 3, carried=True, context=cs3, to=cs1)]
    else:
        s.dependences = [flow("RAW", 4, 3, carried=True, context=0)]
    return s


def test_contexts_find_the_pipeline_of_figure_3() -> None:
    assert verdict(figure_1(contexts=True)).verdict == "pipeline"


def test_without_contexts_figure_2_is_one_component() -> None:
    assert verdict(figure_1(contexts=False)).verdict == "sequential"
