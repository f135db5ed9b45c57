"""Verdicts against the naive reference, on random small programs and profiles."""

from __future__ import annotations

from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.naive import verdicts as naive
from tests.naive.scenario import Block, Context, Dependence, Loop, Op, Scenario, Variable
from tests.verdicts import scenario_tables
from tracekit.verdicts.verdicts import judge

KINDS = ("load", "store", "load", "store", "atomic", "copy", "call", "other")

LOOPS = ("loop", "recursive loop")
NAMES = st.sampled_from(["t", "u", ""])
LINES = st.sampled_from([0, 3, 4])
FLAGS = st.sampled_from(["used_after", "used_after", "sometimes", "global", "global", "callee"])
RARE_FLAGS = st.sampled_from(["induction", "read_first", "reached", "varying", "no_reduction", "sometimes", "pointee"])
COUNTER = st.sampled_from([frozenset({"induction", "reached", "watched", *more}) for more in ((), ("elsewhere",))])
RARELY = st.sampled_from([False, False, False, True])

CALLS = ("call", "recursion", "recursive call")
LEVELS = (*LOOPS, "recursion")
"""What dependences have levels at; only loops are judged."""


@st.composite
def scenarios(draw: st.DrawFn, contexts: bool = True) -> Scenario:
    """Function 0 with up to three loops and calls, function 1 below its calls, and what a replay might have found."""
    things = st.sampled_from(["global", "heap", "stack", "unknown"])
    s = Scenario(objects=draw(st.lists(things, min_size=1, max_size=3)))
    loops = draw(st.integers(1, 3))
    for number in range(loops):
        parent = draw(st.none() | st.integers(0, number - 1)) if number else None
        s.loops.append(Loop(0, 0, parent, *(draw(st.booleans()) for _ in range(2))))
        s.loops[-1].exits_early &= draw(st.booleans())
        s.loops[-1].exits_on_data &= draw(st.booleans())
        phi = st.tuples(
            st.sampled_from(["induction", "induction", "reduction", "recurrence", "last_value"]),
            st.sampled_from(["+", "max"]),
            NAMES,
        )
        s.loops[-1].in_source = draw(st.sampled_from([True, True, False]))
        s.loops[-1].phis = draw(st.lists(phi, max_size=2))
    for number in range(loops):
        s.loops[number].header = len(s.blocks)
        for _ in range(draw(st.integers(1, 2))):
            s.blocks.append(Block(0, number))
    s.blocks += [Block(0), Block(1)]
    for block in range(len(s.blocks)):
        for _ in range(draw(st.integers(0, 4))):
            pure, allocates, same = draw(st.tuples(st.booleans(), st.booleans(), st.booleans()))
            name, by_pointer = draw(NAMES), draw(st.sampled_from([False, False, True]))
            s.ops.append(Op(draw(st.sampled_from(KINDS)), block, pure, allocates, same, name, by_pointer))
    s.ops += [Op("load", len(s.blocks) - 1), Op("store", len(s.blocks) - 1, same=draw(st.booleans()))]
    for number, loop in enumerate(s.loops):
        inside = [block for block in range(len(s.blocks)) if s.inside(block, number)]
        loop.exits = draw(st.lists(st.sampled_from(inside), max_size=2, unique=True))
    _add_static_dependences(draw, s)
    for number, loop in enumerate(s.loops):
        _add_causes(draw, s, number, loop)
    _add_contexts(draw, s, contexts)
    _add_dependences(draw, s)
    _add_variables(draw, s)
    return s


def _add_variables(draw: st.DrawFn, s: Scenario) -> None:
    """What the source says of variables, some of which are objects or carried by phis."""
    s.names = draw(st.dictionaries(st.integers(0, len(s.objects) - 1), st.tuples(NAMES, LINES)))
    for _ in range(draw(st.integers(0, 4))):
        flags = draw(st.frozensets(FLAGS, max_size=3)) | draw(
            st.just(frozenset()) | st.frozensets(RARE_FLAGS) | COUNTER
        )
        loop = draw(st.integers(0, len(s.loops) - 1))
        operator = draw(st.sampled_from(["", "", "+", "max"]))
        s.variables.append(Variable(loop, draw(NAMES.filter(bool)), flags, draw(LINES), operator))


