"""Makes the modules of an analysis, and tells each what is known of the run before its first event."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tracekit.formats.errors import TracekitError
from tracekit.modules import registry

if TYPE_CHECKING:
    from tracekit.formats.reader import TraceReader
    from tracekit.modules.contract import Analysis
    from tracekit.program.program import Program
    from tracekit.replay.window import Restriction


def class_of(module: str | type[Analysis]) -> type[Analysis]:
    """The class of a module that is given by its name, its file or its class."""
    return registry.load(module) if isinstance(module, str) else module


def modules_of(
    trace: TraceReader,
    program: Program,
    options: Mapping[str | type[Analysis], Any],
    restricted: Restriction | None = None,
) -> dict[str, Analysis]:
    """Make the modules of one pass: name -> module. Raises TracekitError if two have the same name."""
    modules: dict[str, Analysis] = {}
    for module, chosen in options.items():
        name, made = registry.shown_name(module), class_of(module)(program, chosen)
        if name in modules:
            raise TracekitError(f"Two modules of one pass are called {name!r}.")
        _inform(made, name, trace, program, restricted)
        modules[name] = made
    return modules


def _inform(module: Analysis, name: str, trace: TraceReader, program: Program, restricted: Restriction | None) -> None:
    """Set the attributes of a module that say what is known of the run before the first event.

    Raises TracekitError if the module needs a whole run and the analysis is restricted to a part of one.
    """
    from tracekit.address_space import read_snapshots
    from tracekit.modules.contract import Module, RecordModule
    from tracekit.modules.services import LOCATED
    from tracekit.physical.table import read_page_frames
    from tracekit.replay.recorded_windows import is_windowed
    from tracekit.replay.totals import trace_totals
    from tracekit.schedule.hand_overs import read_hand_overs

    module.windowed = is_windowed(trace) or (restricted is not None and restricted.window is not None)
    if module.windowed and (isinstance(module, RecordModule) or module.wants_hand_overs):
        who = f"{'With these options the' if module.wants_hand_overs else 'The'} module {name} looks at whole runs"
        raise TracekitError(
            f"{who}, and this trace holds windows of one." if is_windowed(trace) else f"{who}: leave out the window."
        )
    module.accesses = trace_totals(trace, program)["accesses"]
    module.metadata = {**trace.meta, **(trace.done or {})}
    if module.wants_address_space:
        module.address_space = [snapshot.as_json() for snapshot in read_snapshots(trace)]
    if module.wants_hand_overs:
        module.hand_overs = read_hand_overs(trace, program)
    if isinstance(module, Module) and LOCATED & module.services():
        module.page_frames = read_page_frames(trace)
        module.stream_count = max(trace.streams(), default=0) + 1
        module.whole_because = module.whole_because or "page frames follow from the times of all that was before"
