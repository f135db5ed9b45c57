"""Profile files and `tracekit merge`, on runs of one small program that differ in what they touch."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import zstandard

import tracekit
from tests.naive.program_builder import ProgramBuilder
from tests.naive.trace_file import write_trace
from tracekit import api
from tracekit.cli import main
from tracekit.formats.events import NONE
from tracekit.formats.image import BlockFlag, OpKind


def record(path: Path, addresses: Sequence[Sequence[int]], line: int = 7, more: bool = False) -> Path:
    """main runs a loop: in each iteration a load of line 8 and a store of line 9, of 8 bytes at the addresses."""
    b = ProgramBuilder()
    f = b.function("main")
    entry = b.block(f, BlockFlag.ENTRY)
    loop = b.loop(f, line=line)
    header = b.block(f, BlockFlag.LOOP_HEADER, loop)
    body = b.block(f, BlockFlag.LATCH, loop)
    b.op(body, OpKind.LOAD, 8, line=8)
    b.op(body, OpKind.STORE, 8, line=9)
    leave = b.block(f, BlockFlag.RETURNS)
    if more:  # another build, with the same code in it
        b.path(b.block(b.function("unused"), BlockFlag.ENTRY | BlockFlag.RETURNS))
    paths = [b.path(block) for block in (entry, header, body, leave)]
    enter, test, work, end = (b.layout().path_number(each) for each in paths)
    records: list[tuple[int, list[int]]] = [(enter, [])]
    for each in addresses:
        records += [(test, []), (work, list(each))]
    write_trace(path, b.layout(), {0: [*records, (test, []), (end, [])]})
    return path


INDEPENDENT = [(4096 + 8 * number, 8192 + 8 * number) for number in range(5)]
CHAINED = [(4096 + 8 * number, 4104 + 8 * number) for number in range(4)]
FAR = [(4096 + 8 * number, 4120 + 8 * number) for number in range(6)]
ONCE = [(4096, 8192)]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """camp's profile file of each run."""
    folder = tmp_path_factory.mktemp("merge")
    made = {}
    for name, addresses in (("independent", INDEPENDENT), ("chained", CHAINED), ("far", FAR), ("once", ONCE)):
        made[name] = folder / f"{name}.profile"
        api.analyze(record(folder / f"{name}.zst", addresses), "camp").save(made[name])
    api.analyze(record(folder / "other.zst", INDEPENDENT, line=6), "camp").save(folder / "other.profile")
    return {**made, "other": folder / "other.profile"}


def merged(*files: Path, tmp: Path) -> dict[str, Any]:
    target = tmp / "merged.profile"
    assert main(["merge", *map(str, files), "-o", str(target)]) == 0
    content: dict[str, Any] = json.loads(target.read_text())
    return content | {"result": tracekit.load_profile(target).result}


def test_a_dependence_is_there_if_any_run_shows_it(files: dict[str, Path], tmp_path: Path) -> None:
    both = merged(files["independent"], files["chained"], tmp=tmp_path)
    (row,) = both["result"]["dependences"]
    assert (row["kind"], row["count"]) == ("RAW", 3)
    (loop,) = both["result"]["loops"]
    assert (loop["verdict"], loop["iterations"], loop["accesses"], loop["invocations"]) == ("pipeline", 9, 18, 2)
    assert both["result"]["summary"]["parallel_loops_camp"] == 1
    assert both["facts"] == {"accesses": 18}
    assert sorted(both["traces"]) == both["traces"] and "trace" not in both and len(both["traces"]) == 2


def test_counts_add_and_distances_combine(files: dict[str, Path], tmp_path: Path) -> None:
    (row,) = merged(files["far"], files["chained"], tmp=tmp_path)["result"]["dependences"]
    (level,) = row["levels"]
    assert (row["count"], level["min_distance"], level["max_distance"]) == (3 + 3, 1, 3)


