"""What commands write to standard output on request, and what they say of a profile in place of a trace."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

import tracekit
from tests.commands.test_merge import one_sentence, record
from tracekit import api
from tracekit.cli import main


class Files(NamedTuple):
    trace: Path
    profile: Path


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Files:
    folder = tmp_path_factory.mktemp("run")
    trace, profile = record(folder / "run.zst", [[4096, 8192], [4104, 8200]]), folder / "run.json"
    api.analyze(trace, "camp").save(profile)
    return Files(trace, profile)


def test_a_dash_is_standard_output(
    files: Files, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    written = files.profile.read_text()
    for name in ("-", "/dev/stdout"):
        assert main(["merge", str(files.profile), "-o", name]) == 0
        assert capsys.readouterr().out == written
    trace = files.trace
    assert main(["analyze", "-m", "camp", str(trace), "-o", "-"]) == 0
    assert json.loads(capsys.readouterr().out)["module"] == "camp"
    assert main(["report", str(files.profile), "-o", "-"]) == 0
    assert capsys.readouterr().out.startswith("<!DOCTYPE html>")
    assert main(["dump", str(trace), "-o", "-"]) == 0
    assert "function_entry" in capsys.readouterr().out
    assert main(["export", "din", str(trace), "-o", "-"]) == 0
    assert capsys.readouterr().out[0] in "01"
    assert os.listdir(tmp_path) == []


def test_what_is_printed_behind_others_goes_behind_it(files: Files, tmp_path: Path) -> None:
    """A file that standard output is opened on has more in it than one command prints."""
    with open(tmp_path / "out", "w") as out:
        for _ in range(2):
            command = [sys.executable, "-m", "tracekit", "merge", str(files.profile), "-o", "/dev/stdout"]
            subprocess.run(command, stdout=out, check=True)
    assert (tmp_path / "out").read_text() == files.profile.read_text() * 2


def test_a_trace_does_not_go_to_standard_output(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["import", "lackey", "-o", "-", "x"]) == 2
    assert one_sentence(capsys) == "tracekit: A trace is a file: give it a name, -o FILE.\n"
    assert main(["record", "-o", "-", "true"]) == 125
    assert one_sentence(capsys) == "tracekit: A trace is a file: give it a name, -o FILE.\n"


def test_a_profile_in_place_of_a_trace_is_told(
    files: Files, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tracekit.load_profile(files.profile).save(tmp_path / "far.zst")
    for path in (files.profile, tmp_path / "far.zst"):
        assert main(["info", str(path)]) == 1
        assert one_sentence(capsys).startswith(
            f"tracekit: {path} is not a tracekit trace; if `tracekit analyze -o` wrote it, it is a profile"
        )
