"""Which variables live where in a function: Numba finds it out after five passes, here nobody does before it is asked.

Who asks are references that are counted, `with`, and code without types, none of which a kernel has; and generators,
which functions of Numba's own may be.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from numba.core import dispatcher, postproc, transforms  # noqa: F401  (the dispatcher first, as in callee.py)

_postproc: Any = postproc
_transforms: Any = transforms


class Lifetimes(postproc.PostProcessor):
    """What Numba runs behind passes that have changed a function."""

    def run(self, emit_dels: bool = False, extend_lifetimes: bool = False) -> None:
        """See Numba's, which also says of each block what lives at its begin."""
        function: Any = self.func_ir
        if emit_dels or function.is_generator:
            super().run(emit_dels, extend_lifetimes)
            return
        function.blocks = _transforms.canonicalize_cfg(function.blocks)
        function.variable_lifetime = _postproc.VariableLifetime(function.blocks)
        function.generator_info = None


@contextmanager
def found_when_asked_for() -> Iterator[None]:
    """Let Numba's passes use :class:`Lifetimes`."""
    outer = _postproc.PostProcessor
    _postproc.PostProcessor = Lifetimes
    try:
        yield
    finally:
        _postproc.PostProcessor = outer