def _add_static_dependences(draw: st.DrawFn, s: Scenario) -> None:
    nodes = [("op", op) for op, row in enumerate(s.ops) if s.blocks[row.block].function == 0]
    nodes += [("phi", phi) for phi in range(sum(len(loop.phis) for loop in s.loops))]
    nodes += [("branch", block) for block, row in enumerate(s.blocks) if row.function == 0]
    node = st.sampled_from(nodes)
    s.edges = draw(st.lists(st.tuples(st.sampled_from(["register", "control"]), node, node), max_size=8))
    loads = [op for op, row in enumerate(s.ops) if row.kind in ("load", "atomic")]
    stores = [op for op, row in enumerate(s.ops) if row.kind in ("store", "atomic")]
    update = st.tuples(st.sampled_from(loads), st.sampled_from(stores), st.sampled_from(["+", "+", "max"]))
    s.updates = draw(st.lists(update, max_size=3))
    if s.updates:
        number = st.integers(0, len(s.updates) - 1)
        member = st.tuples(number, st.just("member"), st.sampled_from(loads + stores), st.just(""))
        position = st.tuples(number, st.just("position"), st.sampled_from(stores), st.just("argmax"))
        decision = st.tuples(number, st.just("decision"), st.integers(0, len(s.blocks) - 1), st.just(""))
        s.parts = draw(st.lists(st.one_of(member, position, decision), max_size=3))


def _add_causes(draw: st.DrawFn, s: Scenario, number: int, loop: Loop) -> None:
    """What the loop's exits and recurrences depend on: mostly fixed loads and calls of its own text, and its phis."""
    inside = [op for op, row in enumerate(s.ops) if s.inside(row.block, number)]
    reads = [(s.ops[op].kind, op) for op in inside if s.ops[op].kind in ("load", "call")]
    fixed = st.sampled_from([True, True, True, False])
    read = [st.tuples(st.just(kind), st.just(op), fixed) for kind, op in reads]
    phi = [st.tuples(st.just("phi"), st.just(phi), st.just(False)) for phi in s.phi_numbers(number)]
    rare = draw(st.sampled_from(["phi", "phi", "other"]))
    other = [st.just(("other", None, False))] if rare == "other" else []
    causes = st.lists(st.one_of(*read, *phi, *other), max_size=3, unique=True) if read or phi or other else st.just([])
    for row, (kind, _, _) in zip(s.phi_numbers(number), loop.phis):
        if kind == "recurrence" and read and draw(st.booleans()):
            loop.phi_causes[row] = draw(st.lists(st.one_of(*read), min_size=1, max_size=2, unique=True))
    counted = [st.tuples(st.sampled_from(["before", "behind", "behind"]), st.just(op), st.just(False)) for op in inside]
    s.counts |= {op: draw(st.integers(1, 2)) for op in inside}
    causes = st.tuples(causes, st.lists(st.one_of(*counted), max_size=3) if counted else st.just([])).map(
        lambda both: [*both[0], *both[1]]
    )
    if draw(st.booleans()):
        loop.exit_causes = [draw(causes | st.just([("ends", None, False)])) for _ in loop.exits]


def _add_contexts(draw: st.DrawFn, s: Scenario, contexts: bool) -> None:
    """With contexts the tree of function 0; without them every loop below the root."""
    s.contexts.append(Context("root"))
    externals = st.none() | st.none() | st.integers(0, len(s.ops) - 1)
    node_of = {}
    for number, loop in enumerate(s.loops):
        parent = node_of[loop.parent] if contexts and loop.parent is not None else 0
        node_of[number] = len(s.contexts)
        kind = draw(st.sampled_from(LOOPS)) if contexts else "loop"
        s.contexts.append(Context(kind, parent, number, None, draw(st.integers(1, 4)), draw(externals)))
    if contexts:
        for op, row in enumerate(s.ops):
            if row.kind == "call" and s.blocks[row.block].function == 0:
                loop = s.blocks[row.block].loop
                kind = draw(st.sampled_from(CALLS))
                s.contexts.append(Context(kind, 0 if loop is None else node_of[loop], None, op))


