"""Profiles in other tools' formats: read back, by readers written here and, where they are there, by the tools."""

from __future__ import annotations

import csv
import gzip
import io
import json
import re
import shutil
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, unknown_fields
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.naive import protobuf
from tests.needs import PPROF_SCHEMA, needs
from tests.programs.running import FIXTURES, compile_program, record, run_here
from tracekit.commands import export as command
from tracekit.formats.errors import TracekitError
from tracekit.render import export
from tracekit.render.export.stacks import Frame, samples_of

Json = dict[str, Any]

# -- made-up profiles ------------------------------------------------------------------------------

NAMES = st.sampled_from(["main", "f", "operator()(int, char)", "(anonymous namespace)::g<a, b>", 'h "x" \\ <&>\'é'])
LINES = st.integers(1, 40)
PLACE = st.fixed_dictionaries(
    {
        "id": st.just("0:1"),
        "kind": st.sampled_from(["load", "store", "library"]),
        "function": NAMES,
        "file": st.sampled_from(["a.c", "/usr/include/b.h", ""]),
        "line": st.integers(0, 40),
        "column": st.integers(0, 9),
    }
)
INSTRUCTION = st.builds(lambda place, around: {**place, "inlined_at": around}, PLACE, st.lists(PLACE, max_size=2))
STEP = st.one_of(
    st.builds(lambda name, line: f"{name}:{line}:3", NAMES, LINES),
    st.builds(lambda name, line: f"loop {name}:{line}", NAMES, LINES),
    st.builds(lambda name, line: f"recursion {name}:{line}:7", NAMES, LINES),
)
CONTEXT = st.fixed_dictionaries({"id": st.just(1), "root": NAMES, "path": st.lists(STEP, max_size=4)})
COLUMNS = ("instruction", "context", "count", "bytes", "misses", "is_hot", "offset")
ROW = st.fixed_dictionaries(
    {
        "instruction": INSTRUCTION,
        "context": CONTEXT,
        "count": st.integers(0, 2**50),
        "bytes": st.integers(0, 1000),
        "misses": st.lists(st.integers(0, 9), min_size=2, max_size=2),
        "is_hot": st.booleans(),
        "offset": st.integers(-5, 5),
    }
).map(lambda row: {name: row[name] for name in COLUMNS})
METRICS = ["count", "bytes", "misses 1", "misses 2"]


def report(rows: list[Json], module: str = "made", table: str = "instructions", **more: Any) -> Json:
    folders = {"compilation": "/home/user/app", "sources": ""}
    return {"tracekit": "1", "module": module, "trace": "0", "folders": folders, "options": {}} | {
        "result": {"summary": {"rows": len(rows)}, table: rows, **more}
    }


def values(row: Json) -> list[int]:
    return [row["count"], row["bytes"], *row["misses"]]


ROWS = st.lists(ROW, min_size=1, max_size=8)

# -- stacks ----------------------------------------------------------------------------------------


def test_a_stack_has_calls_loops_and_what_was_inlined() -> None:
    place = {"function": "inner", "file": "b.h", "line": 9, "column": 1}
    place["inlined_at"] = [{"function": "work", "file": "a.c", "line": 30, "column": 2}]
    context = {"id": 1, "root": "main", "path": ["loop main:21", "main:22:29", "work:5:1", "loop work:28"]}
    (sample,) = samples_of(report([{"instruction": place, "context": context, "count": 3}])).rows
    work, inner = "/home/user/app/a.c", "/home/user/app/b.h"
    assert sample.frames == (
        Frame("main", "", 22),
        Frame("loop main:21", "", 22, True),
        Frame("work", work, 5),
        Frame("work", work, 30),
        Frame("loop work:28", work, 30, True),
        Frame("inner", inner, 9),
    )


def test_an_object_of_a_recursion_has_the_calls_around_it() -> None:
    """Its context says that it was made in a recursion, `callers` by which calls inside; an access has a context."""
    place = {"function": "make", "file": "a.c", "line": 9, "column": 1}
    context = {"id": 1, "root": "main", "path": ["recursion walk:4:2"]}
    made = {"site": place, "context": context, "callers": ["walk:5:1"]}
    rows = [{"object": made, "count": 3}, {"instruction": place, "context": context, "object": made, "count": 2}]
    lines = [[(frame.name, frame.line) for frame in row.frames] for row in samples_of(report(rows)).rows]
    around = [("main", 0), ("walk", 4)]
    assert lines == [[*around, ("walk", 5), ("make", 9)], [*around, ("make", 9)]]


