"""`tracekit diff`: new, gone and changed rows, of one build and of two."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.commands.test_merge import CHAINED, FAR, INDEPENDENT, record
from tracekit import api
from tracekit.cli import main
from tracekit.profiles.diff import compare
from tracekit.profiles.profile import Profile
from tracekit.render.diff import diff_text
from tracekit.render.text import Style


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Profile files of camp, by run."""
    folder = tmp_path_factory.mktemp("diff")
    made = {}
    runs = (
        ("independent", INDEPENDENT, 7, False),
        ("chained", CHAINED, 7, False),
        ("far", FAR, 7, False),
        ("moved", CHAINED, 6, False),
        ("rebuilt", FAR, 7, True),
    )
    for name, addresses, line, more in runs:
        made[name] = str(folder / f"{name}.profile")
        api.analyze(record(folder / f"{name}.zst", addresses, line, more), "camp").save(made[name])
    return made


def diff(capsys: pytest.CaptureFixture[str], *words: str) -> Any:
    assert main(["diff", "--json", *words]) == 0
    return json.loads(capsys.readouterr().out)


def test_new_and_gone_dependences_and_changed_verdicts(
    files: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    found = diff(capsys, files["independent"], files["chained"])
    assert found["matched_by"] == "id"
    (new,) = found["tables"]["dependences"]["new"]
    assert (new["kind"], new["count"], found["tables"]["dependences"]["gone"]) == ("RAW", 3, [])
    (loop,) = found["tables"]["loops"]["changed"]
    assert loop["changes"]["verdict"] == {"before": "doall", "after": "pipeline"}
    assert loop["changes"]["iterations"] == {"before": 5, "after": 4, "factor": 0.8}
    assert loop["changes"]["carried.raw"] == {"before": 0, "after": 1, "factor": None}
    assert "invocations" not in loop["changes"]
    back = diff(capsys, files["chained"], files["independent"])
    assert (back["tables"]["dependences"]["gone"], back["tables"]["dependences"]["new"]) == ([new], [])


def test_counts_and_distances_that_changed(files: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    found = diff(capsys, files["chained"], files["far"])["tables"]["dependences"]
    (row,) = found["changed"]
    assert row["changes"] == {"distance": {"before": [1, 1], "after": [3, 3]}}
    assert (found["new"], found["gone"], found["same"]) == ([], [], 0)


def test_two_builds_are_matched_by_place(files: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    found = diff(capsys, files["chained"], files["rebuilt"])
    assert found["matched_by"] == "place"
    dependences = found["tables"]["dependences"]
    assert not dependences["new"] and not dependences["gone"]  # though all ids differ
    assert dependences["changed"][0]["changes"] == {"distance": {"before": [1, 1], "after": [3, 3]}}
    moved = diff(capsys, files["chained"], files["moved"])["tables"]["loops"]
    assert (moved["new"][0]["loop"]["line"], moved["gone"][0]["loop"]["line"]) == (6, 7)
    assert main(["diff", files["chained"], files["moved"]]) == 0
    assert "matched by function, line, column and kind, not by id." in capsys.readouterr().out


@pytest.mark.parametrize("same_build", [True, False])
def test_a_loop_that_carries_is_the_same_in_another_folder(same_build: bool) -> None:
    """A build that was moved has other folders."""

    def profile(folder: str) -> Profile:
        loop, load, store = (
            {"id": f"a:{row}", "file": f"{folder}/a.c", "line": row, "column": 1, "function": "f", "kind": kind}
            for row, kind in enumerate(("", "load", "store"))
        )
        level = {"loop": loop, "inter": True, "min_distance": 1, "max_distance": 1}
        row = {"kind": "RAW", "source": store, "destination": load, "count": 1, "levels": [level]}
        report = {"module": "x", "options": {}, "result": {"dependences": [row]}}
        return Profile(report, {}, True, build=(("unit",),) if same_build else ())

    table = compare(profile("one"), profile("two"))["tables"]["dependences"]
    assert (table["new"], table["gone"], table["changed"]) == ([], [], [])


def test_a_run_that_loaded_more_libraries_is_of_the_same_build() -> None:
    def profile(*build: tuple[str, ...]) -> Profile:
        return Profile({"module": "x", "options": {}, "result": {}}, {}, True, build=build)

    one, more, other = profile(("app",)), profile(("app",), ("plugin",)), profile(("app",), ("other",))
    assert [compare(*each)["matched_by"] for each in ((one, more), (more, one), (more, other))] == ["id", "id", "place"]


def loops_profile(*rows: tuple[str, int], **options: Any) -> Profile:
    """Of a loop a row for each verdict and number of iterations, of builds that are not known."""
    loop = {"file": "a.c", "line": 7, "column": 1, "function": "f"}
    report = {
        "module": "x",
        "options": options,
        "result": {"loops": [{"loop": loop, "verdict": verdict, "iterations": count} for verdict, count in rows]},
    }
    return Profile(report, {}, True)


def test_rows_that_a_place_does_not_tell_apart_are_one_with_the_worst_verdict() -> None:
    for rows in ((("doall", 3), ("sequential", 4)), (("sequential", 4), ("doall", 3))):
        (table,) = compare(loops_profile(*rows), loops_profile(("sequential", 7)))["tables"].values()
        assert (table["new"], table["gone"], table["changed"], table["same"]) == ([], [], [], 1)
        ((row,),) = (
            each["changed"] for each in compare(loops_profile(*rows), loops_profile(("doall", 8)))["tables"].values()
        )
        assert row["changes"] == {
            "verdict": {"before": "sequential", "after": "doall"},
            "iterations": {"before": 7, "after": 8, "factor": 8 / 7},
        }


def test_other_options_are_said() -> None:
    one, same, other = loops_profile(granule=8), loops_profile(granule=8), loops_profile(granule=16)
    assert not compare(one, same)["options_differ"]
    difference = compare(one, other)
    assert difference["options_differ"]
    said = "The options differ: some differences may come of that."
    assert said in diff_text(difference, ("one", "other"), 1.0, 0, Style(False))
    assert said not in diff_text(compare(one, same), ("one", "same"), 1.0, 0, Style(False))


def test_text(files: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diff", files["independent"], files["chained"]]) == 0
    out = capsys.readouterr().out
    for line in (
        "DEPENDENCES: 1 new, 0 gone, 0 changed, 0 the same",
        "+ RAW store app.c:9:1 main -> load app.c:8:1 main  (count 3)",
        "    in main > loop main:7  [1]",
        "~ app.c:7:1 main",
        "    verdict doall -> pipeline",
        "    iterations 5 -> 4 (x0.8)",
    ):
        assert line in out.splitlines()
    assert main(["diff", "--factor", "1.5", files["far"], files["far"]]) == 0
    assert "LOOPS: 0 new, 0 gone, 0 changed, 1 the same" in capsys.readouterr().out


def test_exit_statuses(files: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diff", "--exit-code", files["far"], files["far"]]) == 0
    assert main(["diff", "--exit-code", files["far"], files["chained"]]) == 1
    assert main(["diff", files["far"], str(tmp_path / "no")]) == 2
    assert "Cannot read" in capsys.readouterr().err
    lamp = tmp_path / "lamp"
    api.analyze(files["far"].replace(".profile", ".zst"), "lamp").save(lamp)
    assert main(["diff", files["far"], str(lamp)]) == 2
    assert "have no module in common: camp; lamp." in capsys.readouterr().err


def test_tables_of_one_run_are_not_compared_and_values_are(
    files: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("far", "chained"):
        api.analyze(files[name].replace(".profile", ".zst"), "footprint", granule=8).save(tmp_path / name)
    found = diff(capsys, str(tmp_path / "chained"), str(tmp_path / "far"))
    assert found["not_compared"] == ["slices"] and not found["tables"]
    assert found["values"]["summary.bytes"]["factor"] > 1
    assert main(["diff", str(tmp_path / "chained"), str(tmp_path / "far")]) == 0
    assert "slices: rows of one run, not compared." in capsys.readouterr().out


def test_structures_are_compared_by_group_and_type_and_pairs_by_both_ends() -> None:
    group = {"kind": "global", "name": "table"}
    fields = [{"field": "x", "type": "int", "offset": 0, "size": 4, "loads": 1}]
    ends = {
        name: {"id": f"a:{row}", "file": "a.c", "line": row, "column": 1, "function": "f", "kind": name}
        for row, name in enumerate(("store", "load"))
    }
    before = {
        "structures": [{"group": group, "type": "node", "size": 16, "array": True, "lines": 3, "fields": fields}],
        "clusters": [
            {"first": {"group": group, "type": "node"}, "then": {"group": group, "type": "edge"}, "visits": 4}
        ],
        "dependences": [{**ends, "percent": 50.0, "loads": 10}],
        "hot_streams": [{"heat": 10, "percent": 5.0, "accesses": 2, "times": 5, "lines": ["a.c:1"]}],
    }
    after = json.loads(json.dumps(before))
    after["structures"][0] |= {"size": 8, "lines": 2}
    after["structures"][0]["fields"][0]["loads"] = 3
    after["clusters"][0]["visits"] = 5
    after["dependences"][0]["percent"] = 25.0
    after["hot_streams"][0]["heat"] = 20
    one, two = (Profile({"module": "x", "options": {}, "result": each}, {}, True) for each in (before, after))
    found = compare(one, two)
    changes = {name: [set(row["changes"]) for row in table["changed"]] for name, table in found["tables"].items()}
    assert changes == {
        "structures": [{"size", "lines", "fields.x.loads"}],
        "clusters": [{"visits"}],
        "dependences": [{"percent"}],
        "hot_streams": [{"heat"}],
    }
    text = diff_text(found, ("one", "two"), 1.0, 0, Style(False))
    for told in (
        "~ node in global table",
        "node in global table, then edge in global table",
        "~ store a.c",
        "-> load a.c",
    ):
        assert told in text
