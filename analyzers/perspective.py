"""What the Perspective parallelizer asks for: values, lifetimes, points-to, and what the hottest loop carries.

A preset: a pass that only counts finds the loop with the most accesses, then one pass feeds ``value_pattern``,
``object_lifetime``, ``points_to`` and ``dependence --carried-by`` that loop (PROMPT, section 6.4, Table 6).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tracekit.analyzers import dependence, object_lifetime, points_to, value_pattern
from tracekit.formats.errors import TracekitError
from tracekit.module import Module, Preset, option
from tracekit.replay import ladder
from tracekit.replay.hottest import Hottest


@dataclass(frozen=True)
class PerspectiveOptions:
    """Which loop."""

    carried_by: str = option("hottest", "The loop to be made parallel; `hottest`: that of --loop, or the one "
                             "with the most accesses of those that were iterated.", "FILE:LINE")

    def __post_init__(self) -> None:
        if self.carried_by != "hottest":
            ladder.check_place(self.carried_by)


class Perspective(Preset):
    """Four modules in one pass."""

    Options = PerspectiveOptions

    def modules(self, count: Callable[[type[Module]], Any]) -> Mapping[str, Any]:
        """Find the loop, unless it is given, or the window is one."""
        self.program.require_values()
        self.program.require_pointers()
        place = self.options.carried_by
        if place == "hottest":
            found = self.loop or count(Hottest)["hottest"]
            if found is None:
                raise TracekitError("No loop ran in this trace.")
            place = f"{found[0]}:{found[1]}"
        return {
            "value_pattern": value_pattern.PatternOptions(),
            "object_lifetime": object_lifetime.MODULE.Options(),
            "points_to": points_to.PointsToOptions(),
            "dependence": dependence.Options(carried_by=place),
        }


MODULE = Perspective
