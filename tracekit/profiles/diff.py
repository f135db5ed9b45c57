"""What differs between two profiles of a module, also between those of two builds: `tracekit diff`."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any

from tracekit.formats.errors import TracekitError
from tracekit.profiles.merge import shared_folders
from tracekit.profiles.profile import Profile

Json = Mapping[str, Any]
Place = Callable[[Any], Any]

IDENTITY = (
    "kind",
    "instruction",
    "path",
    "edge",
    "call",
    "source",
    "destination",
    "loop",
    "function",
    "site",
    "object",
    "name",
    "size",
    "context",
    "source_context",
    "destination_context",
    "source_thread",
    "destination_thread",
    "store",
    "load",
    "error",
    "dimension",
    "group",
    "type",
    "first",
    "then",
    "lines",
)
"""Columns that say what a row is about; rows equal in them are compared. A table without any is not compared."""

BESIDE = {"first": "then", "lines": "heat"}
"""... those that say so only where another column is: elsewhere they are measured. What has a type has its size."""

IGNORED = ("blocked_by", "object_list", "rests_on", "not_taken", "counts")
"""Columns that follow from others: what blocks a loop are its dependences."""

LISTS = ("levels", "lives", "objects")
"""Columns whose lists are put together where rows are: those of a loop in a dependence, of a site, of a pointer."""

VERDICTS = ("not-exercised", "doall", "doall-with", "pipeline", "sequential")


def compare(before: Profile, after: Profile) -> dict[str, Any]:
    """What is new, gone and changed from `before` to `after`, as the JSON object of ``tracekit diff --json``.

    ``matched_by`` is ``id`` for profiles of one build, where instructions have the same ids (one of the runs may have
    loaded more libraries), else ``place``: function, line, column and kind, and the file's name without its folder.
    Raises TracekitError for profiles of two modules.
    """
    if before.module != after.module:
        raise TracekitError(f"A profile of {before.module} cannot be compared with one of {after.module}.")
    images = [set(profile.build) for profile in (before, after)]
    same_build = all(images) and (images[0] <= images[1] or images[1] <= images[0])
    tables, skipped, values = {}, [], {}
    for name in dict.fromkeys((*before.result, *after.result)):
        old, new = before.result.get(name), after.result.get(name)
        if not isinstance(old if old is not None else new, list):
            values[name] = _changes(_flat({name: old}), _flat({name: new}))
            continue
        rows = [*(old or []), *(new or [])]
        if rows and not _identity(rows):
            skipped.append(name)
        else:
            tables[name] = _compare_tables(old or [], new or [], _identity(rows), by_id if same_build else by_place)
    return {
        "module": before.module,
        "before": before.traces,
        "after": after.traces,
        **({"folders": folders} if (folders := shared_folders((before, after))) else {}),
        "matched_by": "id" if same_build else "place",
        "options_differ": before.report["options"] != after.report["options"],
        "tables": tables,
        "values": {column: change for changes in values.values() for column, change in changes.items()},
        "not_compared": skipped,
    }


def differ(difference: Json) -> bool:
    """Whether there is any difference."""
    return bool(difference["values"]) or any(
        table["new"] or table["gone"] or table["changed"] for table in difference["tables"].values()
    )


def _identity(rows: Iterable[Any]) -> list[str]:
    """The columns that say what the rows are about."""
    present = {column for row in rows if isinstance(row, Mapping) for column in row}
    known = [column for column in IDENTITY if column in present and BESIDE.get(column, column) in present]
    return [column for column in known if column != "size" or "type" not in present]


def _compare_tables(old: Sequence[Json], new: Sequence[Json], identity: Sequence[str], place: Place) -> dict[str, Any]:
    before, after = (_by_key(rows, identity, place) for rows in (old, new))
    changed = []
    for key in (key for key in before if key in after and before[key] != after[key]):
        changes = _changes(*(_measures(rows[key], identity) for rows in (before, after)))
        if changes:
            changed.append({**{column: after[key].get(column) for column in identity}, "changes": changes})
    return {
        "new": [row for key, row in after.items() if key not in before],
        "gone": [row for key, row in before.items() if key not in after],
        "changed": changed,
        "same": sum(key in after for key in before) - len(changed),
    }


def _by_key(rows: Iterable[Json], identity: Sequence[str], place: Place) -> dict[tuple[Any, ...], Json]:
    """Rows by what they are about. Those that a place does not tell apart are one: numbers add, the worst verdict."""
    texts: dict[int, str] = {}  # of objects by their identity: rows share contexts, instructions

    def text(value: Any) -> Any:
        if not isinstance(value, (dict, list)):
            return value
        if id(value) not in texts:
            texts[id(value)] = json.dumps(place(value))
        return texts[id(value)]

    by_key: dict[tuple[Any, ...], Json] = {}
    for row in rows:
        key = tuple([text(row.get(column)) for column in identity])
        by_key[key] = _together(by_key[key], row) if key in by_key else row
    return by_key


def _together(first: Json, second: Json) -> Json:
    row = dict(first)
    for column, value in second.items():
        if column == "verdict" and column in first:
            row[column] = max(first[column], value, key=VERDICTS.index)
        elif isinstance(value, int) and not isinstance(value, bool) and isinstance(first.get(column), int):
            row[column] = first[column] + value
        elif column == "carried":
            row[column] = {kind: count + first[column].get(kind, 0) for kind, count in value.items()}
        elif column in LISTS and isinstance(value, list):
            row[column] = [*(first.get(column) or []), *value]
    return row


def by_id(value: Any) -> Any:
    """What identifies an instruction, a loop, a context in one build."""
    if isinstance(value, Mapping):
        if value.get("id") is not None and "line" in value:
            return [value["id"], value.get("kind")]
        return {key: by_id(part) for key, part in sorted(value.items()) if key != "id"}
    return value


def by_place(value: Any) -> Any:
    """What identifies an instruction, a loop, a context in any build."""
    if isinstance(value, Mapping):
        if "line" in value:
            fields = ("function", "line", "column", "kind", "depth", "name")
            return [
                PurePosixPath(value.get("file") or "").name,
                *(value.get(field) for field in fields),
                [[each["function"], each["line"], each["column"]] for each in value.get("inlined_at", [])],
            ]
        return {key: by_place(part) for key, part in sorted(value.items()) if key != "id"}
    return value


# -- measures --------------------------------------------------------------------------------------


def _measures(row: Json, identity: Sequence[str]) -> dict[str, Any]:
    """The columns that are compared, flat: numbers, words, and the loops that carry a dependence."""
    row = {column: value for column, value in row.items() if column not in (*identity, *IGNORED)}
    if "fields" in row:
        row = {**row, "fields": {each["field"]: _but(each, "field", "type") for each in row["fields"]}}
    measures = _flat({column: value for column, value in row.items() if column != "levels"})
    if "levels" in row:
        carrying = [level for level in row["levels"] if level["inter"]]
        loops = {json.dumps(by_place(level["loop"])): level["loop"] for level in carrying}
        measures["carried_by"] = [loop for _, loop in sorted(loops.items())]
        distances = [[level["min_distance"], level["max_distance"]] for level in carrying]
        measures["distance"] = (
            [min(low for low, _ in distances), max(high for _, high in distances)] if distances else None
        )
    return measures


def _but(row: Json, *columns: str) -> Json:
    return {column: value for column, value in row.items() if column not in columns}


def _flat(row: Json, prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for column, value in row.items():
        if column == "scope":  # one thing: what differs in it differs together
            flat[prefix + column] = value
        elif isinstance(value, Mapping) and not _is_place(value):
            flat.update(_flat(value, f"{prefix}{column}."))
        else:
            flat[prefix + column] = by_place(value) if isinstance(value, Mapping) else value
    return flat


def _is_place(value: Json) -> bool:
    return "line" in value and "function" in value


def _changes(before: Json, after: Json) -> dict[str, Any]:
    """Column -> its values before and after, and for numbers the factor (null from zero)."""
    changes = {}
    for column in dict.fromkeys((*before, *after)):
        old, new = before.get(column), after.get(column)
        if _bare(old) == _bare(new):
            continue
        change: dict[str, Any] = {"before": old, "after": new}
        if all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in (old, new)):
            assert old is not None and new is not None
            change["factor"] = new / old if old else None
        changes[column] = change
    return changes


def _bare(value: Any) -> Any:
    """A value without the ids in it."""
    if isinstance(value, list):
        return [_bare(part) for part in value]
    return by_place(value) if isinstance(value, Mapping) else value
