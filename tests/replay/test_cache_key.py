"""The key that the code of a path is found by, against the text that the code is made from."""

from __future__ import annotations

import random
from collections.abc import Iterator

import numpy as np
import pytest

from tests.naive.random_program import RandomProgram
from tests.naive.walker import Walk
from tests.replay.test_derive import Records
from tracekit.formats.events import CODE
from tracekit.replay.compiled.cache_key import path_key
from tracekit.replay.compiled.handled_events import HandledEvents
from tracekit.replay.compiled.path_code import PathCode
from tracekit.replay.engine import Replay
from tracekit.replay.kernels.layouts import GROUP, NEVER, Tables

HANDLED = HandledEvents(frozenset(CODE.values()), frozenset(), False)


def tables_of(seed: int) -> Tables:
    """The tables of a random program, with the templates of all its paths."""
    made = RandomProgram(random.Random(seed))
    replay = Replay(Records({0: Walk(made, random.Random(seed), []).records()}), made.program)
    return replay.template_cache.add(replay.tables, np.arange(len(replay.tables.templates), dtype=np.uint32))


def paths_of(tables: Tables) -> list[int]:
    """Those that have a template."""
    return np.flatnonzero(tables.templates["room"] != NEVER).tolist()


def text_and_key(tables: Tables, number: int) -> tuple[str, bytes]:
    return PathCode(tables, HANDLED, (), number).text(), path_key(tables, (), number)


def elements(tables: Tables, number: int) -> Iterator[tuple[np.ndarray, int]]:
    """Each field that the template of a path has in its rows, and where it stands there."""
    path = tables.templates[number]
    first, events = int(path["first_template_event"]), int(path["template_events"])
    groups = tables.template_events[first : first + -(-events // GROUP)]
    yield from ((groups[name], at) for name in groups.dtype.names for at in range(groups[name].size))
    for name in ("defines", "changes"):
        begin = int(path[f"first_{name[:-1]}"])
        rows = getattr(tables, name)[begin : begin + int(path[name])]
        yield from ((rows[field], at) for field in rows.dtype.names for at in range(rows[field].size))


def test_what_changes_the_text_of_a_path_changes_its_key() -> None:
    changed = 0
    for tables in map(tables_of, range(4)):
        for number in paths_of(tables)[:12]:
            before = text_and_key(tables, number)
            for column, at in elements(tables, number):
                old = column.flat[at]
                column.flat[at] = old ^ 1
                text, key = text_and_key(tables, number)
                column.flat[at] = old
                assert text == before[0] or key != before[1]
                changed += text != before[0]
    assert changed > 50


@pytest.mark.parametrize("seed", range(3))
def test_where_the_rows_of_a_path_lie_is_not_in_its_key(seed: int) -> None:
    tables = tables_of(seed)
    shift = 3
    moved = {
        name: np.concatenate([np.ones(rows * shift, getattr(tables, name).dtype), getattr(tables, name)])
        for name, rows in {
            "template_events": 1,
            "strides": GROUP,
            "dynamic_steps": 1,
            "defines": 1,
            "changes": 1,
        }.items()
    }
    templates = tables.templates.copy()
    for name in ("first_template_event", "first_dynamic_step", "first_define", "first_change"):
        templates[name] += shift
    moved["dynamic_steps"]["first_template_event"] += shift
    elsewhere = tables._replace(templates=templates, **moved)
    numbers = paths_of(tables)
    assert [text_and_key(tables, number) for number in numbers] == [
        text_and_key(elsewhere, number) for number in numbers
    ]
