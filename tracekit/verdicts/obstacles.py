"""Which of the blockers of a loop are one thing to whoever mends it, and which of these things comes first.

Pairs of instructions in conflict over the same objects are one thing; a variable that is carried, and an exit whose
decision follows from it, are one; calls of one function are one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from tracekit.contexts.names import Json
from tracekit.dependence.rows import place_key
from tracekit.formats.image import EdgeKind, NodeKind
from tracekit.verdicts.loop_facts import Reason

if TYPE_CHECKING:
    from tracekit.program.causes import Causes
    from tracekit.program.program import Program
    from tracekit.verdicts.verdicts import Blocker

Key = tuple[Any, ...]

_REASONS = [reason.value for reason in Reason]

Follows = Callable[[int], Iterable[int]]
"""Of the row of an exit, by its number: the numbers of the rows about what decides whether the loop is left there."""


def _follows_from_nothing(number: int) -> Iterable[int]:
    return ()


def in_order(rows: Sequence[Json], iterations: int, follows: Follows = _follows_from_nothing) -> list[Json]:
    """The blockers with the number of their thing (``thing``, from 0), those of the first thing first.

    The first thing is what happens most often; a variable, an exit or a call is in the way of all `iterations`.
    """
    keys, orders = [_key(row) for row in rows], [_order(row) for row in rows]
    for number, row in enumerate(rows):
        if row["reason"] == Reason.EXIT.value:
            keys[number] = min((keys[at] for at in follows(number)), key=repr, default=keys[number])
    often: dict[Key, int] = {}
    first: dict[Key, Key] = {}
    for key, order, row in zip(keys, orders, rows):
        often[key] = often.get(key, 0) + row.get("executions", iterations)
        first[key] = min(first.get(key, order), order)
    rank = {key: number for number, key in enumerate(sorted(often, key=lambda key: (-often[key], first[key])))}
    numbers = sorted(range(len(rows)), key=lambda number: (rank[keys[number]], orders[number]))
    return [{**rows[number], "thing": rank[keys[number]]} for number in numbers]


def _key(row: Mapping[str, Any]) -> Key:
    """What is the same for blockers that are one thing."""
    source = row["source"]
    if row["reason"] == Reason.DEPENDENCE.value:
        return ("memory", repr(row["objects"]))
    if row["reason"] == Reason.RECURRENCE.value:
        return ("value", source["name"] or place_key(source))
    if row["reason"] == Reason.EXTERNAL.value:
        return ("call", row["callee"])
    return ("exit", place_key(source))


def _order(row: Mapping[str, Any]) -> Key:
    """Within a thing: dependences first, the most frequent before the others, then by place."""
    ends = [place_key(row[end]) for end in ("source", "destination") if row[end]]
    return (_REASONS.index(row["reason"]), -row.get("executions", 0), repr(ends))


class ExitDecisions:
    """What else blocks a loop and decides, too, whether it is left at an exit."""

    def __init__(self, program: Program, causes: Causes) -> None:
        self._causes = causes
        self._edges = program.edges

    def among(self, blockers: Sequence[Blocker]) -> Follows:
        """Of an exit among `blockers`, by its number: those of the variables and stores that the decision follows from.

        The loop of an interpreter has hundreds of exits beside thousands of dependences.
        """
        of_op: dict[int, list[int]] = {}
        of_phi: dict[int, list[int]] = {}
        for number, blocker in enumerate(blockers):
            if blocker.reason is Reason.DEPENDENCE:
                of_op.setdefault(blocker.destination, []).append(number)
            elif blocker.reason is Reason.RECURRENCE:
                of_phi.setdefault(blocker.source, []).append(number)
                for op in self._fed_by_phi.get(blocker.source, ()):
                    of_op.setdefault(op, []).append(number)

        def follows(number: int) -> set[int]:
            ops, phis = self._causes.behind(blockers[number].source)
            from_ops = {number for op in ops for number in of_op.get(op, ())}
            return from_ops.union(*(of_phi.get(phi, ()) for phi in phis))

        return follows

    @cached_property
    def _fed_by_phi(self) -> dict[int, set[int]]:
        """Row of phis -> the operations that it reaches through registers."""
        fed: dict[int, set[int]] = {}
        chosen = (self._edges["kind"] == EdgeKind.REGISTER) & (self._edges["from_kind"] == NodeKind.PHI)
        for row in self._edges[chosen & (self._edges["to_kind"] == NodeKind.OP)]:
            fed.setdefault(int(row["from"]), set()).add(int(row["to"]))
        return fed
