"""Profiles as text and as a page: one file for each kind of profile.

The names below are for authors of renderers, which a module's file names (:class:`tracekit.module.Display`); what
sections of the page are written with is in :mod:`tracekit.render.html`. Nothing else here is public.
"""

from tracekit.render.places import instruction_text, loop_text, place_text, without_folder
from tracekit.render.text import WIDTH, Json, Style, cell, more, table, traces_text

__all__ = [
    "WIDTH",
    "Json",
    "Style",
    "cell",
    "instruction_text",
    "loop_text",
    "more",
    "place_text",
    "table",
    "traces_text",
    "without_folder",
]
