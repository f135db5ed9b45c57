"""Loads and stores of each size, the most frequent size first."""

from __future__ import annotations

from typing import Any

import numpy as np

from tracekit.module import Display, Module


class Widths(Module):
    """One row for each size."""

    def state(self) -> tuple[Any]:
        """int64 (65,): how many accesses had a size; those of more than 64 bytes stand in the last row."""
        return (np.zeros(65, np.int64),)

    @staticmethod
    def load(state: tuple[Any], size: int) -> None:
        """A load."""
        state[0][min(size, 64)] += 1

    @staticmethod
    def store(state: tuple[Any], size: int) -> None:
        """A store."""
        state[0][min(size, 64)] += 1

    def result(self, state: tuple[Any]) -> dict[str, Any]:
        """By size."""
        return {"sizes": [{"size": int(size), "times": int(state[0][size])} for size in np.flatnonzero(state[0])]}


DISPLAY = Display(greatest="times")
