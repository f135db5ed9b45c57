"""What ``camp`` and ``lamp`` share: their events, their options, and the rows that both profiles have."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

from tracekit.dependence.inter_thread import WHOLE_BECAUSE, InterThreadRows, check_carried, joined, threads_option
from tracekit.dependence.merge import as_merge_state, from_merge_state, unite
from tracekit.modules.contract import Module, option
from tracekit.modules.options import contexts_option, make_options
from tracekit.modules.table import with_rows

if TYPE_CHECKING:
    from tracekit.dependence.kernels.dependence import Detail, State
    from tracekit.dependence.profile import DependenceProfile
    from tracekit.dependence.reduce import Findings
    from tracekit.dependence.threaded import Threaded
    from tracekit.modules.segments import Segments
    from tracekit.program.program import Program
    from tracekit.verdicts.loop_facts import LoopFacts
    from tracekit.verdicts.loop_rows import LoopReport
    from tracekit.verdicts.verdicts import Judgement

_OF_THE_PROFILE = ("profile", "inter_thread", "loop_facts", "own_judgements")
"""Attributes of a module that do not depend on its options."""

KINDS = ("RAW", "WAR", "WAW")


@dataclass(frozen=True)
class DependenceOptions:
    """What to list; loops and summary always speak of all dependences."""

    kinds: str = option("raw,war,waw", "Kinds of dependences to list, any of raw, war, waw.", "KINDS")
    carried_by: str = option("", "List only the dependences that the loop at this place carries.", "FILE:LINE")
    threads: bool = threads_option()

    def __post_init__(self) -> None:
        unknown = [kind for kind in self.kinds.split(",") if kind.upper() not in KINDS]
        if unknown:
            raise ValueError(f"kinds are raw, war and waw, separated by commas; {unknown[0]!r} is none of them.")
        file, _, line = self.carried_by.rpartition(":")
        if self.carried_by and not (file and line.isdecimal()):
            raise ValueError(f"carried-by is a FILE:LINE, not {self.carried_by!r}.")
        check_carried(self.carried_by, self.threads)

    @property
    def listed_kinds(self) -> frozenset[str]:
        """`kinds` as the profile names them."""
        return frozenset(self.kinds.upper().split(","))

    @property
    def loop_place(self) -> tuple[str, int] | None:
        """`carried_by` as file and line."""
        file, _, line = self.carried_by.rpartition(":")
        return (file, int(line)) if file else None


@dataclass(frozen=True)
class ContextOptions(DependenceOptions):
    """With contexts also how they are told apart."""

    contexts: str = contexts_option()


class DependenceModule(Module):
    """A module of the family; `context` says whether it tells contexts apart."""

    context: ClassVar[bool]
    detail: ClassVar[Detail]
    """What its callbacks find out."""
    shard_by = "address"
    compute_bound = True
    merges_with_program = True
    Options = DependenceOptions
    profile: DependenceProfile
    """What was found; set when the replay is over, or profiles are joined. The rest reads it, and no state."""
    inter_thread: list[dict[str, Any]]
    """The dependences between threads, if they are asked for."""

    def __init__(self, program: Program, options: Any) -> None:
        super().__init__(program, options)
        self.inter_thread = []
        if options.threads:
            self.shard_by, self.whole_because = "", WHOLE_BECAUSE

    def callbacks(self) -> dict[str, Callable[..., None]]:
        """Those without --threads are the module's own."""
        if not self.options.threads:
            return self.own_callbacks()
        from tracekit.dependence import threaded

        return threaded.CALLBACKS_IN_CONTEXT if self.context else threaded.CALLBACKS

    @abstractmethod
    def own_callbacks(self) -> dict[str, Callable[..., None]]:
        """The callbacks that find the dependences of each thread by itself."""

    def range_callbacks(self) -> dict[str, Callable[..., None]]:
        """The module's own, with its own callbacks: not with --threads, nor in a class that has others."""
        return self.own_range_callbacks() if self.callbacks() == self.own_callbacks() else {}

    def own_range_callbacks(self) -> dict[str, Callable[..., None]]:
        """The callbacks for many accesses of a loop; none."""
        return {}

    def state(self) -> State | Threaded:
        """Nothing is known."""
        from tracekit.dependence.state import empty_state
        from tracekit.dependence.threaded import empty_threaded

        if self.options.threads:
            return empty_threaded(self.program, self.detail)
        return empty_state(self.program, self.found_first.get("final"))

    def reduce(self, states: Sequence[Any]) -> None:
        """The profile, of which all else is made, from what the workers found."""
        from tracekit.dependence.reduce import reduce_states
        from tracekit.dependence.result import profile

        if self.options.threads:
            contexts = self.contexts if self.context else None
            self.inter_thread = InterThreadRows(self.program, states[0].inter_thread, contexts).rows(KINDS)
            states = [states[0].own]
        self.profile = profile(reduce_states(states), self.contexts, len(self.program.ops))

    def first_pass(self, totals: Mapping[str, int], records: int) -> type[Module] | None:
        """Which stores are final, where that pays."""
        from tracekit.dependence.final_stores import FinalStoresPass, pays

        return FinalStoresPass if self.detail.war and not self.options.threads and pays(totals, records) else None

    def segments(self) -> Segments | None:
        """As the whole family goes."""
        if self.whole_because:
            return None
        from tracekit.dependence.segments import DependenceSegments

        def reduce(findings: Findings) -> None:
            from tracekit.dependence.result import profile

            self.profile = profile(findings, self.contexts, len(self.program.ops))

        final = self.found_first.get("final")
        return DependenceSegments(self.program, self.options, self.detail, self.context, reduce, final=final)

    def adopt(self, other: Module) -> None:
        """The profile, and what was made of it already."""
        self.__dict__.update({name: other.__dict__[name] for name in _OF_THE_PROFILE if name in other.__dict__})

    @cached_property
    def report(self) -> LoopReport:
        """The profile with its verdicts."""
        from tracekit.verdicts.loop_rows import LoopReport

        return LoopReport(self.program, self.profile, self.own_judgements, self.context)

    @cached_property
    def own_judgements(self) -> list[Judgement]:
        """The verdicts of the profile's loops."""
        return self.judgements(self.profile)

    @cached_property
    def loop_facts(self) -> LoopFacts:
        """What all profiles of the program are judged by."""
        from tracekit.verdicts.loop_facts import LoopFacts

        return LoopFacts(self.program)

    def judgements(self, profile: DependenceProfile) -> list[Judgement]:
        """The verdicts of a profile's loops: in a window on the trace, of those alone that have accesses in it."""
        from tracekit.verdicts.verdicts import judge

        judgements = judge(self.program, profile, self.loop_facts, self.windowed)
        return [each for each in judgements if not self.windowed or profile.nodes["accesses"][each.node] > 0]

    def result(self, state: None) -> dict[str, Any]:
        """Dependences (a Table: its rows are made when they are looked at), loops and summary."""
        return {
            "dependences": self.report.table(self.options.listed_kinds, self.options.loop_place),
            **self.between_threads(self.options.listed_kinds),
            "loops": self.report.loops(),
            "summary": self.summary(),
        }

    def between_threads(self, kinds: Collection[str]) -> dict[str, Any]:
        """The table of dependences between threads, if they are asked for."""
        if not self.options.threads:
            return {}
        return {"between_threads": [row for row in self.inter_thread if row["kind"] in kinds]}

    def summary(self) -> dict[str, Any]:
        """The profile in a few numbers."""
        return {"dependences": self.report.dependence_count}

    def facts(self, state: None) -> dict[str, int]:
        """How many accesses there were, of which the text gives each loop's share."""
        return {"accesses": int(self.profile.accesses["count"].sum())}

    def merge_state(self, state: None) -> dict[str, Any]:
        """The tables that verdicts are derived from."""
        return as_merge_state(self.profile)

    @classmethod
    def merge(cls, profiles: Sequence[Mapping[str, Any]], program: Program | None) -> dict[str, Any]:
        """The union of the dependences of all runs, and the verdicts that follow from it."""
        assert program is not None
        module = cls(program, make_options(cls.Options, profiles[0]["options"]))
        module.windowed = any("window" in profile or "windows" in profile for profile in profiles)
        module.inter_thread = joined([profile["result"].get("between_threads", []) for profile in profiles])
        module.profile = unite([from_merge_state(profile["evidence"], program) for profile in profiles])
        return {
            "result": with_rows(module.result(None)),
            "facts": module.facts(None),
            "evidence": module.merge_state(None),
        }
