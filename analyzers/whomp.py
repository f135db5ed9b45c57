"""All accesses as grammars of instructions, groups, objects and offsets, beside one of addresses; hot streams (WHOMP).

Wu et al., "Exposing memory access regularities using object-relative memory profiling" (CGO 2004), section 3.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

from tracekit.module import CannotMergeError, Module, TracekitError, inlined, option
from tracekit.whomp import ALL, DIMENSIONS
from tracekit.whomp.file import save
from tracekit.whomp.grammar import Written, empty_grammar
from tracekit.whomp.hot_streams import hot_streams
from tracekit.whomp.kernels.sequitur import Grammar, append

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

    by: str = option(
        "site",
        "What makes one group: an allocating instruction, or one in its calling context.",
        choices=("site", "context"),
    )
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


@inlined
def touch(
    state: State, instruction: int, address: int, group: int, object: int, offset: int, options: WhompOptions
) -> None:
    """A load or a store."""
    append(state.instruction, instruction, options.block)
    append(state.group, group, options.block)
    append(state.object, object, options.block)
    append(state.offset, offset, options.block)
    append(state.address, address, options.block)


class Whomp(Module):
    """Sizes by dimension, the ratio of both profiles, hot streams."""

    Options = WhompOptions
    compute_bound = True

    def __init__(self, program: Any, options: Any) -> None:
        super().__init__(program, options)
        self.groups_by = options.by
        self.stack_objects = options.stack
        if options.grammars and not Path(options.grammars).absolute().parent.is_dir():
            raise TracekitError(f"{options.grammars} cannot be written: there is no such folder.")

    def state(self) -> State:
        """No access."""
        return State(*(empty_grammar() for _ in ALL))

    @staticmethod
    def load(
        state: State, instruction: int, address: int, group: int, object: int, offset: int, options: WhompOptions
    ) -> None:
        """A load."""
        touch(state, instruction, address, group, object, offset, options)

    @staticmethod
    def store(
        state: State, instruction: int, address: int, group: int, object: int, offset: int, options: WhompOptions
    ) -> None:
        """A store."""
        touch(state, instruction, address, group, object, offset, options)

    def result(self, state: State) -> dict[str, Any]:
        """Dimensions in the order of ALL; hot streams by heat."""
        made = {name: Written.of(getattr(state, name)) for name in ALL}
        if self.options.grammars:
            save(self.options.grammars, made, [self.groups.describe(group) for group in range(len(self.groups))])
        sizes = {name: grammar.size() for name, grammar in made.items()}
        accesses = made["instruction"].length
        omsg = sum(sizes[name]["bytes"] for name in DIMENSIONS)
        rasg, instructions = sizes["address"]["bytes"], sizes["instruction"]["bytes"]
        return {
            "summary": {
                "accesses": accesses,
                "blocks": sum(1 for _ in made["instruction"].blocks()),
                "omsg_bytes": omsg,
                "rasg_bytes": rasg + instructions,
                "omsg_over_rasg": _percent(omsg, rasg + instructions),
                "omsg_over_addresses": _percent(omsg, rasg),
                "compression_ratio": round(RECORD_BYTES * accesses / omsg, 1) if omsg else 0.0,
            },
            "dimensions": [{"dimension": name, "accesses": accesses, **sizes[name]} for name in ALL],
            "hot_streams": [
                {
                    "heat": len(stream) * times,
                    "percent": _percent(len(stream) * times, accesses),
                    "accesses": len(stream),
                    "times": times,
                    "lines": self._lines(stream),
                }
                for stream, times in hot_streams(made["instruction"], self.options.longest, self.options.hot)
            ],
        }

    def _lines(self, stream: Sequence[int]) -> list[str]:
        """The lines of source that a stream goes along, each as often as it comes back."""
        places = []
        for instruction in stream:
            if instruction < len(self.program.ops):
                shown = self.program.instruction(instruction)
                places.append(f"{Path(shown['file']).name}:{shown['line']}")
            else:
                places.append("library")
        return [place for place, _ in groupby(places)]

    @classmethod
    def merge(cls, profiles: Sequence[Mapping[str, Any]], program: Any) -> dict[str, Any]:
        """Refuse."""
        raise CannotMergeError("a grammar is of the accesses of one run in their order")


def _percent(part: int, whole: int) -> float:
    return round(100 * part / whole, 1) if whole else 0.0


MODULE = Whomp
