"""SARIF 2.1.0 (OASIS), which editors and forges show beside the source: errors of memory, races, verdicts of loops."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote

from tracekit.counted import counted
from tracekit.formats.errors import TracekitError
from tracekit.modules.merge_rows import as_key
from tracekit.program.sources import whole_path
from tracekit.render.export.stacks import report_frames
from tracekit.render.memory_errors import HEADINGS, error_line, reach_of
from tracekit.render.objects import object_name
from tracekit.render.races import lock_name
from tracekit.version import __version__

Json = dict[str, Any]

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
VERDICTS = {
    "doall": "The iterations are independent: the loop can run in parallel.",
    "doall-with": "The iterations are independent once reductions or private copies are made.",
    "pipeline": "The iterations can overlap in stages.",
    "sequential": "An iteration depends on the one before it.",
}
"""Verdicts of camp, lamp and advise (docs/verdicts.md)."""
LEAK = "leak"
RACE = "race"


def fits(report: Json) -> bool:
    """Whether it has errors of memory, races, or loops with verdicts."""
    return report["module"] in ("memory_errors", "races") or _has_verdicts(report["result"])


def write(report: Json, table: str) -> bytes:
    """The file's bytes: one run. Raises TracekitError for a profile without errors, races and verdicts."""
    places = _Places(report)
    result = report["result"]
    if report["module"] == "memory_errors":
        found = [*(_error(row, places) for row in result["errors"]), *_leaks(result["leaks"], places)]
        rules = {**{f"memory/{kind}": text for kind, text in HEADINGS.items()}, f"memory/{LEAK}": "never freed"}
    elif report["module"] == "races":
        found = [_race(row, places) for row in result["races"]]
        rules = {RACE: "two threads access the same byte, nothing orders them, and one of them stores"}
    elif _has_verdicts(result):
        found = [_verdict(row, places) for row in result["loops"]]
        rules = {f"loop/{verdict}": text for verdict, text in VERDICTS.items()}
    else:
        raise TracekitError(f"The profile of {report['module']} has no errors of memory, races or verdicts of loops.")
    for each in found:
        rules.setdefault(each["ruleId"], each["ruleId"])
    names = list(rules)
    for each in found:
        each["ruleIndex"] = names.index(each["ruleId"])
    driver = {
        "name": "tracekit",
        "version": __version__,
        "rules": [{"id": name, "shortDescription": {"text": text}} for name, text in rules.items()],
    }
    run = {"tool": {"driver": driver}, "columnKind": "utf16CodeUnits", "results": found}
    return json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, indent=1).encode() + b"\n"


def _has_verdicts(result: Json) -> bool:
    loops = result.get("loops")
    return isinstance(loops, list) and all("verdict" in row and "loop" in row for row in loops)


class _Places:
    """Places of a report as SARIF has them."""

    def __init__(self, report: Json) -> None:
        self.report = report
        self.compilation = report.get("folders", {}).get("compilation", "")

    def location(self, place: Mapping[str, Any], text: str = "") -> Json:
        """A `location`; without a file that of the function alone."""
        made: Json = {}
        if place.get("file"):
            path = whole_path(place["file"], self.compilation)
            region = {"startLine": place["line"]} if place["line"] > 0 else {}
            if region and place.get("column", 0) > 0:
                region["startColumn"] = place["column"]
            made["physicalLocation"] = {
                "artifactLocation": {"uri": ("file://" if path.startswith("/") else "") + quote(path)},
                **({"region": region} if region else {}),
            }
        if place.get("function"):
            made["logicalLocations"] = [{"fullyQualifiedName": place["function"], "kind": "function"}]
        return {**made, **({"message": {"text": text}} if text else {})}

    def stack(self, context: Mapping[str, Any], place: Mapping[str, Any], text: str) -> Json:
        """A `stack`, the innermost frame first."""
        frames = [
            {"location": self.location({"file": each.file, "line": each.line, "function": each.name})}
            for each in reversed(report_frames(self.report, context, place))
        ]
        return {"message": {"text": text}, "frames": frames}


