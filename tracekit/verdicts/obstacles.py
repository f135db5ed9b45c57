"""Which of the blockers of a loop are one thing to whoever mends it, and which of these things comes first.

Pairs of instructions in conflict over the same objects are one thing; a variable that is carried, and an exit whose
decision follows from it, are one; calls of one function are one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tracekit.contexts.names import Json
from tracekit.dependence.rows import place_key
from tracekit.verdicts.loop_facts import Reason

Key = tuple[Any, ...]

_REASONS = [reason.value for reason in Reason]


Follows = Callable[[Json], Callable[[Json], bool]]
"""Of an exit, then of another blocker: does the decision to leave follow from what the other one is about?"""


def _follows_from_nothing(exit_row: Json) -> Callable[[Json], bool]:
    return lambda row: False


def in_order(rows: Sequence[Json], iterations: int, follows: Follows = _follows_from_nothing) -> list[Json]:
    """The blockers with the number of their thing (``thing``, from 0), those of the first thing first.

    The first thing is what happens most often; a variable, an exit or a call is in the way of all `iterations`.
    `follows` is asked once for each exit: a loop around an interpreter's switch has hundreds, beside thousands of rows.
    """
    keys = [_key(row) for row in rows]
    for number, row in enumerate(rows):
        if row["reason"] == Reason.EXIT.value:
            from_it = follows(row)
            causes = [keys[at] for at, other in enumerate(rows) if other is not row and from_it(other)]
            keys[number] = min(causes, key=repr) if causes else keys[number]
    often: dict[Key, int] = {}
    first: dict[Key, Key] = {}
    for key, row in zip(keys, rows):
        often[key] = often.get(key, 0) + row.get("executions", iterations)
        first[key] = min(first.get(key, _order(row)), _order(row))
    rank = {key: number for number, key in enumerate(sorted(often, key=lambda key: (-often[key], first[key])))}
    numbered = [{**row, "thing": rank[key]} for row, key in zip(rows, keys)]
    return sorted(numbered, key=lambda row: (row["thing"], _order(row)))


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
