"""The page of `tracekit report`, without a browser: what it holds, escaping, and its size."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from tests.commands.test_merge import CHAINED, record
from tracekit.cli import main
from tracekit.inputs import Gathered
from tracekit.profiles.profile import Profile
from tracekit.program.function_names import brief
from tracekit.program.sources import Sources
from tracekit.render.html import MOST_BYTES, layout, write_page
from tracekit.render.html.data import Limits, choose

HOSTILE = '</script><script>document.title = "owned"</script><img src=x onerror=alert(1)>'


def instruction(line: int, kind: str = "load", function: str = "work", file: str = "app.c") -> dict[str, Any]:
    return {
        "id": f"u:{line}{kind}",
        "kind": kind,
        "function": function,
        "file": file,
        "line": line,
        "column": 3,
        "inlined_at": [],
    }


def loop(line: int, function: str = "work", file: str = "app.c") -> dict[str, Any]:
    return {"function": function, "file": file, "line": line, "column": 1, "depth": 1}


def loop_row(line: int, accesses: int, verdict: str = "sequential", **more: Any) -> dict[str, Any]:
    context = {"id": line, "root": "main", "path": ["main:2:1", f"loop {more.get('function', 'work')}:{line}"]}
    carried = {"raw": int(verdict == "sequential"), "war": 0, "waw": 0}
    return {
        "loop": loop(line, more.get("function", "work")),
        "context": context,
        "invocations": 1,
        "iterations": 10 * line,
        "accesses": accesses,
        "carried": carried,
        "verdict": verdict,
        "recipe": [],
        "blocked_by": [
            {"reason": "dependence", "source": instruction(line + 2, "store"), "destination": instruction(line + 1)}
        ]
        if verdict == "sequential"
        else [],
    }


def dependence(line: int, count: int = 3, path: tuple[str, ...] = (), function: str = "work") -> dict[str, Any]:
    context = {"id": line, "root": "main", "path": ["main:2:1", f"loop {function}:{line}", *path]}
    level = {"loop": loop(line, function), "intra": True, "inter": True, "min_distance": 1, "max_distance": 4}
    return {
        "kind": "RAW",
        "source": instruction(line + 2, "store"),
        "destination": instruction(line + 1),
        "source_context": context,
        "destination_context": context,
        "levels": [level],
        "count": count,
    }


def camp(loops: list[Any], dependences: list[Any]) -> Profile:
    report = {
        "tracekit": "1",
        "module": "camp",
        "trace": "abc",
        "options": {},
        "result": {"dependences": dependences, "loops": loops, "summary": {}},
    }
    return Profile(report, {"accesses": 1000}, True)


def accesses(lines: dict[int, int], file: str = "app.c") -> Profile:
    rows = [
        {"instruction": instruction(line, file=file), "loads": count, "stores": 0, "bytes": 4 * count}
        for line, count in lines.items()
    ]
    report = {
        "tracekit": "1",
        "module": "accesses",
        "trace": "abc",
        "options": {},
        "result": {"instructions": rows, "summary": {}},
    }
    return Profile(report, {}, True)


class Elements(HTMLParser):
    """Counts the elements of a page and collects their ids and texts."""

    def __init__(self) -> None:
        super().__init__()
        self.counts: dict[str, int] = {}
        self.ids: list[str] = []
        self.links: list[str] = []
        self.attributes: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.counts[tag] = self.counts.get(tag, 0) + 1
        for name, value in attrs:
            self.attributes.add(name)
            if name == "id":
                self.ids.append(value or "")
            elif name in ("href", "src"):
                self.links.append(value or "")


def parsed(page: str) -> Elements:
    elements = Elements()
    elements.feed(page)
    return elements


def page_of(tmp_path: Path, *profiles: Profile, source: str = "", limits: Limits | None = None) -> str:
    (tmp_path / "app.c").write_text(source or "\n".join(f"line {number}" for number in range(1, 60)))
    return write_page(Gathered(profiles), Sources({}, [tmp_path]), "app", limits)


def test_nothing_of_a_profile_or_a_source_becomes_markup(tmp_path: Path) -> None:
    row = loop_row(7, 500, function=HOSTILE)
    row["loop"]["file"] = f"{HOSTILE}.c"
    edge = dependence(7, function=HOSTILE)
    edge["source"]["function"] = HOSTILE
    edge["levels"][0]["loop"]["file"] = row["loop"]["file"]
    other = Profile(
        {
            "tracekit": "1",
            "module": HOSTILE,
            "trace": HOSTILE,
            "options": {},
            "result": {HOSTILE: [{HOSTILE: HOSTILE}], "x": {HOSTILE: HOSTILE}},
        },
        {},
        True,
    )
    harmless = parsed(page_of(tmp_path, camp([loop_row(7, 500)], [dependence(7)]), accesses({8: 10, 7: 2})))
    page = page_of(
        tmp_path,
        camp([row], [edge]),
        accesses({8: 10, 7: 2}),
        other,
        source="\n".join([f"// {HOSTILE} -->", "<!-- ]]>"] * 20),
    )
    found = parsed(page)
    assert found.counts["script"] == harmless.counts["script"] == 2
    assert "img" not in found.counts and "onerror" not in found.attributes
    assert page.count("</script>") == 2 and HOSTILE not in page
    (graphs,) = re.findall(r'<script type="application/json" id="graphs">(.*?)</script>', page, re.S)
    assert "</script><img" in brief(HOSTILE) and brief(HOSTILE) in json.loads(graphs)["instructions"][0]


def test_the_page_asks_for_nothing(tmp_path: Path) -> None:
    page = page_of(tmp_path, camp([loop_row(7, 500)], [dependence(7)]), accesses({8: 10}))
    assert all(link.startswith(("#", "data:")) for link in parsed(page).links)
    assert "default-src 'none'" in page


def test_links_lead_somewhere_and_ids_are_unique(tmp_path: Path) -> None:
    found = parsed(page_of(tmp_path, camp([loop_row(7, 500), loop_row(20, 5)], [dependence(7)]), accesses({8: 10})))
    assert len(set(found.ids)) == len(found.ids)
    assert {link[1:] for link in found.links if link.startswith("#")} <= set(found.ids)
    assert "#f0l7" in found.links


def test_files_have_short_names_and_the_programs_own_come_first(tmp_path: Path) -> None:
    header = "/usr/lib/gcc/x86_64-linux-gnu/0/../../../../include/c++/0/bits/stl_algo.h"
    row, edge = loop_row(7, 500), dependence(7)
    row["loop"]["file"] = edge["levels"][0]["loop"]["file"] = edge["source"]["file"] = header
    for place in (edge["destination"], *(row["blocked_by"][0][end] for end in ("source", "destination"))):
        place["file"] = "/src/app/app.c"
    profiles = (camp([row], [edge]), accesses({8: 10}, "/src/app/app.c"), accesses({7: 90}, header))
    gathered = Gathered(
        [
            profiles[0],
            Profile(
                {
                    **profiles[1].report,
                    "result": {
                        "instructions": [row for each in profiles[1:] for row in each.report["result"]["instructions"]],
                        "summary": {},
                    },
                },
                {},
                True,
            ),
        ]
    )
    text = "\n" * 60
    page = write_page(gathered, Sources({header: text.encode(), "/src/app/app.c": text.encode()}), "app")
    assert "/usr/" not in page and "/src/app" not in page
    assert page.index("<summary>app.c") < page.index("<summary>bits/stl_algo.h")
    assert '<a href="#f1l7">bits/stl_algo.h:7:1 work</a>' in page
    assert '"store bits/stl_algo.h:9:3 work"' in page
    missing = write_page(gathered, Sources({}), "app")
    assert "Not found: 2 source files (app.c, ...)" in missing


def test_the_hottest_are_kept_and_what_is_left_out_is_said(tmp_path: Path) -> None:
    loops = [loop_row(line, accesses=line) for line in range(1, 50)]
    dependences = [dependence(49, count=number, path=(f"main:{number}:1",)) for number in range(1, 9)]
    for number, row in enumerate(dependences):
        row["source"] = instruction(number, "store")
    limits = Limits(loops=10, edges=3, lines=12, around=1)
    profiles = (camp(loops, dependences), accesses(dict.fromkeys(range(1, 50, 7), 1) | {30: 9}))
    page = page_of(tmp_path, *profiles, limits=limits)
    assert "Of 49 loops (in their contexts) the 10 with most accesses are shown." in page
    assert "Of 1 loop the graph shows the 3 heaviest dependences" in page
    assert "Of the source the hottest lines, 12 with those around them, are shown; 1 file left out or cut." in page
    shown = choose(Gathered(profiles), Sources({}, [tmp_path]), limits)
    assert [row.row["accesses"] for row in shown.loops] == list(range(49, 39, -1))
    assert [edge["count"] for edge in shown.loops[0].edges] == [8, 7, 6]
    assert (shown.loops[0].more_edges, shown.loops[0].more_carried) == (5, 5)
    lines = sum(last - first + 1 for file in shown.files for first, last in file.stretches)
    assert lines <= 12 and any(first <= 30 <= last for first, last in shown.files[0].stretches)


def test_dependences_are_those_of_the_context(tmp_path: Path) -> None:
    here, elsewhere = loop_row(7, 500), loop_row(7, 400)
    elsewhere["context"]["path"] = ["main:3:1", "loop work:7"]
    inside = dependence(7, count=5, path=("work:9:1",))
    shown = choose(Gathered([camp([here, elsewhere], [inside, dependence(7)])]), Sources({}, []), Limits())
    assert [[edge["count"] for edge in row.edges] for row in shown.loops] == [[8], []]


def test_loops_at_one_place_are_told_apart_by_their_depth(tmp_path: Path) -> None:
    outer, inner = loop_row(7, 300), loop_row(7, 200, "doall")
    inner["loop"] = {**inner["loop"], "depth": 2}
    profile = camp([outer, inner, loop_row(9, 100, "doall")], [dependence(7)])
    shown = choose(Gathered([profile]), Sources({}, []), Limits())
    assert [len(loop.edges) for loop in shown.loops] == [1, 0, 0]
    page = page_of(tmp_path, profile)
    assert "app.c:7:1 (depth 1) work</a>" in page and "app.c:7:1 (depth 2) work</a>" in page
    assert "app.c:9:1 work</a>" in page


def test_a_loop_in_a_recursion_has_the_dependences_of_the_leaf() -> None:
    row = loop_row(7, 500)
    row["context"]["path"] = ["recursion main:2:1", "loop work:7"]
    edge = dependence(7)
    edge["source_context"] = edge["destination_context"] = {"id": 3, "root": "main", "path": ["recursion main:2:1"]}
    shown = choose(Gathered([camp([row], [edge])]), Sources({}, []), Limits())
    assert [each["count"] for each in shown.loops[0].edges] == [3]


def test_however_much_there_is_the_page_stays_small(tmp_path: Path) -> None:
    long = "f" * 5000
    loops = [loop_row(line, accesses=line, function=f"{long}{line}") for line in range(1, 1500)]
    for row in loops:
        row["blocked_by"] = [
            {
                "reason": "dependence",
                "source": instruction(number, "store", long),
                "destination": instruction(number, "load", long),
            }
            for number in range(50)
        ]
    page = page_of(
        tmp_path,
        camp(loops, []),
        accesses(dict.fromkeys(range(1, 8000), 1)),
        source="\n".join(["x" * 2000] * 8000),
        limits=Limits(loops=1500, lines=8000),
    )
    whole = page_of(tmp_path, camp(loops[:300], []), accesses({1: 1}))
    assert len(page.encode()) < MOST_BYTES
    assert 100 < page.count("<tr data-verdict") < 1499 and 100 < page.count("<code>") < 8000
    assert page.count("with most accesses are shown") == 1 and whole.count("<tr data-verdict") == 200


def test_a_module_without_a_section_of_its_own_is_shown_as_tables(tmp_path: Path) -> None:
    lifetimes = Profile(
        {
            "tracekit": "1",
            "module": "object_lifetime",
            "trace": "abc",
            "options": {},
            "result": {
                "objects": [{"site": instruction(9, "library"), "objects": 1200, "scope": "iteration"}],
                "summary": {"objects": 1200},
                "none": [],
            },
        },
        {},
        True,
    )
    page = page_of(tmp_path, lifetimes)
    for part in (
        '<h2 id="object_lifetime-heading">Object lifetimes</h2>',
        "library app.c:9:3 work",
        '<td class="number" data-value="1200">1,200</td>',
        "<p>none: none</p>",
    ):
        assert part in page
    assert not {"loop-table", "graph-view", "loops"} & set(parsed(page).ids)


def test_numbers_in_percent_say_so(tmp_path: Path) -> None:
    result = {"summary": {"accesses": 42_000, "omsg_over_rasg": 79.2}}
    report = {"tracekit": "1", "module": "whomp", "trace": "abc", "options": {}, "result": result}
    page = page_of(tmp_path, Profile(report, {}, True))
    assert "<dt>omsg over rasg</dt><dd>79.2%</dd>" in page and "<dt>accesses</dt><dd>42,000</dd>" in page


def test_object_lifetimes_are_in_words_and_most_objects_come_first(tmp_path: Path) -> None:
    context = {"id": 1, "root": "main", "path": ["loop main:5", "main:6:1"]}
    sites = [
        {
            "object": {"kind": "heap", "site": instruction(line, "library"), "context": context},
            "objects": count,
            "bytes": 8 * count,
            "never_freed": 0,
            "scope": {"kind": "iteration", "loop": loop_row(5, 1)["loop"]},
            "lives": [],
        }
        for line, count in ((9, 3), (7, 1200))
    ]
    lifetimes = Profile(
        {"tracekit": "1", "module": "object_lifetime", "trace": "abc", "options": {}, "result": {"sites": sites}},
        {},
        True,
    )
    page = page_of(tmp_path, lifetimes)
    assert page.index("heap app.c:7:3") < page.index("heap app.c:9:3")
    assert "<td>iteration of work:5</td><td>main &gt; loop main:5 &gt; main:6:1</td>" in page


def test_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    record(tmp_path / "trace.zst", CHAINED)
    assert main(["report", "trace.zst", "-o", "page.html"]) == 0
    assert "kB -> page.html" in capsys.readouterr().err
    first = (tmp_path / "page.html").read_text()
    assert "Not found: 1 source file (app.c): give their folder with --source DIR" in first
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "app.c").write_text("\n" * 20)
    assert main(["report", "trace.zst", "-o", "page.html", "--source", "src"]) == 0
    for heading in ("Loops", "Dependence graph", "Source", "Heat map"):
        assert f'-heading">{heading}</h2>' in (tmp_path / "page.html").read_text()
    assert main(["analyze", "-m", "lamp", "-m", "value_pattern", "-o", "p", "trace.zst"]) == 1  # without values
    assert main(["analyze", "-m", "lamp", "-m", "footprint", "-o", "p", "trace.zst"]) == 0
    assert main(["report", "p"]) == 0
    page = (tmp_path / "report.html").read_text()
    assert "as lamp found them" in page and ">Footprint</h2>" in page
    assert main(["report", "src/app.c"]) == 1


@pytest.mark.parametrize(
    ("name", "room", "shown"),
    [
        ("key", 3, "key"),
        ("node.key", 8, "node.key"),
        ("node.key", 7, "key"),
        ("node.document", 5, "docu\N{HORIZONTAL ELLIPSIS}"),
        ("Circle.radius, Box.width", 10, "Circle.ra\N{HORIZONTAL ELLIPSIS}"),
        ("document", 2, ""),
    ],
)
def test_the_picture_of_a_structure_shows_as_much_of_a_name_as_fits(name: str, room: int, shown: str) -> None:
    assert layout._label(name, room) == shown
