"""Verdicts the slow, obvious way: plain Python on lists and sets of a scenario, written from docs/verdicts.md."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import product

from tests.naive.scenario import Cause, Dependence, Node, Scenario, Variable

WORK = ("load", "store", "atomic", "copy", "call")


@dataclass
class Answer:
    verdict: str
    # (kind, "register" | "memory" | "source", number of a phi, an object or a variable, operator)
    transformations: set[tuple[str, str, int | None, str]]
    blocked_by: set[tuple[str, int, int | None]]
    carried: tuple[int, int, int]
    rests_on: set[int] = field(default_factory=set)
    not_taken: set[int] = field(default_factory=set)


def judge(scenario: Scenario, level: int) -> Answer:
    """The verdict of the loop context `level`."""
    loop = scenario.contexts[level].loop
    assert loop is not None
    valid = [
        (each, inter)
        for each in scenario.dependences
        for at, intra, inter in each.levels
        if at == level and (intra or inter)
    ]
    carried = [each for each, inter in valid if inter]
    counts = tuple(sum(each.kind == kind for each in carried) for kind in ("RAW", "WAR", "WAW"))
    assert len(counts) == 3
    if scenario.contexts[level].iterations < 2:
        return Answer("not-exercised", set(), set(), counts)
    transformations = {
        ("reduction", "register", phi, operator)
        for phi, (kind, operator, _) in zip(scenario.phi_numbers(loop), scenario.loops[loop].phis)
        if kind == "reduction"
    }
    operator_of = live_operators(scenario, [each for each, _ in valid])
    left = []
    private: set[int] = set()
    of_counter, counting = steps_of_counter(scenario, loop, [each for each, _ in valid])
    carried = [each for each in carried if each not in of_counter]
    for each in carried:
        if each.source in operator_of:  # then so is the destination, by the same operator
            for thing in each.objects or (None,):
                transformations.add(("reduction", "memory", thing, operator_of[each.source]))
        elif each.kind != "RAW" and each.objects and all(is_private(scenario, x, level, carried) for x in each.objects):
            private |= set(each.objects)
        else:
            left.append(each)
    for thing in private:
        on_it = [each for each in carried if each.source not in operator_of and thing in (each.objects or ())]
        same = all(
            each.source == each.destination
            and scenario.ops[each.source].same
            and scenario.inside(scenario.ops[each.source].block, loop)
            for each in on_it
        )
        transformations.add(("same value" if same else "private", "memory", thing, ""))
    blocked: set[tuple[str, int, int | None]] = {("dependence", each.source, each.destination) for each in left}
    kinds = dict(zip(scenario.phi_numbers(loop), (kind for kind, _, _ in scenario.loops[loop].phis)))
    obstacles = {
        ("recurrence", phi): scenario.loops[loop].phi_causes.get(phi)
        for phi, kind in kinds.items()
        if kind == "recurrence"
    }
    obstacles |= {("exit", row): causes for row, causes in exits(scenario, loop)}
    rests_on: set[int] = set()
    not_taken: set[int] = set()
    for (reason, number), causes in obstacles.items():
        needed = unchanged(scenario, level, causes, [each for each, _ in valid], counting)
        if needed is None and reason == "exit" and never_taken(scenario, causes):
            not_taken.add(number)
        elif needed is None:
            blocked.add((reason, number, None))
        else:
            rests_on |= needed
    external = scenario.contexts[level].external
    if external is not None:
        blocked.add(("external", external, None))
    if not blocked:
        transformations = with_copies(scenario, loop, transformations)
        return Answer("doall-with" if transformations else "doall", transformations, set(), counts, rests_on, not_taken)
    verdict = "pipeline" if stages(scenario, level, [each for each, _ in valid]) >= 2 else "sequential"
    return Answer(verdict, set(), blocked, counts)


def steps_of_counter(scenario: Scenario, loop: int, valid: list[Dependence]) -> tuple[list[Dependence], set[int]]:
    """The dependences that a counter in memory explains, which the loop's head alone assigns, and its loads there."""
    found: list[Dependence] = []
    counting: set[int] = set()
    if not scenario.loops[loop].in_source:
        return found, counting
    for variable in scenario.variables:
        if variable.loop != loop or not {"induction", "watched"} <= variable.flags:
            continue
        by_name = {
            number
            for number, op in enumerate(scenario.ops)
            if op.name == variable.name and not op.by_pointer and scenario.inside(op.block, loop)
        }
        for thing, kind in enumerate(scenario.objects):
            if kind != ("global" if "global" in variable.flags else "stack"):
                continue
            name, line = scenario.names.get(thing, ("", 0))
            if name != variable.name or not (line == 0 or variable.line == 0 or line == variable.line):
                continue
            on_it = [each for each in valid if thing in (each.objects or listed_of_many(scenario, each))]
            stores = [each.source for each in on_it if each.kind != "WAR"]
            stores += [each.destination for each in on_it if each.kind != "RAW"]
            loads = [each.destination for each in on_it if each.kind == "RAW"]
            loads += [each.source for each in on_it if each.kind == "WAR"]
            if "elsewhere" in variable.flags and not all(
                op in by_name and scenario.ops[op].kind == "load" for op in loads
            ):
                continue
            if all(op in by_name and scenario.ops[op].kind == "store" for op in stores):
                found += [each for each in on_it if each.objects == (thing,)]
        for op in by_name:
            if scenario.ops[op].kind == "load" and all(
                each in found for each in valid if each.kind == "RAW" and each.destination == op
            ):
                counting.add(op)
    return found, counting


