"""Fields of structures that are used together, apart or not at all, objects to cluster, loads to prefetch; savings.

How it is computed: docs/object-relative.md, "layout".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from tracekit.layout.advice import advised
from tracekit.layout.elements import Elements, chosen
from tracekit.layout.kernels.visits import (
    BULK,
    CONTROL,
    IN_BULK,
    INSIDE,
    NOW,
    OP,
    STRIDE_BITS,
    STRUCTURE,
    USED,
    WAYS,
    Visits,
    finish,
    touched,
)
from tracekit.layout.kernels.votes import OBJECTS, VOTE, Votes, sized, voted
from tracekit.layout.loads import joined_loads, load_merge_state, most_common_strides, prefetched
from tracekit.layout.measurements import joined, measured
from tracekit.layout.objects import clusters, followers, joined_followers, pools
from tracekit.layout.structures import structures_of
from tracekit.module import CannotMergeError, Count, Display, Module, groups_option, hash_table, option, used_rows


@dataclass(frozen=True)
class LayoutOptions:
    """What makes a group, and what counts as one visit."""

    by: str = groups_option("caller")
    stack: bool = option(False, "Local variables are objects, too.")
    window: int = option(512, "Structures that are in use at a time: lines of the cache that is thought of.", "N")
    latency: int = option(100, "Loads and stores that run while a line comes from memory.", "N")
    min_share: float = option(1.0, "Only structures and loads that make at least so much of all visits.", "PERCENT")

    def __post_init__(self) -> None:
        if self.window < WAYS or self.window & (self.window - 1) or self.window > 1 << 24:
            raise ValueError(f"window is a power of two from {WAYS} to {1 << 24}, not {self.window}.")
        if self.latency < 1:
            raise ValueError(f"latency is at least 1, not {self.latency}.")
        if not 0 <= self.min_share <= 100:
            raise ValueError(f"min-share is a percentage, not {self.min_share}.")


class Voting(Module):
    """The first pass: sizes of objects, and which structures accesses speak of."""

    def state(self) -> Votes:
        """No access."""
        known = structures_of(self.program)
        return Votes(
            hash_table(VOTE, 1 << 24), hash_table(OBJECTS, 1 << 24), known.of_op, known.offset_of_op, known.sizes
        )

    @staticmethod
    def load(state: Votes, instruction: int, group: int, offset: int, size: int) -> None:
        """A load."""
        voted(state, instruction, group, offset, size)

    @staticmethod
    def store(state: Votes, instruction: int, group: int, offset: int, size: int) -> None:
        """A store."""
        voted(state, instruction, group, offset, size)

    @staticmethod
    def heap_alloc(state: Votes, group: int, offset: int, size: int) -> None:
        """An object, or the tail by which one grows."""
        sized(state, group, offset, size)

    @staticmethod
    def stack_alloc(state: Votes, group: int, offset: int, size: int) -> None:
        """A local variable."""
        sized(state, group, offset, size)

    @staticmethod
    def global_init(state: Votes, group: int, offset: int, size: int) -> None:
        """A global variable."""
        sized(state, group, offset, size)

    def result(self, state: Votes) -> dict[str, Any]:
        """What groups consist of."""
        return {"elements": chosen(state, self.groups, structures_of(self.program))}


class Settled(LayoutOptions):
    """The options, and what a first pass says of groups; that is no option."""

    elements: Elements


class Layout(Module):
    """Structures, objects and loads, those with the most visits first."""

    whole_because = "which structures are in use follows from the accesses before"
    Options = LayoutOptions
    compute_bound = True
    merges_with_program = True

    def __init__(self, program: Any, options: Any) -> None:
        super().__init__(program, options)
        self.groups_by = options.by
        self.stack_objects = options.stack
        self.known = structures_of(program)

    @classmethod
    def settled(cls, options: Any, loop: tuple[str, int] | None, count: Count) -> Any:
        """With what groups consist of, which a pass of its own finds out."""
        made = Settled(**{field.name: getattr(options, field.name) for field in fields(options)})
        kind = type("Voting", (Voting,), {"groups_by": options.by, "stack_objects": options.stack})
        object.__setattr__(made, "elements", count(kind)["elements"])
        return made

    def state(self) -> Visits:
        """No access."""
        return Visits(
            elements=self.options.elements.rows,
            of_op=self.known.of_op,
            offset_of_op=self.known.offset_of_op,
            sizes=self.known.sizes,
            structures=hash_table(STRUCTURE, 1 << 20),
            in_bulk=hash_table(IN_BULK, 1 << 20),
            masks=hash_table([], 1 << 26),
            patterns=hash_table([("visits", "<i8")], 1 << 26),
            follow=hash_table([("visits", "<i8"), ("paired", "<i8")], 1 << 24),
            window=np.zeros(self.options.window, USED),
            ops=np.zeros(len(self.program.ops) + 1, OP),
            strides=hash_table([("count", "<i8")], 1 << 26),
            control=np.zeros(CONTROL, np.int64),
        )

    @staticmethod
    def load(state: Visits, instruction: int, address: int, size: int, group: int, object: int, offset: int) -> None:
        """A load."""
        touched(state, instruction, 0, address, size, group, object, offset)

    @staticmethod
    def store(state: Visits, instruction: int, address: int, size: int, group: int, object: int, offset: int) -> None:
        """A store."""
        touched(state, instruction, 1, address, size, group, object, offset)

    def reduce(self, states: Sequence[Visits]) -> Visits:
        """The one worker's, when all visits have ended."""
        finish(states[0])
        self.measured = measured(states[0], self.groups, self.options.elements, self.known)
        state = states[0]
        self.following = followers(state.follow, state.structures, self.groups, self.known, self.options.elements)
        self.strides = _strides(state)
        return states[0]

    def result(self, state: Visits) -> dict[str, Any]:
        """See docs/object-relative.md."""
        begun = int(state.ops["begun"].sum())
        return {
            **_structures(
                self.measured,
                begun,
                self.options.min_share,
                int(state.control[NOW]),
                int(state.control[INSIDE]),
                int(state.control[BULK]),
            ),
            "clusters": clusters(self.following),
            "loads": prefetched(
                self.program, state.ops, self.strides, self.options.latency, self.options.min_share / 100
            ),
        }

    def merge_state(self, state: Visits) -> dict[str, Any]:
        """All structures, as they were measured; what followed on what; instructions and their strides."""
        return {
            "structures": self.measured,
            "following": self.following,
            "loads": load_merge_state(state.ops, self.strides),
        }

    @classmethod
    def merge(cls, profiles: Sequence[Mapping[str, Any]], program: Any) -> dict[str, Any]:
        """Visits add, and the advice is that for all of them."""
        runs = [profile["evidence"] for profile in profiles]
        if not all("loads" in run for run in runs):
            raise CannotMergeError("one was written by a version that kept no loads; analyse its trace again")
        if not all("in_bulk" in row for run in runs for row in run["structures"]):
            raise CannotMergeError("one was written by a version that kept no copies; analyse its trace again")
        together, following = joined(run["structures"] for run in runs), joined_followers(runs)
        ops, strides = joined_loads((run["loads"] for run in runs), len(program.ops))
        sums = {
            name: sum(profile["result"]["summary"][name] for profile in profiles)
            for name in ("accesses", "in_structures", "bulk", "visits")
        }
        options = profiles[0]["options"]
        shares = options["min_share"]
        made = _structures(together, sums["visits"], shares, sums["accesses"], sums["in_structures"], sums["bulk"])
        made["clusters"] = clusters(following)
        made["loads"] = prefetched(program, ops, strides, options["latency"], shares / 100)
        merge_state = {"structures": together, "following": following, "loads": load_merge_state(ops, strides)}
        return {"result": made, "evidence": merge_state}


