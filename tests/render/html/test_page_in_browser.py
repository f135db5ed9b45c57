"""The page in a real browser: sorting, filtering, graphs, keyboard, screen readers, colours, time to open."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.browser import ENTER, TAB, Browser
from tests.needs import needs
from tests.render.html.test_page import HOSTILE, accesses, camp, dependence, instruction, loop_row
from tracekit.inputs import Gathered
from tracekit.profiles.profile import Profile
from tracekit.program.sources import Sources
from tracekit.render.html import write_page

pytestmark = needs("chromium")

HEAT = {
    "tracekit": "1",
    "module": "heatmap",
    "trace": "abc",
    "options": {},
    "result": {
        "rows": [{"start": "0x1000", "loads": [5, 0, 1], "stores": [0, 2, 0]}],
        "summary": {"bytes_per_row": 4096, "slices": 3, "accesses_per_slice": 4},
    },
}


def many(count: int) -> list[Any]:
    loops = [loop_row(7, 500), loop_row(20, 30, "doall"), loop_row(30, 400, "pipeline", function="wörk")]
    return loops + [loop_row(40 + number, 10, "doall-with") for number in range(count)]


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("page")
    (folder / "app.c").write_text("\n".join([f"line {number}" for number in range(1, 9)] + [HOSTILE] * 60))
    within = dependence(20)
    within["levels"][0].update(inter=False, min_distance=None, max_distance=None)
    back = dependence(7, count=9)
    back.update(kind="WAR", source=back["destination"], destination=back["source"])
    same = dependence(7, count=1)
    same.update(kind="WAW", source=instruction(9, "store"), destination=instruction(9, "store"))
    profiles = (
        camp(many(2), [dependence(7), back, same, within]),
        accesses({8: 70, 9: 30, 20: 5}),
        Profile(HEAT, {}, True),
    )
    path = folder / "page.html"
    path.write_text(write_page(Gathered(profiles), Sources({}, [folder]), "app & co", None))
    return path


@pytest.fixture(scope="module")
def window() -> Iterator[Browser]:
    with Browser() as opened:
        yield opened


@pytest.fixture
def at(window: Browser, page: Path) -> Browser:
    """The page, freshly opened."""
    window.open(Path("/dev/null"))
    window.open(page)
    return window


def rows(at: Browser) -> list[list[str]]:
    found: list[list[str]] = at.run("""
        return [...document.querySelectorAll("#loop-table tbody tr")].filter((row) => !row.hidden)
            .map((row) => [...row.cells].map((cell) => cell.innerText));""")
    return found


def focused(at: Browser) -> str:
    text: str = at.run("""
        const at = document.activeElement;
        const label = at.labels?.[0]?.firstChild.textContent.trim();
        return at.getAttribute("aria-label") || label || at.innerText || at.id;""")
    return text


def test_it_asks_for_nothing_complains_of_nothing_and_runs_nothing_foreign(at: Browser, page: Path) -> None:
    at.log()
    at.log("performance")
    at.open(page)
    assert at.log() == []
    asked = [
        message["message"] for message in at.log("performance") if 'Network.requestWillBeSent"' in message["message"]
    ]
    assert asked and all(f'"url":"{page.resolve().as_uri()}' in each or '"url":"data:' in each for each in asked)
    assert at.run("return document.title") == "app & co"
    assert at.run(
        "return [...document.querySelectorAll('code')].some((code) => code.textContent === arguments[0])", HOSTILE
    )


def test_columns_sort_both_ways_and_say_so(at: Browser) -> None:
    assert [row[0] for row in rows(at)] == ["sequential", "pipeline", "doall", "doall-with", "doall-with"]

    def sort(column: int) -> str:
        at.click(f"#loop-table thead th:nth-child({column}) button")
        order: str = at.run("return document.querySelectorAll('#loop-table th')[arguments[0]].ariaSort", column - 1)
        return order

    assert sort(4) == "descending"  # iterations: 10 times the line
    assert [row[3] for row in rows(at)] == ["410", "400", "300", "200", "70"]
    assert sort(4) == "ascending"
    assert [row[3] for row in rows(at)] == ["70", "200", "300", "400", "410"]
    assert sort(1) == "ascending"  # worst verdict first, not by alphabet
    assert [row[0] for row in rows(at)] == ["sequential", "pipeline", "doall-with", "doall-with", "doall"]
    sorted_by = at.run("return [...document.querySelectorAll('#loop-table th[aria-sort]')].map((th) => th.ariaSort)")
    assert sorted_by == ["ascending", *["none"] * 7]


def test_loops_are_filtered_by_text_and_verdict(at: Browser) -> None:
    at.run("document.getElementById('filter-text').focus()")
    at.keys("wörk")
    assert [row[1].split("\n")[0] for row in rows(at)] == ["app.c:30:1 wörk"]
    assert at.run("return document.getElementById('filter-count').textContent") == "1 of 5 loops"
    at.run("""const text = document.getElementById("filter-text"), verdict = document.getElementById("filter-verdict");
              text.value = ""; verdict.value = "doall-with";
              verdict.dispatchEvent(new Event("input", {bubbles: true}));""")
    assert [row[0] for row in rows(at)] == ["doall-with", "doall-with"]
    at.keys(ENTER)  # must not send the form
    assert len(rows(at)) == 2


def graph(at: Browser) -> tuple[str, list[str]]:
    said, titles = at.run("""
        return [document.getElementById("graph-said").textContent,
                [...document.querySelectorAll("#graph-drawing title")].map((title) => title.textContent)];""")
    return said, titles


def test_the_graph_shows_the_chosen_loop(at: Browser) -> None:
    said, titles = graph(at)
    assert said == "3 dependences."
    assert titles == [
        "WAR load app.c:8:3 work to store app.c:9:3 work: 9 times, carried, distance 1 to 4",
        "RAW store app.c:9:3 work to load app.c:8:3 work: 3 times, carried, distance 1 to 4",
        "WAW store app.c:9:3 work to store app.c:9:3 work: 1 times, carried, distance 1 to 4",
    ]
    dashes = at.run("""return [...document.querySelectorAll("#graph-drawing path:not(.head)")]
                       .map((path) => getComputedStyle(path).strokeDasharray)""")
    assert len(set(dashes)) == 3  # kinds differ not by colour alone
    at.click("tr[data-verdict=doall] .show-graph")
    assert graph(at)[0].startswith("The loop carries no dependence")
    assert at.run("return document.activeElement.id") == "graph-loop"
    at.click("#graph-carried")
    assert graph(at)[0] == "1 dependence."
    assert graph(at)[1][0].endswith("3 times, within an iteration")
    at.click("#graph-rows summary")
    table = at.run("return [...document.querySelectorAll('#graph-rows td')].map((cell) => cell.textContent)")
    assert table == ["RAW", "store app.c:22:3 work", "load app.c:21:3 work", "3", "no", ""]


def test_a_link_to_the_source_opens_the_file(at: Browser) -> None:
    at.run("document.querySelectorAll('details.file').forEach((file) => { file.open = false; })")
    at.click("#loop-table tbody a")
    opened, visible = at.run("""
        const line = document.querySelector(location.hash), box = line.getBoundingClientRect();
        return [line.closest("details").open, box.top >= 0 && box.bottom <= innerHeight];""")
    assert opened and visible
    cells = at.run("return [...document.querySelector('#f0l8').cells].map((cell) => cell.textContent)")
    assert cells == ["8", "70", "", "line 8", "", "WAR to 9, RAW from 9"]


def test_everything_is_reached_by_keyboard_in_order(at: Browser) -> None:
    at.keys(TAB)
    assert focused(at) == "Skip to the loops"
    assert at.run("return document.activeElement.getBoundingClientRect().left >= 0")
    order = []
    for _ in range(60):
        at.keys(TAB)
        order.append(focused(at))
    wanted = ["Loops", "Dependence graph", "Source", "Heat map", "Filter", "Verdict"]
    assert order[: len(wanted)] == wanted
    positions = [
        order.index(name)
        for name in (
            "Accesses",
            "app.c:7:1 work",
            "Loop",
            "The same as a table",
            "app.c 105 loads, 0 stores",
            "The rows as a table",
        )
    ]
    assert order.index("app.c:7:1 work") < order.index("The same as a table") < order.index("The rows as a table")
    assert len(set(positions)) == len(positions)
    at.run("document.querySelector('#loop-table thead button').focus()")
    at.keys(ENTER)
    assert at.run("return document.querySelector('#loop-table th').ariaSort") == "ascending"
    outline = at.run("return getComputedStyle(document.activeElement).outlineStyle")
    assert outline == "solid"


def test_screen_readers_find_headings_tables_and_names(at: Browser) -> None:
    levels = at.run("return [...document.querySelectorAll('h1, h2, h3')].map((h) => Number(h.tagName[1]))")
    assert levels[0] == 1 and levels.count(1) == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))
    assert at.run("return document.documentElement.lang") == "en"
    assert at.run("return [...document.querySelectorAll('table')].every((t) => t.caption || t.closest('#graph-rows'))")
    assert at.run("return [...document.querySelectorAll('th')].every((th) => th.scope)")
    tree = at.devtools("Accessibility.getFullAXTree", {})["nodes"]
    nameless = [
        node["role"]["value"]
        for node in tree
        if not node.get("ignored")
        and node["role"]["value"] in ("button", "link", "combobox", "searchbox", "checkbox", "image", "region")
        and not node.get("name", {}).get("value")
    ]
    assert nameless == []
    roles = {node["role"]["value"] for node in tree}
    assert {"banner", "main", "navigation", "table", "columnheader", "rowheader", "contentinfo"} <= roles


CONTRAST = """
    const channel = (value) => (value /= 255) <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
    const numbers = (colour) => colour.match(/[\\d.]+/g).map(Number);
    const light = ([r, g, b]) => 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
    const below = (at) => { for (; at; at = at.parentElement) {
        const colour = numbers(getComputedStyle(at).backgroundColor);
        if (colour.length === 3 || colour[3] === 1) return colour; } return [255, 255, 255]; };
    const found = [];
    for (const at of document.querySelectorAll("body *")) {
        const own = [...at.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim());
        if (!own || at instanceof SVGElement || !at.checkVisibility()) continue;
        const [one, two] = [light(numbers(getComputedStyle(at).color)), light(below(at))];
        const contrast = (Math.max(one, two) + 0.05) / (Math.min(one, two) + 0.05);
        if (contrast < 4.5) found.push([at.outerHTML.slice(0, 80), contrast]);
    }
    return found;"""


@pytest.mark.parametrize("dark", [False, True])
def test_text_has_contrast_in_light_and_dark(page: Path, dark: bool) -> None:
    with Browser(dark=dark) as window:
        window.open(page)
        background = window.run("return getComputedStyle(document.documentElement).backgroundColor")
        assert (background == "rgb(22, 24, 27)") == dark
        assert window.run(CONTRAST) == []


def test_a_narrow_window_scrolls_tables_and_not_the_page(page: Path) -> None:
    with Browser(width=360) as window:
        window.open(page)
        assert window.run("return document.documentElement.scrollWidth <= innerWidth")
        window.run("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
        assert window.run("return document.documentElement.scrollWidth <= innerWidth")


def test_in_a_narrow_window_all_of_a_loop_is_seen(page: Path) -> None:
    """And with a heading to each thing, as the column's is not beside it."""
    with Browser(width=360) as window:
        window.open(page)
        right, edge, headings = window.run("""
            const table = document.querySelector("#loop-table");
            const cells = [...table.querySelectorAll("tbody tr:first-child > *")];
            return [Math.max(...cells.map((cell) => cell.getBoundingClientRect().right)),
                    table.parentElement.getBoundingClientRect().right,
                    cells.map((cell) => getComputedStyle(cell, "::before").content != "none"
                        && cell.dataset.heading)];""")
        assert right <= edge
        assert headings[2:] == ["Accesses", "Iterations", "Invocations", "Carries", "Why", "Context"]
        window.run("document.querySelector('#loop-table thead button').click()")
        assert window.run("return document.querySelectorAll('[aria-sort=ascending]').length") == 1


