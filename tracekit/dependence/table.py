"""The table of dependences in a profile: rows, the heaviest of them, and the JSON of all, from arrays."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tracekit.containers.grouping import Indices
from tracekit.contexts.names import Json
from tracekit.dependence.profile import DependenceKind
from tracekit.modules.table import ROWS, Table
from tracekit.program.sources import is_meant

if TYPE_CHECKING:
    from tracekit.dependence.rows import DependenceReport

Texts = npt.NDArray[Any]
"""Strings, as objects."""


class ReportedDependences(Table):
    """The dependences of `kinds`; with `carried_by` (file, line) only what a loop at that place carries."""

    def __init__(self, report: DependenceReport, kinds: Collection[str], carried_by: tuple[str, int] | None) -> None:
        self._report = report
        wanted = np.isin(report.groups[0], [kind.value for kind in DependenceKind if kind.name in kinds])
        if carried_by:
            wanted &= self._carried(*carried_by)
        self._groups: Indices = np.flatnonzero(wanted)

    def _carried(self, file: str, line: int) -> npt.NDArray[np.bool_]:
        """Which dependences a loop at a place carries; the file may be given by its last components."""
        lists, list_of = self._report.levels()
        compilation = self._report.names.program.source_names.compilation
        carried = [
            any(
                level["inter"]
                and level["loop"].get("line") == line
                and is_meant(file, level["loop"]["file"], compilation)
                for level in levels
            )
            for levels in lists
        ]
        return np.array(carried, np.bool_)[list_of]

    def __len__(self) -> int:
        return self._groups.size

    def rows(self) -> list[Json]:
        """See :class:`Table`."""
        return self._rows(self._ordered, *self._report.levels())

    def heaviest(self, limit: int) -> list[Json]:
        """See :class:`Table`; of the others neither the order nor the levels are found."""
        groups = self._groups
        if 0 < limit < groups.size:
            counts = self._report.counts[groups]
            groups = groups[counts >= np.partition(counts, counts.size - limit)[counts.size - limit]]
        groups = self._report.ordered(groups)
        chosen = groups[np.argsort(~self._report.counts[groups], kind="stable")][: limit or None]
        return self._rows(chosen, *self._report.levels(chosen))

    @cached_property
    def _ordered(self) -> Indices:
        return self._report.ordered(self._groups)

    def _rows(self, groups: Indices, lists: list[list[Json]], list_of: Indices) -> list[Json]:
        """The rows of `groups`; what levels they have, as :meth:`DependenceReport.levels` says."""
        instruction, context = self._report.names.instruction, self._report.context
        columns = (*self._report.groups[:, groups], self._report.counts[groups], list_of[groups])
        return [
            {
                "kind": _KINDS[kind],
                "source": instruction(source),
                "destination": instruction(destination),
                "source_context": context(source_context),
                "destination_context": context(destination_context),
                "levels": lists[levels],
                "count": count,
            }
            for kind, source, source_context, destination, destination_context, count, levels in zip(
                *(column.tolist() for column in columns)
            )
        ]

    def json_parts(self, dump: Callable[[Any], str]) -> Iterator[str]:
        """See :class:`Table`. A row is joined of texts of which each is made once for all rows."""
        groups, instruction, context = self._ordered, self._report.names.instruction, self._report.context
        kind, source, source_context, destination, destination_context = self._report.groups[:, groups]
        lists, list_of = self._report.levels()
        columns = _texts(
            (kind, lambda value: '{"kind": ' + dump(_KINDS[value])),
            (source, lambda op: ', "source": ' + dump(instruction(op))),
            (destination, lambda op: ', "destination": ' + dump(instruction(op))),
            (source_context, lambda key: ', "source_context": ' + dump(context(key))),
            (destination_context, lambda key: ', "destination_context": ' + dump(context(key))),
            (list_of[groups], lambda number: ', "levels": ' + dump(lists[number])),
            (self._report.counts[groups], lambda count: f', "count": {count}' + "},\n"),
        )
        for first in range(0, groups.size, ROWS):
            pieces = np.stack([column[first : first + ROWS] for column in columns], axis=1).ravel().tolist()
            pieces[-1] = pieces[-1].removesuffix(",\n")
            yield "".join(pieces)


_KINDS = {kind.value: kind.name for kind in DependenceKind}


def _texts(*columns: tuple[npt.NDArray[Any], Callable[[int], str]]) -> list[Texts]:
    """The text of each value of these columns, made once for equal ones, in the order in which rows first have them."""
    different, first, at = zip(*(np.unique(values, return_index=True, return_inverse=True) for values, _ in columns))
    made = [np.empty(values.size, object) for values in different]
    places = [(column, index) for column, values in enumerate(different) for index in range(values.size)]
    for place in np.argsort(np.concatenate(first), kind="stable").tolist():
        column, index = places[place]
        made[column][index] = columns[column][1](int(different[column][index]))
    return [texts[rows] for texts, rows in zip(made, at)]
