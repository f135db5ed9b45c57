"""A scenario of ``tests/naive/scenario.py`` as a Program's tables and a DependenceProfile."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

from tests.naive.scenario import Scenario
from tests.naive.verdicts import Answer
from tracekit.contexts.nodes import NODE, ContextKind
from tracekit.dependence import profile as layout
from tracekit.dependence.level_rows import levels_of
from tracekit.dependence.profile import DependenceKind, DependenceProfile
from tracekit.formats.events import NONE
from tracekit.formats.image import (
    DTYPES,
    CallFlag,
    CauseFlag,
    CauseKind,
    CauseOf,
    EdgeKind,
    LoopFlag,
    NodeKind,
    OpFlag,
    OpKind,
    PartKind,
    PhiKind,
    VariableFlag,
)
from tracekit.objects.kinds import ObjectKind
from tracekit.verdicts.loop_facts import Reason
from tracekit.verdicts.transformations import Transformation
from tracekit.verdicts.verdicts import Judgement

OP_KINDS = {
    "load": OpKind.LOAD,
    "store": OpKind.STORE,
    "atomic": OpKind.ATOMIC,
    "copy": OpKind.COPY_TO,
    "call": OpKind.CALL,
    "other": OpKind.BASE,
}
NODE_KINDS = {"op": NodeKind.OP, "phi": NodeKind.PHI, "branch": NodeKind.BRANCH}
CONTEXT_KINDS = {
    "root": ContextKind.ROOT,
    "call": ContextKind.CALL,
    "loop": ContextKind.LOOP,
    "recursion": ContextKind.RECURSION,
    "recursion loop": ContextKind.RECURSION_LOOP,
    "recursive call": ContextKind.RECURSIVE_CALL,
    "recursive loop": ContextKind.RECURSIVE_LOOP,
}
OPERATORS = ["", "+", "*", "max", "+", "*", "max", "argmax"]
"""The operators of scenarios, of two units; a string's offset is its position here."""
TEXTS = [*OPERATORS, "t", "u", "v"]
"""All strings, with the names of variables."""


def table(name: str, rows: list[dict[str, Any]], dtypes: Any = DTYPES) -> Any:
    result = np.zeros(len(rows), dtypes[name])
    for number, row in enumerate(rows):
        for column, value in row.items():
            result[column][number] = NONE if value is None else value
    return result


def first_of(owners: list[int], owner: int) -> dict[str, int]:
    """The (first, count) of a run of rows that belong to `owner`; they stand together."""
    return {"first": owners.index(owner) if owner in owners else 0, "count": owners.count(owner)}