def _result(rule: str, level: str, text: str, place: Mapping[str, Any], key: str, places: _Places) -> Json:
    return {
        "ruleId": rule,
        "level": level,
        "message": {"text": text},
        "locations": [places.location(place)],
        "partialFingerprints": {"tracekit/v1": hashlib.blake2b(key.encode(), digest_size=16).hexdigest()},
    }


def _error(row: Json, places: _Places) -> Json:
    text = f"{HEADINGS[row['kind']].capitalize()}: {error_line(row)}."
    key = as_key(row, ("kind", "instruction", "context", "object", "freed"))
    made = _result(f"memory/{row['kind']}", "error", text, row["instruction"], key, places)
    related = list(_related(row, places))
    stacks = [places.stack(row["context"], row["instruction"], "the access")]
    if row["object"].get("site"):
        stacks.append(places.stack(row["object"]["context"], row["object"]["site"], "where the object was made"))
    if row["freed"]:
        stacks.append(places.stack(row["freed"]["context"], row["freed"]["instruction"], "where it was freed"))
    return {**made, "occurrenceCount": row["count"], "relatedLocations": related, "stacks": stacks}


def _related(row: Json, places: _Places) -> Iterator[Json]:
    if row["object"].get("site"):
        yield places.location(row["object"]["site"], "the object was made here")
    if row["freed"]:
        yield places.location(row["freed"]["instruction"], "it was freed here")


def _leaks(rows: list[Json], places: _Places) -> Iterator[Json]:
    """Blocks that the program has left; not those that a library keeps."""
    for row in rows:
        site = row["object"].get("site")
        if row["allocated_by"] != "program" or site is None:
            continue
        amount = f"{counted(row['blocks'], 'block')}, {counted(row['bytes'], 'byte')}"
        reach = f", {reach_of(row)}" if row.get("reach") else ""
        text = f"Never freed: {amount}, {object_name(row['object'])}{reach}."
        key = as_key(row, ("object", "reach") if reach else ("object",))
        made = _result(f"memory/{LEAK}", "note", text, site, key, places)
        yield {**made, "stacks": [places.stack(row["object"]["context"], site, "where they were made")]}


def _race(row: Json, places: _Places) -> Json:
    """At its second access, where it showed; the first one is related to it."""
    first, second = row["first"], row["second"]
    accesses = f"{first['access']} and {second['access']}, {_order(row)}"
    text = f"Race on {object_name(row['object'])}, byte {row['offset']}: {accesses}."
    key = as_key(
        {end: row[end]["instruction"] for end in ("first", "second")} | {"object": row["object"]},
        ("first", "second", "object"),
    )
    made = _result(RACE, "error", text, second["instruction"], key, places)
    stacks = [
        places.stack(each["context"], each["instruction"], f"{each['access']} by thread {_threads(each)}")
        for each in (first, second)
    ]
    related = [places.location(first["instruction"], f"the other access, a {first['access']}")]
    return {**made, "occurrenceCount": row["count"], "relatedLocations": related, "stacks": stacks}


def _order(row: Json) -> str:
    lock = row.get("other_lock_order")
    if lock is None:
        return "which nothing orders"
    return f"which {lock_name({**lock, 'shared': False})} ordered in this run, by who happened to take it first"


def _threads(access: Json) -> str:
    return ", ".join(map(str, access["threads"]))


def _verdict(row: Json, places: _Places) -> Json:
    verdict = row["verdict"]
    text = str(VERDICTS.get(verdict, verdict))
    openmp = row.get("openmp") or {}
    if openmp.get("pragma"):
        text += f" {openmp['pragma']}"
    key = as_key(row, ("loop", "context"))
    made = _result(f"loop/{verdict}", "note", text, row["loop"], key, places)
    related = [
        {**places.location(blocked[end], f"{word} a dependence that stands in the way")}
        for blocked in row.get("blocked_by", ())
        for end, word in (("source", "begin of"), ("destination", "end of"))
        if isinstance(blocked.get(end), dict)
    ]
    unique = {json.dumps(each): each for each in related}
    return {**made, **({"relatedLocations": list(unique.values())} if unique else {})}
