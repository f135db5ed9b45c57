"""Diffs: `patch` makes of the old text what the edits make of it."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.needs import needs
from tracekit.patches.diff import unified_diff
from tracekit.patches.edits import Edit, applied

LINES = st.lists(st.text("ab \f\r", max_size=3), min_size=1, max_size=30)


@st.composite
def edited(draw: st.DrawFn) -> tuple[str, list[Edit]]:
    text = "\n".join(draw(LINES)) + draw(st.sampled_from(["", "\n"])) or "a"
    cuts = sorted(draw(st.lists(st.integers(0, len(text)), max_size=8, unique=True)))
    edits = []
    for start, end in zip(cuts[::2], cuts[1::2]):
        new = draw(st.sampled_from(["x", "new\n", "y\nz", "c\nd\n"]))
        edits.append(Edit(start, draw(st.sampled_from([start, end])), new))
    return text, edits


@needs("patch")
@settings(max_examples=60, deadline=None)
@given(edited())
def test_a_diff_says_what_the_edits_do(case: tuple[str, list[Edit]]) -> None:
    text, edits = case
    expected = applied(text, edits)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "a file.c"
        file.write_bytes(text.encode("latin-1"))
        if text != expected:
            diff = unified_diff(file.name, text, edits).encode("latin-1")
            done = subprocess.run(["patch", "-p1", "--binary", "-s"], input=diff, cwd=folder, capture_output=True)
            assert done.returncode == 0, done.stdout + done.stderr
        assert file.read_bytes().decode("latin-1") == expected
