"""The columns of a batch of events, and some of its rows: what a module that takes whole batches is given."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracekit.formats.events import COLUMNS
from tracekit.modules.contract import EventBatch

COLUMN_NAMES = ("kind", *COLUMNS, "inside")


def columns_of(batch: EventBatch) -> tuple[Any, ...]:
    """kind, subject, address, size, value and inside of a batch; None for a column that nobody asked for."""
    return tuple(getattr(batch, name, None) for name in COLUMN_NAMES)


@dataclass(frozen=True)
class Selected:
    """Some rows of a batch."""

    stream: int
    kind: Any
    subject: Any
    address: Any
    size: Any
    value: Any
    inside: Any = None  # uint8: 1 inside the window that the analysis is restricted to; None without a window
    wide: Any = None
    wide_event: Any = None

    @classmethod
    def of(cls, batch: EventBatch, wanted: NDArray[np.bool_]) -> Selected:
        """The rows of `batch` that are `wanted`."""
        wide = getattr(batch, "wide", None)
        event = getattr(batch, "wide_event", None)
        if wide is not None and event is not None:
            kept = wanted[event]
            wide, event = wide[kept], (np.cumsum(wanted) - 1)[event[kept]]
        rows = (*(None if column is None else column[wanted] for column in columns_of(batch)), wide, event)
        return cls(batch.stream, *rows)
