"""Brings an ObjectProfile to the form of the naive references: dicts by sites with their paths."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from tests.naive.dependence_rows import paths_of
from tests.naive.objects import GLOBAL, RUN, Scope, Site
from tracekit.analyzers.object_lifetime import ended
from tracekit.analyzers.points_to import TOUCHED
from tracekit.contexts.names import ContextNames
from tracekit.contexts.scopes import RUN as NO_NODE
from tracekit.contexts.scopes import ScopeNames
from tracekit.formats.events import NONE
from tracekit.objects.profile import CLASSES, ObjectProfile
from tracekit.program.program import Program


class ObjectRows:
    """The rows of a profile, without numbers of other rows."""

    def __init__(self, program: Program, profile: ObjectProfile) -> None:
        self.program = program
        self.profile = profile
        self.paths = paths_of(SimpleNamespace(nodes=profile.nodes))  # type: ignore[arg-type]
        self.sites = [self._site(*row) for row in profile.sites.tolist()]
        assert len(set(self.sites)) == len(self.sites)

    def _site(self, kind: int, site: int, node: int, calls: Any) -> Site:
        known = tuple(call for call in map(int, calls) if call != NONE)
        if kind == GLOBAL:
            return kind, site, (), known
        return kind, self._instruction(site), self.paths[node], known

    def _instruction(self, row: int) -> int:
        return len(self.program.ops) if row == NONE else row

    def lifetimes(self) -> dict[Site, Any]:
        """As NaiveObjects.lifetimes."""
        scopes = ScopeNames(self.program, ContextNames(self.program, self.profile.nodes))
        lives, rows = ended(self.profile), {}
        for site, objects, size, never in self.profile["lifetimes"].tolist():
            here = dict(lives[site])
            if never:
                here[NO_NODE] = here.get(NO_NODE, 0) + never
            rows[self.sites[site]] = (
                objects,
                size,
                never,
                self._scope(scopes.join(here)),
                {self._scope(scope): count for scope, count in here.items()},
            )
        return rows

    def _scope(self, scope: tuple[int, bool]) -> Scope:
        return RUN if scope == NO_NODE else (self.paths[scope[0]], scope[1])

    def found(self) -> dict[Any, int]:
        """As NaivePointsTo.found; instructions whose sites are not listed have the site None."""
        rows = {}
        for instruction, site, what, count in self.profile["pointers"].tolist():
            name = "dead" if what > TOUCHED else CLASSES[what]
            rows[self._instruction(instruction), None if site == NONE else self.sites[site], name] = count
        return rows

    def plain(self) -> dict[Any, int]:
        """As NaivePointsTo.plain."""
        return {
            (self._instruction(int(row["instruction"])), name): int(row[name])
            for row in self.profile["totals"]
            for name in ("null", "elsewhere", "unknown")
            if row[name]
        }

    def never_dereferenced(self) -> dict[int, int]:
        """As NaivePointsTo.never_dereferenced."""
        return {
            self._instruction(int(row["instruction"])): int(row["never_dereferenced"])
            for row in self.profile["totals"]
            if row["never_dereferenced"]
        }
