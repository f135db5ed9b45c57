"""Profiles in the formats of other tools: one file here for each format, and what they share in stacks.py.

A format is a function from a report, the JSON object of a profile (docs/reports.md), to bytes. It says in a sentence,
TracekitError, what it cannot hold.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from tracekit.render.export import callgrind, graphs, memprof, perfetto, pprof, sarif, speedscope, tables

Json = dict[str, Any]


class Format(NamedTuple):
    """A format: what it is called in the help, and the function; given the name of a table if it is of one."""

    help: str
    write: Callable[[Json, str], bytes]
    is_text: bool = True
    fits: Callable[[Json], bool] = lambda report: True
    """Whether a report is of a kind that the format holds."""


FORMATS = {
    "callgrind": Format("callgrind.out, for KCachegrind and callgrind_annotate", callgrind.write),
    "speedscope": Format("speedscope's JSON: a flame graph of each number", speedscope.write),
    "pprof": Format("pprof's protocol buffer: all numbers in one file", pprof.write, False),
    "sarif": Format("SARIF 2.1.0: errors of memory, races, verdicts of loops", sarif.write, fits=sarif.fits),
    "memprof": Format("LLVM's memory profile in YAML, for llvm-profdata merge", memprof.write, fits=memprof.fits),
    "dot": Format("Graphviz: dependences between instructions, task graphs", graphs.dot, fits=graphs.fits),
    "graphml": Format("GraphML: dependences between instructions, task graphs", graphs.graphml, fits=graphs.fits),
    "perfetto": Format("Trace Event Format, for ui.perfetto.dev: schedules", perfetto.write, fits=perfetto.fits),
    "csv": Format("a table of the profile, one line for each row", tables.write),
}