def _add_dependences(draw: st.DrawFn, s: Scenario) -> None:
    """Between accesses in contexts where they can happen, at levels that enclose both."""
    accesses = [(op, context) for op in range(len(s.ops)) for context in _possible(s, op)]
    if not accesses:
        return
    updating = {op for load, store, _ in s.updates for op in (load, store)}
    updating |= {index for _, kind, index, _ in s.parts if kind != "decision"}
    favoured = [access for access in accesses if access[0] in updating]
    # Reductions need every dependence to stay among updates: often draw from these alone.
    if favoured and draw(st.booleans()):
        accesses = favoured
        s.edges = [edge for edge in s.edges if edge[1][0] != "op" or edge[1][1] not in updating]
    ends = st.sampled_from(accesses)
    things = st.none() | st.lists(st.integers(0, len(s.objects) - 1), max_size=2, unique=True).map(tuple)
    for _ in range(draw(st.integers(0, 6))):
        source, destination = draw(ends), draw(ends)
        each = Dependence(draw(st.sampled_from(["RAW", "WAR", "WAW", "WAW"])), *source, *destination, draw(things))
        for level in _levels(s, source[1], destination[1]):
            if draw(st.booleans()):
                each.levels.append((level, *draw(st.sampled_from([(True, False), (False, True), (True, True)]))))
        s.dependences.append(each)
    levels = [number for number, context in enumerate(s.contexts) if context.kind in LOOPS]
    exposed = st.tuples(ends, st.sampled_from(levels)).map(lambda both: (*both[0], both[1]))
    s.exposed = draw(st.sets(exposed, max_size=3))


def _possible(s: Scenario, op: int) -> list[int]:
    flat = not any(context.kind in CALLS for context in s.contexts) and all(
        context.parent in (None, 0) for context in s.contexts
    )
    block = s.blocks[s.ops[op].block]
    if flat:
        return [0]
    if block.function == 1:
        return [number for number, context in enumerate(s.contexts) if context.kind in CALLS]
    return [
        number
        for number, context in enumerate(s.contexts)
        if (context.kind in LOOPS, context.loop) == (block.loop is not None, block.loop)
        and (block.loop is not None or context.kind == "root")
    ]


def _levels(s: Scenario, first: int, second: int) -> list[int]:
    """The loops around both contexts; all of them where contexts are not told apart."""
    if first == second == 0:
        return [number for number, context in enumerate(s.contexts) if context.kind in LEVELS]

    def around(at: int | None) -> set[int]:
        found = set()
        while at is not None:
            found.add(at)
            at = s.contexts[at].parent
        return found

    return sorted(number for number in around(first) & around(second) if s.contexts[number].kind in LEVELS)


A_SUM_OF_PRIVATE_MEMORY = Scenario(
    ops=[Op("load", 0), Op("store", 0)],
    blocks=[Block(0, 0), Block(0)],
    loops=[Loop(0, 0)],
    updates=[(0, 1, "+")],
    contexts=[Context("root"), Context("loop", 0, 0)],
    dependences=[Dependence("WAR", 0, 0, 1, 0, (0,), [(1, False, True)])],
    objects=["global"],
)
"""The reduction removes the only carried dependence: that its object could be private, too, changes nothing."""

A_SUM_FORBIDS_A_PRIVATE_OBJECT = Scenario(
    ops=[Op("load", 0), Op("store", 0), Op("store", 0)],
    blocks=[Block(0, 0), Block(0)],
    loops=[Loop(0, 0)],
    updates=[(0, 1, "+")],
    contexts=[Context("root"), Context("loop", 0, 0)],
    dependences=[
        Dependence("RAW", 1, 0, 0, 0, (0,), [(1, False, True)]),
        Dependence("WAW", 2, 0, 2, 0, (0,), [(1, False, True)]),
    ],
    objects=["global"],
)
"""A flow that a reduction removes still keeps its object from being private for other dependences."""


