"""Tables of what is wrong with a program: data races, errors of memory, leaks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tracekit.query.places import (
    OBJECT_COLUMNS,
    context_cell,
    context_column,
    instruction_cells,
    instruction_columns,
    object_cells,
)
from tracekit.query.schema import Column, Json, Table, number, numbers, text, words
from tracekit.render.memory_errors import HEADINGS
from tracekit.render.places import code_text
from tracekit.render.races import lock_name

NOTHING = "nothing"
"""The locks of a thread that holds none."""


def _end_columns(prefix: str, which: str) -> tuple[Column, ...]:
    return (
        text(
            f"{prefix}access",
            f"of {which}: load, store, atomic load, atomic store, free, use, initialise, destroy, open, close",
        ),
        *instruction_columns(prefix, which),
        context_column(f"{prefix}context", which),
        numbers(f"{prefix}threads", f"the threads that {which} was seen in, as the trace numbers their streams"),
        numbers(f"{prefix}tasks", f"the tasks of OpenMP that {which} was seen in"),
        words(f"{prefix}locks", f"each set of locks that was held at {which}, joined by +; {NOTHING} if none was"),
    )


def _end_cells(end: Json) -> tuple[Any, ...]:
    return (
        end["access"],
        *instruction_cells(end["instruction"]),
        context_cell(end["context"]),
        end["threads"],
        end.get("tasks", []),
        [" + ".join(map(lock_name, locks)) or NOTHING for locks in end["locks"]],
    )


def _races(report: Json) -> Iterator[tuple[Any, ...]]:
    for race, row in enumerate(report["result"]["races"], 1):
        shared, turned = row.get("one_thread"), row.get("other_lock_order")
        yield (
            race,
            *_end_cells(row["first"]),
            *_end_cells(row["second"]),
            row["count"],
            *object_cells(row["object"]),
            row["number"],
            row["offset"],
            shared["region"] if shared else None,
            code_text(shared["loop"]) if shared and shared["loop"] else None,
            lock_name({**turned, "shared": False}) if turned else None,
        )


def _errors(report: Json) -> Iterator[tuple[Any, ...]]:
    for row in report["result"]["errors"]:
        freed = row["freed"] or {}
        yield (
            row["kind"],
            *instruction_cells(row["instruction"])[1:],
            context_cell(row["context"]),
            row["count"],
            row["size"] or None,
            row["offset"],
            row["object_size"],
            *object_cells(row["object"]),
            *instruction_cells(freed.get("instruction"))[1:],
            context_cell(freed.get("context")),
        )


def _leaks(report: Json) -> Iterator[tuple[Any, ...]]:
    for row in report["result"]["leaks"]:
        yield (row["blocks"], row["bytes"], row.get("reach"), row["allocated_by"], *object_cells(row["object"]))


def _of_object() -> tuple[Column, ...]:
    return tuple(column._replace(name=f"object_{column.name}") for column in OBJECT_COLUMNS)


TABLES = (
    Table(
        "races",
        ("races",),
        "Data races: two accesses to a common byte that nothing orders.",
        (
            number("race", "a number, from 1"),
            *_end_columns("first_", "the first access"),
            *_end_columns("second_", "the second access"),
            number("count", "how often it was found"),
            *_of_object(),
            number("object_number", "which of the site's objects raced first, from 0"),
            number("offset", "the first byte of it that raced first; an address if the object is unknown"),
            text("shared_region", "loop or single: what the second lies in, if one thread ran both"),
            text("shared_loop", "the loop whose iterations one thread ran, where another one could have run either"),
            text("turned_lock", "the lock that ordered the two in this run, of a race that another order of locks has"),
        ),
        _races,
    ),
    Table(
        "memory_errors",
        ("memory_errors",),
        "Errors of memory: reads of what was never written, accesses outside of objects, wrong frees.",
        (
            text("kind", ", ".join(HEADINGS)),
            *instruction_columns()[1:],
            context_column("context", "the access"),
            number("count", "how often"),
            number("size", "bytes accessed, the first time"),
            number("offset", "where in the object; NULL if its size is not known"),
            number("object_size", "bytes of the object; NULL if not known"),
            *_of_object(),
            *(
                column._replace(doc=f"of the free before, if there was one: {column.doc}")
                for column in instruction_columns("freed_", "the free")[1:]
            ),
            context_column("freed_context", "the free"),
        ),
        _errors,
    ),
    Table(
        "leaks",
        ("memory_errors",),
        "Heap blocks that nobody freed, by allocation site.",
        (
            number("blocks", "how many"),
            number("bytes", "of all of them"),
            text(
                "reached",
                "definitely_lost, indirectly_lost, possibly_lost, still_reachable or unknown, at the end",
            ),
            text("allocated_by", "program, or library: who asked for them"),
            *_of_object(),
        ),
        _leaks,
    ),
)
