"""Advice the slow, obvious way, on the scenarios of ``verdicts.py``, written from docs/advise.md."""

from __future__ import annotations

from itertools import product

from tests.naive.scenario import Dependence, Node, Scenario
from tests.naive.verdicts import WORK, components, graph, place_of, usable_groups

Stage = tuple[bool, frozenset[int], frozenset[int]]
"""Whether it is parallel, its operations that work, and the recurrences among its phis."""


def stages(scenario: Scenario, level: int) -> list[Stage]:
    """The stages of a pipeline, in order; [] if less than two components work."""
    context = scenario.contexts[level]
    assert context.loop is not None
    valid = [
        (each, inter)
        for each in scenario.dependences
        for at, intra, inter in each.levels
        if at == level and (intra or inter)
    ]
    found = graph(scenario, level, [each for each, _ in valid])
    if found is None:
        return []
    nodes, edges = found
    parts = components(nodes, edges)
    if sum(any(works(scenario, node) for node in part) for part in parts) < 2:
        return []
    recurrences = {
        ("phi", phi)
        for phi, (kind, _, _) in zip(scenario.phi_numbers(context.loop), scenario.loops[context.loop].phis)
        if kind == "recurrence"
    }
    ordered = {part for part in parts if is_sequential(scenario, level, part, recurrences, valid)}
    useful = {part for part in parts if part & recurrences or any(works(scenario, node) for node in part)}
    before = {
        part: {
            other for other in parts if other != part and any(tail in other and head in part for tail, head in edges)
        }
        for part in parts
    }
    groups: list[list[frozenset[Node]]] = []
    left = set(parts)

    def waits(part: frozenset[Node]) -> bool:
        """Whether an iteration of the part needs what an earlier iteration of the last group did."""
        return bool(groups) and any(is_carried(scenario, level, other, part, valid) for other in groups[-1])

    while left:
        parallel = bool(groups) and groups[-1][0] not in ordered
        ready = [part for part in left if not before[part] & left]
        part = min(
            ready,
            key=lambda each: (
                each in useful,
                (each in ordered) == parallel,
                each not in ordered and waits(each),
                min(map(rank, each)),
            ),
        )
        left.remove(part)
        if part in useful:
            if parallel and part not in ordered and not waits(part):
                groups[-1].append(part)
            else:
                groups.append([part])
    made = []
    for group in groups:
        inside = frozenset().union(*group)
        made.append(
            (
                group[0] not in ordered,
                frozenset(number for kind, number in inside if works(scenario, (kind, number))),
                frozenset(number for _, number in inside & recurrences),
            )
        )
    return made


def works(scenario: Scenario, node: Node) -> bool:
    return node[0] == "op" and scenario.ops[node[1]].kind in WORK


def rank(node: Node) -> tuple[int, int]:
    return ("op", "phi", "branch").index(node[0]), node[1]


def is_sequential(
    scenario: Scenario, level: int, part: frozenset[Node], recurrences: set[Node], valid: list[tuple[Dependence, bool]]
) -> bool:
    """Do the part's own iterations depend on each other?"""
    loop = scenario.contexts[level].loop
    assert loop is not None
    if part & recurrences or any(("branch", block) in part for block in scenario.loops[loop].exits):
        return True
    ops = [number for number, op in enumerate(scenario.ops) if scenario.inside(op.block, loop)]
    calls = [("op", op) for op in ops if scenario.ops[op].kind == "call"]
    if scenario.contexts[level].external is not None and any(
        node in part and not scenario.ops[node[1]].pure and not scenario.ops[node[1]].allocates for node in calls
    ):
        return True
    return is_carried(scenario, level, part, part, valid)


def is_carried(
    scenario: Scenario,
    level: int,
    source: frozenset[Node],
    destination: frozenset[Node],
    valid: list[tuple[Dependence, bool]],
) -> bool:
    """Does a dependence lead from one part to another, or the same, in a later iteration?"""
    loop = scenario.contexts[level].loop
    assert loop is not None
    ops = [number for number, op in enumerate(scenario.ops) if scenario.inside(op.block, loop)]
    calls = [("op", op) for op in ops if scenario.ops[op].kind == "call"]
    for each, inter in valid:
        if inter:
            ends = []
            for op, context in ((each.source, each.source_context), (each.destination, each.destination_context)):
                place = place_of(scenario, op, context, level, ops)
                ends.append(calls if place is None else [("op", place)])
            if any(first in source and second in destination for first, second in product(*ends)):
                return True
    return False


def verdict(shares: list[tuple[bool, float]]) -> str:
    """What a loop with these stages, (parallel, percent of its accesses) each, is to a programmer."""
    return "sequential" if any(share >= 90 for parallel, share in shares if not parallel) else "pipeline"


def remedy(scenario: Scenario, level: int, source: int, destination: int) -> str | None:
    """What could be done about the dependences from `source` to `destination` that are carried at `level`."""
    carried = [each for each in scenario.dependences for at, _, inter in each.levels if at == level and inter]
    here = [each for each in carried if (each.source, each.destination) == (source, destination)]
    operators = [
        {group.operators[op] for group in usable_groups(scenario) if op in group.operators}
        for op in (source, destination)
    ]
    if operators[0] and operators[0] == operators[1]:
        return "reduce"
    kinds = {each.kind for each in here}
    if "RAW" not in kinds and all(each.objects is not None for each in here):
        things = {thing for each in here for thing in each.objects or ()}
        if not any(each.kind == "RAW" and (each.objects is None or things & set(each.objects)) for each in carried):
            return "copy" if "WAR" in kinds else "last-writer"
    return None  # scenarios have no distances but 1
