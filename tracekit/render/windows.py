"""The windows that a run was recorded in, in one line."""

from __future__ import annotations

from typing import Any


def windows_text(windows: list[dict[str, Any]], most: int = 5) -> str:
    """`2 windows: 1 (0.013 s to 0.250 s, 70 accesses), ...`, of rows as :meth:`RecordedWindow.as_json` makes them."""
    shown = ", ".join(map(_one, windows[:most]))
    more = f" and {len(windows) - most:,} more" if len(windows) > most else ""
    return f"{len(windows):,} window{'' if len(windows) == 1 else 's'}" + (f": {shown}{more}" if windows else "")


def filters_text(filters: list[str]) -> str:
    """`only functions=parse; what was left out is not seen`, of what `record --only` and `--without` were given."""
    return f"{', '.join(filters)}; what was left out is not seen"


def _one(window: dict[str, Any]) -> str:
    end = "the end" if window["end"] is None else f"{window['end']:.6g} s"
    return f"{window['window']} ({window['begin']:.6g} s to {end}, {window['accesses']:,} accesses)"
