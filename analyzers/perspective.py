"""What the Perspective parallelizer asks for: values, lifetimes, points-to, and what the hottest loop carries.

A preset: a pass that only counts finds the loop with the most accesses, then one pass feeds ``value_pattern``,
``object_lifetime``, ``points_to`` and ``dependence --carried-by`` that loop (PROMPT, section 6.4, Table 6).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tracekit.analyzers import dependence, object_lifetime, points_to, value_pattern
from tracekit.dependence import pairs
from tracekit.module import Preset, option


@dataclass(frozen=True)
class PerspectiveOptions:
    """Which loop."""

    carried_by: str = option(
        "hottest",
        "The loop to be made parallel; `hottest`: that of --loop, or the one "
        "with the most accesses of those that were iterated.",
        "FILE:LINE",
    )

    def __post_init__(self) -> None:
        if self.carried_by != "hottest":
            pairs.check_place(self.carried_by)


class Perspective(Preset):
    """Four modules in one pass."""

    Options = PerspectiveOptions

    def modules(self) -> Mapping[str, Any]:
        """The four; `hottest` is settled by ``dependence``."""
        self.program.require_values()
        self.program.require_pointers()
        return {
            "value_pattern": value_pattern.PatternOptions(),
            "object_lifetime": object_lifetime.MODULE.Options(),
            "points_to": points_to.PointsToOptions(),
            "dependence": dependence.Options(carried_by=self.options.carried_by),
        }


MODULE = Perspective
