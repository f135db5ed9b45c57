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
from tracekit.modules.contract import Analysis
from tracekit.modules.display import Display, display_in

ENTRY_POINTS = "tracekit.modules"
"""The entry-point group for modules of other packages: name -> module file or ``file:Class``."""

_OURS = "tracekit.analyzers."


def unknown_text(name: str) -> str:
    """What to say of a name, or a file, that no module has: which was meant, it seems, and all there are."""
    if is_file(name) and not exists(name):
        return f"There is no file {name}, by which a module is named."
    from tracekit.near import nearest  # here, for only a mistake needs it

    close = nearest(name, names())
    meant = f" Did you mean {' or '.join(close)}?" if close else ""
    return f"There is no module {name!r}.{meant} The modules are: {', '.join(names())}."


@cache
def _found() -> dict[str, Path | EntryPoint]:
    """Name -> where its module is; nothing is imported."""
    modules: dict[str, Path | EntryPoint] = {}
    for entry in entry_points(group=ENTRY_POINTS):
        modules[entry.name] = entry
    specification = importlib.util.find_spec("tracekit.analyzers")
    assert specification is not None
    for folder in specification.submodule_search_locations or ():
        for path in Path(folder).glob("[a-z]*.py"):
            modules[path.stem] = path  # a package cannot replace a module of ours
    return modules


def names() -> list[str]:
    """The names of all modules, sorted."""
    return sorted(_found())


def describe(name: str) -> str:
    """The first sentence of the module's docstring, read without importing it."""
    where = _found()[name]
    tree = _parsed(where if isinstance(where, Path) else _source(where))
    text = ast.get_docstring(tree) if tree else None
    return text.strip().splitlines()[0] if text else ""


@cache
def display(name: str, files: bool = False) -> Display:
    """How the module's file says that its profiles are shown, read without importing it.

    Of a module that is not installed, or comes without its source, nothing is known. `files`: `name` may be the path of
    a file; that is for what users type, as the name in a profile file may be anything. Raises TracekitError where
    DISPLAY makes no sense.
    """
    if files and is_file(name):
        path, python_name = Path(name).resolve(), _python_name(Path(name).resolve())
    else:
        where = _found().get(name)
        if where is None:
            return Display()
        source = where if isinstance(where, Path) else _source(where)
        if source is None:
            return Display()
        path, python_name = source, _OURS + name if isinstance(where, Path) else where.module
    tree = _parsed(path)
    return display_in(tree, str(path), python_name) if tree else Display()


def displays() -> dict[str, Display]:
    """Module -> how its profiles are shown, by rank, then by name; one whose declaration makes no sense is left out."""
    by_name = {}
    for name in names():
        try:
            by_name[name] = display(name)
        except TracekitError:
            continue  # whoever runs that module sees its error
    return dict(sorted(by_name.items(), key=lambda entry: entry[1].rank))


def _parsed(path: Path | None) -> ast.Module | None:
    try:
        return ast.parse(path.read_text(encoding="utf-8")) if path else None
    except (OSError, SyntaxError, ValueError):
        return None


def _source(entry: EntryPoint) -> Path | None:
    try:
        specification = importlib.util.find_spec(entry.module)
    except Exception:  # it runs the packages around the file, which may raise anything
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


def _python_name(path: Path) -> str:
    """What a module's file is imported as.

    Numba's cache names the classes of a state by their module: a name without dots, the same in every process.
    """
    return f"tracekit_module_{path.stem}_{hashlib.blake2b(str(path).encode(), digest_size=6).hexdigest()}"


@cache
def _of_file(path: Path, changed: int) -> ModuleType:
    """Run a module's file, once for each time it was `changed`."""
    name = _python_name(path)
    specification = importlib.util.spec_from_file_location(name, path)
    assert specification is not None and specification.loader is not None
    loaded = importlib.util.module_from_spec(specification)
    sys.modules[name] = loaded
    specification.loader.exec_module(loaded)
    return loaded


def load(name: str, files: bool = True) -> type[Analysis]:
    """Import a module: a name, or, with `files`, the path of a file (.py), which is run.

    Without `files` for names that come from a profile file: whoever reads one does not mean to run what it names.

    Raises TracekitError, with the names there are, if it does not exist or does not load.
    """
    if files and is_file(name):
        path = Path(name).resolve()
        return _module_of(name, _loaded(name, name, lambda: _of_file(path, path.stat().st_mtime_ns)))
    where = _found().get(name)
    if where is None:
        raise TracekitError(unknown_text(name))
    if isinstance(where, Path):
        loaded = importlib.import_module(_OURS + name)
    else:
        loaded = _loaded(name, where.value, where.load)
    return _module_of(name, loaded)


def _loaded(name: str, where: str, load: Callable[[], Any]) -> Any:
    try:
        return load()
    except Exception as error:  # whatever a third party's file does on import
        reason = str(error).rstrip(".") or type(error).__name__
        what = repr(name) if name == where else f"{name!r} of {where}"
        raise TracekitError(f"Module {what} does not load: {reason}.") from error


def _module_of(name: str, loaded: Any) -> type[Analysis]:
    module = getattr(loaded, "MODULE", loaded)
    if not (isinstance(module, type) and issubclass(module, Analysis)):
        raise TracekitError(f"Module {name!r} defines no subclass of tracekit.module.Module as MODULE.")
    return module
