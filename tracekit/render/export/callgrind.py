"""callgrind.out, the format of valgrind's callgrind (its manual, "Callgrind Format Specification").

Numbers are of lines of functions; those of a call are what is inside it. A profile does not say how often a call was
made: `calls=` counts the rows that have it on their stack.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from tracekit.render.export.stacks import Frame, samples_of
from tracekit.version import __version__

Function = tuple[str, str]
"""File and name."""


def write(report: dict[str, Any], table: str) -> bytes:
    """The file's bytes."""
    samples = samples_of(report, table).without_loops()
    zero = [0] * len(samples.metrics)
    own: defaultdict[Function, defaultdict[int, list[int]]] = defaultdict(lambda: defaultdict(zero.copy))
    calls: defaultdict[Function, defaultdict[tuple[int, Function, int], list[int]]] = defaultdict(
        lambda: defaultdict([0, *zero].copy)
    )
    for sample in samples.rows:
        leaf = sample.frames[-1]
        _add(own[_function(leaf)][leaf.line], sample.values)
        edges = {
            (_function(caller), caller.line, _function(callee), callee.line)
            for caller, callee in zip(sample.frames, sample.frames[1:])
        }
        for caller, line, callee, first in edges:
            _add(calls[caller][line, callee, first], (1, *sample.values))
    lines = [
        "# callgrind format",
        "version: 1",
        f"creator: tracekit-{__version__}",
        f"desc: Module: {report['module']}, {samples.name}",
        "positions: line",
        f"events: {' '.join(_event(metric) for metric in samples.metrics)}",
        f"summary: {' '.join(map(str, map(sum, zip(zero, *(sample.values for sample in samples.rows)))))}",
    ]
    for function in sorted({*own, *calls}):
        lines += ["", f"fl={_named(function[0])}", f"fn={_named(function[1])}"]
        lines += [f"{line} {' '.join(map(str, values))}" for line, values in sorted(own[function].items())]
        for (line, callee, first), (count, *values) in sorted(calls[function].items()):
            lines += [f"cfi={_named(callee[0])}", f"cfn={_named(callee[1])}", f"calls={count} {first}"]
            lines.append(f"{line} {' '.join(map(str, values))}")
    return ("\n".join(lines) + "\n").encode()


def _function(frame: Frame) -> Function:
    return frame.file, frame.name


def _add(sums: list[int], values: tuple[int, ...]) -> None:
    for place, value in enumerate(values):
        sums[place] += value


def _event(metric: str) -> str:
    """A name without blanks."""
    return "_".join(metric.split())


def _named(text: str) -> str:
    """A name on a line of its own; what begins with a parenthesis would be an abbreviation."""
    text = " ".join(text.split()) or "???"
    return f" {text}" if text.startswith("(") else text
