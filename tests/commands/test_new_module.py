"""`tracekit new-module`: what it writes works as it stands, and nothing is lost."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

import tracekit
from tracekit.cli import main

ROOT = Path(tracekit.__file__).resolve().parents[1]


def test_what_it_writes_passes_its_own_test(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["new-module", "byte_traffic"]) == 0
    names = ["byte_traffic.py", "naive_byte_traffic.py", "test_byte_traffic.py"]
    assert sorted(path.name for path in tmp_path.iterdir()) == names
    assert "tracekit analyze -m ./byte_traffic.py" in capsys.readouterr().out
    for name in names:
        text = (tmp_path / name).read_text()
        ast.parse(text)
        assert "template" not in text.lower()
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_byte_traffic.py"]
    done = subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "4 passed" in done.stdout


@pytest.mark.parametrize("existing", ["mine.py", "naive_mine.py", "test_mine.py"])
def test_it_overwrites_nothing(
    existing: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / existing).write_text("precious")
    assert main(["new-module", "mine"]) == 1
    assert capsys.readouterr().err == f"tracekit: {existing} exists already; nothing was written.\n"
    assert [path.name for path in tmp_path.iterdir()] == [existing]
    assert (tmp_path / existing).read_text() == "precious"


@pytest.mark.parametrize("name", ["Mine", "my-module", "7", "class", "../x", ""])
def test_a_name_that_is_none_is_misuse(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["new-module", name]) == 2
    assert "no Python name in lower case" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_our_own_names_are_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["new-module", "camp"]) == 1
    assert "There is a module 'camp' already" in capsys.readouterr().err


def test_a_folder_that_cannot_be_written_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert main(["new-module", "mine"]) == 1
    assert capsys.readouterr().err == "tracekit: Cannot write mine.py: No such file or directory.\n"
