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
    words = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-index",
             "--no-deps", "--no-build-isolation", "--target", folder / "site", folder / "source"]
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder / "site"


def tool(site: Path, cwd: Path, *words: str) -> str:
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{site}"}
    done = subprocess.run([sys.executable, "-m", "tracekit", *words], cwd=cwd, env=environment,
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_a_module_of_an_installed_package_is_listed_and_runs(site: Path, tmp_path: Path) -> None:
    listed = tool(site, tmp_path, "modules").splitlines()
    assert any(line.split(maxsplit=1) == ["strides", "Instructions whose addresses step evenly, and by how much."]
               for line in listed)
    assert "--least N" in tool(site, tmp_path, "analyze", "-m", "strides", "--help")
    (tmp_path / "app.c").write_text(PROGRAM)
    tool(site, tmp_path, "cc", "-O1", "-g", "app.c", "-o", "app")
    # The program returns numbers[0], which is 0, as its status.
    tool(site, tmp_path, "record", "-o", "app.zst", "--", "./app")
    report = json.loads(tool(site, tmp_path, "analyze", "-m", "strides", "--json", "app.zst"))
    assert (report["module"], report["options"]) == ("strides", {"least": 3})
    (row,) = report["result"]["instructions"]
    assert (row["instruction"]["kind"], row["instruction"]["line"], row["count"], row["step"]) == ("store", 6, 16, 16)
