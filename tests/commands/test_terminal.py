"""Lines are as long as the terminal is wide where there is one, or where COLUMNS says how wide it is."""

from __future__ import annotations

import pytest

from tracekit.commands.terminal import NARROWEST, terminal_style


@pytest.mark.parametrize(("columns", "width"), [("72", 72), ("1", NARROWEST), (None, 0)])
def test_other_programs_get_lines_as_long_as_they_are(
    columns: str | None, width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    if columns:
        monkeypatch.setenv("COLUMNS", columns)
    style = terminal_style()
    assert style.width == width
    assert not style.colour


def test_a_terminal_has_its_width_and_colours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.delenv("COLUMNS", raising=False)
    style = terminal_style()
    assert style.width > 0
    assert style.colour
