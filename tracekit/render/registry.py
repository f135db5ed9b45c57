"""From a profile to what shows it: the functions that its module names, or those for any module.

A module names them in its file (:mod:`tracekit.modules.display`). They are imported here, when they are used.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Mapping
from typing import Any

from tracekit.formats.errors import TracekitError
from tracekit.modules import registry
from tracekit.modules.display import Display
from tracekit.profiles.gc_paused import gc_paused
from tracekit.render.folding import fold_lines
from tracekit.render.generic import generic_text
from tracekit.render.text import Json, Style
from tracekit.render.windows import filters_text, windows_text


@gc_paused()
def as_text(report: Json, facts: Mapping[str, int], limit: int, style: Style, display: Display | None = None) -> str:
    """The report for a person; at most `limit` rows of each table (0: all).

    `display`: how the module is shown, where its name alone does not tell (it was given as a file). Raises
    TracekitError if the module's renderer cannot be imported or fails.
    """
    module = report["module"]
    display = display or registry.display(module)
    if display.text:
        text = str(call(module, display.text, report, facts, limit, style))
    else:
        text = generic_text(report, limit, style, display.greatest, display.percent)
    notes = []
    if "window" in report:
        window = ", ".join(f"{part} {value}" for part, value in report["window"].items())
        notes.append(f"Only accesses inside the window: {window}")
    if "filters" in report:
        notes.append(f"Recorded in part: {filters_text(report['filters'])}")
    if "windows" in report:
        notes.append(f"Recorded in {windows_text(report['windows'])}")
    return fold_lines("".join(style(note, "bold") + "\n" for note in notes) + text, style.width)


def call(module: str, reference: str, *arguments: Any) -> Any:
    """Call the function that `module` names by `reference` (``package.file:function``).

    Raises TracekitError, with a sentence, if there is no such function; or with its author's line, if it fails and is
    not one of tracekit's own, whose failure is a bug.
    """
    function = _resolved(module, reference)
    try:
        return function(*arguments)
    except TracekitError:
        raise
    except Exception as error:
        if function.__module__.partition(".")[0] == "tracekit":
            raise
        from tracekit.modules.diagnostics import of_file

        reason = of_file(inspect.getsourcefile(function), error) or repr(error)
        raise TracekitError(f"Module {module!r} cannot be shown: {reason}.") from error


def _resolved(module: str, reference: str) -> Callable[..., Any]:
    file, _, name = reference.partition(":")
    try:
        function = getattr(importlib.import_module(file), name)
    except Exception as error:  # whatever a third party's file does on import
        reason = str(error).rstrip(".") or type(error).__name__
        raise TracekitError(f"Module {module!r} cannot be shown: {reference} does not load: {reason}.") from error
    if not callable(function):
        raise TracekitError(f"Module {module!r} cannot be shown: {reference} is no function.")
    return function  # type: ignore[no-any-return]
