"""`tracekit merge` of the modules that look at objects, on runs of fixtures/merge/inputs.c with other inputs."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

import tracekit as tk
from tests.programs.running import FIXTURES, compile_program, record, tracekit
from tracekit.cli import main
from tracekit.formats.events import NONE

SOURCE = FIXTURES / "merge" / "inputs.c"
LINES = list(enumerate(SOURCE.read_text().splitlines(), 1))
RUNS = {"reads": [], "keeps": ["x"], "both": ["x", "y"]}
LOOP = f"inputs.c:{next(number for number, line in LINES if 'loop OUTER' in line)}"


def line_of(text: str) -> int:
    return next(number for number, line in LINES if f"// {text}" in line)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of each run a trace, a profile file of three modules and one of the preset."""
    made: Path = tmp_path_factory.mktemp("inputs")
    program = compile_program(
        [SOURCE, SOURCE.with_name("inputs_step.c")],
        made / "app",
        ["-O1", "-g", "--pointers", "--values=loads"],
        instrumented=True,
    )
    for name, arguments in RUNS.items():
        record(program, arguments).trace.rename(made / f"{name}.zst")
        tracekit(
            "analyze",
            "-m",
            "object_lifetime",
            "-m",
            "points_to",
            "-m",
            "privateer",
            "-o",
            made / name,
            made / f"{name}.zst",
        )
        tracekit("analyze", "-m", "perspective", "-o", made / f"{name}.preset", made / f"{name}.zst")
    return made


def merged(folder: Path, *runs: str) -> dict[str, Any]:
    """Module -> its result, of the runs joined."""
    files = [str(folder / run) for run in runs]
    found = json.loads(tracekit("merge", "--json", *files))
    return {profile["module"]: profile["result"] for profile in found}


def sites(result: Any) -> dict[tuple[int, str], Any]:
    """The heap sites of main's objects by line and the step of the context that led there."""
    return {
        (row["object"]["site"]["line"], row["object"]["context"]["path"][-1]): row
        for row in result["sites"]
        if row["object"]["kind"] == "heap" and row["object"]["site"]["line"] in (line_of("room"), line_of("scrap"))
    }


def scope_of(row: Any) -> str:
    loop = row["scope"].get("loop")
    return row["scope"]["kind"] + (f" {loop['file'].rpartition('/')[2]}:{loop['line']}" if loop else "")


def test_the_scope_of_a_site_is_the_widest_of_all_runs(folder: Path) -> None:
    scrap = (line_of("scrap"), f"loop main:{LOOP.partition(':')[2]}")
    one, other, both = (
        sites(merged(folder, *runs)["object_lifetime"]) for runs in (["reads"], ["keeps"], ["reads", "keeps"])
    )
    assert [scope_of(each[scrap]) for each in (one, other, both)] == [f"iteration {LOOP}", "run", "run"]
    assert [(each[scrap]["objects"], each[scrap]["never_freed"]) for each in (one, other, both)] == [
        (8, 0),
        (8, 1),
        (16, 1),
    ]
    assert [life["objects"] for life in both[scrap]["lives"]] == [1, 15]


def test_contexts_match_by_structure(folder: Path) -> None:
    one, other, both = (
        sites(merged(folder, *runs)["object_lifetime"]) for runs in (["reads"], ["keeps"], ["reads", "keeps"])
    )
    rooms = {path.partition(":")[0] for line, path in both if line == line_of("room")}
    assert rooms == {"from_here", "from_there"}
    for key in (one.keys() ^ other.keys()) & both.keys():
        assert both[key] == {**one, **other}[key]  # the same row, with the same context, as in the run that had it
        assert scope_of(both[key]) == f"iteration {LOOP}"


