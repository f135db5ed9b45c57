"""Callees kept on disk, as intermediate code: what one kernel has compiled another one links.

Modules share most of the functions below their kernels. Numba keeps machine code for one signature of a kernel; here is
what callee.py makes of a function that only kernels call, with all that it calls itself. A file is written once, whole,
and named by all that the code depends on (cache.py), so there is no index that two processes could spoil.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import threading
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import zstandard
from llvmlite import binding
from numba._dynfunc import make_function
from numba.core import dispatcher, sigutils, types  # noqa: F401  (numba.core.compiler wants the dispatcher first)
from numba.core.compiler import compile_result

from tracekit.jit.cache import CHECKS_ALL_BOUNDS, CHECKS_BOUNDS, folder_for, stamp

_NAMED_TUPLE: Any = types.BaseNamedTuple
_TUPLE: Any = types.BaseTuple


class CalleeCache:
    """Stands in for Numba's cache in the dispatcher of a callee (numba.core.caching)."""

    def __init__(self, function: Any, library: Any) -> None:
        """`library`: the class of code for linking alone."""
        self._function = function
        self._file = Path(function.__code__.co_filename)
        self._library = library

    @cached_property
    def cache_path(self) -> str:
        """The folder of the function's file."""
        return str(folder_for(self._file))

    def load_overload(self, signature: Any, target: Any) -> Any:
        """The function compiled for a signature, as Numba's compiler would return it; None if it is not kept."""
        given = _arguments(signature)
        path = self._path(given, target.codegen())
        try:
            parts = pickle.loads(zstandard.decompress(path.read_bytes())) if path else None
        except (OSError, zstandard.ZstdError):  # there is none, or a disk was full
            return None
        if parts is None or parts.signature.args != given:
            return None
        library = self._library(target.codegen(), parts.description.qualname)
        library.restore(binding.parse_bitcode(parts.bitcode), parts.names, parts.used)
        return compile_result(  # type: ignore[no-untyped-call]
            typing_context=target.typing_context,
            target_context=target,
            entry_point=entry_point(parts.description, parts.environment, library),
            type_annotation="",
            signature=parts.signature,
            objectmode=False,
            lifted=(),
            fndesc=parts.description,
            library=library,
            environment=parts.environment,
            reload_init=[],
            referenced_envs=(),
        )

    def save_overload(self, signature: Any, made: Any) -> None:
        """Keep it, if nothing in it holds for this process alone, and the folder can be written."""
        path = self._path(_arguments(signature), made.library.codegen)
        if path is None or made.library.has_dynamic_globals:
            return
        made.fndesc.typemap = made.fndesc.calltypes = None  # as Numba does
        library = made.library
        parts = _Parts(library.bitcode(), library.names, made.fndesc, made.environment, made.signature, library.used)
        partial = path.with_name(f"{path.name}.{os.getpid()}.{threading.get_ident()}")
        try:
            partial.write_bytes(zstandard.compress(pickle.dumps(parts), 1))
            partial.replace(path)
        except (pickle.PicklingError, AttributeError, TypeError):
            pass  # its types cannot be found again by their names
        except OSError:
            partial.unlink(missing_ok=True)

    def _path(self, given: Sequence[Any], codegen: Any) -> Path | None:
        """The file for these types on this processor; None if one of them is an object of this process."""
        known_as = [described(each) for each in given]
        checks = CHECKS_BOUNDS + CHECKS_ALL_BOUNDS
        text = repr((self._function.__qualname__, stamp(self._file), checks, codegen.magic_tuple(), known_as))
        name = hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
        return None if is_of_one_process(text) else Path(self.cache_path, f"callee-{name}")


def _arguments(signature: Any) -> tuple[Any, ...]:
    given, _ = sigutils.normalize_signature(signature)  # type: ignore[no-untyped-call]
    return tuple(given)


class _Parts(NamedTuple):
    """What a file holds."""

    bitcode: bytes
    names: set[str]
    description: Any
    environment: Any
    signature: Any
    used: tuple[int, ...]


def is_of_one_process(description: str) -> bool:
    """Whether types that are described so mean objects of this process."""
    return " at 0x" in description


def described(given: Any) -> str:
    """A type as Numba names it; of named tuples also the names of the fields, which their code depends on."""
    if isinstance(given, _NAMED_TUPLE):
        owner = given.instance_class
        fields = ", ".join(f"{name}: {described(each)}" for name, each in zip(given.fields, given.types))
        return f"{owner.__module__}.{owner.__qualname__}({fields})"
    if isinstance(given, _TUPLE):
        return f"({', '.join(described(each) for each in given.types)})"
    return str(given)


def entry_point(description: Any, environment: Any, library: Any) -> Any:
    """What stands for a function in Numba, which names overloads by such objects; Python never calls it."""
    name = description.qualname.split(".")[-1]
    return make_function(description.lookup_module(), name, "", 0, environment, (library,))