def test_what_a_reduction_removes_makes_no_object_private() -> None:
    scenario = A_SUM_OF_PRIVATE_MEMORY
    (answer,) = judge(scenario_tables.program(scenario), scenario_tables.profile(scenario))
    assert answer.verdict.value == "doall-with"
    assert scenario_tables.as_answer(answer).transformations == {("reduction", "memory", 0, "+")}


RECURSION_AROUND_A_DEPENDENCE = Scenario(
    ops=[Op("load", 0), Op("store", 0), Op("call", 1), Op("store", 2), Op("load", 2)],
    blocks=[Block(0, 0), Block(0), Block(1)],
    loops=[Loop(0, 0)],
    contexts=[Context("root"), Context("loop", 0, 0), Context("recursion", 0, None, 2)],
    dependences=[
        Dependence("RAW", 1, 1, 0, 1, None, [(1, False, True)]),
        Dependence("RAW", 3, 2, 4, 2, None, [(2, True, True)]),
    ],
    counts=dict.fromkeys(range(5), 1),
)
"""A level that is no loop has no graph in which the ends of its dependences lie."""


@example(RECURSION_AROUND_A_DEPENDENCE)
@example(A_SUM_OF_PRIVATE_MEMORY)
@example(A_SUM_FORBIDS_A_PRIVATE_OBJECT)
@settings(max_examples=200, deadline=None)
@given(st.booleans().flatmap(lambda contexts: scenarios(contexts)))
def test_verdicts_are_those_of_the_naive_reference(scenario: Scenario) -> None:
    answers = judge(scenario_tables.program(scenario), scenario_tables.profile(scenario))
    assert [answer.node for answer in answers] == [
        number for number, context in enumerate(scenario.contexts) if context.kind in LOOPS
    ]
    for answer in answers:
        assert scenario_tables.as_answer(answer) == naive.judge(scenario, answer.node)


@st.composite
def counters(draw: st.DrawFn) -> Scenario:
    """A loop in which most dependences are on a counter in memory, and most stores are its step."""
    ops = [
        Op("load", 0, name="t"),
        Op("store", 0, name="t"),
        Op("load", 0),
        Op("store", 0),
        Op("load", 2),
        Op("store", 2),
    ]
    for op in ops[2:4]:
        op.name, op.by_pointer = draw(NAMES), draw(RARELY)
    names = draw(st.fixed_dictionaries({0: st.just(("t", 3)), 1: st.tuples(NAMES, LINES)}))
    variable = Variable(0, "t", draw(COUNTER | st.just(frozenset({"induction", "reached"}))), draw(LINES))
    causes = draw(st.lists(st.tuples(st.just("load"), st.sampled_from([0, 2]), st.just(True)), max_size=2, unique=True))
    s = Scenario(
        ops=ops,
        blocks=[Block(0, 0), Block(0), Block(1)],
        loops=[Loop(0, 0, exits=[0], exit_causes=[causes], in_source=True)],
        contexts=[Context("root"), Context("loop", 0, 0)],
        objects=["stack", draw(st.sampled_from(["stack", "heap"])), "heap"],
        names=names,
        variables=[variable],
    )
    store, end = st.sampled_from([1, 1, 1, 1, 3, 5]), st.integers(0, 5)
    things = st.sampled_from([(0,), (0,), (0,), (0,), (0,), (0,), (1,), (0, 1), (0, 1, 2), None])
    for _ in range(draw(st.integers(1, 4))):
        kind, first, second = draw(st.sampled_from(["RAW", "RAW", "WAW", "WAR"])), draw(store), draw(end)
        source, destination = (second, first) if kind == "WAR" else (first, second)
        level = (1, draw(st.booleans()), draw(st.booleans()))
        s.dependences.append(Dependence(kind, source, 0, destination, 0, draw(things), [level]))
    return s


@settings(max_examples=300, deadline=None)
@given(counters())
def test_counters_in_memory_are_those_of_the_naive_reference(scenario: Scenario) -> None:
    (answer,) = judge(scenario_tables.program(scenario), scenario_tables.profile(scenario))
    assert scenario_tables.as_answer(answer) == naive.judge(scenario, 1)