def test_a_run_that_did_not_exercise_a_loop_gives_way(files: dict[str, Path], tmp_path: Path) -> None:
    assert tracekit.load_profile(files["once"]).result["loops"][0]["verdict"] == "not-exercised"
    (loop,) = merged(files["once"], files["independent"], tmp=tmp_path)["result"]["loops"]
    assert (loop["verdict"], loop["invocations"]) == ("doall", 2)


def test_any_order_and_any_grouping_gives_the_same_bytes(files: dict[str, Path], tmp_path: Path) -> None:
    one, two, three = (str(files[name]) for name in ("independent", "chained", "far"))
    all_three, other, part, late = (str(tmp_path / name) for name in ("all", "other", "part", "late"))
    assert main(["merge", one, two, three, "-o", all_three]) == 0
    assert main(["merge", three, one, two, "-o", other]) == 0
    assert main(["merge", three, two, "-o", part]) == 0
    assert main(["merge", part, one, "-o", late]) == 0
    expected = Path(all_three).read_bytes()
    assert Path(other).read_bytes() == expected
    assert Path(late).read_bytes() == expected


def test_text_and_json(files: dict[str, Path], capsys: pytest.CaptureFixture[str]) -> None:
    words = ["merge", str(files["independent"]), str(files["chained"])]
    assert main(words) == 0
    out = capsys.readouterr().out
    assert "camp, merged of 2 traces" in out and "pipeline  app.c:7:1 main" in out and "100.0%" in out
    assert main([*words, "--json"]) == 0
    assert list(json.loads(capsys.readouterr().out)) == ["tracekit", "module", "traces", "options", "result"]
    assert main(["merge", str(files["chained"])]) == 0
    assert capsys.readouterr().out.startswith("camp, trace ")


