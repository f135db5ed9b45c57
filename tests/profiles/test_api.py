"""The Python interface: profiles as objects, data frames, batches of chosen events (docs/python-api.md runs it all)."""

from __future__ import annotations

import importlib.util
import json
import random
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import tracekit
from tests.naive.random_program import RandomProgram
from tests.naive.trace_file import write_trace
from tests.naive.walker import Walk
from tracekit.formats.errors import TracekitError
from tracekit.profiles.profile import Profile

RESULT: dict[str, Any] = {
    "loops": [
        {"loop": {"file": "a.c", "line": 3}, "verdict": "doall", "recipe": []},
        {"loop": {"file": "b.c", "line": 4}, "verdict": "sequential", "recipe": [1]},
    ],
    "dependences": [],
    "summary": {"dependences": 0},
}


def made(result: Mapping[str, Any], complete: bool = True, **more: Any) -> Profile:
    report = {"tracekit": "1", "module": "camp", "trace": "0", "options": {}, **more, "result": dict(result)}
    return Profile(report, {}, complete)


def test_what_a_profile_shows_of_itself() -> None:
    assert repr(made(RESULT)) == "<profile camp; loops: 2 rows, dependences: 0 rows, summary>"
    assert repr(made({"n": 1}, False, window={"from": "5%"})) == (
        "<profile camp, from 5%, of a trace that is cut off; n>"
    )


def test_json_is_the_command_lines() -> None:
    assert json.loads(made(RESULT).to_json()) == made(RESULT).report


def frames(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let only the library `name` be installed: one that notes what it is given."""
    library = ModuleType(name)
    library.DataFrame = lambda rows, **how: (name, rows, how)  # type: ignore[attr-defined]
    monkeypatch.setitem(__import__("sys").modules, name, library)
    monkeypatch.setattr(importlib.util, "find_spec", lambda wanted: library if wanted == name else None)


@pytest.mark.parametrize(("library", "how"), [("pandas", {}), ("polars", {"infer_schema_length": None})])
def test_tables_become_frames_of_whichever_library_there_is(
    library: str, how: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    frames(library, monkeypatch)
    assert made(RESULT).to_dataframe("loops") == (
        library,
        [
            {"loop.file": "a.c", "loop.line": 3, "verdict": "doall", "recipe": []},
            {"loop.file": "b.c", "loop.line": 4, "verdict": "sequential", "recipe": [1]},
        ],
        how,
    )


def test_the_only_table_need_not_be_named(monkeypatch: pytest.MonkeyPatch) -> None:
    frames("pandas", monkeypatch)
    assert made({"rows": [{"a": 1}], "n": 3}).to_dataframe() == ("pandas", [{"a": 1}], {})
    with pytest.raises(TracekitError, match="has the tables loops, dependences, not None"):
        made(RESULT).to_dataframe()


def test_without_a_library_there_is_no_frame(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda wanted: None)
    with pytest.raises(TracekitError, match="needs pandas or polars"):
        made(RESULT).to_dataframe("loops")


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_real_frames(library: str, monkeypatch: pytest.MonkeyPatch) -> None:
    real = pytest.importorskip(library)
    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: found(name) if name == library else None)
    frame = made(RESULT).to_dataframe("loops")
    assert isinstance(frame, real.DataFrame)
    assert list(frame.columns) == ["loop.file", "loop.line", "verdict", "recipe"]
    assert list(frame["loop.line"]) == [3, 4]


def test_an_event_or_column_that_there_is_not_is_a_sentence(tmp_path: Path) -> None:
    rng = random.Random(2)
    program = RandomProgram(rng)
    walk = Walk(program, rng, [], budget=20)
    walk.run()
    write_trace(tmp_path / "trace.zst", program.layout, {0: walk.records()})
    with tracekit.open(tmp_path / "trace.zst") as trace:
        with pytest.raises(TracekitError, match=r"There is no event loads; see tracekit modules --events\."):
            next(iter(trace.batches(["loads"])))
        with pytest.raises(
            TracekitError, match=r"There is no column adress; there are subject, address, size, value, and group"
        ):
            next(iter(trace.batches(columns=["adress"])))