def test_a_pointer_points_to_what_it_did_in_any_run(folder: Path) -> None:
    def chosen(*runs: str) -> tuple[int, set[str]]:
        (row,) = [
            row
            for row in merged(folder, *runs)["points_to"]["pointers"]
            if row["instruction"]["line"] == line_of("chosen") and row["instruction"]["kind"] == "pointer"
        ]
        return row["count"], {each.get("name") or f"heap:{each['site']['line']}" for each in row["objects"]}

    assert chosen("reads") == (8, {f"heap:{line_of('scrap')}"})
    assert chosen("keeps") == (8, {"weights"})
    assert chosen("reads", "keeps") == (16, {"weights", f"heap:{line_of('scrap')}"})


def names(objects: Any) -> set[str]:
    return {
        each["name"] if each["kind"] == "global" else f"heap:{each['context']['path'][-1].partition(':')[0]}"
        for each in objects
        if each["kind"] != "unknown"
    }


def outer(folder: Path, *runs: str) -> dict[str, set[str]]:
    """The sets of the outer loop."""
    (row,) = [
        row
        for row in merged(folder, *runs)["privateer"]["loops"]
        if LOOP.endswith(f":{row['loop']['line']}") and row["loop"]["file"].endswith("inputs.c")
    ]
    return {name: names(row[name]) for name in ("reads", "writes", "reductions", "short_lived")}


def test_an_object_is_classified_by_what_all_runs_did(folder: Path) -> None:
    one, other, both = outer(folder, "reads"), outer(folder, "keeps"), outer(folder, "reads", "keeps")
    assert "total" in one["reads"] and "total" not in one["writes"]  # read only
    assert "total" in other["reductions"]
    assert "total" in both["reads"] and "total" in both["writes"]  # neither holds of both
    assert both["reductions"] == {"count", "shared"}
    assert "heap:loop main" in one["short_lived"] and "heap:loop main" not in both["short_lived"]
    assert both["short_lived"] == {"heap:from_here", "heap:from_there"}


def test_one_operator_in_two_units_is_one(folder: Path) -> None:
    assert "shared" in outer(folder, "both")["reductions"]


def test_any_order_gives_the_same_bytes_and_one_file_is_itself(folder: Path, tmp_path: Path) -> None:
    def merge(*words: str | Path) -> Path:
        target = tmp_path / f"{len(list(tmp_path.iterdir()))}"
        tracekit("merge", *words, "-o", target)
        return target

    files = [folder / run for run in RUNS]
    expected = merge(*files).read_bytes()
    assert merge(*files[::-1]).read_bytes() == expected
    assert merge(files[1], merge(files[2], files[0])).read_bytes() == expected
    assert merge(merge(files[0], files[1]), files[2]).read_bytes() == expected
    assert merge(files[0]).read_bytes() == files[0].read_bytes()
    assert len(json.loads(expected)[0]["traces"]) == 3


def test_perspective_is_merged_member_by_member(folder: Path) -> None:
    files = [folder / "reads.preset", folder / "keeps.preset"]
    found = {each["module"]: each["result"] for each in json.loads(tracekit("merge", "--json", *files))}
    assert list(found) == ["value_pattern", "object_lifetime", "points_to", "dependence"]
    plain = merged(folder, "reads", "keeps")
    assert found["object_lifetime"] == plain["object_lifetime"] and found["points_to"] == plain["points_to"]
    assert found["value_pattern"]["instructions"] == plain["privateer"]["instructions"]
    carried = {(row["source"]["line"], row["destination"]["line"]) for row in found["dependence"]["dependences"]}
    assert carried == {
        pair
        for name in ("reads", "keeps")
        for row in tk.load_profile(folder / f"{name}.preset", "dependence").result["dependences"]
        for pair in [(row["source"]["line"], row["destination"]["line"])]
    }


