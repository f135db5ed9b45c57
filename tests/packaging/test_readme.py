"""The README's example gives the output that the README shows."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import tracekit

ROOT = Path(tracekit.__file__).resolve().parents[1]


def without_hash(text: str) -> str:
    """The trace's content hash covers the time of the recording."""
    return re.sub(r"trace [0-9a-f]{32}", "trace ...", text)


def test_the_example_of_the_readme(tmp_path: Path) -> None:
    session = re.search(r"```console\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert session
    tool = tmp_path / "bin" / "tracekit"
    tool.parent.mkdir()
    python, modules = shlex.quote(sys.executable), shlex.quote(str(ROOT))
    tool.write_text(f'#!/bin/sh\nPYTHONPATH={modules} exec {python} -m tracekit "$@"\n')
    tool.chmod(0o755)
    (tmp_path / "fixtures").symlink_to(ROOT / "fixtures")
    environment = {**os.environ, "PATH": f"{tool.parent}:{os.environ['PATH']}"}
    shown = ""
    for command in re.findall(r"^\$ (.*)$", session[1], re.MULTILINE):
        done = subprocess.run(
            command, shell=True, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, text=True, check=True
        )
        shown += f"$ {command}\n{done.stdout}"
    assert without_hash(shown) == without_hash(session[1])