def program(scenario: Scenario) -> Any:
    """The static tables. Operations, phis and exits must stand block by block and loop by loop."""
    s = scenario
    in_block = [op.block for op in s.ops]
    assert in_block == sorted(in_block)
    functions = sorted({block.function for block in s.blocks})
    edge_function = [s.blocks[end_block(s, edge[1])].function for edge in s.edges]
    assert edge_function == sorted(edge_function)
    calls = [number for number, op in enumerate(s.ops) if op.kind == "call"]
    phi_owner = [loop for loop, row in enumerate(s.loops) for _ in row.phis]
    exit_owner = [loop for loop, row in enumerate(s.loops) for _ in row.exits]
    return SimpleNamespace(
        text=TEXTS.__getitem__,
        callee_name=lambda call: s.ops[calls[call]].name,
        place=lambda row: {"file": "" if row == NONE else "app.c", "line": 0 if row == NONE else row, "column": 0},
        ops=table(
            "ops",
            [
                {
                    "kind": OP_KINDS[op.kind],
                    "base": calls.index(number) if op.kind == "call" else 0,
                    "flags": OpFlag.SAME_VALUE * op.same | OpFlag.BY_POINTER * op.by_pointer,
                    "name": text_of(op.name),
                }
                for number, op in enumerate(s.ops)
            ]
            + [{"kind": OpKind.STACK_ALLOC, **names} for names in named(s)],
        ),
        globals=table("globals", [{**names, "source_name": names["name"], "name": 1} for names in named(s)]),
        variables=table(
            "variables",
            [
                {
                    "loop": row.loop,
                    "name": TEXTS.index(row.name),
                    "flags": sum(VariableFlag[flag.upper()] for flag in row.flags),
                    "location": row.line or None,
                }
                for row in s.variables
            ],
        ),
        variable_updates=table(
            "variable_updates",
            [
                {"variable": number, "kind": PhiKind.REDUCTION, "operator": OPERATORS.index(row.operator)}
                for number, row in enumerate(s.variables)
                if row.operator
            ],
        ),
        calls=table(
            "calls",
            [
                {
                    "op": op,
                    "block": s.ops[op].block,
                    "flags": CallFlag.PURE * s.ops[op].pure | CallFlag.ALLOCATES * s.ops[op].allocates,
                }
                for op in calls
            ],
        ),
        blocks=table(
            "blocks",
            [
                {
                    "function": block.function,
                    "loop": block.loop,
                    "call": None,
                    "continues": None,
                    "first_op": first_of(in_block, number)["first"],
                    "ops": first_of(in_block, number)["count"],
                }
                for number, block in enumerate(s.blocks)
            ],
        ),
        loops=table(
            "loops",
            [
                {
                    "function": loop.function,
                    "header": loop.header,
                    "parent": loop.parent,
                    "flags": LoopFlag.EXITS_EARLY * loop.exits_early
                    | LoopFlag.EXITS_ON_DATA * loop.exits_on_data
                    | LoopFlag.CAUSES * (loop.exit_causes is not None)
                    | LoopFlag.SOURCE * loop.in_source,
                    "first_phi": first_of(phi_owner, number)["first"],
                    "phis": len(loop.phis),
                    "first_exit": first_of(exit_owner, number)["first"],
                    "exits": len(loop.exits),
                }
                for number, loop in enumerate(s.loops)
            ],
        ),
        phis=table(
            "phis",
            [
                {"kind": PhiKind[kind.upper()], "operator": OPERATORS.index(operator), "name": text_of(name)}
                for loop in s.loops
                for kind, operator, name in loop.phis
            ],
        ),
        loop_exits=table("loop_exits", [{"source": block, "target": None} for loop in s.loops for block in loop.exits]),
        causes=table("causes", causes(s)),
        edges=table(
            "edges",
            [
                {
                    "kind": EdgeKind[kind.upper()],
                    "from_kind": NODE_KINDS[tail[0]],
                    "from": tail[1],
                    "to_kind": NODE_KINDS[head[0]],
                    "to": head[1],
                }
                for kind, tail, head in s.edges
            ],
        ),
        updates=table(
            "updates",
            [
                {"load": load, "store": store, "operator": OPERATORS.index(operator) + 3 * (row % 2)}
                for row, (load, store, operator) in enumerate(s.updates)
            ],
        ),
        update_parts=table(
            "update_parts",
            [
                {
                    "update": update,
                    "kind": PartKind[kind.upper()],
                    "index": index,
                    "operator": OPERATORS.index(operator),
                }
                for update, kind, index, operator in s.parts
            ],
        ),
        functions=table(
            "functions",
            [
                {
                    **runs("block", [block.function for block in s.blocks], function),
                    **runs("loop", [loop.function for loop in s.loops], function),
                    **runs("edge", edge_function, function),
                }
                for function in functions
            ],
        ),
    )


def causes(s: Scenario) -> list[dict[str, Any]]:
    """What exits and recurrences depend on, in an order of no meaning."""
    of_exits = [each for loop in s.loops for each in loop.exit_causes or [[] for _ in loop.exits]]
    of_phis = [(phi, found) for loop in s.loops for phi, found in loop.phi_causes.items()]
    owned = [(CauseOf.PHI, phi, found) for phi, found in of_phis]
    owned += [(CauseOf.EXIT, number, found) for number, found in reversed(list(enumerate(of_exits)))]
    return [
        {
            "of_kind": of_kind,
            "of": of,
            "kind": CauseKind[kind.upper()],
            "index": index,
            "flags": CauseFlag.FIXED * fixed,
        }
        for of_kind, of, found in owned
        for kind, index, fixed in found
    ]


def runs(name: str, owners: list[int], owner: int) -> dict[str, int]:
    run = first_of(owners, owner)
    return {f"first_{name}": run["first"], f"{name}s": run["count"]}


def end_block(scenario: Scenario, node: tuple[str, int]) -> int:
    """A block of the function that a node of the dependence graph stands in."""
    kind, number = node
    if kind == "op":
        return scenario.ops[number].block
    if kind == "branch":
        return number
    owners = [row.header for row in scenario.loops for _ in row.phis]
    return owners[number]


