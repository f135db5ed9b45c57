"""All accesses as grammars of instructions, groups, objects and offsets, beside one of addresses; hot streams (WHOMP).

Wu et al., "Exposing memory access regularities using object-relative memory profiling" (CGO 2004), section 3.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

from tracekit.module import CannotMergeError, Display, Module, TracekitError, groups_option, option
from tracekit.program.sources import is_system, plain_path, short_ends
from tracekit.whomp import ALL, DIMENSIONS
from tracekit.whomp.file import save
from tracekit.whomp.grammar import Written, empty_grammar
from tracekit.whomp.hot_streams import CANDIDATES, candidates, hottest
from tracekit.whomp.joining import joined
from tracekit.whomp.kernels.pending import append
from tracekit.whomp.kernels.sequitur import Grammar

RECORD_BYTES = 12
"""Of an access in a raw trace: instruction (4) and address (8)."""


class State(NamedTuple):
    """A grammar for each dimension."""

    instruction: Grammar
    group: Grammar
    object: Grammar
    offset: Grammar
    address: Grammar


@dataclass(frozen=True)
class WhompOptions:
    """What makes a group, and what is written."""

    by: str = groups_option()
    stack: bool = option(False, "Local variables are objects, too.")
    block: int = option(1 << 23, "Accesses after which grammars are closed and the next begun; bounds memory.", "N")
    longest: int = option(100, "Accesses in a hot stream at most.", "N")
    hot: int = option(20, "Hot streams that are listed.", "N")
    grammars: str = option("", "Write the grammars to FILE, which tracekit.whomp.expand reads.", "FILE")

    def __post_init__(self) -> None:
        if self.block < 1:
            raise ValueError(f"block is at least 1, not {self.block}.")
        if self.longest < 2:
            raise ValueError(f"longest is at least 2, not {self.longest}.")
        if self.hot < 0:
            raise ValueError(f"hot is not negative, not {self.hot}.")


SHARES = {"address": 0, "offset": 1, "object": 2, "instruction": 3, "group": 5}
"""Number modulo workers: who makes a grammar. Those of addresses and offsets take longest, and two workers are equally
busy with {address, object} and {offset, instruction, group}.
"""
ADDRESS, OFFSET, OBJECT, INSTRUCTION, GROUP = SHARES.values()


def touch(
    state: State,
    instruction: int,
    address: int,
    group: int,
    object: int,
    offset: int,
    time: int,
    worker: int,
    workers: int,
    options: WhompOptions,
) -> None:
    """A load or a store."""
    closes = (time + 1) % options.block == 0
    if INSTRUCTION % workers == worker:
        append(state.instruction, instruction, closes)
    if GROUP % workers == worker:
        append(state.group, group, closes)
    if OBJECT % workers == worker:
        append(state.object, object, closes)
    if OFFSET % workers == worker:
        append(state.offset, offset, closes)
    if ADDRESS % workers == worker:
        append(state.address, address, closes)


class Whomp(Module):
    """Sizes by dimension, the ratio of both profiles, hot streams."""

    Options = WhompOptions
    ends_with_window = True
    compute_bound = True
    shard_by = "work"

    def __init__(self, program: Any, options: Any) -> None:
        super().__init__(program, options)
        self.groups_by = options.by
        self.stack_objects = options.stack
        if options.grammars and not Path(options.grammars).absolute().parent.is_dir():
            raise TracekitError(f"{options.grammars} cannot be written: there is no such folder.")

    def state(self) -> State:
        """No access."""
        return State(*(empty_grammar() for _ in ALL))

    def callbacks(self) -> dict[str, Any]:
        """Loads and stores are the same."""
        return dict.fromkeys(("load", "store"), touch)

    def reduce(self, states: Sequence[State]) -> State:
        """Each grammar is one worker's."""
        workers = len(states)
        return self.combine([State(*(getattr(states[SHARES[name] % workers], name) for name in State._fields))])

    def combine(self, states: Sequence[State]) -> State:
        """A block that is in two segments is made once more."""
        self.made: dict[str, Written] = {name: joined([getattr(state, name) for state in states]) for name in ALL}
        self.streams = candidates(self.made["instruction"], self.options.longest)
        return states[0]

    def result(self, state: State) -> dict[str, Any]:
        """Dimensions in the order of ALL; hot streams by heat."""
        made = self.made
        if self.options.grammars:
            save(self.options.grammars, made, [self.groups.describe(group) for group in range(len(self.groups))])
        accesses = made["instruction"].length
        dimensions = [{"dimension": name, "accesses": accesses, **made[name].size()} for name in ALL]
        blocks = sum(1 for _ in made["instruction"].blocks())
        listed = hottest(self.streams, self.options.hot)
        return _tables(dimensions, blocks, [(stream, times, self._lines(stream)) for stream, times in listed])

    def merge_state(self, state: State) -> dict[str, Any]:
        """The hottest streams, by the ids of their instructions, and the lines that they go along."""
        most = sorted(self.streams.items(), key=lambda item: (-len(item[0]) * item[1], item[0]))[:CANDIDATES]
        rows = [[[self._id(each) for each in stream], times, self._lines(stream)] for stream, times in most]
        return {"streams": rows}

    @classmethod
    def merge(cls, profiles: Sequence[Mapping[str, Any]], program: Any) -> dict[str, Any]:
        """Sizes add, for each run has its own grammars; a hot stream is as hot as in all runs that list it."""
        if any(not profile["evidence"] for profile in profiles):
            raise CannotMergeError("one was written by a version that kept no streams; analyse its trace again")
        results = [profile["result"] for profile in profiles]
        sizes = ("accesses", "symbols", "rules", "values", "bytes")
        rows = zip(*(result["dimensions"] for result in results))
        dimensions = [{**each[0], **{name: sum(row[name] for row in each) for name in sizes}} for each in rows]
        times: Counter[tuple[str, ...]] = Counter()
        lines: dict[tuple[str, ...], list[str]] = {}
        for profile in profiles:
            for stream, count, along in profile["evidence"]["streams"]:
                times[tuple(stream)] += count
                lines[tuple(stream)] = along
        listed = hottest(times, profiles[0]["options"]["hot"])
        blocks = sum(result["summary"]["blocks"] for result in results)
        streams = [[list(stream), count, lines[stream]] for stream, count in sorted(times.items())]
        return {
            "result": _tables(dimensions, blocks, [(stream, count, lines[stream]) for stream, count in listed]),
            "evidence": {"streams": streams},
        }

    def _id(self, instruction: int) -> str:
        if instruction >= len(self.program.ops):
            return "library"
        return str(self.program.instruction(instruction)["id"])

    def _lines(self, stream: Sequence[int]) -> list[str]:
        """The lines of source that a stream goes along, each as often as it comes back.

        Of the system's headers that were inlined it is the user's line.
        """
        places = []
        for instruction in stream:
            if instruction < len(self.program.ops):
                shown = self.program.instruction(instruction)
                chain = (shown, *shown["inlined_at"])
                place = next((each for each in chain if not is_system(plain_path(each["file"]))), shown)
                places.append(f"{self.names.get(place['file'], place['file'])}:{place['line']}")
            else:
                places.append("library")
        return [place for place, _ in groupby(places)]

    @cached_property
    def names(self) -> dict[str, str]:
        """Of each file of the program the end of its path that tells it from others."""
        return short_ends(self.program.source_names.names)


