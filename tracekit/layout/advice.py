"""From the visits of a structure to what another layout of it would save.

A *measured* structure is what one run, or several, have seen (:func:`tracekit.layout.measurements.measured`); what
:func:`advised` returns is a row of the profile.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracekit.layout.lines import LINE, Part, Place, chunk, lines_touched, packed

Json = dict[str, Any]
Bools = NDArray[np.bool_]

WORTH = 0.05
"""Share of the lines that advice has to save."""
TOGETHER = 0.5
"""Visits that touch both of two parts, over visits that touch either, from which on they are used together."""
APART = 0.1
"""... up to which they are used apart."""
MATTERS = 0.1
"""Share of the visits that a part needs to be said to be used apart from others."""
LINK = 8
"""Bytes of the pointer from the part of an object that stays to the one that is split off."""
MOST_PATTERNS = 20_000


def parts_of(measured: Mapping[str, Any]) -> list[tuple[Part, int]]:
    """Parts and the cells (a mask) that they have; one part are fields that share a cell, and bit-fields in a row.

    Compilers access bit-fields by whole words, of whose bytes it is not known which one is meant.
    """
    cell = 1 << measured["shift"]
    parts: list[tuple[Part, int]] = []
    after_bits = False
    for name, type_name, offset, size in measured["fields"]:
        first, end = offset // 8, -(-(offset + size) // 8)
        is_open = size == 0 and all(other + bits <= offset for _, _, other, bits in measured["fields"])
        if is_open:
            end = max(measured["size"], first)
        mask = ((1 << -(-end // cell)) - 1) & ~((1 << (first // cell)) - 1) if end > first else 0
        new = Part(name, type_name, first, end - first, is_open)
        has_bits = bool(offset % 8 or size % 8)
        end = parts[-1][0].offset + parts[-1][0].size if parts else 0
        if parts and (parts[-1][1] & mask or first < end or (has_bits and after_bits and first == end)):
            old, before = parts.pop()
            end = max(old.offset + old.size, first + new.size)
            names, types = f"{old.name}, {name}", f"{old.type_name}, {type_name}"
            new = Part(names, types, old.offset, end - old.offset, old.is_open or is_open)
            mask |= before
        parts.append((new, mask))
        after_bits = has_bits
    return parts


class _Visits:
    """Visits of one structure, by the parts that they touch."""

    def __init__(self, measured: Mapping[str, Any]) -> None:
        self.measured = measured
        known = parts_of(measured)
        self.parts = [part for part, _ in known]
        patterns = sorted(measured["patterns"], key=lambda pattern: (-pattern[1], pattern[0]))[:MOST_PATTERNS]
        masks = np.array([mask for mask, _ in patterns], np.uint64)
        self.counts = np.array([count for _, count in patterns], np.float64)
        self.used = np.array([masks & np.uint64(cells) != 0 for _, cells in known], np.bool_).T.reshape(len(masks), -1)
        self.total = max(float(self.counts.sum()), 1.0)
        self.of_part = self.counts @ self.used if len(self.parts) else np.zeros(0)
        self.is_array = bool(measured["array"])
        visits = max(measured["visits"], 1)
        self.in_order = measured["in_order" if self.is_array else "near"] / visits

    def lines(self, places: Sequence[Place], size: int, used: Bools) -> float:
        """Lines of all visits."""
        pitch = size if self.is_array else chunk(size)
        return float(self.counts @ lines_touched(places, max(pitch, 1), self.is_array, self.in_order, used))

    def now(self) -> float:
        size = self.measured.get("each") or self.measured["size"]
        return self.lines([(part.offset, part.size) for part in self.parts], size, self.used)

    def in_sequence(self, order: Sequence[int]) -> tuple[float, int]:
        """Lines and size if the parts stand in this order."""
        places, size = packed([self.parts[part] for part in order])
        return self.lines(places, size, self.used[:, order]), size

    def split(self, hot: Sequence[int], cold: Sequence[int]) -> tuple[float, int, int]:
        """Lines and both sizes if the parts `cold` stand elsewhere: in an array beside, or behind a pointer."""
        kept = [self.parts[part] for part in hot]
        used = self.used[:, hot]
        away = self.used[:, cold]
        if not self.is_array:
            kept.append(Part("", "", LINK, LINK))
            used = np.column_stack([used, away.any(axis=1)])
        places, size = packed(kept)
        others, rest = packed([self.parts[part] for part in cold])
        return self.lines(places, size, used) + self.lines(others, rest, away), size, rest


def advised(measured: Mapping[str, Any]) -> Json:
    """A row of the profile: the structure, its parts, what is used together, and advice.

    Where the same objects are accessed as other structures, too, it is not known who uses a part that is not touched
    here, and there is no advice; nor is there any where it is not known what lies between the elements of an array.
    """
    visits = _Visits(measured)
    now = visits.now()
    fields = _fields(measured, visits)
    open_ended = [part.name for part in visits.parts if part.is_open]
    idle = [field for field in fields if field["visits"] == 0 and field["field"] not in open_ended]
    untouched = [] if measured["also"] else idle
    return {
        "group": measured["group"],
        "type": measured["type"],
        "size": measured["size"],
        "array": visits.is_array,
        "each": measured.get("each", 0),
        "also": measured["also"],
        "objects": measured["objects"],
        "accesses": sum(measured["loads"]) + sum(measured["stores"]),
        "visits": measured["visits"],
        "in_order": _percent(measured["in_order"], measured["visits"]),
        "near": _percent(measured["near"], measured["visits"]),
        "lines": round(now),
        "fields": fields,
        "together": _together(visits),
        "apart": _apart(visits),
        "unseen": [field["field"] for field in untouched if not field["in_bulk"]],
        "only_in_bulk": [field["field"] for field in untouched if field["in_bulk"]],
        "open": open_ended,
        "unplaced": measured["unplaced"],
        "holes": measured["size"] - sum(part.size for part in visits.parts) if measured["type"] else 0,
        "advice": [] if measured["also"] or measured.get("each") else _advice(visits, now),
    }


def _fields(measured: Mapping[str, Any], visits: _Visits) -> list[Json]:
    rows = []
    for (part, cells), count in zip(parts_of(measured), visits.of_part.tolist()):
        numbers = [cell for cell in range(cells.bit_length()) if cells >> cell & 1]
        rows.append(
            {
                "field": part.name,
                "type": part.type_name,
                "offset": part.offset,
                "size": part.size,
                "loads": sum(measured["loads"][cell] for cell in numbers),
                "stores": sum(measured["stores"][cell] for cell in numbers),
                "in_bulk": max((measured["in_bulk"][cell] for cell in numbers), default=0),
                "visits": round(count),
                "percent": _percent(count, visits.total),
            }
        )
    return rows


def _affinity(visits: _Visits) -> NDArray[np.float64]:
    """Of two parts: visits that touch both over visits that touch either."""
    weighted = visits.used * visits.counts[:, None]
    both = weighted.T @ visits.used
    either = visits.of_part[:, None] + visits.of_part[None, :] - both
    return np.asarray(np.divide(both, either, out=np.zeros_like(both), where=either > 0), np.float64)


def _together(visits: _Visits) -> list[list[str]]:
    """Parts each of which is used together with all others of its list; the hottest begins."""
    near = _affinity(visits) >= TOGETHER
    left = [part for part in np.argsort(-visits.of_part, kind="stable").tolist() if visits.of_part[part] > 0]
    found = []
    while left:
        group = [left.pop(0)]
        for part in list(left):
            if all(near[part, other] for other in group):
                group.append(part)
                left.remove(part)
        if len(group) > 1:
            found.append([visits.parts[part].name for part in sorted(group)])
    return found


def _apart(visits: _Visits) -> list[list[str]]:
    """Pairs of parts that matter and are rarely touched by one visit, those that matter most first."""
    affinity = _affinity(visits)
    matter = [part for part in range(len(visits.parts)) if visits.of_part[part] >= MATTERS * visits.total]
    pairs = [(a, b) for a in matter for b in matter if a < b and affinity[a, b] <= APART]
    pairs.sort(key=lambda pair: (-min(visits.of_part[pair[0]], visits.of_part[pair[1]]), pair))
    return [[visits.parts[a].name, visits.parts[b].name] for a, b in pairs[:10]]


def _advice(visits: _Visits, now: float) -> list[Json]:
    """What would save lines, the most first; of one kind the best."""
    if len(visits.parts) < 2 or now <= 0:
        return []
    by_heat = np.argsort(-visits.of_part, kind="stable").tolist()
    hottest = [part for part in by_heat if not visits.parts[part].is_open]
    last = [part for part in by_heat if visits.parts[part].is_open]
    found = []
    aligned = sorted(hottest, key=lambda part: (-visits.parts[part].alignment, hottest.index(part)))
    orders = [hottest + last, aligned + last]
    best, size, order = min((*visits.in_sequence(order), order) for order in orders)
    if now - best >= WORTH * now:
        found.append(
            {"kind": "reorder", "order": [visits.parts[part].name for part in order], "size": size, **_saved(now, best)}
        )
    splits = []
    for kept in range(1, len(hottest)):
        if visits.of_part[hottest[kept]] < visits.of_part[hottest[kept - 1]]:
            hot, cold = sorted(hottest[:kept] + last), sorted(hottest[kept:])
            splits.append((*visits.split(hot, cold), hot, cold))
    if splits:
        then, size, rest, hot, cold = min(splits)
        if now - then >= WORTH * now and then < best:
            found.append(
                {
                    "kind": "split",
                    "keep": [visits.parts[part].name for part in hot],
                    "move": [visits.parts[part].name for part in cold],
                    "size": size,
                    "moved_size": rest,
                    **_saved(now, then),
                }
            )
    return sorted(found, key=lambda row: -row["bytes_saved"])


def _saved(now: float, then: float) -> Json:
    return {"lines": round(then), "bytes_saved": round((now - then) * LINE), "percent": _percent(now - then, now)}


def _percent(part: float, whole: float) -> float:
    return round(100 * part / whole, 1) if whole else 0.0