def profile(scenario: Scenario) -> DependenceProfile:
    """What the replay found."""
    s = scenario
    layouts = {
        "nodes": NODE,
        "dependences": layout.DEPENDENCE,
        "levels": layout.LEVEL,
        "exposed": layout.EXPOSED,
        "objects": layout.OBJECT,
        "accesses": layout.ACCESS,
    }
    return DependenceProfile(
        nodes=table(
            "nodes",
            [
                {
                    "parent": row.parent,
                    "kind": CONTEXT_KINDS[row.kind],
                    "loop": row.loop,
                    "call": row.call,
                    "camp_id": number,
                    "most_iterations": row.iterations,
                    "external": row.external,
                }
                for number, row in enumerate(s.contexts)
            ],
            layouts,
        ),
        dependences=table(
            "dependences",
            [
                {
                    "kind": DependenceKind[each.kind],
                    "source": each.source,
                    "source_node": each.source_context,
                    "destination": each.destination,
                    "destination_node": each.destination_context,
                    "count": 3,
                    **listed(each.objects, len(s.objects)),
                }
                for each in s.dependences
            ],
            layouts,
        ),
        levels=levels_of(
            table(
                "levels",
                [
                    {
                        "dependence": number,
                        "node": node,
                        "intra": intra,
                        "inter": inter,
                        "min_distance": int(inter),
                        "max_distance": int(inter),
                        "carried": int(inter),
                    }
                    for number, each in enumerate(s.dependences)
                    for node, intra, inter in each.levels
                ],
                layouts,
            ),
            len(s.dependences),
        ),
        exposed=table(
            "exposed",
            [{"instruction": load, "node": context, "level": level} for load, context, level in sorted(s.exposed)],
            layouts,
        ),
        accesses=table(
            "accesses",
            [{"instruction": op, "node": op % len(s.contexts), "count": count} for op, count in s.counts.items()],
            layouts,
        ),
        objects=table(
            "objects",
            [{"kind": ObjectKind[kind.upper()], "site": site(s, number)} for number, kind in enumerate(s.objects)],
            layouts,
        ),
        shadow_bytes=0,
    )


def text_of(name: str) -> int:
    """The offset of a variable's name, 0 of names that no case looks at."""
    return TEXTS.index(name) if name in TEXTS else 0


def named(s: Scenario) -> list[dict[str, int | None]]:
    """Name and location of each object; locations are lines."""
    found = [s.names.get(number, ("", 0)) for number in range(len(s.objects))]
    return [{"name": text_of(name), "location": line or None} for name, line in found]


def site(s: Scenario, number: int) -> int | None:
    """The row of globals, or of ops behind those of the scenario, that an object with a name comes from."""
    return own_site(s, number) if number in s.names and s.objects[number] in ("global", "stack") else None


def own_site(s: Scenario, number: int) -> int:
    """A row of globals, or of ops behind those of the scenario, that only this object may come from."""
    return number if s.objects[number] == "global" else len(s.ops) + number


def listed(objects: tuple[int, ...] | None, known: int) -> dict[str, Any]:
    if objects is None:  # more than fit: the row lists some of them
        return {
            "objects": layout.LISTED_OBJECTS + 1,
            "object_list": [number % max(known, 1) for number in range(4)],
            "first_object": 0,
        }
    shown = [*objects, *[NONE] * (layout.LISTED_OBJECTS - len(objects))]
    return {"objects": len(objects), "object_list": shown, "first_object": shown[0]}


def subject(step: Transformation) -> tuple[str, int | None]:
    """What a transformation is about, in the naive reference's words."""
    if step.variable != NONE:
        return "source", step.variable
    return ("register", step.phi) if step.phi != NONE else ("memory", None if step.object == NONE else step.object)


def as_answer(judgement: Judgement) -> Answer:
    """A judgement in the naive reference's words."""
    transformations = {(step.kind, *subject(step), OPERATORS[step.operator]) for step in judgement.transformations}
    blocked = {
        (Reason(reason).value, source, None if destination == NONE else destination)
        for reason, source, destination in judgement.blocked_by
    }
    return Answer(
        judgement.verdict.value,
        transformations,
        blocked,
        judgement.carried,
        set(judgement.rests_on),
        set(judgement.not_taken),
    )
