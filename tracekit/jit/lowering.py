"""How Numba lowers one function here: it is told only what it uses (arguments.py), and each operator's types once."""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Sequence
from itertools import accumulate
from typing import Any

from llvmlite.ir import FunctionType
from numba.core import dispatcher, ir, types  # noqa: F401  (numba.core.compiler cannot be imported before the dispatcher)
from numba.core.callconv import CPUCallConv
from numba.core.cgutils import get_or_insert_function, if_unlikely
from numba.core.cpu import CPUContext
from numba.core.imputils import fix_returning_optional, impl_ret_new_ref
from numba.core.lowering import Lower
from numba.np.arrayobj import load_item, store_item

from tracekit.jit.arguments import Given, Handed, Layout, PartsBuilder, keep_used, layout_of
from tracekit.jit.cache import CHECKS_BOUNDS
from tracekit.jit.elements import is_element, is_number_for, place_of
from tracekit.jit.inference import remembered

_recursive: set[str] = set()
"""Names of functions that are called before they are compiled, by those that they call: they have all arguments."""


class CalleeContext(CPUContext):
    """Numba's target for one function, whose arguments are those that it turns out to use."""

    own: Any = None

    def declare_function(self, module: Any, fndesc: Any) -> Any:
        """See Numba's."""
        if fndesc is not self.own:
            return super().declare_function(module, fndesc)
        kind = self.call_conv.get_function_type(fndesc.restype, ())
        function = get_or_insert_function(module, kind, fndesc.mangled_name)
        self.call_conv.decorate_function(function, (), ())
        if fndesc.inline:
            function.attributes.add("alwaysinline")
        return function

    def call_internal(self, builder: Any, fndesc: Any, sig: Any, args: Any) -> Any:
        """See Numba's."""
        if fndesc is self.own:
            _recursive.add(fndesc.mangled_name)
        return super().call_internal(builder, fndesc, sig, args)

    def call_unresolved(self, builder: Any, name: str, sig: Any, args: Any) -> Any:
        """See Numba's."""
        _recursive.add(name)
        return super().call_unresolved(builder, name, sig, args)


def caller_of(fndesc: Any, library: Any, used: Sequence[int]) -> Any:
    """In place of Numba's `user_function`: what emits a call of a function that has these of its arguments."""
    layouts: list[Layout] = []
    all_types: list[Any] = []

    def call(context: Any, builder: Any, sig: Any, args: Sequence[Any]) -> Any:
        if not layouts:
            layouts.extend(layout_of(context.data_model_manager[each]) for each in fndesc.argtypes)
            all_types.extend(kind for layout in layouts for kind in layout.types)
        convention, handed = context.call_conv, Handed(builder, layouts, args)
        own = convention.get_function_type(fndesc.restype, ())
        kind = FunctionType(own.return_type, [*own.args, *(all_types[number] for number in used)])
        function = get_or_insert_function(builder.module, kind, fndesc.mangled_name)
        arguments = [handed.argument(number) for number in used]
        as_they_are = (types.intp,) * len(used)  # Numba hands a number to LLVM as it is, whatever LLVM's type is
        status, given = convention.call_function(builder, function, fndesc.restype, as_they_are, arguments)
        with if_unlikely(builder, status.is_error):
            convention.return_status_propagate(builder, status)
        given = fix_returning_optional(context, builder, sig, status, given)
        return impl_ret_new_ref(context, builder, fndesc.restype, given)

    call.signature = fndesc.argtypes  # type: ignore[attr-defined]
    call.libs = (library,)  # type: ignore[attr-defined]
    return call


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
        self._singly_assigned_vars |= self._unchanged_arguments()

    def setup_function(self, fndesc: Any) -> None:
        """See Numba's."""
        self.context.own = fndesc
        super().setup_function(fndesc)
        if self.library.is_for_linking and not fndesc.inline:
            # LLVM inlines what is called in one place, however seldom. A loop that takes in all that may ever happen
            # keeps little in registers: camp's kernel takes a tenth to a third longer.
            self.function.attributes.add("noinline")
        self.builder.__class__ = PartsBuilder

    def extract_function_arguments(self) -> Any:
        """See Numba's."""
        layouts = [layout_of(self.context.data_model_manager[each]) for each in self.fndesc.argtypes]
        self._given = Given(self.function, [kind for layout in layouts for kind in layout.types])
        begins = accumulate((len(layout.types) for layout in layouts), initial=0)
        self.fnargs = [self._given.value(self.builder, *each) for each in zip(layouts, begins)]
        return self.fnargs

    def lower_normal_function(self, fndesc: Any) -> None:
        """See Numba's."""
        super().lower_normal_function(fndesc)
        removes = self.library.is_for_linking and fndesc.mangled_name not in _recursive
        self.library.used = keep_used(self.function, self._given, removes)

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
        array, place = signature.args
        if not is_element(array, place):
            return self._lower_remembered(resty, operator.getitem, signature, operands)
        at = place_of(self.context, self.builder, array, operands[0], place, operands[1])
        return self.context.cast(self.builder, load_item(self.context, self.builder, array, at), array.dtype, resty)

    def lower_setitem(self, target_var: Any, index_var: Any, value_var: Any, signature: Any) -> Any:
        """See Numba's."""
        array, place, kind = signature.args
        if self.typeof(target_var.name) != array or not is_element(array, place) or not is_number_for(array, kind):
            return super().lower_setitem(target_var, index_var, value_var, signature)
        target, index, value = (
            self.context.cast(self.builder, self.loadvar(each.name), self.typeof(each.name), wanted)
            for each, wanted in zip((target_var, index_var, value_var), signature.args)
        )
        at = place_of(self.context, self.builder, array, target, place, index)
        store_item(self.context, self.builder, array, self.context.cast(self.builder, value, kind, array.dtype), at)
        return None

    def _lower_remembered(self, resty: Any, op: Any, known: Any, operands: Sequence[Any]) -> Any:
        implementation = self.context.get_function(self.context.typing_context.resolve_value_type(op), known)
        given = implementation(self.builder, operands)
        return self.context.cast(self.builder, given, known.return_type, resty)
