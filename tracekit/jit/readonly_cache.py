"""Numba's cache on disk, used as far as it can be: one that can be read and not written serves what it holds.

Numba names its folder by the path of the source file; cache.py names it by what the code depends on. Numba looks for
another place where it cannot write: beside the source files, where it would not see that a kernel's imports have
changed, or nowhere, so that every run compiles everything.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from numba.core import dispatcher  # noqa: F401  (numba.core.caching cannot be imported before the dispatcher)
from numba.core.caching import CompileResultCacheImpl, FunctionCache

from tracekit.jit.cache import folder_for, stamp
from tracekit.jit.lock import one_process

_GIVEN, *_OTHERS = CompileResultCacheImpl._locator_classes


class _Folder(_GIVEN):  # type: ignore[valid-type,misc]
    """The folder that cache.py names, whether or not it can be written."""

    @classmethod
    def from_function(cls, function: Any, file: str) -> _Folder | None:
        """None for a function without a file, which is not found again."""
        return cls(function, file) if os.path.exists(file) else None

    def get_cache_path(self) -> str:
        """See Numba's."""
        return str(folder_for(Path(self._py_file)))

    def get_source_stamp(self) -> str:
        """See Numba's. The folder is that of what the file was when this process first looked."""
        return stamp(Path(self._py_file))


class _Entries(CompileResultCacheImpl):
    _locator_classes = [_Folder, *_OTHERS]  # noqa: RUF012 (so Numba declares it)


class KernelCache(FunctionCache):
    """What cannot be read is compiled, and what cannot be written is compiled for this process alone."""

    _impl_class = _Entries

    def load_overload(self, signature: Any, target: Any) -> Any:
        """See Numba's."""
        try:
            return super().load_overload(signature, target)  # type: ignore[no-untyped-call]
        except OSError:
            return None

    def save_overload(self, signature: Any, made: Any) -> None:
        """See Numba's; two signatures that are saved at once would otherwise take the same file for their code."""
        try:
            with one_process(self.cache_path, self._impl.filename_base):
                super().save_overload(signature, made)  # type: ignore[no-untyped-call]
        except OSError:
            pass
