"""Replaces presets by their modules, and sets options whose defaults follow from the trace."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tracekit import progress
from tracekit.analysis.modules import class_of
from tracekit.analysis.passes import prepare, replay_through
from tracekit.formats.errors import TracekitError
from tracekit.modules import registry
from tracekit.modules.options import make_options

if TYPE_CHECKING:
    from tracekit.formats.reader import TraceReader
    from tracekit.modules.contract import Module
    from tracekit.program.program import Program


def expanded(
    trace: TraceReader,
    program: Program,
    options: Mapping[Any, Any],
    window: Mapping[str, Any] | None,
    loop: tuple[str, int] | None,
    threads: int,
) -> dict[Any, Any]:
    """Module -> options, with each preset replaced by the modules that it stands for.

    A module that is also requested by itself keeps the options of that request. Options whose defaults follow from the
    trace are set (:meth:`Analysis.settled`); `loop` is the window's.
    """
    from tracekit.modules.contract import NoOptions, Preset
    from tracekit.replay.window import Restriction

    def count(module: type[Module]) -> dict[str, Any]:
        restricted = Restriction(window, trace, program)
        replay, runners = prepare(trace, program, {module: NoOptions()}, threads, restricted)
        with progress.step("counting first"):
            replay_through(replay, runners, restricted, threads)
        return runners[module.__name__].result()[0]

    expanded: dict[Any, Any] = {}
    for name, chosen in options.items():
        kind = class_of(name)
        members = kind(program, chosen).modules() if issubclass(kind, Preset) else {name: chosen}
        expanded.update((member, options.get(member, own)) for member, own in members.items())
    for name, chosen in expanded.items():
        _require_events(trace, program, name, chosen)
    return {name: class_of(name).settled(chosen, loop, count) for name, chosen in expanded.items()}


def _require_events(trace: TraceReader, program: Program, module: Any, chosen: Any) -> None:
    """Raise TracekitError if the trace is imported and lacks events that the module needs."""
    kind = class_of(module)
    if not program.is_imported or kind.accesses_suffice(chosen):
        return
    asked = " with these options" if kind.accesses_suffice(make_options(kind.Options, {})) else ""
    origin = (trace.meta.get("imported") or {}).get("format", "another tool")
    raise TracekitError(
        f"The module {registry.shown_name(module)} needs more than loads and stores{asked}; "
        f"a trace imported from {origin} has nothing else."
    )
