"""The wheel and the sdist hold what a user needs, and an installed tracekit works outside the checkout."""

from __future__ import annotations

import email
import os
import re
import shutil
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

import tracekit

ROOT = Path(tracekit.__file__).resolve().parents[1]
SHIPPED = ("formats", "recorder", "analyzers", "tracekit")
SUFFIXES = (".py", ".c", ".cpp", ".h", ".md", ".typed", ".html", ".css", ".js")


def shipped_files() -> set[str]:
    """Every committed file of the rooms, under the name that it has in a wheel."""
    listed = subprocess.run(["git", "ls-files", *SHIPPED], cwd=ROOT, capture_output=True, text=True, check=True)
    files = [name for name in listed.stdout.splitlines() if name.endswith(SUFFIXES)]
    return {name if name.startswith("tracekit/") else f"tracekit/{name}" for name in files}


@pytest.fixture(scope="session")
def distributions(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """(wheel, sdist), built from a clean clone of the files as they are."""
    folder = tmp_path_factory.mktemp("packaging")
    source = folder / "source"
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout
    source.mkdir()
    archive = subprocess.run(["tar", "c", "--null", "-T", "-"], cwd=ROOT, input=listed, capture_output=True).stdout
    subprocess.run(["tar", "x"], cwd=source, input=archive, check=True)
    build = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder / "dist"), str(source)]
    done = subprocess.run(build, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    (wheel,) = (folder / "dist").glob("*.whl")
    (sdist,) = (folder / "dist").glob("*.tar.gz")
    return wheel, sdist


def test_the_wheel_holds_every_file_of_the_rooms(distributions: tuple[Path, Path]) -> None:
    names = {name for name in zipfile.ZipFile(distributions[0]).namelist() if ".dist-info/" not in name}
    assert names == shipped_files() | {f"tracekit-{tracekit.__version__}.data/data/share/man/man1/tracekit.1"}
    assert {
        "tracekit/recorder/pass/Plugin.cpp",
        "tracekit/recorder/runtime/image_runtime.c",
        "tracekit/formats/SPEC.md",
        "tracekit/render/html/page.js",
    } <= names


def test_the_wheel_says_what_it_is_and_carries_its_licence(distributions: tuple[Path, Path]) -> None:
    with zipfile.ZipFile(distributions[0]) as wheel:
        (name,) = [name for name in wheel.namelist() if name.endswith(".dist-info/METADATA")]
        metadata = email.message_from_bytes(wheel.read(name))
        licence = wheel.read(name.replace("METADATA", "licenses/LICENSE"))
    assert licence == (ROOT / "LICENSE").read_bytes()
    assert metadata["Version"] == tracekit.__version__
    assert (metadata["License-Expression"], metadata["Author"]) == ("Apache-2.0", "tracekit developers")
    assert "Typing :: Typed" in metadata.get_all("Classifier", [])
    required = {
        re.split(r"[<>=!~ ;]", each)[0] for each in metadata.get_all("Requires-Dist", []) if "extra" not in each
    }
    assert required == {"numpy", "numba", "zstandard", "click", "rich"}
    assert not metadata.get_all("Project-URL")


def test_the_changelog_has_this_version() -> None:
    """As a section with a date, below what is not released yet."""
    headings = re.findall(r"^## (.*)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert headings[0] == "Unreleased"
    assert re.fullmatch(rf"{re.escape(tracekit.__version__)} - \d{{4}}-\d\d-\d\d", headings[1])


def test_the_sdist_builds_the_same_wheel(distributions: tuple[Path, Path], tmp_path: Path) -> None:
    shutil.unpack_archive(distributions[1], tmp_path)
    (source,) = tmp_path.iterdir()
    done = subprocess.run(
        [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", tmp_path / "dist", source],
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    (again,) = (tmp_path / "dist").glob("*.whl")
    contents = [
        {
            entry.filename: entry.CRC
            for entry in zipfile.ZipFile(wheel).infolist()
            if not entry.filename.endswith("RECORD")
        }
        for wheel in (distributions[0], again)
    ]
    assert contents[0] == contents[1]


@pytest.fixture(scope="session")
def installed(distributions: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The bin folder of a fresh virtual environment with the wheel; dependencies are those of this Python."""
    folder = tmp_path_factory.mktemp("venv")
    venv.create(folder, with_pip=True)
    packages = subprocess.run(
        [sys.executable, "-c", "import numba, os; print(os.path.dirname(os.path.dirname(numba.__file__)))"],
        capture_output=True, text=True, check=True,
    ).stdout.strip()  # fmt: skip
    (site,) = folder.glob("lib/python*/site-packages")
    install = [folder / "bin/python", "-m", "pip", "install", "--quiet", "--no-deps", distributions[0]]
    subprocess.run(install, check=True)
    # After site-packages, so that the tracekit found is the wheel's, even where this one is installed.
    (site / "dependencies.pth").write_text(packages + "\n")
    return folder / "bin"


def run(*words: str | Path, cwd: Path) -> str:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(words, cwd=cwd, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_installed_commands_start(installed: Path, tmp_path: Path) -> None:
    assert run(installed / "tracekit", "--version", cwd=tmp_path) == f"tracekit {tracekit.__version__}\n"
    assert "clang version" in run(installed / "tracekit-cc", "--version", cwd=tmp_path)
    assert "clang version" in run(installed / "tracekit-c++", "--version", cwd=tmp_path)
    assert "LLVM version" in run(installed / "tracekit-llvm-ar", "--version", cwd=tmp_path)
    assert "LLVM version" in run(installed / "tracekit-llvm-ranlib", "--version", cwd=tmp_path)
    assert "Usage: tracekit fc" in run(installed / "tracekit-fc", "--help", cwd=tmp_path)
    assert "Usage: tracekit rustc" in run(installed / "tracekit-rustc", "--help", cwd=tmp_path)
    where = run(installed / "python", "-c", "import tracekit; print(tracekit.__file__)", cwd=tmp_path)
    assert str(installed.parent) in where


def test_installed_tracekit_compiles_records_and_analyses(installed: Path, tmp_path: Path) -> None:
    run(installed / "tracekit", "cc", "-O1", ROOT / "fixtures/camp_fig1.c", "-o", "app", cwd=tmp_path)
    run(installed / "tracekit", "record", "-o", "app.zst", "--", "./app", cwd=tmp_path)
    profile = run(installed / "tracekit", "analyze", "-m", "camp", "app.zst", cwd=tmp_path)
    assert "RAW" in profile