@pytest.mark.parametrize("dark", [False, True])
def test_the_heat_map_is_as_dark_as_the_page(page: Path, dark: bool) -> None:
    with Browser(dark=dark) as window:
        window.open(page, "#heatmap")
        x, y = window.run("""
            const box = document.querySelector(".heat").getBoundingClientRect();
            return [box.right - 30 + scrollX, box.bottom - 20 + scrollY];""")
        seen = pixel(window, x, y)
    assert max(seen) < 60 if dark else min(seen) > 240


def pixel(window: Browser, x: float, y: float) -> bytes:
    """Red, green and blue of one place of the page: a PNG's first pixel, whose filter has no neighbour to add."""
    clip = {"x": x, "y": y, "width": 1, "height": 1, "scale": 1}
    shot = base64.b64decode(window.devtools("Page.captureScreenshot", {"format": "png", "clip": clip})["data"])
    at, compressed = 8, b""
    while at < len(shot):
        length = int.from_bytes(shot[at : at + 4], "big")
        if shot[at + 4 : at + 8] == b"IDAT":
            compressed += shot[at + 8 : at + 8 + length]
        at += length + 12
    return zlib.decompress(compressed)[1:4]


def test_without_scripts_tables_and_source_are_there(at: Browser, page: Path) -> None:
    at.devtools("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        at.open(page)
        text = at.devtools("DOMSnapshot.captureSnapshot", {"computedStyles": []})["strings"]
    finally:
        at.devtools("Emulation.setScriptExecutionDisabled", {"value": False})
    assert "The graph is drawn by a script, which does not run here." in text
    assert "line 8" in text and any("wörk" in each for each in text)


def test_a_full_page_opens_in_two_seconds(tmp_path: Path) -> None:
    loops = many(300)
    dependences = [dependence(40 + number % 200, count=number, path=(f"work:{number}:1",)) for number in range(9000)]
    for number, row in enumerate(dependences):
        row["source"] = instruction(1 + number % 977, "store")
    (tmp_path / "app.c").write_text("\n".join(f"  some_code(line[{number}]);" for number in range(9000)))
    profiles = (camp(loops, dependences), accesses(dict.fromkeys(range(1, 9000), 5)))
    path = tmp_path / "page.html"
    path.write_text(write_page(Gathered(profiles), Sources({}, [tmp_path]), "app"))
    assert path.stat().st_size > 500_000
    # The main thread's own time, since it began: what other processes take on a busy machine is not the page's.
    with Browser() as window:
        window.devtools("Performance.enable", {})
        window.open(path)
        assert window.run("return document.readyState") == "complete"
        metrics = {each["name"]: each["value"] for each in window.devtools("Performance.getMetrics", {})["metrics"]}
        rows = window.run("return document.querySelectorAll('tbody tr').length")
    assert rows > 4000
    assert 0 < metrics["ThreadTime"] < 1.5, metrics
