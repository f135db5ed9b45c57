"""What shells offer, and the manual page."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import click
import pytest

import tracekit
from tracekit import cli, manual_page
from tracekit.modules import registry

ROOT = Path(tracekit.__file__).resolve().parents[1]


def offered(*words: str) -> list[tuple[str, str]]:
    """The kinds and values that bash is given for the last of the words."""
    asked = {
        "COMP_WORDS": " ".join(["tracekit", *words]),
        "COMP_CWORD": str(len(words)),
        "_TRACEKIT_COMPLETE": "bash_complete",
    }
    probe = "import sys; from tracekit.cli import main; from atexit import register; register(lambda: sys.stderr.write("
    probe += "'imported' if 'numba' in sys.modules else '')); main([])"
    done = subprocess.run(
        [sys.executable, "-c", probe], env={**os.environ, **asked}, capture_output=True, text=True, check=True
    )
    assert done.stderr == ""
    return [(line.partition(",")[0], line.partition(",")[2]) for line in done.stdout.splitlines()]


def test_commands_options_and_modules_are_offered() -> None:
    assert [value for _, value in offered("")] == list(cli.COMMANDS)
    assert offered("di") == [("plain", "diff")]
    assert ("plain", "--events") in offered("modules", "--")
    assert [value for _, value in offered("analyze", "-m", "")] == registry.names()
    assert offered("analyze", "-m", "cam") == [("plain", "camp")]
    assert offered("completion", "z") == [("plain", "zsh")]


@pytest.mark.parametrize(
    "words",
    [
        ("cc", "ma"),
        ("record", "./a"),
        ("analyze", "-m", "./mo"),
        ("analyze", "-o", "x"),
        ("analyze", "-m", "camp", "tr"),
        ("report", "--output", "x"),
        ("annotate", "trace.zst", "x"),
        ("advise", "x"),
    ],
)
def test_files_are_left_to_the_shell(words: tuple[str, ...]) -> None:
    assert offered(*words) == [("file", words[-1])]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_is_read_by_its_shell(shell: str, tmp_path: Path) -> None:
    script = subprocess.run(
        [sys.executable, "-m", "tracekit", "completion", shell], capture_output=True, text=True, check=True
    )
    assert script.stderr == ""
    assert "_TRACEKIT_COMPLETE=" in script.stdout
    if shutil.which(shell) is not None:  # bash is everywhere; the others where they are in use
        (tmp_path / "script").write_text(script.stdout)
        subprocess.run([shell, "-n", str(tmp_path / "script")], check=True)


def test_bash_completes(tmp_path: Path) -> None:
    tool = tmp_path / "tracekit"
    tool.write_text(f'#!/bin/sh\nexec {sys.executable} -m tracekit "$@"\n')
    tool.chmod(0o755)
    session = 'eval "$(tracekit completion bash)"; COMP_WORDS=(tracekit analyze -m hea); COMP_CWORD=3; '
    session += '_tracekit_completion tracekit; echo "${COMPREPLY[@]}"'
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(["bash", "-c", session], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == "heatmap\n"


def test_a_shell_that_is_not_known() -> None:
    assert cli.main(["completion", "tcsh"]) == 2


def test_the_manual_page_is_what_the_commands_say() -> None:
    assert (ROOT / "docs/tracekit.1").read_text() == manual_page.page(), "make format writes it anew"


def test_the_manual_page_has_every_command_and_option() -> None:
    text = manual_page.page().replace("\\-", "-")
    sections = dict(re.findall(r"^\.SS tracekit (\S+)(.*?)(?=^\.S[SH] )", text, re.MULTILINE | re.DOTALL))
    assert list(sections) == list(cli.COMMANDS)
    assert "\n.B -o, --output FILE\nWrite the profile to FILE" in sections["analyze"]
    assert "\n.B --limit N\nRows of each table in text; 0 shows all.  [default: 30]\n" in sections["analyze"]
    assert "info [OPTIONS] TRACE" in text
    assert "annotate [OPTIONS] TRACE [FILE]\n" in text
    for name in cli.COMMANDS:
        command = cli.group.get_command(click.Context(cli.group), name)
        assert command is not None
        for parameter in command.params:
            if isinstance(parameter, click.Option):
                assert parameter.opts[-1] in sections[name]


def test_roff_finds_no_requests_in_text() -> None:
    assert list(manual_page._text(".sh is not \\fB\n\n\b\n  .a - b\n  c")) == [
        "\\&.sh is not \\efB",
        ".PP",
        ".nf",
        "  .a \\- b",
        "  c",
        ".fi",
    ]
