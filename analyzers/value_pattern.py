"""Loads whose value follows a pattern: always the same, in equal steps, or one of a few (PROMPT, Listing 1).

A load that always gave one value can be speculated on, or its computation hoisted; one that steps can be predicted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from tracekit.module import Display, Module, inlined, instruction_key, option, shown_value

PATTERN = np.dtype([("count", "i8"), ("first", "i8"), ("last", "i8"), ("stride", "i8"), ("bent", "i8"), ("size", "i8")])


class State(NamedTuple):
    """By instruction: how its values went on, and, of those that were different, the first few."""

    patterns: Any  # PATTERN; bent: 1 if two steps differed; size: members, one more than there is room for if too many
    members: Any  # int64 (instructions, small_set)


@dataclass(frozen=True)
class PatternOptions:
    """What counts as a pattern."""

    stores: bool = option(False, "Also values that are stored.")
    linear: bool = option(False, "Also values in equal steps.")
    small_set: int = option(0, "Also instructions with at most N different values.", "N")

    def __post_init__(self) -> None:
        if not 0 <= self.small_set <= 64:
            raise ValueError(f"small-set is a number from 0 to 64, not {self.small_set}.")


@inlined
def follow(state: State, instruction: int, value: int, options: PatternOptions) -> None:
    """One more value of an instruction."""
    row = state.patterns[instruction]
    step = value - row.last
    if row.count == 0:
        row.first = value
    elif row.count == 1:
        row.stride = step
    elif step != row.stride:
        row.bent = 1
    if options.small_set > 0 and (step != 0 or row.count == 0) and row.size <= options.small_set:
        known = False
        for place in range(row.size):
            known |= state.members[instruction, place] == value
        if not known:
            if row.size < options.small_set:
                state.members[instruction, row.size] = value
            row.size += 1
    row.last = value
    row.count += 1


def going_on(first: State, then: State, most: int) -> State:
    """The state after the values of both, in this order; `most`: members of a set."""
    one, other = first.patterns, then.patterns
    joined, members = one.copy(), first.members.copy()
    step = other["first"] - one["last"]
    joined["stride"] = np.where(one["count"] == 1, step, one["stride"])
    differs = (step != joined["stride"]) | ((other["count"] > 1) & (other["stride"] != joined["stride"]))
    joined["bent"] = one["bent"] | other["bent"] | differs
    joined["last"] = other["last"]
    joined["count"] += other["count"]
    for place in range(most):
        value = then.members[:, place]
        is_known = ((members == value[:, None]) & (np.arange(members.shape[1]) < joined["size"][:, None])).any(axis=1)
        is_new = (other["size"] > place) & ~is_known
        fits = np.flatnonzero(is_new & (joined["size"] < most))
        members[fits, joined["size"][fits]] = value[fits]
        joined["size"] = np.minimum(joined["size"] + is_new, most + 1)
    joined["size"] = np.maximum(joined["size"], np.where(other["size"] > most, most + 1, 0))
    for is_whole, state in ((one["count"] == 0, then), (other["count"] == 0, first)):
        joined[is_whole], members[is_whole] = state.patterns[is_whole], state.members[is_whole]
    return State(joined, members)


def both_patterns(first: Mapping[str, Any], second: Mapping[str, Any], most: int) -> tuple[str, Any]:
    """What is true of the values of two runs: the pattern that they share, or a set of at most `most` values."""
    if first["pattern"] == second["pattern"] and first["value"] == second["value"]:
        return first["pattern"], first["value"]
    members: dict[str, Any] = {}
    for row in (first, second):
        if row["pattern"] not in ("constant", "set"):
            return "", None
        members |= {repr(value): value for value in (row["value"] if row["pattern"] == "set" else [row["value"]])}
    if len(members) > most:
        return "", None
    return "set", sorted(members.values(), key=lambda value: (isinstance(value, str), value, repr(value)))


class ValuePattern(Module):
    """One row for each instruction whose values follow a pattern; it has to have run."""

    Options = PatternOptions
    shard_by = "instruction"

    def state(self) -> State:
        """No value yet."""
        self.program.require_values()
        count = len(self.program.ops)
        return State(np.zeros(count, PATTERN), np.zeros((count, max(self.options.small_set, 1)), np.int64))

    @staticmethod
    def load(state: State, instruction: int, value: int, options: PatternOptions) -> None:
        """A load."""
        if instruction < state.patterns.size:
            follow(state, instruction, value, options)

    @staticmethod
    def store(state: State, instruction: int, value: int, options: PatternOptions) -> None:
        """A store, if asked for."""
        if instruction < state.patterns.size:
            follow(state, instruction, value, options)

    def callbacks(self) -> dict[str, Any]:
        """Stores are looked at on request."""
        return {
            name: function for name, function in super().callbacks().items() if name == "load" or self.options.stores
        }

    def reduce(self, states: Sequence[State]) -> State:
        """Each instruction is one worker's."""
        owner = np.argmax([state.patterns["count"] for state in states], axis=0)
        rows = np.arange(len(owner))
        return State(
            np.stack([state.patterns for state in states])[owner, rows],
            np.stack([state.members for state in states])[owner, rows],
        )

    def fold(self, first: State, then: State) -> State:
        """Each instruction's values went on."""
        return going_on(first, then, self.options.small_set)

    def result(self, state: State) -> dict[str, Any]:
        """Rows in the order of the program."""
        return {
            "instructions": [
                {
                    "instruction": self.program.instruction(instruction),
                    "count": int(state.patterns["count"][instruction]),
                    "pattern": pattern,
                    "value": value,
                }
                for instruction, pattern, value in self._patterns(state)
                if pattern
            ]
        }

    def merge_state(self, state: State) -> dict[str, Any]:
        """The instructions that ran without a pattern: what another run says of them does not hold for both."""
        return {
            "without_pattern": sorted(
                self.program.instruction(instruction)["id"]
                for instruction, pattern, _ in self._patterns(state)
                if not pattern
            )
        }

    @classmethod
    def merge(cls, profiles: Sequence[Mapping[str, Any]], program: Any) -> dict[str, Any]:
        """The patterns that hold in all runs in which the instruction ran."""
        most = profiles[0]["options"]["small_set"]
        without = {name for profile in profiles for name in profile["evidence"]["without_pattern"]}
        patterns: dict[str, dict[str, Any]] = {}
        for row in (row for profile in profiles for row in profile["result"]["instructions"]):
            name = row["instruction"]["id"]
            known = patterns.get(name)
            pattern, value = both_patterns(known, row, most) if known else (row["pattern"], row["value"])
            count = row["count"] + (known["count"] if known else 0)
            patterns[name] = {**row, "count": count, "pattern": pattern, "value": value}
        without |= {name for name, row in patterns.items() if not row["pattern"]}
        rows = sorted(
            (row for name, row in patterns.items() if name not in without),
            key=lambda row: instruction_key(row["instruction"]),
        )
        return {"result": {"instructions": rows}, "evidence": {"without_pattern": sorted(without)}}

    def _patterns(self, state: State) -> Iterator[tuple[int, str, Any]]:
        """Of each instruction that ran its pattern, or none."""
        # Of a value of more than eight bytes the first eight are compared: that proves no pattern.
        judged = self.program.valued & (self.program.ops["size"] <= 8)
        for instruction in np.flatnonzero(state.patterns["count"] > 0).tolist():
            yield instruction, *(self._pattern(state, instruction) if judged[instruction] else ("", None))

    def _pattern(self, state: State, instruction: int) -> tuple[str, Any]:
        row = state.patterns[instruction]
        operation = self.program.ops[instruction]
        if row["bent"] == 0 and row["stride"] == 0:
            return "constant", shown_value(operation, int(row["first"]))
        if self.options.linear and row["bent"] == 0 and row["count"] > 2:
            return "linear", {"first": shown_value(operation, int(row["first"])), "stride": int(row["stride"])}
        if 0 < row["size"] <= self.options.small_set:
            members = sorted(state.members[instruction, : row["size"]].tolist())
            return "set", [shown_value(operation, member) for member in members]
        return "", None


DISPLAY = Display(
    text="tracekit.render.objects:patterns_text",
    heading="Value patterns",
    columns={
        "instructions": "instruction:instruction count pattern value",
    },
)
MODULE = ValuePattern
