"""The sessions of docs/races.md show what the page says."""

from __future__ import annotations

from pathlib import Path

from tests.packaging.test_docs import BLOCK, ROOT, run_console, sessions, steady

PAGE = (ROOT / "docs/races.md").read_text()


def test_the_example(tmp_path: Path) -> None:
    for _, name, text in BLOCK.findall(PAGE):
        if name:
            (tmp_path / name).write_text(text)
    found = sessions(PAGE)
    assert len(found) == 3
    for session in found:
        assert steady(run_console(tmp_path, session)) == steady(session)
