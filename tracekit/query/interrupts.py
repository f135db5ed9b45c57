"""Ctrl-C while DuckDB works: its own thread sees a signal only between pieces of work, which may be hours apart."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    import duckdb

INTERRUPTED = "Query interrupted"
"""The RuntimeError that DuckDB makes of a KeyboardInterrupt, where it has seen one."""

_Made = TypeVar("_Made")


def interruptible(connection: duckdb.DuckDBPyConnection, act: Callable[[], _Made]) -> _Made:
    """What `act` returns, which a thread of its own calls. Ctrl-C ends the query that runs in this `connection`."""
    with ThreadPoolExecutor(1) as pool:
        acting = pool.submit(act)
        try:
            return acting.result()
        except KeyboardInterrupt:
            connection.interrupt()
            raise