def test_objects_that_no_instruction_made_are_frames_with_their_names() -> None:
    """So that the numbers add up to those of the run."""
    place = {"function": "make", "file": "a.c", "line": 9, "column": 1}
    objects: list[Json] = [
        {"kind": "heap", "site": place},
        {"kind": "heap", "site": None},
        {"kind": "global", "name": "total"},
        {"kind": "unknown"},
    ]
    rows = [{"object": made, "touches": 1 << number} for number, made in enumerate(objects)]
    names = ["make", "heap of a library", "global total", "memory of no known object"]
    found = samples_of(report([*rows, {"object": {"other": 1}, "touches": 99}])).rows
    assert [(sample.frames[-1].name, sample.values[0]) for sample in found] == list(zip(names, (1, 2, 4, 8)))
    own, _, summary = costs(export.FORMATS["callgrind"].write(report(rows), "").decode())
    assert summary == [15] and own["???", "global total"] == 4


@settings(deadline=None, max_examples=60)
@given(ROWS)
def test_samples_have_all_numbers_that_add(rows: list[Json]) -> None:
    samples = samples_of(report(rows))
    assert list(samples.metrics) == METRICS
    assert [list(sample.values) for sample in samples.rows] == [values(row) for row in rows]
    for row, sample in zip(rows, samples.rows):
        names = [frame.name for frame in sample.frames if not frame.is_loop]
        loops = [frame.name for frame in sample.frames if frame.is_loop]
        assert loops == [step for step in row["context"]["path"] if step.startswith("loop ")]
        assert names[0] == row["context"]["root"]
        assert names[-1] == row["instruction"]["function"]
        assert sample.frames[-1].line == row["instruction"]["line"] or row["instruction"]["line"] == 0


def test_what_has_no_stacks_is_told_in_a_sentence() -> None:
    for made, table in ((report([{"loop": 1}]), ""), (report([]), "instructions"), (report([]), "bananas")):
        for name in ("callgrind", "speedscope", "pprof"):
            with pytest.raises(TracekitError, match=r"has no (rows of instructions|table 'bananas'; there are: instr)"):
                export.FORMATS[name].write(made, table)


# -- callgrind -------------------------------------------------------------------------------------


def costs(text: str) -> tuple[Counter[Any], Counter[Any], list[int]]:
    """Of a file: function -> own costs; function and callee -> those inside; the summary. Costs of the first event."""
    own: Counter[Any] = Counter()
    inside: Counter[Any] = Counter()
    summary: list[int] = []
    file = function = callee_file = callee = ""
    calls = False
    for line in text.splitlines():
        word, _, rest = line.partition("=")
        if line.startswith("summary: "):
            summary = [int(number) for number in line.split()[1:]]
        elif word == "fl":
            file = rest
        elif word == "fn":
            function = rest
        elif word == "cfi":
            callee_file = rest
        elif word == "cfn":
            callee = rest
        elif word == "calls":
            calls = True
        elif re.match(r"\d+ ", line):
            cost = int(line.split()[1])
            if calls:
                inside[file, function, callee_file, callee] += cost
            else:
                own[file, function] += cost
            calls = False
    return own, inside, summary


@settings(deadline=None, max_examples=60)
@given(ROWS)
def test_callgrind_has_own_and_inner_costs(rows: list[Json]) -> None:
    samples = samples_of(report(rows)).without_loops()
    own, inside, summary = costs(export.FORMATS["callgrind"].write(report(rows), "").decode())
    assert summary == [sum(column) for column in zip(*map(values, rows))]

    def named(frame: Frame) -> tuple[str, str]:
        name = " " + frame.name if frame.name.startswith("(") else frame.name
        return frame.file or "???", name

    wanted: Counter[Any] = Counter()
    calls: Counter[Any] = Counter()
    for sample in samples.rows:
        wanted[named(sample.frames[-1])] += sample.values[0]
        pairs = {(one, other._replace(line=other.line)) for one, other in zip(sample.frames, sample.frames[1:])}
        for one, other in pairs:
            calls[(*named(one), *named(other))] += sample.values[0]
    assert own == wanted
    assert inside == calls


