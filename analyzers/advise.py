"""What each hot loop needs to run in parallel: verdict, evidence, what blocks it and what would free it, OpenMP.

From camp's dependences and verdicts (docs/verdicts.md, docs/advise.md). It speaks of the recorded run and no other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from tracekit.analyzers.camp import Camp
from tracekit.dependence.inter_thread import reaching, threads_option
from tracekit.module import Display, contexts_option, option
from tracekit.verdicts.module import KINDS

if TYPE_CHECKING:
    from tracekit.program.program import Program


@dataclass(frozen=True)
class AdviseOptions:
    """Which loops are shown, and which dependences are called rare."""

    top: int = option(10, "So many loops, those with the most accesses; 0 shows all.", "N")
    min_share: float = option(1.0, "Only loops that make at least so much of all accesses.", "PERCENT")
    rare: float = option(1.0, "Suggest speculation on dependences in at most so many of 100 iterations.", "PERCENT")
    contexts: str = contexts_option()
    at: str = option("", "Only the loop at this place, or around it, whatever its share.", "FILE:LINE")
    threads: bool = threads_option()

    def __post_init__(self) -> None:
        if self.top < 0:
            raise ValueError(f"top is a number of loops, not {self.top}.")
        for name in ("min_share", "rare"):
            if not 0 <= getattr(self, name) <= 100:
                raise ValueError(f"{name.replace('_', '-')} is a percentage, not {getattr(self, name)}.")
        if self.at and not self.place:
            raise ValueError(f"at is a FILE:LINE, not {self.at!r}.")

    @property
    def place(self) -> tuple[str, int] | None:
        """`at` as file and line."""
        file, _, line = self.at.rpartition(":")
        return (file, int(line)) if file and line.isdecimal() else None


class Advise(Camp):
    """One row for each hot loop, hottest first; contexts in which it differs are cases of the row."""

    Options: ClassVar[type[Any]] = AdviseOptions

    def result(self, state: None) -> dict[str, Any]:
        """Runs, loops and summary."""
        from tracekit.program.fates import fate_at
        from tracekit.program.lookup import loop_around
        from tracekit.verdicts.advice import NOWHERE, Advice, LoopSelection

        at, replaced = self.options.place, None
        if at:
            replaced = fate_at(self.program, at)
            if replaced is None or replaced["fate"] == "interchanged":
                at = loop_around(self.program, at)
            else:
                at = (replaced["into"]["file"], replaced["into"]["line"]) if replaced["into"] else NOWHERE
        selection = LoopSelection(self.options.top, self.options.min_share, at)
        advice = Advice(self.program, self.profile, self.own_judgements, selection, self.options.rare, self.loop_facts)
        return {
            "runs": [self._run()],
            "replaced": replaced,
            "loops": self._with_threads(advice.loops()),
            "further_parallel": advice.further(),
            **self.between_threads(KINDS),
            "summary": advice.summary(),
        }

    def _with_threads(self, loops: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """The loops, each with the dependences between threads that have an end in it, if they are asked for."""
        if not self.options.threads:
            return loops
        return [{**row, "between_threads": reaching(row["loop"], self.inter_thread)} for row in loops]

    @classmethod
    def merge(cls, profiles: Sequence[Mapping[str, Any]], program: Program | None) -> dict[str, Any]:
        """What follows from the dependences of all runs; it rests on each of them."""
        joined = super().merge(profiles, program)
        joined["result"]["runs"] = [run for profile in profiles for run in profile["result"]["runs"]]
        return joined

    def _run(self) -> dict[str, Any]:
        """What is known of the run that the advice rests on."""
        return {
            "command": list(self.metadata.get("command", [])),
            "status": self.metadata.get("status"),
            "signal": self.metadata.get("signal"),
            "accesses": int(self.profile.accesses["count"].sum()),
        }


DISPLAY = Display(
    text="tracekit.render.advise:advise_text",
    columns={
        "runs": "command status signal accesses",
        "loops": "loop:loop verdict accesses share openmp cases contexts_not_exercised holds",
        "further_parallel": "loop:loop verdict accesses share",
    },
)
MODULE = Advise
