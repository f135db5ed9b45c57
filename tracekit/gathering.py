"""Profiles for a view of a run, from a trace (analysed now) or from a profile file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tracekit import profiles
from tracekit.api import Profile, analyze_all


@dataclass(frozen=True)
class Gathered:
    """Profiles of one run, and what the trace says beside them."""

    profiles: Sequence[Profile]
    embedded: Mapping[str, bytes] = field(default_factory=dict)
    """Source files that the trace carries."""
    meta: Mapping[str, Any] = field(default_factory=dict)
    """What the trace says of the run: command, compiler, start."""


def gather(path: str, modules: Sequence[str], jobs: int | None = None,
           options: Mapping[str, Mapping[str, Any]] | None = None) -> Gathered:
    """The profiles in a profile file; of a trace, those of `modules`, with their `options`, all in one pass.

    Raises TracekitError if `path` is neither.
    """
    if profiles.is_profile(path):
        return Gathered(profiles.load(path))
    from tracekit import registry
    from tracekit.formats.reader import TraceReader
    from tracekit.options import make_options

    with TraceReader(path) as trace:
        embedded, meta = trace.sources(), trace.meta
    chosen = {name: make_options(registry.load(name).Options, (options or {}).get(name, {})) for name in modules}
    return Gathered(analyze_all(path, chosen, jobs), embedded, meta)
