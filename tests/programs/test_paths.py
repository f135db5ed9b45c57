"""Names of source files: the same in profiles of one build made in two places, and in text printed from any folder."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.naive import reader
from tests.programs.running import TRACEKIT, run, tracekit
from tracekit.api import analyze, load_profile
from tracekit.formats.reader import TraceReader

HEADER = """static inline void next(int *p) { p[0] = p[-1] * 3 + 1; }
void chain(int *p, int count);
"""
MAIN = """#include "own.h"
static int block[100];
int main(void) {
  chain(block, 100);
  for (int i = 1; i < 100; i++) next(block + i);  // CHAIN
  return block[99] & 1;
}
"""
OTHER = """#include "own.h"
void chain(int *p, int count) { for (int i = 1; i < count; i++) next(p + i); }
"""


def build(
    folder: Path, *words: str, flags: tuple[str, ...] = (), recording: tuple[str, ...] = (), name: str = "app"
) -> Path:
    """Build and record the program in `folder`, with its files named relative to that; the trace."""
    for file, text in (("src/main.c", MAIN), ("src/lib/other.c", OTHER), ("include/own.h", HEADER)):
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        (folder / file).write_text(text)
    files = words or ("-Iinclude", "src/main.c", "src/lib/other.c")
    shell = ["sh", "-c", 'cd "$1" && shift && exec "$@"', "sh", str(folder)]
    done = run([*shell, *TRACEKIT, "cc", "-O1", *flags, *files, "-o", name])
    assert done.status == 0, done.stderr.decode()
    done = run([*shell, *TRACEKIT, "record", "-f", *recording, "-o", f"{name}.zst", f"./{name}"])
    assert (folder / f"{name}.zst").exists(), done.stderr.decode()
    return folder / f"{name}.zst"


def profile(trace: Path, module: str = "camp") -> str:
    """The profile's JSON without the trace's hash, which covers the time."""
    shown = analyze(trace, module, jobs=1).to_json()
    return re.sub(r'"trace": "[0-9a-f]{32}"', "", shown)


@pytest.fixture(scope="module")
def traces(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Of one build in two folders."""
    root = tmp_path_factory.mktemp("places")
    return build(root / "here"), build(root / "far" / "there")


def test_builds_in_two_places_have_one_profile_but_for_the_folder(traces: tuple[Path, Path]) -> None:
    here, there = (profile(trace) for trace in traces)
    assert here != there
    for shown, trace in ((here, traces[0]), (there, traces[1])):
        assert shown.count(str(trace.parent)) == 1
        assert f'"folders": {{"compilation": "{trace.parent}", "sources": ""}}' in shown
        assert '"file": "src/main.c"' in shown and '"file": "include/own.h"' in shown
    assert here.replace(str(traces[0].parent), str(traces[1].parent)) == there


@pytest.mark.parametrize("way", ["--path-prefix-map={}=/src", "-ffile-prefix-map={}=/src"])
def test_with_a_prefix_map_the_folder_is_the_same_too(way: str, tmp_path: Path) -> None:
    made = [
        build(tmp_path / name, flags=(way.format(tmp_path / name),), recording=("--with-sources",))
        for name in ("one", "another")
    ]
    one, another = (profile(trace) for trace in made)
    assert one == another
    assert '"folders": {"compilation": "/src", "sources": ""}' in one
    with TraceReader(made[0]) as trace:
        tables = b"".join(unit.tables[name].tobytes() for image in trace.images() for unit in image.units
                          for name in ("strings", "folder"))  # fmt: skip
        assert b"/src" in tables and str(tmp_path).encode() not in tables
        assert set(trace.sources()) == {"/src/src/main.c", "/src/src/lib/other.c", "/src/include/own.h"}


def test_the_second_reader_knows_the_folder_and_the_hash(traces: tuple[Path, Path]) -> None:
    hashes = []
    for path in traces:
        units = [blob for image in reader.read(path.read_bytes()).images for blob in image.units]
        hashes.append([reader.unit_hash(blob) for blob in units])
        with TraceReader(path) as trace:
            ours = [unit for image in trace.images() for unit in image.units]
        assert hashes[-1] == [unit.hash for unit in ours]
        assert {reader.unit_folder(blob) for blob in units} == {unit.folder for unit in ours} == {str(path.parent)}
        assert [unit.text(int(unit.tables["unit"]["source"][0])) for unit in ours] == ["src/main.c", "src/lib/other.c"]
    assert hashes[0] == hashes[1]


