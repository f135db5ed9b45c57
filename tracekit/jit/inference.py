"""Numba's type inference, which remembers what operators on numbers and arrays give.

Numba looks among dozens of templates for what `a + b` of two integers is, anew for each `+` of each function, and most
of those templates are other types' that have to be tried and to fail. That took a sixth of all compiling.
"""

from __future__ import annotations

import operator
from collections.abc import Hashable
from typing import Any

from numba.core import dispatcher, types  # noqa: F401  (numba.core.compiler cannot be imported before the dispatcher)
from numba.core.compiler_machinery import register_pass
from numba.core.typed_passes import NopythonTypeInference

_NAMES = "add sub mul floordiv mod and_ or_ xor lshift rshift eq ne lt le gt ge neg invert not_ truth getitem setitem"
_IN_PLACE = "iadd isub imul iand ior ixor ilshift irshift"
REMEMBERED = frozenset(
    (*(getattr(operator, name) for name in f"{_NAMES} {_IN_PLACE}".split()), abs, bool, len, max, min)
)
"""Functions whose templates ask for nothing but the types of the operands. Numba calls `bool` for each branch."""

_numbers: tuple[Any, ...] = (types.Integer, types.Float, types.Boolean)
_operands: tuple[Any, ...] = (*_numbers, types.Array, types.Record)
_unliteral: Any = types.unliteral
_FUNCTION: Any = types.Function
_NUMBER_CLASS: Any = types.NumberClass


_signatures: dict[tuple[Any, ...], Any] = {}


def remembered(context: Any, function: Any, arguments: Any) -> Any:
    """The signature of one of REMEMBERED, or of a number's class, for numbers, arrays and records; else None."""
    if not isinstance(function, Hashable) or not (function in REMEMBERED or isinstance(function, _NUMBER_CLASS)):
        return None
    plain = tuple(_unliteral(each) for each in arguments)
    if not all(isinstance(each, _operands) for each in plain):
        return None
    known_as = context._lookup_global(function)  # another one if somebody has extended the operator
    key = (id(context), id(known_as), function, plain)
    known, signature = _signatures.get(key, (None, None))
    if signature is None or known is not known_as:
        signature = context.resolve_function_type(function, plain, {})
        _signatures[key] = known_as, signature
    return signature


class RememberingContext:
    """Numba's typing context; what is asked of it that this class does not answer goes to that one."""

    def __init__(self, context: Any) -> None:
        self._context = context

    def __getattr__(self, name: str) -> Any:
        return getattr(self._context, name)

    def resolve_function_type(self, function: Any, arguments: Any, named: Any) -> Any:
        """See Numba's."""
        if not named:
            operation = function.typing_key if isinstance(function, _FUNCTION) else function
            found = remembered(self._context, operation, arguments)
            if found is not None:
                return found
        return self._context.resolve_function_type(function, arguments, named)

    def resolve_setitem(self, target: Any, index: Any, value: Any) -> Any:
        """See Numba's."""
        return self.resolve_function_type(operator.setitem, (target, index, value), {})


@register_pass(mutates_CFG=True, analysis_only=False)
class Inference(NopythonTypeInference):
    """Numba's pass, in a :class:`RememberingContext`."""

    _name = "tracekit_type_inference"

    def run_pass(self, state: Any) -> bool:
        """See Numba's."""
        context = state.typingctx
        state.typingctx = RememberingContext(context)
        try:
            done: bool = super().run_pass(state)
        finally:
            state.typingctx = context
        return done
