"""`tracekit report`: one self-contained page of a run's profiles, made by ``page``.

`Shown`, `number_cell`, `table` and `text` are for authors of sections (:class:`tracekit.module.Display`).
"""

from __future__ import annotations

from tracekit.render.html.data import Limits, Shown
from tracekit.render.html.elements import number_cell, table, text
from tracekit.render.html.page import MOST_BYTES, write_page

__all__ = ["MOST_BYTES", "Limits", "Shown", "number_cell", "table", "text", "write_page"]
