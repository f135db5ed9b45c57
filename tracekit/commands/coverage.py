"""`--format lcov` of analyze and merge."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tracekit.modules import registry
from tracekit.modules.display import Display


def why_no_coverage(displays: Mapping[str, Display]) -> str | None:
    """Why lcov has no form of what modules found, by their names; None: it has."""
    if len(displays) == 1 and all(display.lcov for display in displays.values()):
        return None
    known = [name for name, display in registry.displays().items() if display.lcov]
    return f"--format lcov writes what one module counts, {' or '.join(known)}, not {' and '.join(displays)}."


def coverage(reports: Sequence[Mapping[str, Any]], displays: Mapping[str, Display]) -> str:
    """The one report as lcov's tracefile."""
    from tracekit.render.registry import call

    (report,) = reports
    module = report["module"]
    return str(call(module, displays[module].lcov, report))
