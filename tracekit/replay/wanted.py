"""What a replay is asked for, events and columns, and the batches that hold it (PROMPT, section 4: specialisation)."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from tracekit.formats.events import BY_CODE, CODE
from tracekit.replay.kernels.state import Columns

Column = TypeVar("Column")

COLUMNS = {"subject": np.dtype(np.uint32), "address": np.dtype(np.uint64), "size": np.dtype(np.uint64)}
"""The columns that may be asked for, beside ``kind``, which is always there."""

GROUPS = {
    "functions": ("function_entry", "function_exit"),
    "loops": ("loop_invocation", "loop_iteration", "loop_exit"),
    "objects": ("stack_alloc", "stack_free"),
}
"""Events that a kernel is compiled with or without; of the others those not asked for are passed over."""


@dataclass(frozen=True)
class Wanted:
    """The events and the columns that are delivered; ``keep`` (256) u1 is 1 for the code of a wanted event."""

    keep: NDArray[np.uint8]
    columns: frozenset[str]

    @classmethod
    def of(cls, events: Collection[str] | None = None, columns: Collection[str] | None = None) -> Wanted:
        """Events and columns by name (formats/events.py), None for all. Raises ValueError for an unknown name."""
        unknown = [*(set(events or ()) - CODE.keys()), *(set(columns or ()) - COLUMNS.keys())]
        if unknown:
            raise ValueError(f"there is no event or column {', '.join(sorted(unknown))}")
        keep = np.zeros(256, np.uint8)
        keep[[CODE[name] for name in (CODE if events is None else events)]] = 1
        return cls(keep, frozenset(COLUMNS if columns is None else columns))

    def room(self, events: int) -> Columns:
        """Empty columns for so many events, as the derive kernel takes them."""
        arrays: dict[str, Any] = {name: np.empty(events, dtype) if name in self.columns else None
                                  for name, dtype in COLUMNS.items()}
        groups: dict[str, Any] = {group: self.keep if any(self.keep[CODE[name]] for name in names) else None
                  for group, names in GROUPS.items()}
        return Columns(kind=np.empty(events, np.uint8), value=None, keep=self.keep, **arrays, **groups)


@dataclass(frozen=True)
class Batch:
    """Consecutive events of one stream; the columns are views that the next batch overwrites.

    A column that was not asked for is None in ``columns``, and raises AttributeError as an attribute.
    """

    stream: int
    columns: Columns

    @property
    def kind(self) -> NDArray[np.uint8]:
        """Code of each event (formats/events.py)."""
        return self.columns.kind

    @property
    def subject(self) -> NDArray[np.uint32]:
        """Its instruction, function, loop or object."""
        return _present(self.columns.subject, "subject")

    @property
    def address(self) -> NDArray[np.uint64]:
        """Its address."""
        return _present(self.columns.address, "address")

    @property
    def size(self) -> NDArray[np.uint64]:
        """Its size, or what the event table says."""
        return _present(self.columns.size, "size")

    def __len__(self) -> int:
        return len(self.columns.kind)


def _present(column: Column | None, name: str) -> Column:
    if column is None:
        raise AttributeError(f"the column {name} was not asked for")
    return column


def filled(columns: Columns, events: int) -> Columns:
    """The first `events` rows, as views."""
    rows: dict[str, Any] = {name: column[:events] for name in ("kind", "value", *COLUMNS)
                            if (column := getattr(columns, name)) is not None}
    return columns._replace(**rows)


def by_name(counts: NDArray[np.int64]) -> dict[str, int]:
    """Counts by event code as counts by name; events that did not happen are left out."""
    return {BY_CODE[code].name: int(counts[code]) for code in np.flatnonzero(counts).tolist()}