def run_tool(*words: str | Path) -> str:
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


ROWS_OF_A_RUN: list[Json] = [
    {
        "instruction": {"function": name, "file": "a.c", "line": line, "column": 1, "inlined_at": []},
        "context": {"id": 1, "root": "main", "path": ["loop main:3", "main:4:1"]},
        "count": count,
        "bytes": 8 * count,
    }
    for name, line, count in (("work", 10, 1000), ("work", 11, 200), ("rest", 20, 34))
]


@needs("valgrind")
def test_callgrind_annotate_reads_it(tmp_path: Path) -> None:
    (tmp_path / "callgrind.out").write_bytes(export.FORMATS["callgrind"].write(report(ROWS_OF_A_RUN), ""))
    own = run_tool("callgrind_annotate", "--auto=no", tmp_path / "callgrind.out")
    assert re.search(r"1,234 \(100.0%\)\s+9,872 \(100.0%\)\s+PROGRAM TOTALS", own)
    assert re.search(r"1,200 \(97.24%\)\s+9,600 \(97.24%\)\s+/home/user/app/a.c:work", own)
    inner = run_tool("callgrind_annotate", "--auto=no", "--inclusive=yes", tmp_path / "callgrind.out")
    assert re.search(r"1,234 \(100.0%\)\s+9,872 \(100.0%\)\s+\S+:main", inner)


# -- speedscope ------------------------------------------------------------------------------------


@settings(deadline=None, max_examples=60)
@given(ROWS)
def test_speedscope_has_a_profile_for_each_number(rows: list[Json]) -> None:
    content = json.loads(export.FORMATS["speedscope"].write(report(rows), ""))
    frames = content["shared"]["frames"]
    assert [profile["name"].partition(" (")[0] for profile in content["profiles"]] == METRICS
    assert [profile["unit"] for profile in content["profiles"]] == ["none", "bytes", "none", "none"]
    samples = samples_of(report(rows)).rows
    for place, profile in enumerate(content["profiles"]):
        assert profile.keys() == {"type", "name", "unit", "startValue", "endValue", "samples", "weights"}
        assert profile["weights"] == [sample.values[place] for sample in samples if sample.values[place]]
        assert profile["endValue"] == sum(profile["weights"])
        named = [[frames[number]["name"] for number in stack] for stack in profile["samples"]]
        assert named == [[frame.name for frame in sample.frames] for sample in samples if sample.values[place]]


# -- pprof -----------------------------------------------------------------------------------------


@settings(deadline=None, max_examples=60)
@given(ROWS)
def test_pprof_has_all_numbers_in_one_file(rows: list[Json]) -> None:
    content = export.FORMATS["pprof"].write(report(rows), "")
    assert content == export.FORMATS["pprof"].write(report(rows), "")
    profile = protobuf.fields(gzip.decompress(content))
    strings = [bytes(text).decode() for text in profile[6]]  # type: ignore[arg-type]
    assert strings[0] == ""
    parts = {
        field: [protobuf.fields(bytes(each)) for each in profile.get(field, [])]  # type: ignore[arg-type]
        for field in (1, 2, 4, 5)
    }
    assert [(strings[kind[1][0]], strings[kind[2][0]]) for kind in parts[1]] == [  # type: ignore[index]
        (name, "bytes" if name == "bytes" else "count") for name in METRICS
    ]
    functions = {part[1][0]: strings[part[2][0]] for part in parts[5]}  # type: ignore[index]
    lines = {part[1][0]: protobuf.fields(part[4][0]) for part in parts[4]}  # type: ignore[arg-type]
    for row, sample, part in zip(rows, samples_of(report(rows)).rows, parts[2], strict=True):
        assert protobuf.numbers(part[2][0]) == values(row)  # type: ignore[arg-type]
        stack = [lines[number] for number in protobuf.numbers(part[1][0])]  # type: ignore[arg-type]
        assert [functions[line[1][0]] for line in stack] == [frame.name for frame in reversed(sample.frames)]
        assert [line.get(2, [0])[0] for line in stack] == [frame.line for frame in reversed(sample.frames)]