def listed_of_many(scenario: Scenario, each: Dependence) -> tuple[int, ...]:
    """Some of the objects of a dependence that is on more than are listed, as the profile of a scenario has them."""
    return tuple(range(len(scenario.objects)))[:4] if each.objects is None else each.objects


def with_copies(
    scenario: Scenario, loop: int, found: set[tuple[str, str, int | None, str]]
) -> set[tuple[str, str, int | None, str]]:
    """What the source of the loop needs, too: the optimiser may keep variables out of memory."""
    if not scenario.loops[loop].in_source:
        return found
    result = set(found)
    phis = [name for row in scenario.loops for _, _, name in row.phis]
    for number, variable in enumerate(scenario.variables):
        if variable.loop == loop and variable.operator and not may_be_copied(variable):
            if not any(
                speaks_of(scenario, step, variable) or (step[1] == "register" and not phis[step[2] or 0])
                for step in found
            ):
                result.add(("reduction", "source", number, variable.operator))
        if variable.loop != loop or not may_be_copied(variable):
            continue
        kind = "lastprivate" if "used_after" in variable.flags and "pointee" not in variable.flags else "private"
        of_it = {step for step in found if speaks_of(scenario, step, variable)}
        if not of_it:
            result.add((kind, "source", number, ""))
        for step in of_it:
            if step[0] == "private":
                result.remove(step)
                result.add((kind, *step[1:]))
    return result


def may_be_copied(variable: Variable) -> bool:
    """May each iteration have a copy of its own, by the source?"""
    return not variable.flags & {"induction", "read_first", "varying", "reached"}


def speaks_of(scenario: Scenario, step: tuple[str, str, int | None, str], variable: Variable) -> bool:
    """Is a transformation about the variable, as far as names and declarations tell?"""
    _, where, number, _ = step
    if where == "register":
        phis = [name for row in scenario.loops for _, _, name in row.phis]
        assert number is not None
        return phis[number] == variable.name or (phis[number] == "" and {"sometimes", "used_after"} <= variable.flags)
    if number is None or scenario.objects[number] != ("global" if "global" in variable.flags else "stack"):
        return False
    name, line = scenario.names.get(number, ("", 0))
    return name == variable.name and (line == 0 or variable.line == 0 or line == variable.line)


@dataclass
class Group:
    """An update: its operations with the operator of each, and the blocks whose branches belong to it."""

    operators: dict[int, str]
    decisions: set[int]


