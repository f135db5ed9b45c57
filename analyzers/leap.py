"""Linear descriptors of what each instruction does to the objects of a group, dependences and strides from them (LEAP).

Wu et al., "Exposing memory access regularities using object-relative memory profiling" (CGO 2004), section 4.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

from tracekit.leap.comparison import Pairs, Truth, comparison, truth_of
from tracekit.leap.joining import joined
from tracekit.leap.kernels.compressor import BEYOND, Descriptors, access_of, describe
from tracekit.leap.kernels.exact import Exact, noted_load, noted_store, noted_stride
from tracekit.leap.merge_state import merge_state, merged, tables
from tracekit.leap.profile import DESCRIBED, LeapProfile
from tracekit.leap.state import no_streams, nothing_exact
from tracekit.module import CannotMergeError, Display, Module, groups_option, inlined, option


class State(NamedTuple):
    """Descriptors, and what they are compared with."""

    made: Descriptors
    exact: Exact


@dataclass(frozen=True)
class LeapOptions:
    """How much is described, and what is shown."""

    descriptors: int = option(30, "Linear descriptors that a stream may have, of points and of offsets each.", "N")
    by: str = groups_option()
    stack: bool = option(False, "Local variables are objects, too.")
    list: bool = option(False, "List the descriptors of each stream.")
    compare: bool = option(False, "Set dependences and strides beside exact ones, and a window of recent stores.")
    window: int = option(1024, "Stores in the window.", "N")

    def __post_init__(self) -> None:
        if self.descriptors < 1 or self.descriptors > 1 << 20:
            raise ValueError(f"descriptors is a number from 1 to {1 << 20}, not {self.descriptors}.")
        if self.window < 1:
            raise ValueError(f"window is at least 1, not {self.window}.")


@inlined
def touch(
    state: State, instruction: int, is_store: int, group: int, object: int, offset: int, time: int, options: LeapOptions
) -> None:
    """A load or a store."""
    access = access_of(state.made, instruction, is_store)
    describe(state.made, access, group, object, offset, time, options.descriptors)
    if options.compare:
        noted_stride(state.exact, access, group, object, offset)
        if is_store:
            noted_store(state.exact, access, group, object, offset)
        else:
            noted_load(state.exact, access, group, object, offset, options.window)


class Leap(Module):
    """Summary, dependences, strongly strided instructions; with ``--list`` the descriptors."""

    Options = LeapOptions
    ends_with_window = True
    compute_bound = True

    def __init__(self, program: Any, options: Any) -> None:
        super().__init__(program, options)
        self.shard_by = "" if options.compare else "instruction"
        self.whole_because = "with --compare each load is compared with all stores before it" if options.compare else ""
        self.groups_by = options.by
        self.stack_objects = options.stack
        self._instruction = lru_cache(maxsize=None)(self._shown)  # most are in thousands of pairs

    def state(self) -> State:
        """No stream."""
        instructions = len(self.program.ops)
        return State(no_streams(instructions), nothing_exact(instructions if self.options.compare else 0))

    @staticmethod
    def load(
        state: State, instruction: int, group: int, object: int, offset: int, time: int, options: LeapOptions
    ) -> None:
        """A load."""
        touch(state, instruction, 0, group, object, offset, time, options)

    @staticmethod
    def store(
        state: State, instruction: int, group: int, object: int, offset: int, time: int, options: LeapOptions
    ) -> None:
        """A store."""
        touch(state, instruction, 1, group, object, offset, time, options)

    def reduce(self, states: Sequence[State]) -> State:
        """Each instruction is one worker's."""
        self.profile = LeapProfile.of([state.made for state in states])
        self.pairs = self.profile.dependences()
        return states[0]

    def combine(self, states: Sequence[State]) -> State:
        """Each stream's descriptors went on."""
        return self.reduce([State(joined([state.made for state in states], self.options.descriptors), states[0].exact)])

    def result(self, state: State) -> dict[str, Any]:
        """Pairs by store, then load; instructions in their order."""
        truth = truth_of(state.exact) if self.options.compare else None
        result: dict[str, Any] = {
            "summary": self.profile.summary(),
            "dependences": self._dependences(truth),
            "strided": self._strided(truth),
        }
        if self.options.list:
            result["streams"] = [self._stream(row) for row in self.profile.streams]
        if truth is not None:
            result |= comparison(result["summary"], self.pairs, self.profile.strides(), truth)
        return result

    def _dependences(self, truth: Truth | None) -> list[dict[str, Any]]:
        """A row for each pair that LEAP found, or that there is."""
        executions = self.profile.executions()
        beside: dict[str, Pairs] = {}
        if truth is not None:
            beside = {"exact": truth.pairs, "last": truth.last, "window": truth.window}
        return [
            {
                "store": self._instruction(pair[0]),
                "load": self._instruction(pair[1]),
                "percent": _percent(self.pairs.get(pair, 0.0)),
                **{name: _percent(pairs.get(pair, 0.0)) for name, pairs in beside.items()},
                "loads": executions[pair[1]],
            }
            for pair in sorted(set(self.pairs).union(*beside.values()))
        ]

    def _strided(self, truth: Truth | None) -> list[dict[str, Any]]:
        """A row for each instruction and stride that LEAP calls strong, or that is."""
        executions = self.profile.executions()
        found = {(each, stride): part for each, (stride, part) in self.profile.strides().items()}
        strong = set(found)
        if truth is not None:
            strong |= {(each, stride) for each, (stride, _) in truth.strided.items()}
        return [
            {
                "instruction": self._instruction(access),
                "stride": stride,
                "percent": round(100 * min(found.get((access, stride), 0.0), 1.0), 1),
                **({} if truth is None else {"exact": round(100 * truth.strides.get((access, stride), 0.0), 1)}),
                "accesses": executions[access],
            }
            for access, stride in sorted(strong)
        ]

    def _shown(self, access: int) -> dict[str, Any] | None:
        return self.program.instruction(access >> 1) if access >> 1 < len(self.program.ops) else None

    def _stream(self, row: Any) -> dict[str, Any]:
        """One stream with its descriptors, [start, stride, count]."""
        points = self.profile.points[slice(*row["points"].tolist())]
        lines = self.profile.lines[slice(*row["lines"].tolist())]
        return {
            "instruction": self._instruction(int(row["access"])),
            "group": self.groups.describe(int(row["group"])),
            "accesses": int(row["accesses"]),
            "captured": int(row["in_lines"]),
            "offsets": [[line["start"].item(), line["stride"].item(), line["count"].item()] for line in lines],
            "points": [
                [
                    [int(point[name]) for name in DESCRIBED],
                    [int(point[f"{name}_stride"]) for name in DESCRIBED],
                    int(point["count"]),
                ]
                for point in points
            ],
            "others": dict(zip(OTHERS, row["beyond"].tolist())) if row["full"] & BEYOND else None,
        }

    def merge_state(self, state: State) -> dict[str, Any]:
        """Executions, conflicts and strides by instruction."""
        return merge_state(self.profile, self.pairs, self._instruction)

    @classmethod
    def merge(cls, profiles: Sequence[Mapping[str, Any]], program: Any) -> dict[str, Any]:
        """Executions, conflicts and accesses by stride add; descriptors are of one run."""
        for name, what in (("compare", "what is exact is counted in one run"), ("list", "a descriptor has its times")):
            if profiles[0]["options"].get(name):
                raise CannotMergeError(f"{what}: leave out --{name}")
        if any(not profile["evidence"] for profile in profiles):
            raise CannotMergeError("one was written by a version that kept no counts; analyse its trace again")
        together = merged(profile["evidence"] for profile in profiles)
        return {"result": tables(together), "evidence": together}


def _percent(part: float) -> float:
    return round(100 * part, 2)


OTHERS = ("least_object", "greatest_object", "least_offset", "greatest_offset", "granularity")
"""What is kept of the points that no descriptor has room for."""

DISPLAY = Display(
    greatest="loads",
    percent="accesses_captured accesses_captured_with_time instructions_captured "
    "within_10_percent within_10_percent_by_window",
    columns={
        "dependences": "store:instruction load:instruction percent loads",
        "strided": "instruction:instruction stride percent accesses",
    },
)
MODULE = Leap
