"""template_name as slow as it is obvious: one event after the other, in plain Python."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import tracekit
from tracekit.module import CODE


def expected(path: Path, least: int = 1) -> dict[str, Any]:
    """The result that the module shall have for the trace at `path`."""
    functions: dict[str, dict[str, int]] = {}
    with tracekit.open(path) as trace:
        program = trace.program
        for batch in trace.batches(events=("load", "store")):
            for kind, instruction, size in zip(batch.kind.tolist(), batch.subject.tolist(), batch.size.tolist()):
                name = "(library)"
                if instruction < len(program.ops):
                    name = program.function_name(int(program.op_function[instruction]))
                moved = functions.setdefault(name, {"read": 0, "written": 0})
                moved["read" if kind == CODE["load"] else "written"] += size
    return {
        "functions": [
            {"function": name, **functions[name]}
            for name in sorted(functions)
            if sum(functions[name].values()) >= max(least, 1)
        ]
    }