def _tables(
    dimensions: Sequence[dict[str, Any]], blocks: int, streams: Sequence[tuple[Sequence[Any], int, list[str]]]
) -> dict[str, Any]:
    """The result; streams: instructions, how often they come, and the lines that they go along."""
    sizes = {row["dimension"]: row["bytes"] for row in dimensions}
    accesses = dimensions[0]["accesses"]
    omsg = sum(sizes[name] for name in DIMENSIONS)
    rasg = sizes["address"] + sizes["instruction"]
    return {
        "summary": {
            "accesses": accesses,
            "blocks": blocks,
            "omsg_bytes": omsg,
            "rasg_bytes": rasg,
            "omsg_over_rasg": _percent(omsg, rasg),
            "omsg_over_addresses": _percent(omsg, sizes["address"]),
            "compression_ratio": round(RECORD_BYTES * accesses / omsg, 1) if omsg else 0.0,
        },
        "dimensions": list(dimensions),
        "hot_streams": [
            {
                "heat": len(stream) * times,
                "percent": _percent(len(stream) * times, accesses),
                "accesses": len(stream),
                "times": times,
                "lines": lines,
            }
            for stream, times, lines in streams
        ],
    }


def _percent(part: int, whole: int) -> float:
    return round(100 * part / whole, 1) if whole else 0.0


DISPLAY = Display(
    percent="omsg_over_rasg omsg_over_addresses",
    columns={
        "dimensions": "dimension accesses symbols rules values bytes",
        "hot_streams": "heat percent accesses times lines",
    },
)
MODULE = Whomp
