"""Resolves call sites: which functions each may enter."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracekit.formats.image import CallFlag, FunctionFlag

Rows = NDArray[Any]


@dataclass(frozen=True)
class Callees:
    """Call site c may enter ``functions[first[c] : first[c] + count[c]]``, ascending; call sites share runs."""

    first: NDArray[np.uint32]
    count: NDArray[np.uint32]
    functions: NDArray[np.uint32]

    def runs(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The distinct runs of `functions`, and for each call site (c,) which of them is its.

        The first is (runs, 2), where each begins and how long it is. A thousand calls through pointers of one type, to
        any of a thousand functions, are one run: so what is asked of all pairs of site and callee is asked of runs.
        """
        distinct, run = np.unique(self.first.astype(np.int64) << 32 | self.count, return_inverse=True)
        return np.stack([distinct >> 32, distinct & 0xFFFFFFFF], 1), run

    def of_runs(self, runs: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The callees of some runs (n, 2) one after another: which of these runs each is of, and its function."""
        first, count = runs[:, 0], runs[:, 1]
        rows = np.repeat(first - (np.cumsum(count) - count), count) + np.arange(count.sum())
        return np.repeat(np.arange(len(runs)), count), self.functions[rows].astype(np.int64)


class _Pool:
    """Runs of function rows, each distinct run stored once."""

    def __init__(self) -> None:
        self.runs: dict[tuple[int, ...], int] = {(): 0}
        self.rows: list[int] = []

    def add(self, run: tuple[int, ...]) -> tuple[int, int]:
        if run not in self.runs:
            self.runs[run] = len(self.rows)
            self.rows.extend(run)
        return self.runs[run], len(run)


# As integers: `flags & CallFlag.INDIRECT` makes an object of the enumeration, and there is a call in every other line.
_ADDRESS_TAKEN, _LOCAL = int(FunctionFlag.ADDRESS_TAKEN), int(FunctionFlag.LOCAL)
_INDIRECT, _MAY_CALL_BACK = int(CallFlag.INDIRECT), int(CallFlag.MAY_CALL_BACK)


class Resolver:
    """Finds functions by name and by signature, among those that were linked into an image."""

    def __init__(
        self,
        tables: Mapping[str, Rows],
        linked: NDArray[np.bool_],
        unit: NDArray[np.uint32],
        text: Callable[[int], str],
    ) -> None:
        self.text = text
        functions = tables["functions"]
        taken_elsewhere = {text(offset) for offset in tables["address_taken"]["name"].tolist()}
        self.local: dict[tuple[int, str], int] = {}
        self.external: dict[str, int] = {}
        by_signature: dict[str, list[int]] = {}
        # Copies of an inline function that the linker dropped come last: they answer only if no copy was linked.
        order = np.argsort(~linked, kind="stable")
        for row in order.tolist():
            flags, name = int(functions["flags"][row]), text(int(functions["name"][row]))
            taken = bool(flags & _ADDRESS_TAKEN)
            if flags & _LOCAL:
                self.local.setdefault((int(unit[row]), name), row)
            else:
                self.external.setdefault(name, row)
                taken |= name in taken_elsewhere
            if taken and linked[row]:
                by_signature.setdefault(text(int(functions["signature"][row])), []).append(row)
        self.by_signature = {signature: tuple(sorted(rows)) for signature, rows in by_signature.items()}
        self.address_taken = tuple(sorted(row for rows in by_signature.values() for row in rows))

    def named(self, unit: int, name: str) -> int | None:
        """The function that `name` binds to in `unit`, or None if it is not in the trace."""
        local = self.local.get((unit, name))
        return self.external.get(name) if local is None else local


def resolve(tables: Mapping[str, Rows], call_unit: NDArray[np.uint32], resolver: Resolver) -> Callees:
    """The callees of every row of ``calls``.

    Direct: the function of that name. Indirect: every function of that signature whose address is taken.
    An external callee that may call back: the functions passed to it, or, if none is known, every function
    whose address is taken.
    """
    calls, targets = tables["calls"], tables["call_targets"]
    pool = _Pool()
    runs: dict[tuple[int, ...], tuple[int, int]] = {}  # of call sites that are alike: names of two units are two rows
    found: list[tuple[int, int]] = []
    fields = ("callee", "signature", "flags", "first_target", "targets")
    for row, site in enumerate(zip(*(calls[field].tolist() for field in fields))):
        if site not in runs:
            callee, signature, flags, first_target, target_count = site
            names = targets["name"][first_target : first_target + target_count].tolist()
            runs[site] = pool.add(_run(resolver, int(call_unit[row]), callee, signature, flags, names))
        found.append(runs[site])
    first, count = np.array(found, np.uint32).reshape(-1, 2).T
    return Callees(first.copy(), count.copy(), np.array(pool.rows, np.uint32))


def _run(
    resolver: Resolver, unit: int, callee: int, signature: int, flags: int, names: Sequence[int]
) -> tuple[int, ...]:
    """The functions that a call site of `unit` may enter, ascending; texts are given by their offsets."""
    if flags & _INDIRECT:
        return resolver.by_signature.get(resolver.text(signature), ())
    if (direct := resolver.named(unit, resolver.text(callee))) is not None:
        return (direct,)
    if not flags & _MAY_CALL_BACK:
        return ()
    if not names:
        return resolver.address_taken
    functions = {resolver.named(unit, resolver.text(name)) for name in names}
    return tuple(sorted(row for row in functions if row is not None))