@needs("go")
def test_gos_pprof_reads_it(tmp_path: Path) -> None:
    (tmp_path / "made.pb.gz").write_bytes(export.FORMATS["pprof"].write(report(ROWS_OF_A_RUN), ""))
    shown = run_tool("go", "tool", "pprof", "-top", "-sample_index=count", tmp_path / "made.pb.gz")
    assert re.search(r"1200 97\.24% 97\.24%\s+1200 97\.24%\s+work", shown)


@needs("protoc")
def test_googles_schema_finds_all_of_it(tmp_path: Path) -> None:
    shutil.copy(PPROF_SCHEMA, tmp_path)
    described = tmp_path / "described"
    run_tool("protoc", f"-I{tmp_path}", "-o", described, tmp_path / PPROF_SCHEMA.name)
    pool = descriptor_pool.DescriptorPool()
    for file in descriptor_pb2.FileDescriptorSet.FromString(described.read_bytes()).file:
        pool.Add(file)
    schema: Any = message_factory.GetMessageClass(pool.FindMessageTypeByName("perftools.profiles.Profile"))
    profile = schema.FromString(gzip.decompress(export.FORMATS["pprof"].write(report(ROWS_OF_A_RUN), "")))
    parts = [profile, *profile.sample_type, *profile.sample, *profile.location, *profile.function]
    assert not any(len(unknown_fields.UnknownFieldSet(each)) for each in parts)
    text, known = profile.string_table, samples_of(report(ROWS_OF_A_RUN))
    assert [text[kind.type] for kind in profile.sample_type] == list(known.metrics)
    assert text[profile.default_sample_type] == known.metrics[0]
    assert [list(sample.value) for sample in profile.sample] == [list(sample.values) for sample in known.rows]
    names = {each.id: Frame(text[each.name], text[each.filename], 0) for each in profile.function}
    frames = {
        each.id: names[line.function_id]._replace(line=line.line) for each in profile.location for line in each.line
    }
    assert 0 not in names and 0 not in frames  # none of either, by the schema
    stacks = [tuple(frames[number] for number in reversed(sample.location_id)) for sample in profile.sample]
    assert stacks == [tuple(frame._replace(is_loop=False) for frame in sample.frames) for sample in known.rows]


# -- graphs and tables -----------------------------------------------------------------------------

DEPENDENCE = st.fixed_dictionaries(
    {"kind": st.sampled_from(["RAW", "WAR", "WAW"]), "source": INSTRUCTION, "destination": INSTRUCTION},
    optional={
        "source_context": CONTEXT,
        "destination_context": CONTEXT,
        "count": st.integers(1, 100),
        "levels": st.lists(
            st.fixed_dictionaries(
                {"inter": st.booleans(), "loop": st.fixed_dictionaries({"function": NAMES, "line": LINES})}
            ),
            max_size=2,
        ),
    },
)


def ends(row: Json) -> tuple[str, str]:
    source, destination = (
        json.dumps([row[end], row.get(f"{end}_context")], sort_keys=True) for end in ("source", "destination")
    )
    return source, destination


@settings(deadline=None, max_examples=60)
@given(st.lists(DEPENDENCE, max_size=8))
def test_graphml_has_each_dependence(rows: list[Json]) -> None:
    text = export.FORMATS["graphml"].write(report(rows, table="dependences"), "").decode()
    graph = ElementTree.fromstring(text)
    space = {"g": "http://graphml.graphdrawing.org/xmlns"}
    nodes = {str(node.get("id")) for node in graph.iterfind(".//g:node", space)}
    edges = list(graph.iterfind(".//g:edge", space))
    assert len(nodes) == len({end for row in rows for end in ends(row)})
    assert len(edges) == len(rows)
    numbers: dict[str, str] = {}
    for row, edge in zip(rows, edges):
        data = {each.get("key"): each.text or "" for each in edge}
        count = {"edge_count": str(row["count"])} if "count" in row else {}  # not counted is not none
        assert data == {"edge_kind": row["kind"], "edge_carried_by": data["edge_carried_by"], **count}
        for end, node in zip(ends(row), (edge.get("source"), edge.get("target"))):
            assert node in nodes
            assert numbers.setdefault(end, str(node)) == node


