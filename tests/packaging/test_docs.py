"""Every block of the pages of docs/ that are named here does what the page says."""

from __future__ import annotations

import doctest
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import tracekit
from tests.needs import needs

ROOT = Path(tracekit.__file__).resolve().parents[1]
TUTORIAL = (ROOT / "docs/writing-modules.md").read_text()
REPORTS = (ROOT / "docs/reports.md").read_text()
IMPORT = (ROOT / "docs/import.md").read_text()
EXPORTS = (ROOT / "docs/export.md").read_text()
ERRORS = (ROOT / "docs/memory-errors.md").read_text()
API = (ROOT / "docs/python-api.md").read_text()
PATHS = (ROOT / "docs/paths.md").read_text()
PARALLEL = (ROOT / "docs/parallel.md").read_text()

BLOCK = re.compile(r"^```(\w+)(?: (\S+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def steady(text: str) -> str:
    """Without what no two runs share: the trace's hash and times."""
    text = re.sub(r"trace [0-9a-f]{32}", "trace ...", text)
    return re.sub(r"in [\d.]+s", "in ...", text)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the files of the tutorial."""
    made = tmp_path_factory.mktemp("docs")
    for _, name, text in BLOCK.findall(TUTORIAL):
        if name and ":" not in name:
            (made / name).write_text(text)
    return made


def put(folder: Path, name: str, text: str) -> None:
    """Do with a block what a reader does: `name` is a file to write, or FILE:PLACE, a part of one that is there.

    Places: `import`, the line that imports tracekit.module; `method`, one more of the class, which is the last thing
    before MODULE; `DISPLAY`, which is the end of the file.
    """
    file, _, place = name.partition(":")
    path = folder / file
    if not place:
        path.write_text(text)
        return
    before = path.read_text()
    pattern, new = {
        "import": (r"^from tracekit\.module import .*\n", text),
        "method": (r"(?=\n\nMODULE = )", "\n" + text),
        "DISPLAY": (r"(^DISPLAY = [\s\S]*)?\Z", text),
    }[place]
    after, times = re.subn(pattern, lambda _: new, before, count=1, flags=re.MULTILINE)
    assert times == 1, f"{name} has no place in:\n{before}"
    path.write_text(after)


def run_console(folder: Path, session: str) -> str:
    """The session again, with what its commands print now."""
    tool = folder / "bin" / "tracekit"
    tool.parent.mkdir(exist_ok=True)
    tool.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m tracekit "$@"\n')
    tool.chmod(0o755)
    # What a reader installs goes into a folder of the test's own, and nothing is fetched for it.
    pip = tool.with_name("pip")
    offline = "--disable-pip-version-check --no-index --no-deps --no-build-isolation --target site"
    pip.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m pip "$@" {offline}\n')
    pip.chmod(0o755)
    path = f"{tool.parent}:{Path(sys.executable).parent}:{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "PYTHONPATH": f"{ROOT}:{folder / 'site'}"}
    shown = ""
    for command in re.findall(r"^\$ (.*)$", session, re.MULTILINE):
        done = subprocess.run(command, shell=True, cwd=folder, env=environment, capture_output=True, text=True)
        shown += f"$ {command}\n{done.stdout}"
        assert done.returncode == 0, shown + done.stderr
    return shown


def sessions(page: str) -> list[str]:
    return [text for kind, _, text in BLOCK.findall(page) if kind == "console"]


def test_the_tutorial(folder: Path) -> None:
    """All blocks in one go: each goes on where the one before it ended. None is left out."""
    blocks = BLOCK.findall(TUTORIAL)
    assert len(blocks) == TUTORIAL.count("\n```") / 2
    for kind, name, text in blocks:
        if kind == "console":
            assert steady(run_console(folder, text)) == steady(text)
        else:
            assert name, f"a block that the test does not run:\n{text}"
            put(folder, name, text)
    assert len(sessions(TUTORIAL)) == 9


def test_the_python_interface(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if not (folder / "app.zst").exists():
        run_console(folder, sessions(TUTORIAL)[0])
    monkeypatch.chdir(folder)
    examples = "\n".join(text for kind, _, text in BLOCK.findall(API) if kind == "pycon")
    test = doctest.DocTestParser().get_doctest(examples, {"__name__": "notebook"}, "python-api.md", None, 0)
    assert len(test.examples) > 15
    output: list[str] = []
    result = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test, out=output.append)
    assert result.failed == 0, "".join(output)


def test_reports(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ((_, name, text),) = [block for block in BLOCK.findall(REPORTS) if block[1]]
    (tmp_path / name).write_text(text)
    found = sessions(REPORTS)
    assert len(found) == REPORTS.count("\n```console\n") == 5
    for session in found:
        assert steady(run_console(tmp_path, session)) == steady(session)
    (code,) = [text for kind, name, text in BLOCK.findall(REPORTS) if kind == "python"]
    monkeypatch.chdir(tmp_path)
    exec(code.replace("to_dataframe", "result.get"), {"tracekit": tracekit})
    assert "<title>both.profile: memory profile</title>" in (tmp_path / "both.html").read_text()


def test_imports(tmp_path: Path) -> None:
    blocks = BLOCK.findall(IMPORT)
    for _, name, text in blocks:
        if name:
            (tmp_path / name).write_text(text)
    found = sessions(IMPORT)
    assert len(found) == len(blocks) - 1 == 1
    for session in found:
        assert steady(run_console(tmp_path, session)) == steady(session)


@needs("valgrind")
def test_exports(tmp_path: Path) -> None:
    ((_, name, text),) = [block for block in BLOCK.findall(EXPORTS) if block[1]]
    (tmp_path / name).write_text(text)
    (session,) = sessions(EXPORTS)
    assert steady(run_console(tmp_path, session)) == steady(session)


def test_errors_of_memory(tmp_path: Path) -> None:
    ((_, name, text),) = [block for block in BLOCK.findall(ERRORS) if block[1]]
    (tmp_path / name).write_text(text)
    (session,) = sessions(ERRORS)
    assert steady(run_console(tmp_path, session)) == steady(session)


def test_paths(tmp_path: Path) -> None:
    ((_, name, text),) = [block for block in BLOCK.findall(PATHS) if block[1]]
    (tmp_path / name).write_text(text)
    (session,) = sessions(PATHS)
    assert steady(run_console(tmp_path, session)) == steady(session)


def test_parallel_programs(tmp_path: Path) -> None:
    for _, name, text in BLOCK.findall(PARALLEL):
        if name:
            (tmp_path / name).write_text(text)
    found = sessions(PARALLEL)
    assert len(found) == 6
    for session in found:
        assert steady(run_console(tmp_path, session)) == steady(session)
