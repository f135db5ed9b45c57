"""Values that rows of a profile file share: what is written once comes back in every row."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tracekit.formats.errors import TracekitError
from tracekit.profiles import files
from tracekit.profiles.profile import Profile
from tracekit.profiles.shared import SHORT


def profile(result: dict[str, Any]) -> Profile:
    report = {"tracekit": "0", "module": "of_someone", "trace": "00", "options": {}, "result": result}
    return Profile(report, {}, complete=True)


names = st.sampled_from(["shared", "context", "path", "a name that is longer than what is written in its place"])
values = st.recursive(
    st.none() | st.integers(-9, 9) | names,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
    max_leaves=6,
)
results = st.dictionaries(names, values | st.lists(st.dictionaries(names, values, max_size=3), max_size=6), max_size=3)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(results, min_size=1, max_size=3))
def test_what_is_shared_comes_back(tmp_path: Path, several: list[dict[str, Any]]) -> None:
    """Also values that look like the number of a shared one."""
    path = tmp_path / "a.profile"
    files.save(path, [profile(result) for result in several])
    assert [each.result for each in files.load(path)] == several


CONTEXTS = [{"id": number, "root": "main", "path": [f"main:{line}:3" for line in range(40)]} for number in range(3)]


def rows(count: int) -> list[dict[str, Any]]:
    return [{"context": copy.deepcopy(CONTEXTS[number % 3]), "count": number} for number in range(count)]


def test_a_context_of_many_rows_is_written_once(tmp_path: Path) -> None:
    path = tmp_path / "a.profile"
    files.save(path, [profile({"dependences": rows(300)})])
    written = json.loads(path.read_text())
    assert written["shared"] == CONTEXTS
    assert written["result"]["dependences"][5] == {"context": {"shared": 2}, "count": 5}
    assert all(len(line) < len('{"context": , "count": 300},') + SHORT for line in path.read_text().split("\n")[2:300])


def test_what_is_printed_shares_nothing(tmp_path: Path) -> None:
    printed = profile({"dependences": rows(3)}).to_json()
    assert json.loads(printed)["result"]["dependences"] == rows(3)
    path = tmp_path / "a.json"
    path.write_text(printed)
    assert files.load(path)[0].result == {"dependences": rows(3)}


def test_files_of_the_first_format_are_read_as_they_are(tmp_path: Path) -> None:
    path = tmp_path / "a.profile"
    files.save(path, [profile({})])
    old = json.loads(path.read_text()) | {"format": 1, "result": {"t": [{"of": {"shared": 0}}, *rows(3)]}}
    path.write_text(json.dumps(old))
    assert files.load(path)[0].result == {"t": [{"of": {"shared": 0}}, *rows(3)]}


@pytest.mark.parametrize("number", [3, -1, 1.0, True, "0", None, [0]])
def test_a_number_that_no_value_has_is_refused(tmp_path: Path, number: object) -> None:
    path = tmp_path / "a.profile"
    files.save(path, [profile({"dependences": rows(9)})])
    written = json.loads(path.read_text())
    written["result"]["dependences"][4]["context"] = {"shared": number}
    path.write_text(json.dumps(written))
    with pytest.raises(TracekitError, match=r"a.profile is no profile: a row names a value that the file lacks\."):
        files.load(path)


def test_numbers_without_a_list_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.profile"
    files.save(path, [profile({"dependences": rows(9)})])
    written = json.loads(path.read_text())
    del written["shared"]
    path.write_text(json.dumps(written))
    with pytest.raises(TracekitError, match="a row names a value that the file lacks"):
        files.load(path)


def test_shared_values_are_a_list(tmp_path: Path) -> None:
    path = tmp_path / "a.profile"
    files.save(path, [profile({"dependences": rows(9)})])
    path.write_text(json.dumps(json.loads(path.read_text()) | {"shared": {}}))
    with pytest.raises(TracekitError, match="its `shared` is missing or of the wrong kind"):
        files.load(path)