def test_networkx_reads_it() -> None:
    networkx = pytest.importorskip("networkx")
    place = {"id": "0:1", "kind": "load", "function": "f", "file": "a.c", "line": 3, "column": 1, "inlined_at": []}
    rows = [{"kind": "RAW", "source": place, "destination": {**place, "line": 4}, "count": 2}] * 2
    graph = networkx.parse_graphml(export.FORMATS["graphml"].write(report(rows, table="dependences"), "").decode())
    assert graph.number_of_nodes() == 2 and graph.number_of_edges() == 2
    assert {data["count"] for *_, data in graph.edges(data=True)} == {2}
    rows = [{"kind": "RAW", "source": place, "destination": {**place, "line": 0}}]  # no lines, not counted
    graph = networkx.parse_graphml(export.FORMATS["graphml"].write(report(rows, table="dependences"), "").decode())
    assert [data.get("line") for _, data in graph.nodes(data=True)] == [3, None]
    assert [data.get("count") for *_, data in graph.edges(data=True)] == [None]


@needs("graphviz")
@settings(deadline=None, max_examples=10)
@given(rows=st.lists(DEPENDENCE, max_size=5))
def test_graphviz_draws_it(rows: list[Json]) -> None:
    text = export.FORMATS["dot"].write(report(rows, table="dependences"), "")
    done = subprocess.run(["dot", "-Tplain"], input=text, capture_output=True, timeout=60, check=True)
    drawn = Counter(line.partition(" ")[0] for line in done.stdout.decode().splitlines())
    assert drawn["edge"] == len(rows)
    assert drawn["node"] == len({end for row in rows for end in ends(row)})


@settings(deadline=None, max_examples=60)
@given(ROWS)
def test_csv_has_a_line_for_each_row(rows: list[Json]) -> None:
    text = export.FORMATS["csv"].write(report(rows), "instructions").decode()
    read = list(csv.DictReader(io.StringIO(text, newline="")))
    assert len(read) == len(rows)
    for row, line in zip(rows, read):
        assert line["instruction.function"] == row["instruction"]["function"]
        assert json.loads(line["context.path"]) == row["context"]["path"]
        assert (int(line["count"]), json.loads(line["is_hot"])) == (row["count"], row["is_hot"])


# -- real profiles ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def profiles(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file with profiles of several modules, of one program with errors."""
    folder = tmp_path_factory.mktemp("export")
    source = FIXTURES / "memory_errors" / "after_free.c"
    trace = record(compile_program([source], folder / "app", ["-g", "-O0"], instrumented=True)).trace
    modules = [word for name in ("memory_errors", "camp", "object_lifetime", "accesses") for word in ("-m", name)]
    assert run_here("analyze", *modules, "-o", folder / "all.profile", trace).status == 0
    return folder / "all.profile"


def exported(*words: str | Path) -> bytes:
    done = run_here("export", *words)
    assert done.status == 0, done.stderr
    return done.stdout


def test_sarif_of_errors(profiles: Path) -> None:
    content = json.loads(exported("sarif", profiles, "--module", "memory_errors"))
    (run,) = content["runs"]
    rules = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    assert content["version"] == "2.1.0"
    for result in run["results"]:
        assert rules[result["ruleIndex"]] == result["ruleId"]
        (location,) = result["locations"]
        assert location["physicalLocation"]["artifactLocation"]["uri"].startswith("file:///")
        assert location["physicalLocation"]["artifactLocation"]["uri"].endswith("after_free.c")
    found = {(each["ruleId"], each["level"]) for each in run["results"]}
    assert found == {("memory/read_after_free", "error"), ("memory/write_after_free", "error")}
    freed = next(each for each in run["results"] if each["ruleId"] == "memory/write_after_free")
    assert {each["message"]["text"] for each in freed["relatedLocations"]} == {
        "the object was made here",
        "it was freed here",
    }
    prints = [each["partialFingerprints"]["tracekit/v1"] for each in run["results"]]
    assert len(set(prints)) == len(prints)


