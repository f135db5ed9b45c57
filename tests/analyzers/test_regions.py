"""The module ``regions``: what `tracekit regions` prints, as tables and as a picture."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

import tracekit
from tests.programs.running import run_here
from tests.recorder.recording import build, record
from tracekit.render.regions import svg

PROGRAM = r"""
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
int main(void)
{
    for (int k = 0; k < 4; k++) {
        memset(mmap(0, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), k, 1 << 20);
        usleep(250000);
    }
}
"""


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("regions")
    app = build(folder, PROGRAM)
    assert record(folder, app, options=("--snapshots", "10ms", "-o", "t.zst")).returncode == 0
    return folder / "t.zst"


def test_it_says_what_the_command_says(trace: Path) -> None:
    snapshots = json.loads(run_here("regions", "--json", trace).stdout)["snapshots"]
    result = tracekit.analyze(trace, "regions").result
    assert len(snapshots) >= 1
    names = ("time", "resident", "proportional", "swapped")
    assert result["snapshots"] == [{name: each[name] for name in names} | each["bytes"] for each in snapshots]
    for each in snapshots:
        for region in each["regions"]:
            (row,) = [
                row
                for row in result["regions"]
                if all(row[name] == value for name, value in region.items() if name != "thread")
                and row["from"] <= each["time"] <= row["to"]
            ]
            assert region.get("thread", 0) in (0, row["thread"])


def test_text_picture_and_page(trace: Path, tmp_path: Path) -> None:
    shown = run_here("analyze", "-m", "regions", "--image", tmp_path / "r.svg", trace)
    assert shown.status == 0 and b"anonymous" in shown.stdout
    root = ElementTree.parse(tmp_path / "r.svg").getroot()
    titles = [title.text or "" for title in root.iter("{http://www.w3.org/2000/svg}title")]
    assert any(title.startswith("anonymous: at most ") for title in titles)
    refused = run_here("analyze", "-m", "regions", "--image", tmp_path / "r.png", trace)
    assert refused.status == 1 and b"drawn as .svg" in refused.stderr
    assert run_here("analyze", "-m", "regions", "-o", tmp_path / "p.json", trace).status == 0
    page = run_here("report", tmp_path / "p.json", "-o", tmp_path / "page.html")
    assert page.status == 0, page.stderr
    assert "Address space over time" in (tmp_path / "page.html").read_text()


def test_without_snapshots_there_is_nothing(tmp_path: Path) -> None:
    app = build(tmp_path, "volatile int a; int main(void) { return a; }")
    assert record(tmp_path, app, options=("-o", "t.zst")).returncode == 0
    assert tracekit.analyze(tmp_path / "t.zst", "regions").result == {"snapshots": [], "regions": []}
    assert b"has no snapshots of the address space" in run_here("analyze", "-m", "regions", tmp_path / "t.zst").stdout
    empty = {"time": 0.5, "resident": 1, **dict.fromkeys(("heap", "stack", "image", "file", "anonymous", "kernel"), 0)}
    ElementTree.fromstring(svg({"snapshots": [empty], "regions": []}))
