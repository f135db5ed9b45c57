"""The optional extras: what `pip install 'tracekit[NAME]'` brings, and what for."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from typing import NamedTuple

from tracekit.formats.errors import TracekitError


class Extra(NamedTuple):
    """One extra of pyproject.toml."""

    packages: tuple[str, ...]
    """As they are imported; PROJECTS has those that are installed by another name."""
    serves: str


EXTRAS: Mapping[str, Extra] = {
    "arrow": Extra(("pyarrow",), "tracekit export arrow, parquet"),
    "cluster": Extra(("distributed", "fsspec"), "tracekit analyze --engine, traces at URLs"),
    "isal": Extra(("isal",), "tracekit export drmemtrace, faster"),
    "lz4": Extra(("lz4",), "tracekit import of what is compressed with LZ4"),
    "symbols": Extra(("elftools",), "tracekit import --binary"),
    "query": Extra(("duckdb", "prompt_toolkit"), "tracekit query, tracekit shell"),
    "top": Extra(("textual",), "tracekit top"),
    "mcp": Extra(("mcp",), "tracekit mcp"),
}


PROJECTS: Mapping[str, str] = {"elftools": "pyelftools"}
"""Package -> what PyPI calls it."""


class MissingExtraError(TracekitError):
    """An extra that a command needs is not installed; the sentence names the command that installs it."""


def missing(name: str) -> list[str]:
    """What PyPI calls the packages of an extra that are not installed; none is imported."""
    return [PROJECTS.get(package, package) for package in EXTRAS[name].packages if not _is_there(package)]


def require(name: str, what: str) -> None:
    """Raises MissingExtraError if the extra that `what` needs is not installed."""
    gone = missing(name)
    if gone:
        raise MissingExtraError(
            f"{what} needs {' and '.join(gone)}, which {'is' if len(gone) == 1 else 'are'} not installed: "
            f"{installation(name)}"
        )


def installation(name: str) -> str:
    """The command that installs an extra."""
    return f"pip install 'tracekit[{name}]'"


def _is_there(package: str) -> bool:
    try:
        return importlib.util.find_spec(package) is not None
    except (ImportError, ValueError):  # as where sys.modules says that there is none
        return False
