"""The sessions of docs/query.md print what the page shows, and its table of tables names all of them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.packaging.test_docs import BLOCK, ROOT, run_console, sessions
from tracekit.query.catalogue import ENTRIES, modules_of

pytest.importorskip("duckdb")

PAGE = (ROOT / "docs/query.md").read_text()


def test_the_sessions(tmp_path: Path) -> None:
    ((_, name, text),) = [block for block in BLOCK.findall(PAGE) if block[1]]
    (tmp_path / name).write_text(text)
    found = sessions(PAGE)
    assert len(found) > 7
    for session in found:
        assert run_console(tmp_path, session) == session


def test_all_tables_are_named() -> None:
    rows = [line.split("|")[1:3] for line in PAGE.splitlines() if line.startswith("| `")]
    listed = {name for tables, _ in rows for name in re.findall(r"`(\w+)`", tables)}
    assert listed == set(ENTRIES)
    modules = {name for name in ENTRIES if modules_of(name)[0] in PAGE}
    assert modules == set(ENTRIES)
