"""Writes the kernel of a module into a file, and loads it from there.

Numba keeps compiled code only of functions that stand in a file, so the kernel is written out as one, into the user's
cache folder, under a name made of what it depends on: a process that finds the file finds the compiled code, too.
"""

from __future__ import annotations

import atexit
import hashlib
import importlib.util
import inspect
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any, NamedTuple

from tracekit.jit.cache import digest, home, name_of
from tracekit.jit.kernel import Kernel, uncached
from tracekit.modules.codegen import Plan, source


class Kernels(NamedTuple):
    """What is made of a module's callbacks."""

    consume: Kernel[..., bool]
    """The loop over events."""
    handlers: Mapping[str, Kernel[..., bool]]
    """What it does for each event; empty where callbacks stand in no file."""
    ranges: Mapping[str, Kernel[..., Any]]
    """By event: what that comes to for many accesses of one instruction, where there is such a callback; and if there
    is one, ``unordered`` (how many of the next accesses may come in any order) and ``passed`` (so many are over), each
    if the module has or needs it.
    """


_digest_of = cache(digest)
"""It is of the files as this process first saw them: always the same, and made of up to two hundred files."""


def kernel_of(made: Plan, origin: str) -> Kernels:
    """The kernels for a plan, from the file that this or an earlier process wrote."""
    text = source(made, origin)
    combined = hashlib.blake2b(text.encode(), digest_size=12)
    callbacks = {**made.callbacks, **made.ranges}
    for part in _ingredients(callbacks.values()):
        combined.update(b"\0" + part)
    name = f"{''.join(letter if letter.isalnum() else '_' for letter in origin)}_{combined.hexdigest()}"
    loaded = sys.modules.get(f"tracekit_generated.{name}") or _import(name, _written(name + ".py", text))
    kernel, handlers, many = loaded.use(callbacks)
    if all(_has_file(function) for function in callbacks.values()):
        if all(function.__module__.startswith("tracekit.") for function in callbacks.values()):
            for field, kernels in enumerate(({"": kernel}, handlers, many)):
                for key, one in kernels.items():
                    one.recipe = _kernel_of, (name, loaded.__file__, callbacks, field, key)
        return Kernels(kernel, handlers, many)
    # Numba finds code that was typed into a notebook again only in the process that it was typed into.
    alone: Kernel[..., bool] = uncached(kernel.function)  # type: ignore[assignment]
    return Kernels(alone, {}, {})


def _has_file(function: Callable[..., None]) -> bool:
    return Path(inspect.getsourcefile(function) or "").is_file()


def _kernel_of(
    name: str, path: str, callbacks: Mapping[str, Callable[..., None]], field: int, key: str
) -> Kernel[..., Any]:
    """One of a module's kernels, whose file another process has written: of which field of Kernels, under which key."""
    loaded = sys.modules.get(f"tracekit_generated.{name}") or _import(name, Path(path))
    kernels = Kernels(*loaded.use(callbacks))
    one: Kernel[..., Any] = (kernels.handlers, kernels.ranges)[field - 1][key] if field else kernels.consume
    return one


def _import(name: str, path: Path) -> ModuleType:
    specification = importlib.util.spec_from_file_location(f"tracekit_generated.{name}", path)
    assert specification is not None and specification.loader is not None
    loaded = importlib.util.module_from_spec(specification)
    sys.modules[specification.name] = loaded
    specification.loader.exec_module(loaded)
    return loaded


def _written(name: str, text: str) -> Path:
    """The file `name` with this text: written whole or not at all, by whichever process comes first."""
    folder = home() / "generated"
    path = folder / name
    try:
        if path.exists() and path.read_text(encoding="utf-8") == text:
            return path
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=folder, delete=False, encoding="utf-8") as file:
            file.write(text)
        os.replace(file.name, path)
    except OSError:  # a cache that cannot be written: compile for this process alone
        folder = Path(tempfile.mkdtemp(prefix="tracekit-"))
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        path = folder / name
        path.write_text(text, encoding="utf-8")
    return path


def _is_ours(module: str) -> bool:
    """Whether the digest of the generated kernel's imports covers a module: all of tracekit but what has callbacks."""
    return module.startswith("tracekit.") and not module.startswith("tracekit.analyzers.")


def _ingredients(functions: Any) -> Iterator[bytes]:
    """What compiled callbacks depend on beside tracekit's own kernels: their files, helpers' files, constants."""
    files: set[str] = set()
    seen: set[int] = set()
    waiting = list(functions)
    for function in waiting:
        if _is_ours(function.__module__):  # beside the kernel's own imports: tracekit/dependence/pilot.py
            yield _digest_of(Path(inspect.getsourcefile(function) or "")).encode()
    while waiting:
        function = waiting.pop()
        if id(function) in seen or _is_ours(function.__module__):
            continue
        seen.add(id(function))
        yield function.__module__.encode()  # Numba's cache names the classes of a state by it
        if _has_file(function):
            files.add(inspect.getsourcefile(function) or "")
        else:  # typed into a notebook or a shell
            code = function.__code__
            yield repr((code.co_code, code.co_consts, code.co_names, code.co_varnames)).encode()
        for name in sorted(set(function.__code__.co_names)):
            value = function.__globals__.get(name)
            if isinstance(value, Kernel):
                waiting.append(value.function)
            elif isinstance(value, FunctionType):
                waiting.append(value)
            elif isinstance(value, (int, float, str, tuple)):
                yield f"{name}={value!r}".encode()
    for file in sorted(files):
        # The file as it is now, and whatever of tracekit it imports: maps, shadow memories. Its name, for compiled code
        # remembers in which file something was raised.
        yield name_of(Path(file)).encode() + Path(file).read_bytes() + _digest_of(Path(file)).encode()
