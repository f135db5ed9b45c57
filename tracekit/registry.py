"""How modules are found: our own in ``analyzers/``, and those of other packages by an entry point."""

from __future__ import annotations

import ast
import hashlib
import importlib
import importlib.util
import sys
from collections.abc import Callable
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import ModuleType
from typing import Any

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


def is_file(name: str) -> bool:
    """Whether a module is named by its file instead of a name of its own."""
    return name.endswith(".py")


def shown_name(module: str | type[Analysis]) -> str:
    """What a profile calls a module: its name, the stem of its file, or the name of its class."""
    if not isinstance(module, str):
        return module.__name__
    return Path(module).stem if is_file(module) else module


def exists(name: str) -> bool:
    """Whether there is such a module."""
    return Path(name).is_file() if is_file(name) else name in _found()


@cache
def _of_file(path: Path, changed: int) -> ModuleType:
    """Run a module's file, once for each time it was `changed`."""
    # Numba's cache names the classes of a state by their module: a name without dots, the same in every process.
    name = f"tracekit_module_{path.stem}_{hashlib.blake2b(str(path).encode(), digest_size=6).hexdigest()}"
    specification = importlib.util.spec_from_file_location(name, path)
    assert specification is not None and specification.loader is not None
    loaded = importlib.util.module_from_spec(specification)
    sys.modules[name] = loaded
    specification.loader.exec_module(loaded)
    return loaded


def load(name: str) -> type[Analysis]:
    """Import a module: a name, or the path of a file (.py).

    Raises TracekitError, with the names there are, if it does not exist or does not load.
    """
    if is_file(name):
        path = Path(name).resolve()
        return _module_of(name, _loaded(name, name, lambda: _of_file(path, path.stat().st_mtime_ns)))
    where = _found().get(name)
    if where is None:
        raise TracekitError(f"There is no module {name!r}; the modules are: {', '.join(names())}.")
    if isinstance(where, Path):
        loaded = importlib.import_module(f"tracekit.analyzers.{name}")
    else:
        loaded = _loaded(name, where.value, where.load)
    return _module_of(name, loaded)


def _loaded(name: str, where: str, load: Callable[[], Any]) -> Any:
    try:
        return load()
    except Exception as error:  # whatever a third party's file does on import
        told = str(error).rstrip(".") or type(error).__name__
        raise TracekitError(f"Module {name!r} of {where} does not load: {told}.") from error


def _module_of(name: str, loaded: Any) -> type[Analysis]:
    module = getattr(loaded, "MODULE", loaded)
    if not (isinstance(module, type) and issubclass(module, Analysis)):
        raise TracekitError(f"Module {name!r} defines no subclass of tracekit.module.Module as MODULE.")
    return module