def _structures(rows: Sequence[Any], begun: int, share: float, accesses: int, inside: int, bulk: int) -> dict[str, Any]:
    """The summary, structures and pools of a profile."""
    shown = [advised(row) for row in rows if row["visits"] >= max(begun * share / 100, 1)]
    shown.sort(key=lambda row: -row["visits"])
    return {
        "summary": {
            "accesses": accesses,
            "in_structures": inside,
            "bulk": bulk,
            "visits": begun,
            "structures": len(rows),
            "bytes_saved": sum(max((each["bytes_saved"] for each in row["advice"]), default=0) for row in shown),
        },
        "structures": shown,
        "pools": pools([row for row in rows if row["visits"] >= max(begun * share / 100, 1)]),
    }


def _strides(state: Visits) -> dict[int, dict[int, int]]:
    """Instruction -> stride -> how often, of those that come most."""
    rows = used_rows(state.strides)[1:]
    keys, shift = rows["key"].astype(np.int64), 64 - STRIDE_BITS
    return most_common_strides(keys >> STRIDE_BITS, (keys << shift) >> shift, rows["count"])


DISPLAY = Display(
    text="tracekit.render.layout:layout_text",
    section="tracekit.render.html.layout:section",
    heading="Layout of data",
    columns={
        "structures": (
            "group:object type size array each also objects accesses visits in_order near lines fields "
            "together apart unseen only_in_bulk open unplaced holes advice"
        ),
        "pools": "group:object type size visits in_order near bytes_saved",
        "clusters": "first.group:object first.type then.group:object then.type visits percent same_number",
        "loads": "instruction:instruction kind begun percent loads stride index gap ahead bytes_ahead",
    },
)
MODULE = Layout