def test_a_preset_that_chose_another_loop_in_each_run_says_so(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tracekit(
        "analyze",
        "-m",
        "perspective",
        "--carried-by",
        "inputs_step.c:8",
        "-o",
        tmp_path / "other",
        folder / "keeps.zst",
    )
    assert main(["merge", str(folder / "reads.preset"), str(tmp_path / "other")]) == 1
    error = capsys.readouterr().err
    assert re.search(rf"other values of carried_by \(\S*{LOOP}; inputs_step.c:8\); merging needs the same\.$", error)


def test_what_reads_profiles_reads_merged_ones(folder: Path, tmp_path: Path) -> None:
    both = tmp_path / "both"
    tracekit("merge", folder / "reads", folder / "keeps", "-o", both)
    assert "merged of 2 traces" in tracekit("merge", both)
    tracekit("report", both, "-o", tmp_path / "page.html")
    assert "2 traces" in (tmp_path / "page.html").read_text()
    text = tracekit("diff", folder / "reads", both)
    line = LOOP.partition(":")[2]
    assert f"+ heap inputs.c:{line_of('room')}:12, made in ... > loop main:{line} > main" in text
    assert f"    scope iteration of main:{line} -> run\n" in text
    assert "    objects none -> global weights: start 8\n" in text
    assert re.search(r"    writes none -> .*; global total", text)
    text = tracekit("diff", folder / "keeps", both)
    assert "    reductions global total by + -> none\n" in text
    assert main(["diff", "--exit-code", str(both), str(both)]) == 0


def merged_with(damage: Any, folder: Path, tmp_path: Path) -> int:
    """The status of merging a profile and one with other tables of evidence."""
    whole = tmp_path / "whole"
    tk.load_profile(folder / "keeps", "privateer").save(whole)
    profile = json.loads(whole.read_text())
    profile["traces"] = ["another"]
    profile["evidence"] |= damage
    bad = tmp_path / "bad"
    bad.write_text(json.dumps(profile))
    return main(["merge", str(whole), str(bad)])


@pytest.mark.parametrize(
    "damage",
    [
        {"sites": {"kind": [1], "site": [0], "node": [77], "calls": [[NONE] * 4]}},
        {"sites": {"kind": [1], "site": [1 << 20], "node": [0], "calls": [[NONE] * 4]}},
        {"sites": {"kind": [3], "site": [1 << 20], "node": [0], "calls": [[NONE] * 4]}},
        {"sites": {"kind": [1], "site": [0], "node": [0], "calls": [[0, 0, 0]]}},
        {"lifetimes": {"site": [99], "objects": [1], "bytes": [1], "never_freed": [0]}},
        {"lifetimes": {"site": [NONE], "objects": [1], "bytes": [1], "never_freed": [0]}},
        {"pointers": {"instruction": [0], "site": [0], "what": [9], "count": [1]}},
        {"sets": {"loop": [99], "site": [0], "reads": [1], "writes": [0], "operator": [-1]}},
        {"sets": {"loop": [0], "site": [0], "reads": [1], "writes": [0], "operator": [1 << 40]}},
        {"nodes": {"parent": [0], "kind": [0], "function": [0], "loop": [0], "call": [0], "camp_id": [0]}},
        {"loops": {}},
        {"loops": {"loop": ["x"], "accesses": [1]}},
    ],
)
def test_damaged_evidence_is_refused_in_a_sentence(
    damage: Any, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert merged_with(damage, folder, tmp_path) == 1
    assert capsys.readouterr().err.startswith("tracekit: A profile is damaged: its ")


def test_callers_that_do_not_exist_are_refused(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    evidence = tk.load_profile(folder / "keeps", "privateer").evidence
    assert evidence is not None
    sites = evidence["sites"]
    calls = [[0, NONE, NONE, NONE] for _ in sites["kind"]]
    assert merged_with({"sites": {**sites, "calls": calls}}, folder, tmp_path) == 0
    calls[-1] = [0, 1 << 20, NONE, NONE]
    assert merged_with({"sites": {**sites, "calls": calls}}, folder, tmp_path) == 1
    assert capsys.readouterr().err == "tracekit: A profile is damaged: its evidence names ops that do not exist.\n"
