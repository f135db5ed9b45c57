"""How Numba lowers one function here: less code for states that are passed on, and each operator's types once.

A state is a tuple of tuples of arrays, an array seven values. Numba hands all of them to a function one by one, puts
them together into a structure in memory, and takes that apart again for each call. Here the structure stays a value,
and what is passed on as it came is not taken apart.
"""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from numba.core import dispatcher, ir, types  # noqa: F401  (numba.core.compiler cannot be imported before the dispatcher)
from numba.core.callconv import CPUCallConv
from numba.core.cpu import CPUContext
from numba.core.datamodel.packer import ArgPacker, _flatten
from numba.core.lowering import Lower

from tracekit.jit.cache import CHECKS_BOUNDS
from tracekit.jit.inference import remembered

_packers: dict[Any, Any] = {}
"""By the types of the arguments: it takes long to look through those of a state."""


class Packing:
    """Numba's packer of the arguments of a function; `came` is what the present function's own arguments came as."""

    def __init__(self, packer: Any, came: dict[int, tuple[Any, Any]]) -> None:
        self._packer = packer
        self._came = came

    def __getattr__(self, name: str) -> Any:
        return getattr(self._packer, name)

    def as_arguments(self, builder: Any, values: Sequence[Any]) -> Iterable[Any]:
        """See Numba's."""
        assert len(values) == len(self._packer._dm_args)
        parts = []
        for model, value in zip(self._packer._dm_args, values):
            _, part = self._came.get(id(value), (None, None))
            parts.append(model.as_argument(builder, value) if part is None else part)
        return tuple(_flatten(parts))

    def from_arguments(self, builder: Any, arguments: Sequence[Any]) -> list[Any]:
        """See Numba's."""
        parts = self._packer._unflattener.unflatten(arguments)
        values = [model.from_argument(builder, part) for model, part in zip(self._packer._dm_args, parts)]
        self._came.update((id(value), (value, part)) for value, part in zip(values, parts))
        return values


class CalleeContext(CPUContext):
    """Numba's target for one function, which knows what its arguments came as."""

    came: dict[int, tuple[Any, Any]]

    def get_arg_packer(self, fe_args: Sequence[Any]) -> Any:
        """See Numba's."""
        key = tuple(fe_args)
        packer = _packers.get(key)
        if packer is None:
            packer = _packers[key] = ArgPacker(self.data_model_manager, key)
        return Packing(packer, self.came)


class PlacedErrors(CPUCallConv):
    """Exceptions name the line that they come from. Numba's do so if that says `raise`, not if it uses an index."""

    def return_user_exc(
        self, builder: Any, exc: Any, exc_args: Any = None, loc: Any = None, func_name: str | None = None
    ) -> None:
        """See Numba's."""
        lower = self.context.lower
        super().return_user_exc(builder, exc, exc_args, loc or lower.loc, func_name or lower.func_ir.func_id.func_name)


class CheckingContext(CalleeContext):
    """The same, with :class:`PlacedErrors`."""

    lower: Lower

    @property
    def call_conv(self) -> PlacedErrors:
        """See Numba's."""
        return PlacedErrors(self)


class CalleeLower(Lower):
    """Numba's lowering of one function, in a context of its own kind."""

    def init(self) -> None:
        """See Numba's: its own context has been made."""
        super().init()
        self.context.__class__ = CheckingContext if CHECKS_BOUNDS else CalleeContext
        self.context.lower = self
        self.context.came = {}
        self._singly_assigned_vars |= self._unchanged_arguments()

    def _unchanged_arguments(self) -> set[str]:
        """The arguments that are never assigned to: they need no memory."""
        assigned = Counter(made.target.name for block in self.blocks.values() for made in block.find_insts(ir.Assign))
        given = (made for made in self.blocks[min(self.blocks)].find_insts(ir.Assign) if isinstance(made.value, ir.Arg))
        return {made.target.name for made in given if assigned[made.target.name] == 1}

    def lower_binop(self, resty: Any, expr: Any, op: Any) -> Any:
        """See Numba's, which asks once or twice more what the operands' types give."""
        known = self.fndesc.calltypes[expr]
        if remembered(self.context.typing_context, op, known.args) is not known:
            return super().lower_binop(resty, expr, op)
        operands = [
            self.context.cast(self.builder, self.loadvar(each.name), self.typeof(each.name), wanted)
            for each, wanted in zip((expr.lhs, expr.rhs), known.args)
        ]
        return self._lower_remembered(resty, op, known, operands)

    def lower_getitem(self, resty: Any, expr: Any, value: Any, index: Any, signature: Any) -> Any:
        """See Numba's."""
        if remembered(self.context.typing_context, operator.getitem, signature.args) is not signature:
            return super().lower_getitem(resty, expr, value, index, signature)
        operands = [
            self.context.cast(self.builder, self.loadvar(each.name), self.typeof(each.name), wanted)
            for each, wanted in zip((value, index), signature.args)
        ]
        return self._lower_remembered(resty, operator.getitem, signature, operands)

    def _lower_remembered(self, resty: Any, op: Any, known: Any, operands: Sequence[Any]) -> Any:
        implementation = self.context.get_function(self.context.typing_context.resolve_value_type(op), known)
        given = implementation(self.builder, operands)
        return self.context.cast(self.builder, given, known.return_type, resty)
