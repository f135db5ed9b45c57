"""The tools: each takes what an assistant asks, and returns a text of bounded size.

They raise TracekitError with one sentence. Nothing here knows of MCP (tracekit/assistant/handlers.py does).
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tracekit import extras
from tracekit.assistant.answers import LARGEST_PAGE, bounded, page
from tracekit.assistant.folders import Folders
from tracekit.assistant.regions import Region, check
from tracekit.assistant.runs import Runs
from tracekit.counted import counted
from tracekit.formats.errors import TracekitError
from tracekit.inputs import Gathered, gather_advice
from tracekit.profiles import files
from tracekit.profiles.annotation import VERDICTS, Annotations
from tracekit.profiles.diff import compare
from tracekit.program.sources import Sources, chosen_file
from tracekit.query import listing
from tracekit.query.catalogue import TABLES
from tracekit.query.run import Run
from tracekit.render.annotation import files_text, source_text
from tracekit.render.dependence import (
    UNSEEN,
    VERDICT_COLOUR,
    carried_text,
    context_text,
    dependence_details,
    loop_details,
)
from tracekit.render.diff import diff_text
from tracekit.render.places import instruction_text, loop_text, loops_told_apart, without_folder
from tracekit.render.text import Style

Json = Mapping[str, Any]

PLAIN = Style(False)

QUERY_SECONDS = 60
"""A query that takes longer is ended."""


class Tools:
    """What an assistant may ask of the runs below some folders."""

    def __init__(self, folders: Sequence[str | Path], jobs: int | None = None) -> None:
        self.folders = Folders(folders)
        self.runs = Runs(jobs)

    # -- runs --------------------------------------------------------------------------------------

    def list_runs(self, start: int = 1, limit: int = 50) -> str:
        """Traces and profile files below the folders."""
        return page(list(self.folders.runs()), start, limit, "file", lambda path: [self._run_text(path)])

    def _run_text(self, path: Path) -> str:
        text = f"{self.folders.shown(path)}, {counted(path.stat().st_size, 'byte')}"
        if files.is_profile(path):
            return f"{text}, profile file"
        from tracekit.formats.reader import TraceReader

        try:
            with TraceReader(str(path)) as trace:
                command = " ".join(map(str, trace.meta.get("command") or []))
                cut = "" if trace.complete else ", cut off"
                return f"{text}, trace{f' of {command[:200]}' if command else ''}{cut}"
        except TracekitError:
            return f"{text}, no trace that can be read"

    def _loops(self, trace: str) -> tuple[Run, Json]:
        """A run, and its report of camp, or of lamp if it is a profile file that has only that."""
        run = self.runs.run(self.folders.resolve(trace))
        module = run.choose(TABLES["loops"].modules) or "camp"
        run.need([module])
        return run, run.report(module)

    # -- loops and dependences ---------------------------------------------------------------------

    def list_loops(
        self,
        trace: str,
        function: str = "",
        file: str = "",
        verdict: str = "",
        min_share: float = 0.0,
        start: int = 1,
        limit: int = 20,
    ) -> str:
        """Loops with verdicts, hottest first."""
        if verdict and verdict not in VERDICT_COLOUR:
            raise TracekitError(f"A verdict is one of {', '.join(VERDICT_COLOUR)}, not {verdict!r}.")
        run, report = self._loops(trace)
        total = report["facts"].get("accesses", 0)
        rows = loops_told_apart(sorted(report["result"]["loops"], key=lambda row: -row["accesses"]))
        region = Region(function, file, compilation=_compilation(report))
        check(region, [row["loop"] for row in rows])
        chosen = [
            row
            for row in rows
            if region.has(row["loop"])
            and verdict in ("", row["verdict"])
            and 100 * row["accesses"] >= min_share * total
        ]
        contexts = _verdicts_of_contexts(rows)
        text = page(
            chosen, start, limit, "loop", lambda row: _loop_lines(row, report, total) + _elsewhere(row, contexts)
        )
        return _noted("\n".join([text, "", *UNSEEN]), run.cautions)

    def dependences(
        self,
        trace: str,
        file: str = "",
        first_line: int = 0,
        last_line: int = 0,
        function: str = "",
        kind: str = "",
        carried_only: bool = False,
        start: int = 1,
        limit: int = 20,
    ) -> str:
        """Dependences with an end in a region, the most frequent first."""
        if kind not in ("", "RAW", "WAR", "WAW"):
            raise TracekitError(f"A kind is RAW, WAR or WAW, not {kind!r}.")
        run, report = self._loops(trace)
        region = Region(function, file, first_line, last_line, _compilation(report))
        rows = sorted(report["result"]["dependences"], key=lambda row: -row["count"])
        check(region, [row[end] for row in rows for end in ("source", "destination")])
        chosen = [
            row
            for row in rows
            if (region.has(row["source"]) or region.has(row["destination"]))
            and kind in ("", row["kind"])
            and (not carried_only or any(level["inter"] for level in row["levels"]))
        ]
        text = page(chosen, start, limit, "dependence", lambda row: _dependence_lines(row, report))
        return _noted(text, run.cautions)

    # -- source and advice -------------------------------------------------------------------------

    def annotated_source(self, trace: str, file: str = "", first_line: int = 0, last_line: int = 0) -> str:
        """A source file with loads, stores, carried dependences and verdicts beside its lines."""
        run, report = self._loops(trace)
        if not run.is_profile:
            run.need(["accesses"])
        notes = Annotations([run.report(module) for module in run.modules])
        sources = self._sources(run, report)
        if not file:
            readable = [name for name in notes.hottest() if sources.lines(name) is not None]
            listing = files_text(notes, readable, report.get("folders", {}), 50, PLAIN)
            return bounded(_without_flags(listing), "name a file")
        name = chosen_file(file, notes.files, _compilation(report))
        text = sources.lines(name)
        if text is None:
            raise TracekitError(sources.missing(name))
        Region("", name, first_line, last_line)
        asked = first_line or last_line
        within = (first_line or 1, last_line or (first_line if asked else 0) or len(text))
        if within[0] > len(text):
            raise TracekitError(f"{name} has {counted(len(text), 'line')}.")
        shown = source_text(notes, name, text, None if asked else 3, PLAIN, within)
        answer = bounded(shown, "ask for fewer lines with first_line and last_line")
        return _noted(answer, run.cautions)

    def advice(self, trace: str, at: str = "", patch: bool = False, top: int = 5) -> str:
        """What to do with hot loops, or with that at FILE:LINE; with `patch` the directives as a diff, too."""
        from tracekit.modules import registry
        from tracekit.modules.options import make_options
        from tracekit.render.advise import advise_text

        path = self.folders.resolve(trace)
        options = make_options(registry.load("advise", files=False).Options, {"at": at, "top": top})
        gathered = self.runs.kept(path, (at, top), lambda: gather_advice(str(path), options, self.runs.jobs))
        (profile,) = gathered.profiles
        shown = _without_flags(advise_text(profile.report, profile.facts, 0, PLAIN))
        text = bounded(shown, "ask for one loop with at=FILE:LINE")
        return _noted(f"{text}\n\n{self._patch(gathered)}" if patch else text, profile.cautions)

    def _patch(self, gathered: Gathered) -> str:
        """The diff, and what it leaves out; a sentence if there is none, or if the source is not there."""
        from tracekit.patches.patch import make_patch

        compilation = gathered.folders.get("compilation", "")
        below = list(map(str, self.folders.folders))
        sources = Sources(gathered.embedded, below, compilation, gathered.digests, only=True)
        try:
            made = make_patch(gathered.profiles[0].result["loops"], sources, below, compilation)
        except TracekitError as error:
            return f"No patch: {error}"
        diff = made.diff.decode("utf-8", "replace") or "No patch: there is no directive to insert.\n"
        return bounded("\n".join([diff.rstrip("\n"), *(f"({note})" for note in made.notes)]), "name a loop")

    def _sources(self, run: Run, report: Json) -> Sources:
        return Sources(run.embedded, self.folders.folders, _compilation(report), run.digests, only=True)

    # -- comparing and asking ----------------------------------------------------------------------

    def compare_runs(self, before: str, after: str, factor: float = 1.0, limit: int = 20) -> str:
        """Loops and dependences that are new, gone or changed from one run to another."""
        if not 1 <= limit <= LARGEST_PAGE:
            raise TracekitError(f"limit is from 1 to {LARGEST_PAGE}, not {limit}.")
        (old, _), (new, _) = self._loops(before), self._loops(after)
        common = [module for module in TABLES["loops"].modules if module in old.modules and module in new.modules]
        if not common:
            raise TracekitError(f"{before} and {after} have no profile of the same module; compare the traces.")
        difference = compare(old.profile(common[0]), new.profile(common[0]))
        text = diff_text(difference, (before, after), max(factor, 1.0), limit, PLAIN)
        answer = bounded(_without_flags(text), "ask for fewer rows with limit, or a greater factor")
        return _noted(answer, dict.fromkeys(old.cautions + new.cautions))

    def tables(self, table: str = "") -> str:
        """The tables that queries may name, or the columns of one."""
        if not table:
            return bounded(listing.tables_text(None, PLAIN), "name a table")
        if not listing.is_table(table, None):
            raise TracekitError(f"There is no table {table!r}; tables, without a name, lists them.")
        return bounded(listing.columns_text(table, None, PLAIN), "name a table")

    def query(self, trace: str, sql: str, limit: int = 50) -> str:
        """The rows that a query finds, as CSV."""
        extras.require("query", "A query")
        from tracekit.query.database import Database
        from tracekit.query.output import csv_text

        if not 1 <= limit <= LARGEST_PAGE:
            raise TracekitError(f"limit is from 1 to {LARGEST_PAGE}, not {limit}.")
        path = self.folders.resolve(trace)
        run = self.runs.run(path)
        database = self.runs.kept(path, "database", lambda: Database(run))
        database.prepare(sql)
        is_late = threading.Event()

        def end() -> None:
            is_late.set()
            database.interrupt()

        timer = threading.Timer(QUERY_SECONDS, end)
        timer.start()
        try:
            result = database.query(sql, limit)
        except TracekitError:
            if is_late.is_set():
                raise TracekitError(f"The query took longer than {QUERY_SECONDS} seconds.") from None
            raise
        finally:
            timer.cancel()
        more = "" if result.is_whole else f"There are more than {limit} rows: use LIMIT and OFFSET, or a greater limit."
        return _noted(bounded(csv_text(result) + more, "ask for fewer rows or columns"), run.cautions)


def _noted(text: str, cautions: Iterable[str]) -> str:
    """An answer, and what has to be known of the run."""
    return "\n\n".join([text, *cautions])


def _without_flags(text: str) -> str:
    """A text of the command line without its options."""
    return text.replace(" (--limit 0 shows all)", "").replace("--top 0", "top=0")


def _compilation(report: Json) -> str:
    return str(report.get("folders", {}).get("compilation", ""))


def _loop_lines(row: Json, report: Json, total: int) -> list[str]:
    """A loop in a line, then its context, and what blocks or frees it."""
    shown, _ = without_folder(row, report)
    share = f"{100 * row['accesses'] / total:.1f}% of accesses, " if total else ""
    counts = f"{share}{counted(row['iterations'], 'iteration')} in {counted(row['invocations'], 'invocation')}"
    lines = [f"{row['verdict']}: {loop_text(shown['loop'])}; {counts}; carries {carried_text(row['carried'])}"]
    if shown["context"]:
        lines.append(f"in {context_text(shown['context'], shown['loop']['function'], with_loop=False)}")
    return lines + loop_details(shown)


def _loop_key(row: Json) -> str:
    return repr(sorted(row["loop"].items()))


def _verdicts_of_contexts(rows: Sequence[Json]) -> dict[str, Counter[str]]:
    """Of each loop the verdicts of its rows, one for each context."""
    found: dict[str, Counter[str]] = {}
    for row in rows:
        found.setdefault(_loop_key(row), Counter())[row["verdict"]] += 1
    return found


def _elsewhere(row: Json, contexts: Mapping[str, Counter[str]]) -> list[str]:
    """That the loop's other contexts have other verdicts, and which one is the loop's."""
    verdicts = contexts[_loop_key(row)]
    if len(verdicts) < 2:
        return []
    ranked = sorted(verdicts, key=VERDICTS.index)
    counts = ", ".join(f"{verdicts[verdict]} {verdict}" for verdict in ranked)
    return [
        f"one of {verdicts.total()} contexts of this loop: {counts}; advice and source have the worst, {ranked[-1]}"
    ]


def _dependence_lines(row: Json, report: Json) -> list[str]:
    shown, _ = without_folder(row, report)
    ends = f"{instruction_text(shown['source'])} -> {instruction_text(shown['destination'])}"
    return [f"{row['kind']}, {counted(row['count'], 'time')}: {ends}", *dependence_details(shown)]
