"""How modules are found: our own in ``analyzers/``, and those of other packages by an entry point."""

from __future__ import annotations

import ast
import importlib
import importlib.util
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path

from tracekit.formats.errors import TracekitError
from tracekit.module import Analysis

ENTRY_POINTS = "tracekit.modules"
"""The entry-point group for modules of other packages: name -> module file or ``file:Class``."""


@cache
def _found() -> dict[str, Path | EntryPoint]:
    """Name -> where its module is; nothing is imported."""
    found: dict[str, Path | EntryPoint] = {}
    for entry in entry_points(group=ENTRY_POINTS):
        found[entry.name] = entry
    specification = importlib.util.find_spec("tracekit.analyzers")
    assert specification is not None
    for folder in specification.submodule_search_locations or ():
        for path in Path(folder).glob("[a-z]*.py"):
            found[path.stem] = path  # a package cannot replace a module of ours
    return found


def names() -> list[str]:
    """The names of all modules, sorted."""
    return sorted(_found())


def describe(name: str) -> str:
    """The first sentence of the module's docstring, read without importing it."""
    where = _found()[name]
    path = where if isinstance(where, Path) else _source(where)
    try:
        text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) if path else None
    except (OSError, SyntaxError, ValueError):
        text = None
    return text.strip().splitlines()[0] if text else ""


def _source(entry: EntryPoint) -> Path | None:
    try:
        specification = importlib.util.find_spec(entry.module)
    except (ImportError, ValueError):
        return None
    return Path(specification.origin) if specification and specification.origin else None


def load(name: str) -> type[Analysis]:
    """Import a module. Raises TracekitError, with the names there are, if it does not exist or does not load."""
    where = _found().get(name)
    if where is None:
        raise TracekitError(f"There is no module {name!r}; the modules are: {', '.join(names())}.")
    if isinstance(where, Path):
        loaded = importlib.import_module(f"tracekit.analyzers.{name}")
    else:
        try:
            loaded = where.load()
        except Exception as error:  # whatever a third party's file does on import
            raise TracekitError(f"Module {name!r} of {where.value} does not load: {error}.") from error
    module = getattr(loaded, "MODULE", loaded)
    if not (isinstance(module, type) and issubclass(module, Analysis)):
        raise TracekitError(f"Module {name!r} defines no subclass of tracekit.module.Module as MODULE.")
    return module
