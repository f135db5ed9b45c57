"""The pass over the whole trace that goes before an analysis, if modules have to know something beforehand."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tracekit import progress
from tracekit.analysis.passes import prepare, replay_through

if TYPE_CHECKING:
    from tracekit.formats.reader import TraceReader
    from tracekit.modules.contract import Analysis, Module
    from tracekit.program.program import Program
    from tracekit.replay.window import Restriction


def find_first(
    trace: TraceReader, program: Program, modules: Mapping[str, Analysis], restricted: Restriction, threads: int
) -> list[str]:
    """Run what :meth:`Analysis.first_pass` of the modules names, all in one pass, and set their ``found_first``.

    An analysis that is restricted to a window does without, and one of little address space, which its own tables
    need. Returns a line about the pass if there was one.
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
    if not kinds:
        return []
    options: dict[str | type[Analysis], Any] = {kind: NoOptions() for kind in kinds.values()}
    replay, runners = prepare(trace, program, options, threads)
    with progress.step("looking ahead"):
        replay_through(replay, runners, restricted, threads)
    found = {kind: runners[kind.__name__].result()[0] for kind in set(kinds.values())}
    for name, kind in kinds.items():
        modules[name].found_first = found[kind]
    return [f"a first pass: {', '.join(sorted(kind.__name__ for kind in found))}"]