def test_what_was_saved_is_what_is_loaded(files: dict[str, Path], tmp_path: Path) -> None:
    profile = tracekit.load_profile(files["chained"])
    profile.save(tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == files["chained"].read_bytes()
    assert tracekit.load_profile(files["chained"], "camp").to_json() == profile.to_json()
    with pytest.raises(tracekit.formats.errors.TracekitError, match="holds no profile of lamp"):
        tracekit.load_profile(files["chained"], "lamp")


def test_several_modules_are_joined_each_with_its_own(
    files: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = files["chained"].parent
    for name in ("chained", "far"):
        assert (
            main(
                [
                    "analyze",
                    "-m",
                    "lamp",
                    "-m",
                    "dependence",
                    "--set",
                    "dependence.counts=true",
                    "--set",
                    "dependence.distance=true",
                    "--set",
                    "dependence.kinds=raw,war,waw",
                    "-o",
                    str(tmp_path / name),
                    str(folder / f"{name}.zst"),
                ]
            )
            == 0
        )
    assert main(["merge", str(tmp_path / "chained"), str(tmp_path / "far"), "--json"]) == 0
    lamp, ladder = json.loads(capsys.readouterr().out)
    assert lamp["result"]["loops"][0]["verdict"] == "pipeline"
    (row,) = ladder["result"]["dependences"]
    assert (row["count"], row["levels"][0]["histogram"]) == (6, [[1, 3], [3, 3]])
    assert main(["merge", str(tmp_path / "far"), str(files["chained"])]) == 1
    assert "holds no profile of lamp" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("footprint", "footprint cannot be merged: a slice is a stretch of one run"),
        ("heatmap", "heatmap cannot be merged: each run has addresses"),
    ],
)
def test_what_cannot_be_joined_says_so(
    name: str, sentence: str, files: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for run in ("chained", "far"):
        api.analyze(files[run].with_suffix(".zst"), name).save(tmp_path / run)
    assert main(["merge", str(tmp_path / "chained"), str(tmp_path / "far")]) == 1
    assert sentence in one_sentence(capsys)


def one_sentence(capsys: pytest.CaptureFixture[str]) -> str:
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("tracekit: ") and captured.err.count("\n") == 1
    return captured.err


def test_profiles_of_before_there_were_two_rules_are_of_the_static_one(
    files: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    named = {}
    for name in ("chained", "far"):
        named[name] = tmp_path / name
        api.analyze(files[name].with_suffix(".zst"), "camp", contexts="static").save(named[name])
    new = merged(*named.values(), tmp=tmp_path)
    content = json.loads(named["far"].read_text())
    del content["options"]["contexts"]
    named["far"].write_text(json.dumps(content))
    assert merged(*named.values(), tmp=tmp_path) == new
    api.analyze(files["once"].with_suffix(".zst"), "camp", contexts="dynamic").save(tmp_path / "dynamic")
    assert main(["merge", str(tmp_path / "dynamic"), str(named["far"])]) == 1
    assert "by --contexts static; merging needs the same" in one_sentence(capsys)


def test_profiles_that_do_not_fit_are_refused(
    files: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["merge", str(files["chained"]), str(files["other"])]) == 1
    assert "are profiles of different builds" in one_sentence(capsys)
    copied = tmp_path / "copy"
    copied.write_bytes(files["chained"].read_bytes())
    assert main(["merge", str(files["chained"]), str(copied)]) == 1
    assert "which would count twice" in one_sentence(capsys)
    assert main(["merge", str(files["chained"]), str(files["chained"])]) == 2
    assert "is named twice" in capsys.readouterr().err
    trace = files["far"].with_suffix(".zst")
    api.analyze(trace, "camp", kinds="war").save(tmp_path / "war")
    assert main(["merge", str(files["chained"]), str(tmp_path / "war")]) == 1
    assert "were made with other values of kinds" in one_sentence(capsys)
    api.analyze(trace, "camp", window={"from": "50%"}).save(tmp_path / "part")
    assert main(["merge", str(files["chained"]), str(tmp_path / "part")]) == 1
    assert "were made with other windows" in one_sentence(capsys)
    api.analyze(trace, "camp", contexts="static").save(tmp_path / "static")
    assert main(["merge", str(files["chained"]), str(tmp_path / "static")]) == 1
    assert one_sentence(capsys).endswith(
        f"{files['chained']} tells contexts apart by --contexts dynamic, {tmp_path / 'static'} by --contexts static; "
        "merging needs the same.\n"
    )
    (tmp_path / "printed").write_text(api.analyze(trace, "camp").to_json())
    assert main(["merge", str(files["chained"]), str(tmp_path / "printed")]) == 1
    assert "it was printed; write it with" in one_sentence(capsys)


def levels_of_before(evidence: dict[str, Any]) -> dict[str, list[Any]]:
    """The table of levels as files had it: a row for each level of each dependence."""
    carried, loops = evidence["carried"], evidence["loop_sets"]
    rows: dict[tuple[int, int], list[Any]] = {}
    for dependence, number in enumerate(evidence["within"]["set"]):
        for node in (node for each, node in zip(loops["set"], loops["node"]) if each == number):
            rows[dependence, node] = [True, False, 0, 0, 0]
    for *key, least, greatest, times in zip(*(carried[name] for name in ("dependence", "node", *DISTANCES))):
        rows[key[0], key[1]] = [(key[0], key[1]) in rows, True, least, greatest, times]
    names = ("dependence", "node", "intra", "inter", *DISTANCES)
    return dict(zip(names, map(list, zip(*((*key, *row) for key, row in sorted(rows.items()))))))


DISTANCES = ("min_distance", "max_distance", "carried")


def test_profiles_of_before_are_merged_alike(files: dict[str, Path], tmp_path: Path) -> None:
    one = tmp_path / "one.profile"
    api.analyze(record(tmp_path / "one.zst", [(4096, 4096)] * 3), "camp").save(one)
    content = json.loads(one.read_text())
    evidence = content["evidence"]
    evidence["levels"] = levels_of_before(evidence)
    assert any(evidence["levels"]["intra"])
    assert any(evidence["levels"]["inter"])
    del evidence["carried"], evidence["within"], evidence["loop_sets"]
    before = tmp_path / "before.profile"
    before.write_text(json.dumps(content))
    assert merged(before, files["far"], tmp=tmp_path) == merged(one, files["far"], tmp=tmp_path)


def test_what_is_no_profile_is_refused_in_one_sentence(
    files: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good = json.loads(files["chained"].read_text())
    damaged_images = {**good, "images": ["AAAA"]}
    damaged_tables = {**good, "evidence": {**good["evidence"], "carried": {}}}
    outside, unknown, none, far_set, short, old = (json.loads(json.dumps(good)) for _ in range(6))
    outside["evidence"]["carried"]["node"] = [77]
    unknown["evidence"]["within"]["set"] = [1 << 31]
    none["evidence"]["within"]["set"] = [NONE]
    far_set["evidence"]["loop_sets"] = {"set": [NONE], "node": [0]}
    short["evidence"]["within"]["set"] = []
    old["evidence"]["levels"] = {**levels_of_before(good["evidence"]), "node": [77]}
    cases = {
        "": "it is empty",
        "hello": "it is not JSON",
        '{"a": 1}': "lacks the keys",
        "[]": "empty list",
        "[1": "not all of it",
        json.dumps({**good, "format": 3}): "install a newer one",
        json.dumps({**good, "result": []}): "`result` is missing or of the wrong kind",
        json.dumps(damaged_images): "its image tables cannot be read",
        json.dumps(damaged_tables): "its evidence is incomplete",
        json.dumps(outside): "names nodes that do not exist",
        json.dumps(unknown): "names sets that do not exist",
        json.dumps(none): "names sets that do not exist",
        json.dumps(far_set): "names sets that do not exist",
        json.dumps(short): "names sets that do not exist",
        json.dumps(old): "names nodes that do not exist",
        "[" * 100_000: "not all of it",
    }
    bad = tmp_path / "bad"
    for content, sentence in cases.items():
        bad.write_text(content)
        assert main(["merge", str(files["far"]), str(bad)]) == 1
        assert sentence in one_sentence(capsys)
    bad.write_bytes(zstandard.compress(b"hello"))
    assert main(["merge", str(files["far"]), str(bad)]) == 1
    assert "it is not JSON" in one_sentence(capsys)
    assert main(["merge", str(files["far"]), str(files["far"].with_suffix(".zst"))]) == 1
    assert "it is a trace; `tracekit analyze -o FILE` makes a profile of it" in one_sentence(capsys)
    assert main(["merge", str(files["far"]), str(tmp_path / "missing")]) == 1
    assert "Cannot read" in one_sentence(capsys)


def test_a_file_is_written_whole_or_not_at_all(
    files: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "out"
    target.write_text("before")
    target.chmod(0o640)
    profile = tracekit.load_profile(files["far"])

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", full)
        assert main(["merge", str(files["far"]), "-o", str(target)]) == 1
    assert "Cannot write the profile" in one_sentence(capsys)
    assert target.read_text() == "before" and os.listdir(tmp_path) == ["out"]
    profile.save(target)
    assert target.read_bytes() == files["far"].read_bytes() and stat.S_IMODE(target.stat().st_mode) == 0o640
    assert main(["merge", str(files["far"]), "-o", str(tmp_path / "no" / "such")]) == 1
    assert "Cannot write the profile" in one_sentence(capsys)
    assert main(["merge", str(files["far"]), "-o", "/dev/null"]) == 0
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)


def test_a_module_that_a_profile_names_by_a_file_is_not_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "evil.py").write_text("raise SystemExit('it was run')\n")
    for trace in "ab":
        profile = {
            "tracekit": "0.1.0",
            "module": str(tmp_path / "evil.py"),
            "trace": trace * 32,
            "options": {},
            "result": {},
            "format": 1,
            "build": [["0" * 32]],
            "complete": True,
            "facts": {},
            "images": [],
            "evidence": None,
        }
        (tmp_path / f"{trace}.json").write_text(json.dumps(profile))
    assert main(["merge", str(tmp_path / "a.json"), str(tmp_path / "b.json")]) == 1
    assert "There is no module" in capsys.readouterr().err
