"""Which runner each module of a pass gets, and with how many workers."""

from __future__ import annotations

from collections.abc import Mapping

from tracekit.contexts.rules import is_static
from tracekit.modules.batch_runner import BatchRunner, RecordRunner
from tracekit.modules.callback_runner import AdoptingRunner, CallbackRunner
from tracekit.modules.contract import Analysis, BatchModule, Module, RecordModule
from tracekit.modules.runner import Runner, SegmentRunner

MOST_WORKERS = 8
"""More would wait for the one thread that replays; and each reserves address space for tables of its own."""


def runner(module: Analysis, name: str, threads: int) -> Runner:
    """The runner of a module where so many threads are to be busy, the replaying one among them."""
    if isinstance(module, BatchModule):
        return BatchRunner(module, name)
    if isinstance(module, RecordModule):
        return RecordRunner(module, name)
    assert isinstance(module, Module)
    workers = threads if module.compute_bound else threads - 1
    return CallbackRunner(module, name, min(max(workers, 1), MOST_WORKERS) if module.shard_by else 1)


def runners_of(modules: Mapping[str, Analysis], threads: int) -> dict[str, Runner]:
    """The runners of the modules of one pass, by name; of those with the same analysis the first one's does it."""
    made: dict[str, Runner] = {}
    of_analysis: dict[str, CallbackRunner] = {}
    for name, module in modules.items():
        first = of_analysis.get(module.analysis) if isinstance(module, Module) else None
        if first is not None and isinstance(module, Module) and _runs_alike(module, first.module):
            made[name] = AdoptingRunner(module, name, first)
            continue
        made[name] = new = runner(module, name, threads)
        if isinstance(new, CallbackRunner) and new.module.analysis:
            of_analysis.setdefault(new.module.analysis, new)
    return made


def _runs_alike(module: Module, other: Module) -> bool:
    """Is it so that both find the same? A class that inherits `analysis` may have changed what it is about."""
    kinds = (type(module), type(other))
    return (
        module.callbacks() == other.callbacks()
        and is_static(module.options) == is_static(other.options)
        and all(getattr(kinds[0], name) is getattr(kinds[1], name) for name in ("state", "reduce", "adopt"))
    )


def segment_runners(runners: Mapping[str, Runner]) -> dict[str, SegmentRunner]:
    """Those of a pass that work; all their modules have :meth:`Analysis.segments`."""
    return {name: each for name, each in runners.items() if isinstance(each, (CallbackRunner, BatchRunner))}