def usable_groups(scenario: Scenario) -> list[Group]:
    """Updates whose values go nowhere else, and whose operations are in no second one."""
    groups, times = [], [0] * len(scenario.ops)
    for number, (load, store, operator) in enumerate(scenario.updates):
        group = Group({}, set())
        members = [(op, operator) for op in ([load] if load == store else [load, store])]
        for update, kind, index, own in scenario.parts:
            if update == number and kind == "decision":
                group.decisions.add(index)
            elif update == number:
                members.append((index, own if kind == "position" else operator))
        for op, by in members:
            group.operators[op] = by
            times[op] += 1
        groups.append(group)

    def phis_of(group: Group) -> set[tuple[str, int]]:
        """Those that values of its operations reach, by way of other phis, too."""
        reached = {("op", op) for op in group.operators}
        while True:
            heads = {h for kind, t, h in scenario.edges if kind == "register" and t in reached and h[0] == "phi"}
            if heads <= reached:
                return {node for node in reached if node[0] == "phi"}
            reached |= heads

    def is_usable(group: Group) -> bool:
        others = set().union(*(phis_of(other) for other in groups if other is not group))
        phis = phis_of(group)
        sources = {("op", op) for op in group.operators} | phis
        inside = {("op", op) for op in group.operators} | {("branch", block) for block in group.decisions} | phis
        leaves = any(
            kind == "register" and tail in sources and head not in inside - others
            for kind, tail, head in scenario.edges
        )
        return not leaves and all(times[op] == 1 for op in group.operators)

    return [group for group in groups if is_usable(group)]


def live_operators(scenario: Scenario, valid: list[Dependence]) -> dict[int, str]:
    """The operations of the updates that form reductions, given the dependences valid at a level, with operators."""
    groups = usable_groups(scenario)
    while True:
        operator_of = {op: operator for group in groups for op, operator in group.operators.items()}
        spoilt = {
            end
            for each in valid
            for end in (each.source, each.destination)
            if operator_of.get(each.source) is None or operator_of.get(each.source) != operator_of.get(each.destination)
        }
        kept = [group for group in groups if spoilt.isdisjoint(group.operators)]
        if kept == groups:
            return operator_of
        groups = kept


def is_private(scenario: Scenario, thing: int, level: int, carried: list[Dependence]) -> bool:
    """May every iteration have a copy of the object of its own?"""

    def may_touch(each: Dependence) -> bool:
        return each.objects is None or thing in each.objects

    if scenario.objects[thing] == "unknown":
        return False
    if any(each.kind == "RAW" and may_touch(each) for each in carried):
        return False
    return not any(
        each.kind == "WAR" and may_touch(each) and (each.source, each.source_context, level) in scenario.exposed
        for each in carried
    )


def exits(scenario: Scenario, loop: int) -> list[tuple[int, list[Cause] | None]]:
    """The exits (numbered loop by loop) with their causes; of older images those that block, without."""
    row = scenario.loops[loop]
    first = sum(len(other.exits) for other in scenario.loops[:loop])
    if row.exit_causes is not None:
        return [(first + number, causes) for number, causes in enumerate(row.exit_causes)]
    return [(number, None) for number in blocking_exits(scenario, loop, first)]


def unchanged(
    scenario: Scenario, level: int, causes: list[Cause] | None, valid: list[Dependence], counting: set[int]
) -> set[int] | None:
    """The loads and calls that the causes rest on; None if one of the causes may change from iteration to iteration.

    `counting`: loads of the loop's counter, of which it is known ahead what they return.
    """
    loop = scenario.contexts[level].loop
    assert loop is not None
    if causes is None:
        return None
    ops = [number for number, op in enumerate(scenario.ops) if scenario.inside(op.block, loop)]
    written = {place_of(scenario, x.destination, x.destination_context, level, ops) for x in valid if x.kind == "RAW"}
    needed: set[int] = set()
    for kind, number, fixed in causes:
        if kind == "other" or (kind in ("load", "call") and not fixed):
            return None
        if kind in ("load", "call"):
            assert number is not None
            if number in counting:
                continue
            if number in written or (None in written and scenario.ops[number].kind == "call"):
                return None
            needed.add(number)
        if kind == "phi":
            assert number is not None
            carried = [phi for row in scenario.loops for phi in row.phis][number][0]
            of_phi = [row.phi_causes for row in scenario.loops if number in row.phi_causes]
            if carried == "induction":
                continue
            more = (
                unchanged(scenario, level, of_phi[0][number], valid, counting)
                if carried == "recurrence" and of_phi
                else None
            )
            if more is None:
                return None
            needed |= more
    return needed


