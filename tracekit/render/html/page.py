"""The page as a whole.

``data`` chooses what is shown, ``sections`` writes it as HTML, ``page.html``, ``page.css`` and ``page.js`` are inlined.
The page fetches nothing: its content security policy allows its own script and style by their hashes, and no more.
"""

from __future__ import annotations

import base64
import hashlib
from dataclasses import replace
from importlib.resources import files
from string import Template

from tracekit.inputs import Gathered
from tracekit.profiles.gc_paused import gc_paused
from tracekit.program.sources import Sources
from tracekit.render.html.data import Limits, choose
from tracekit.render.html.sections import body

MOST_BYTES = 5_000_000
"""Of a page. What is shown is halved until it fits."""


@gc_paused()
def write_page(gathered: Gathered, sources: Sources, title: str, limits: Limits | None = None) -> str:
    """The page as HTML text, of less than MOST_BYTES bytes of UTF-8."""
    limits = limits or Limits()
    while True:
        page = _page(gathered, sources, title, limits)
        if len(page.encode()) < MOST_BYTES or limits.loops <= 1:
            return page
        limits = replace(
            limits,
            loops=limits.loops // 2,
            edges=max(limits.edges // 2, 1),
            lines=limits.lines // 2,
            rows=max(limits.rows // 2, 1),
        )


def _page(gathered: Gathered, sources: Sources, title: str, limits: Limits) -> str:
    style, script = (
        files("tracekit.render.html").joinpath(name).read_text(encoding="utf-8") for name in ("page.css", "page.js")
    )
    template = Template(files("tracekit.render.html").joinpath("page.html").read_text(encoding="utf-8"))
    shown = choose(gathered, sources, limits)
    return template.substitute(
        body(shown, title), style=style, script=script, style_hash=_hash(style), script_hash=_hash(script)
    )


def _hash(text: str) -> str:
    """As a content security policy names it."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode("ascii")