def test_sarif_of_verdicts(profiles: Path) -> None:
    (run,) = json.loads(exported("sarif", profiles, "--module", "camp"))["runs"]
    assert run["results"] and all(each["ruleId"].startswith("loop/") for each in run["results"])
    for each in run["results"]:
        related = [json.dumps(place) for place in each.get("relatedLocations", ())]
        assert len(set(related)) == len(related)  # the schema asks for that


def test_sarif_of_races() -> None:
    def access(kind: str, line: int, thread: int) -> dict[str, object]:
        place = {
            "id": "i",
            "kind": kind,
            "function": "f",
            "file": "/s/a.c",
            "line": line,
            "column": 3,
            "inlined_at": [],
        }
        context = {"id": 0, "root": "f", "path": []}
        return {"access": kind, "instruction": place, "context": context, "threads": [thread], "locks": [[]]}

    row = {"first": access("load", 4, 2), "second": access("store", 7, 1), "count": 3, "offset": 8, "number": 0}
    races = [{**row, "object": {"kind": "global", "name": name}} for name in ("a", "b")]
    report = {"module": "races", "folders": {}, "result": {"races": races}}
    (run,) = json.loads(export.FORMATS["sarif"].write(report, ""))["runs"]
    found = run["results"][0]
    assert (found["ruleId"], found["level"], found["occurrenceCount"]) == ("race", "error", 3)
    assert found["message"]["text"] == "Race on global a, byte 8: load and store, which nothing orders."
    places = [found["locations"][0], *found["relatedLocations"]]
    assert [each["physicalLocation"]["region"]["startLine"] for each in places] == [7, 4]
    assert [each["message"]["text"] for each in found["stacks"]] == ["load by thread 2", "store by thread 1"]
    assert len({each["partialFingerprints"]["tracekit/v1"] for each in run["results"]}) == 2


@pytest.mark.parametrize("name", ["callgrind", "speedscope", "pprof"])
@pytest.mark.parametrize("module", ["object_lifetime", "accesses", "memory_errors"])
def test_profiles_of_modules_are_exported(name: str, module: str, profiles: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert exported(name, profiles, "--module", module, "-o", out) == b""
    assert len(out.read_bytes()) > 100
    assert exported(name, profiles, "--module", module) == out.read_bytes()


@pytest.mark.parametrize("name, module", [("dot", "camp"), ("graphml", "camp")])
def test_the_only_profile_that_fits_is_chosen(name: str, module: str, profiles: Path) -> None:
    assert exported(name, profiles) == exported(name, profiles, "--module", module)


def test_the_formats_are_those_of_the_help() -> None:
    assert tuple(export.FORMATS) == command.PROFILE_FORMATS
    text = run_here("export", "--help").stdout.decode()
    for name, form in export.FORMATS.items():
        assert re.search(rf"^ +{name} +{re.escape(form.help)}$", text, re.MULTILINE)


def test_misuse_and_failures(profiles: Path, tmp_path: Path) -> None:
    trace = profiles.with_name("app.trace.zst")
    refused = {
        ("callgrind", profiles): (2, "choose one, --module NAME"),
        ("perfetto", profiles): (1, "has no profile that perfetto holds; it has: "),
        ("callgrind", profiles, "--module", "lamp"): (1, "has no profile of lamp"),
        ("callgrind", trace): (1, "it is a trace; `tracekit analyze -o FILE` makes a profile"),
        ("callgrind", profiles, "--module", "camp"): (1, "no rows of instructions or objects"),
        ("csv", profiles, "--module", "camp", "--table", "x"): (1, "no table 'x'; there are: dependences, loops"),
        ("dot", profiles, "--module", "accesses"): (1, "no table 'dependences'"),
        ("sarif", profiles, "--module", "accesses"): (1, "no errors of memory, races or verdicts"),
        ("csv", profiles, "--thread", "1"): (2, "a profile has no window"),
        ("din", trace, "--table", "x"): (2, "--table is of profiles, parquet and arrow"),
        ("pprof", tmp_path / "none"): (1, "Cannot read"),
    }
    for words, (status, sentence) in refused.items():
        done = run_here("export", *words)
        assert done.status == status and sentence in done.stderr.decode(), (words, done)
        assert b"Traceback" not in done.stderr
    assert run_here("export", "gem6", profiles).status == 2