def never_taken(scenario: Scenario, causes: list[Cause] | None) -> bool:
    """Did what stands behind a decision to stay in the loop run as often as what stands before it?"""

    def runs(wanted: str) -> set[int]:
        return {scenario.counts.get(op, 0) for kind, op, _ in causes or () if kind == wanted and op is not None}

    return bool(runs("before") & runs("behind"))


def blocking_exits(scenario: Scenario, loop: int, first: int) -> list[int]:
    """Of an image that does not say what exits depend on: those that keep later iterations from starting."""
    row = scenario.loops[loop]
    found = []
    for number, block in enumerate(row.exits):
        takes = [tail for kind, tail, head in scenario.edges if kind == "register" and head == ("branch", block)]
        inductions = [
            ("phi", phi) for phi, (kind, _, _) in zip(scenario.phi_numbers(loop), row.phis) if kind == "induction"
        ]
        own_test = any(tail in inductions for tail in takes)
        on_data = any(tail[0] == "op" for tail in takes)
        if (row.exits_early and not own_test) or (row.exits_on_data and on_data):
            found.append(first + number)
    if (row.exits_early or row.exits_on_data) and not found:
        return list(range(first, first + len(row.exits)))
    return found


def stages(scenario: Scenario, level: int, valid: list[Dependence]) -> int:
    """How many strongly connected components of the loop's dependence graph contain a memory access or a call."""
    found = graph(scenario, level, valid)
    if found is None:
        return 0
    return sum(
        any(kind == "op" and scenario.ops[op].kind in WORK for kind, op in component)
        for component in components(*found)
    )


def components(nodes: set[Node], edges: set[tuple[Node, Node]]) -> set[frozenset[Node]]:
    """The strongly connected components."""
    reach = {node: reachable(node, edges) for node in nodes}
    return {frozenset(other for other in nodes if other in reach[node] and node in reach[other]) for node in nodes}


def graph(scenario: Scenario, level: int, valid: list[Dependence]) -> tuple[set[Node], set[tuple[Node, Node]]] | None:
    """The loop's dependence graph; None if a dependence can be placed nowhere in it."""
    loop = scenario.contexts[level].loop
    assert loop is not None
    ops = [number for number, op in enumerate(scenario.ops) if scenario.inside(op.block, loop)]
    phis = [
        phi
        for other in range(len(scenario.loops))
        if scenario.nested(other, loop)
        for phi in scenario.phi_numbers(other)
    ]
    branches = [number for number in range(len(scenario.blocks)) if scenario.inside(number, loop)]
    nodes: set[Node] = {("op", op) for op in ops} | {("phi", phi) for phi in phis}
    nodes |= {("branch", block) for block in branches}
    edges = {(tail, head) for _, tail, head in scenario.edges if tail in nodes and head in nodes}
    edges |= {
        (("branch", block), node)
        for block in scenario.loops[loop].exits
        for node in nodes
        if ("branch", block) in nodes
    }
    calls = [("op", op) for op in ops if scenario.ops[op].kind == "call"]
    for each in valid:
        ends = []
        for op, context in ((each.source, each.source_context), (each.destination, each.destination_context)):
            place = place_of(scenario, op, context, level, ops)
            if place is None:  # any call of the loop: they all become one
                if not calls:
                    return None
                edges |= set(product(calls, calls))
            ends.append(calls[0] if place is None else ("op", place))
        edges.add((ends[0], ends[1]))
    if scenario.contexts[level].external is not None:
        unseen = [node for node in calls if not scenario.ops[node[1]].pure and not scenario.ops[node[1]].allocates]
        edges |= set(product(unseen, unseen))
    return nodes, edges


def place_of(scenario: Scenario, op: int, context: int, level: int, ops: list[int]) -> int | None:
    """The call site between the loop and the access, or the instruction itself; None if unknown."""
    place: int | None = op
    at: int | None = context
    while at is not None and at != level:
        row = scenario.contexts[at]
        if row.kind in ("call", "recursion", "recursive call"):
            place = row.call
        at = row.parent
    if at is None:
        place = op
    elif scenario.contexts[level].kind == "recursive loop" and place != op:
        return None
    return place if place in ops else None


def reachable(start: Node, edges: set[tuple[Node, Node]]) -> set[Node]:
    found = {start}
    while True:
        more = {head for tail, head in edges if tail in found} - found
        if not more:
            return found
        found |= more