def test_they_are_merged_and_do_not_differ(traces: tuple[Path, Path], tmp_path: Path) -> None:
    files = [tmp_path / "here.profile", tmp_path / "there.profile"]
    for trace, file in zip(traces, files):
        analyze(trace, "camp", jobs=1).save(file)
    shown = tracekit("diff", *files)
    assert re.search(r"LOOPS: 0 new, 0 gone, 0 changed, [1-9]", shown) and "The builds differ" not in shown
    tracekit("merge", *files, "-o", tmp_path / "both.profile")
    assert load_profile(tmp_path / "both.profile").report["folders"] == {"sources": ""}


def test_an_absolute_name_is_as_it_was_given(tmp_path: Path) -> None:
    build(tmp_path / "app")
    (tmp_path / "app" / "build").mkdir()
    files = [f"-I{tmp_path}/app/include", *(f"{tmp_path}/app/{file}" for file in ("src/main.c", "src/lib/other.c"))]
    trace = build(tmp_path / "app" / "build", *files)
    shown = profile(trace)
    assert f'"folders": {{"compilation": "{tmp_path}/app/build", "sources": "{tmp_path}/app"}}' in shown
    assert f'"file": "{tmp_path}/app/src/main.c"' in shown and f'"file": "{tmp_path}/app/include/own.h"' in shown
    text = tracekit("analyze", "-m", "camp", trace)
    assert f"files below {tmp_path}/app\n" in text and " src/main.c:5:3 main" in text and "include/own.h:1" in text


def test_units_compiled_in_several_folders_are_named_below_the_folder_around_them(tmp_path: Path) -> None:
    build(tmp_path)
    for folder, file in (("src", "main.c"), ("src/lib", "other.c")):
        words = ["cc", "-O1", "-c", f"-I{tmp_path}/include", file, "-o", f"{tmp_path}/{file}.o"]
        done = run(["sh", "-c", 'cd "$1" && shift && exec "$@"', "sh", tmp_path / folder, *TRACEKIT, *words])
        assert done.status == 0, done.stderr.decode()
    trace = build(tmp_path, "main.c.o", "other.c.o", name="both")
    shown = profile(trace)
    assert f'"folders": {{"compilation": "{tmp_path}/src", "sources": "{tmp_path}"}}' in shown
    assert '"file": "main.c"' in shown and '"file": "lib/other.c"' in shown
    text = tracekit("annotate", trace, "src/lib/other.c")
    assert "void chain(int *p, int count)" in text


@pytest.mark.parametrize(
    "command",
    [
        "analyze -m camp",
        "analyze -m accesses",
        "analyze -m advise --top 0",
        "analyze -m object_lifetime",
        "analyze -m dependence --counts --carried-by src/main.c:5",
        "analyze -m camp --loop src/main.c:5",
        "annotate",
        "annotate {} src/main.c",
        "annotate --json",
        "dump --limit 50",
    ],
)
def test_text_is_the_same_from_any_folder(
    command: str, traces: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trace = str(traces[0])
    words = [trace if word == "{}" else word for word in command.split()]
    words += [] if trace in words else [trace]
    shown = set()
    for folder in (Path("/"), traces[0].parent / "src", tmp_path):
        monkeypatch.chdir(folder)
        shown.add(tracekit(*words))
    assert len(shown) == 1
    assert str(tmp_path.parent) not in shown.pop()


def test_a_loop_is_found_by_any_name_of_its_file(traces: tuple[Path, Path]) -> None:
    inside = []
    for name in ("main.c", "src/main.c", "./src/main.c", traces[0].parent / "src" / "main.c"):
        window = {"loop": f"{name}:5"}
        inside.append(analyze(traces[0], "accesses", jobs=1, window=window).result)
    assert inside[0]["instructions"] and all(result == inside[0] for result in inside)
