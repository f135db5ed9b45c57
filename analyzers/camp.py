"""Context-aware memory profiling: dependences told apart by call sites and loops at both ends.

Kim et al., "Context-Aware Memory Profiling for Speculative Parallelism", Algorithm 1. A
loop gets a verdict in each of its contexts; the summary compares with what lamp would have said.
"""

from __future__ import annotations

from typing import Any

from tracekit.replay.family import DependenceModule


class Camp(DependenceModule):
    """One row for each pair of instructions in their contexts and kind; loops are judged in each context."""

    context = True

    def summary(self) -> dict[str, Any]:
        """The profile in numbers, beside those that a profile without contexts would have had."""
        from tracekit.replay.projection import without_contexts
        from tracekit.replay.report import Report
        from tracekit.replay.verdicts import judge

        profile = without_contexts(self.profile)
        lamp = Report(self.program, profile, self.seen(profile, judge(self.program, profile)), contexts=False)
        contexts, without_id = self.report.context_counts()
        return {
            "dependences": self.report.dependence_count,
            "contexts": contexts,
            "contexts_without_id": without_id,
            "parallel_loops_lamp": lamp.parallel_loops(),
            "parallel_loops_camp": self.report.parallel_loops(),
            "false_positive_share": self.report.false_positive_share(lamp),
        }


MODULE = Camp
