"""Slow, obvious joins of what the references of object_lifetime, points_to and privateer say of several runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from tests.naive.objects import NaiveObjects, Scope, Site, around, join
from tests.naive.points_to import NaivePointsTo
from tests.naive.privateer import NaiveSets

Lifetime = tuple[int, int, int, Scope, dict[Scope, int]]


def lifetimes(runs: Sequence[NaiveObjects]) -> dict[Site, Lifetime]:
    """Counts add; the scope is the innermost around those of all runs."""
    joined: dict[Site, Lifetime] = {}
    for run in runs:
        for site, (objects, size, never, scope, lives) in run.lifetimes().items():
            known = joined.get(site, (0, 0, 0, scope, {}))
            joined[site] = (
                known[0] + objects,
                known[1] + size,
                known[2] + never,
                join([known[3], scope]),
                dict(Counter(known[4]) + Counter(lives)),
            )
    return joined


def pointers(runs: Sequence[NaivePointsTo]) -> tuple[Counter[Any], Counter[Any], Counter[int]]:
    """By instruction, site and class; by instruction and class of no object; those never dereferenced."""
    found: tuple[Counter[Any], Counter[Any], Counter[int]] = (Counter(), Counter(), Counter())
    for run in runs:
        for total, counted in zip(found, (run.found, run.plain, run.never_dereferenced())):
            total.update(counted)
    return found


def loops(runs: Sequence[NaiveSets]) -> dict[Any, dict[str, Any]]:
    """Loop -> its accesses, and the sites that were read, written, reduced (with the operator), or short-lived.

    Of each object all accesses of all runs are looked at together.
    """
    scopes = {site: found[3] for site, found in lifetimes(runs).items()}
    rows: dict[Any, dict[str, Any]] = {}
    for loop in {loop for run in runs for loop in run.sets}:
        row = rows[loop] = {
            "accesses": sum(run.inside[loop] for run in runs),
            "reads": set(),
            "writes": set(),
            "reductions": set(),
            "short_lived": set(),
        }
        for site in {site for run in runs for site in run.sets[loop]}:
            here = [run.sets[loop][site] for run in runs if site in run.sets[loop]]
            names = set().union(*(names for names, _ in here))
            operators = set().union(*(operators for _, operators in here))
            if len(operators) == 1 and operators != {0}:
                row["reductions"].add((site, *operators))
            else:
                row["reads"] |= {site} if "load" in names else set()
                row["writes"] |= {site} if "store" in names else set()
            if site in scopes and _in_an_iteration(runs[0], loop, scopes[site]):
                row["short_lived"].add(site)
    return rows


def _in_an_iteration(run: NaiveSets, loop: Any, scope: Scope) -> bool:
    """Whether a scope lies within one iteration of a loop."""
    return any(iteration and run.place(node[-1][1]) == loop for node, iteration in around(scope))
