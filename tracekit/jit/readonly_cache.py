"""Numba's cache on disk, used as far as it can be: one that can be read and not written serves what it holds.

Numba looks for another place where it cannot write: beside the source files, where it would not see that a kernel's
imports have changed (cache.py), or nowhere, so that every run compiles everything.
"""

from __future__ import annotations

import os
from typing import Any

from numba.core import dispatcher  # noqa: F401  (numba.core.caching cannot be imported before the dispatcher)
from numba.core.caching import CompileResultCacheImpl, FunctionCache

_GIVEN, *_OTHERS = CompileResultCacheImpl._locator_classes


class _Folder(_GIVEN):  # type: ignore[valid-type,misc]
    """The folder in Numba's settings, whether or not it can be written."""

    @classmethod
    def from_function(cls, function: Any, file: str) -> _Folder | None:
        """None for a function without a file, which is not found again."""
        return cls(function, file) if os.path.exists(file) else None


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
        """See Numba's."""
        try:
            super().save_overload(signature, made)  # type: ignore[no-untyped-call]
        except OSError:
            pass
