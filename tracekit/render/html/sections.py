"""The page's sections, and what stands above and below them."""

from __future__ import annotations

from collections import Counter

from tracekit.render.dependence import unseen_lines, with_threads
from tracekit.render.html.data import Shown
from tracekit.render.html.elements import text
from tracekit.render.html.generic import generic_section, rows_table
from tracekit.render.html.loops import VERDICTS, graph_data, graph_section, loops_section
from tracekit.render.html.source import source_section
from tracekit.render.registry import call
from tracekit.render.windows import filters_text, windows_text
from tracekit.version import __version__


def body(shown: Shown, title: str) -> dict[str, str]:
    """The parts of page.html by name."""
    sections = {
        "loops": ("Loops", loops_section(shown)),
        "graph": ("Dependence graph", graph_section(shown)),
        "between-threads": ("Dependences between threads", _between_threads(shown)),
        "source": ("Source", source_section(shown)),
        **_of_modules(shown),
    }
    there = {name: section for name, section in sections.items() if section[1]}
    return {
        "title": text(title),
        "facts": _facts(shown),
        "contents": "".join(
            f'<li><a href="#{text(name)}">{text(heading)}</a></li>' for name, (heading, _) in there.items()
        ),
        "sections": "\n".join(
            f'<section id="{text(name)}" aria-labelledby="{text(name)}-heading">'
            f'<h2 id="{text(name)}-heading">{text(heading)}</h2>\n{content}</section>'
            for name, (heading, content) in there.items()
        ),
        "footer": text(f"Written by tracekit {__version__}. {_unseen(shown)}"),
        "graphs": graph_data(shown),
    }


def _between_threads(shown: Shown) -> str:
    """Those of the first profile that has them, the most frequent first."""
    for report in shown.reports.values():
        if rows := report["result"].get("between_threads"):
            ordered = sorted(rows, key=lambda row: -row.get("count", 0))
            return rows_table("between-table", f"What depends on what, as {report['module']} found it", ordered, shown)
    return ""


def _unseen(shown: Shown) -> str:
    """What the page cannot tell."""
    return " ".join(unseen_lines(any(map(with_threads, shown.reports.values()))))


def _of_modules(shown: Shown) -> dict[str, tuple[str, str]]:
    """Module -> heading and content, by rank; those with notes stand in the sections before, beside the source."""
    sections = {}
    for module, display in sorted(shown.displays.items(), key=lambda entry: entry[1].rank):
        if display.notes and not display.section:
            continue
        report = shown.reports[module]
        if display.section:
            content = str(call(module, display.section, report, shown))
        else:
            content = generic_section(report, shown)
        sections[module] = (display.heading or module.replace("_", " ").capitalize(), content)
    return sections


def _facts(shown: Shown) -> str:
    """What run this is, and what the page leaves out."""
    meta = shown.gathered.meta
    verdicts = Counter(str(loop.row["verdict"]) for loop in shown.loops)
    first = next(iter(shown.reports.values()), {})
    traces = first.get("traces") or [first.get("trace", "?")]
    accesses = sum(map(sum, (shown.notes.totals(file) for file in shown.notes.files)))
    rows = [
        ("Command", " ".join(map(str, meta["command"])) if meta.get("command") else ""),
        ("Recorded", meta.get("started", "")),
        ("Compiler", meta.get("compiler", "")),
        ("Trace" if len(traces) == 1 else f"{len(traces):,} traces", ", ".join(map(str, traces))),
        ("Window", ", ".join(f"{part} {value}" for part, value in first.get("window", {}).items())),
        ("Recorded in", windows_text(first["windows"]) if "windows" in first else ""),
        ("Recorded in part", filters_text(first["filters"]) if "filters" in first else ""),
        ("Accesses", f"{accesses:,}" if accesses else ""),
        ("Loops", ", ".join(f"{verdicts[verdict]:,} {verdict}" for verdict in VERDICTS if verdicts[verdict])),
    ]
    listed = "".join(f"<div><dt>{text(name)}</dt><dd>{text(value)}</dd></div>" for name, value in rows if value)
    left_out = "".join(f"<li>{text(sentence)}</li>" for sentence in shown.left_out)
    return f"<dl>{listed}</dl>" + (f'<ul class="note" aria-label="Left out">{left_out}</ul>' if left_out else "")
