"""The pass over the whole trace that goes before an analysis, if modules have to know something beforehand.

What it finds is kept in the user's cache, for the next analysis of the trace that asks for it.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tracekit import progress
from tracekit.analysis.passes import prepare, replay_through

if TYPE_CHECKING:
    from tracekit.formats.reader import TraceReader
    from tracekit.modules.contract import Analysis, Module
    from tracekit.program.program import Program
    from tracekit.replay.window import Restriction

MOST_BYTES = 1 << 26
"""That are kept of one pass over one trace; what would take more is not kept."""


def find_first(
    trace: TraceReader, program: Program, modules: Mapping[str, Analysis], restricted: Restriction, threads: int
) -> list[str]:
    """Run what :meth:`Analysis.first_pass` of the modules names, all in one pass, and set their ``found_first``.

    An analysis that is restricted to a window does without, and one of little address space, which its own tables
    need. Returns lines about the pass, and about what was kept of an earlier one.
    """
    from tracekit.containers.budget import limit
    from tracekit.modules.contract import NoOptions
    from tracekit.replay.compiled.cost_model import records_of
    from tracekit.replay.totals import trace_totals

    if restricted.window is not None or limit() is not None:
        return []
    totals, records = trace_totals(trace, program), records_of(trace)
    kinds: dict[str, type[Module]] = {}
    for name, module in modules.items():
        kind = module.first_pass(totals, records)
        if kind is not None:
            kinds[name] = kind
    wanted = set(kinds.values())
    found = {kind: known for kind in wanted if (known := _kept(trace, kind)) is not None}
    missing = wanted - found.keys()
    if missing:
        options: dict[str | type[Analysis], Any] = {kind: NoOptions() for kind in missing}
        replay, runners = prepare(trace, program, options, threads)
        with progress.step("looking ahead"):
            replay_through(replay, runners, restricted, threads)
        for kind in missing:
            found[kind] = runners[kind.__name__].result()[0]
            _keep(trace, kind, found[kind])
    for name, kind in kinds.items():
        modules[name].found_first = found[kind]
    said = {"a first pass": missing, "kept from an earlier first pass": wanted - missing}
    return [f"{how}: {', '.join(sorted(kind.__name__ for kind in those))}" for how, those in said.items() if those]


def _kept(trace: TraceReader, kind: type[Module]) -> Mapping[str, Any] | None:
    """What an earlier analysis has kept of this pass over this trace."""
    from tracekit.containers.serialization import deserialized
    from tracekit.jit import object_cache

    data = object_cache.read(_key(trace, kind))
    return None if data is None else deserialized(data)


def _keep(trace: TraceReader, kind: type[Module], result: Mapping[str, Any]) -> None:
    from tracekit.containers.serialization import serialized
    from tracekit.jit import object_cache

    data = serialized(result)
    if len(data) <= MOST_BYTES:
        object_cache.write(_key(trace, kind), data)
        object_cache.forget_unused()


def _key(trace: TraceReader, kind: type[Module]) -> str:
    """What the result depends on: the trace, and the code of the pass."""
    from tracekit.jit.cache import digest
    from tracekit.jit.object_cache import key_of

    code = [digest(Path(sys.modules[kind.__module__].__file__ or "")), digest(Path(__file__))]
    return f"first-{key_of([trace.content_hash.encode(), kind.__name__.encode(), *(part.encode() for part in code)])}"
