"""`tracekit doctor`: it finds this machine in order, and says of a broken one what to do."""

from __future__ import annotations

import errno
import os
import re
import sys
import tomllib
from pathlib import Path

import pytest

from tracekit import cli, extras
from tracekit.commands import doctor
from tracekit.recorder import toolchain


def test_this_machine_is_in_order(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["doctor"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert any(line.startswith("ok  [mcp] ") and "tracekit mcp: mcp " in line for line in lines)
    assert lines[-1] == "Everything is there."
    assert all(line.startswith("ok ") for line in lines[:-1])
    names = (
        "python",
        "numba",
        "cache",
        "clang",
        "llvm headers",
        "compiler pass",
        "runtime",
        "shared memory",
        "LD_PRELOAD",
    )
    for name in names:
        assert any(line.startswith(f"ok  {name} ") for line in lines), name


def test_without_clang(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(toolchain, "PREFERRED_PATHS", ())
    monkeypatch.delenv("TRACEKIT_CLANG", raising=False)
    assert cli.main(["doctor"]) == 1
    output = capsys.readouterr().out
    assert "NO  clang " in output
    assert "-> apt-get install clang-19 llvm-19-dev" in output
    assert output.endswith("missing.\n")


def test_without_headers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(toolchain, "find_clang", lambda: toolchain.Clang("/bin/clang-15", "15.9.9"))
    monkeypatch.setenv("PATH", "/nowhere")
    findings = list(doctor.examine())
    headers = next(finding for finding in findings if finding.name == "llvm headers")
    assert not headers.works
    assert headers.remedy == "apt-get install llvm-15-dev"


def test_a_cache_that_cannot_be_written(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    findings = {finding.name: finding for finding in doctor.examine()}
    assert not findings["cache"].works
    assert "XDG_CACHE_HOME" in findings["cache"].remedy
    assert findings["LD_PRELOAD"].remedy == doctor.AGAIN
    assert not findings["runtime"].works


def test_without_memory_files(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(name: str) -> int:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))

    monkeypatch.setattr(os, "memfd_create", refuse)
    findings = {finding.name: finding for finding in doctor.examine()}
    assert not findings["shared memory"].works


def test_a_missing_package_is_shown_with_its_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "zstandard", None)
    findings = {finding.name: finding for finding in doctor.examine()}
    assert not findings["zstandard"].works
    assert findings["zstandard"].remedy.endswith("-m pip install zstandard")
    assert findings["numpy"].works


def test_extras_are_named_with_what_they_are_for(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    declared = project["optional-dependencies"]
    assert set(extras.EXTRAS) == set(declared) - {"dev"}
    for name, extra in extras.EXTRAS.items():
        found = [re.match(r"[\w-]+", package)[0] for package in declared[name]]  # type: ignore[index]
        assert found == [extras.PROJECTS.get(package, package) for package in extra.packages]
        assert extras.missing(name) == []
    assert declared["dev"][0] == f"tracekit[{','.join(sorted(extras.EXTRAS))}]"  # so that the tests run
    monkeypatch.setitem(sys.modules, "duckdb", None)
    assert cli.main(["doctor"]) == 0
    lines = capsys.readouterr().out.splitlines()
    at = next(number for number, line in enumerate(lines) if line.startswith("--  [query] "))
    assert "tracekit query, tracekit shell: duckdb not installed" in lines[at]
    assert lines[at + 1].strip() == "-> pip install 'tracekit[query]'"
    assert any(line.startswith("ok  [mcp] ") and "tracekit mcp: mcp " in line for line in lines)
    assert lines[-1] == "Everything that is needed is there; optional and not installed: [query]."
