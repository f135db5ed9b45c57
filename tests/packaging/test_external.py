"""A package of somebody else's, installed with pip, adds a module: no file of tracekit's is touched."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import tracekit

ROOT = Path(tracekit.__file__).resolve().parents[1]

PROGRAM = """
volatile int numbers[64];
int main(void)
{
    for (int i = 0; i < 64; i += 4)
        numbers[i] = i;
    return numbers[0];
}
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that the package was installed into."""
    folder = tmp_path_factory.mktemp("external")
    shutil.copytree(Path(__file__).parent / "external", folder / "source")
    words = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "--no-index",
        "--no-deps",
        "--no-build-isolation",
        "--target",
        folder / "site",
        folder / "source",
    ]
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder / "site"


def tool(site: Path, cwd: Path, *words: str) -> str:
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{site}"}
    done = subprocess.run(
        [sys.executable, "-m", "tracekit", *words], cwd=cwd, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def trace(site: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A trace of PROGRAM."""
    folder = tmp_path_factory.mktemp("app")
    (folder / "app.c").write_text(PROGRAM)
    tool(site, folder, "cc", "-O1", "-g", "app.c", "-o", "app")
    # The program returns numbers[0], which is 0, as its status.
    tool(site, folder, "record", "-o", "app.zst", "--", "./app")
    return folder / "app.zst"


def test_a_module_of_an_installed_package_is_listed_and_runs(site: Path, trace: Path, tmp_path: Path) -> None:
    listed = tool(site, tmp_path, "modules").splitlines()
    assert any(
        line.split(maxsplit=1) == ["strides", "Instructions whose addresses step evenly, and by how much."]
        for line in listed
    )
    assert "--least N" in tool(site, tmp_path, "analyze", "-m", "strides", "--help")
    report = json.loads(tool(site, tmp_path, "analyze", "-m", "strides", "--json", str(trace)))
    assert (report["module"], report["options"]) == ("strides", {"least": 3})
    (row,) = report["result"]["instructions"]
    assert (row["instruction"]["kind"], row["instruction"]["line"], row["count"], row["step"]) == ("store", 6, 16, 16)


def test_its_module_has_a_text_a_row_order_and_a_section_of_the_page_of_its_own(
    site: Path, trace: Path, tmp_path: Path
) -> None:
    lines = tool(site, tmp_path, "analyze", "-m", "strides", str(trace)).splitlines()
    assert lines[0].startswith("Strides of trace ")
    assert [line.split() for line in lines[1:]] == [
        ["STEP", "TIMES", "INSTRUCTION"],
        ["+16", "16", "store", "app.c:6:20", "main"],
    ]
    tool(site, tmp_path, "analyze", "-m", "strides", "-m", "widths", "-o", "both.profile", str(trace))
    tool(site, tmp_path, "report", "-o", "page.html", "both.profile")
    page = (tmp_path / "page.html").read_text()
    assert '<h2 id="strides-heading">Even strides</h2>' in page
    assert "<caption>Instructions and their steps</caption>" in page and 'data-value="16">16</td>' in page
    assert '<h2 id="widths-heading">Widths</h2>' in page


def test_a_profile_is_printed_as_its_module_says_where_it_is_installed_and_generically_elsewhere(
    site: Path, trace: Path, tmp_path: Path
) -> None:
    tool(site, tmp_path, "analyze", "-m", "strides", "-o", "strides.profile", str(trace))
    assert tool(site, tmp_path, "merge", "strides.profile").startswith("Strides of trace ")
    elsewhere = tool(tmp_path, tmp_path, "merge", "strides.profile").splitlines()
    assert elsewhere[0].startswith("strides, trace ") and elsewhere[2] == "instructions"
    tool(tmp_path, tmp_path, "report", "-o", "page.html", "strides.profile")
    assert '<h2 id="strides-heading">Strides</h2>' in (tmp_path / "page.html").read_text()
