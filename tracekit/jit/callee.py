"""How Numba compiles a kernel, and a function that only kernels call: that one as intermediate code alone.

Numba gives each function that it meets wrappers for calls from Python, a full optimisation together with all that it
calls, and machine code. A wrapper that unpacks a state of a hundred arrays is longer than most functions, and the
helpers of a helper are optimised and emitted once for each level of calls above them. Here a helper is what its caller
links: all is optimised once, as a private part of a kernel. A module's kernel takes less than half of the time.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from llvmlite.binding import Linkage
from numba.core import dispatcher, types  # noqa: F401  (numba.core.compiler cannot be imported before the dispatcher)
from numba.core.callconv import CPUCallConv
from numba.core.codegen import CPUCodeLibrary, JITCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_machinery import PassManager, register_pass
from numba.core.cpu import CPUContext
from numba.core.datamodel.models import OpaqueModel
from numba.core.lowering import Lower
from numba.core.typed_passes import NativeLowering
from numba.extending import register_model

from tracekit.jit.cache import CHECKS_BOUNDS, digest, stamp
from tracekit.jit.callee_cache import entry_point


class CalleeLibrary(CPUCodeLibrary):
    """Code for linking alone: it never enters the execution engine of the process."""

    def __init__(self, codegen: Any, name: str) -> None:
        super().__init__(codegen, name)
        self.own = ""
        """The function that it is for."""
        self.names: set[str] = set()
        """The functions in it whose names mean the same in all processes, so that their code may be linked once."""

    def restore(self, module: Any, names: set[str]) -> None:
        """Become what :meth:`bitcode` was taken of."""
        self._final_module = module
        self.names = names
        self._finalize_final_module()

    def bitcode(self) -> bytes:
        """All of it, as other libraries link it."""
        kept: bytes = self._get_module_for_linking().as_bitcode()
        return kept

    def add_linking_library(self, library: Any) -> None:
        """See Numba's."""
        super().add_linking_library(library)
        self.names |= getattr(library, "names", set())

    def _optimize_final_module(self) -> None:
        """No optimisation: that is done once, in the caller. What is not ours becomes private.

        Numba tells functions of one name apart by numbers that hold for one process.
        """
        for function in self._final_module.functions:
            if not function.is_declaration and function.name not in self.names and function.name != self.own:
                function.linkage = Linkage.internal

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._verify_declare_only_symbols()
        self._finalized = True


class KernelLibrary(JITCodeLibrary):
    """The code of a kernel, with that of all its callees."""

    def _optimize_final_module(self) -> None:
        """As Numba does, after the callees have become private.

        LLVM may then change how they are called. An array is seven arguments, of which most functions use one.
        """
        for function in self._final_module.functions:
            if not function.is_declaration and function.linkage == Linkage.linkonce_odr:
                function.linkage = Linkage.internal
        super()._optimize_final_module()


@register_pass(mutates_CFG=True, analysis_only=False)
class KernelLowering(NativeLowering):
    """Numba's lowering, into a :class:`KernelLibrary`."""

    _name = "tracekit_kernel_lowering"

    def run_pass(self, state: Any) -> bool:
        """See Numba's."""
        state.library = KernelLibrary(state.targetctx.codegen(), state.func_id.func_qualname)
        state.library.enable_object_caching()
        changed: bool = super().run_pass(state)
        return changed


class PlacedErrors(CPUCallConv):
    """Exceptions name the line that they come from. Numba's do so if that says `raise`, not if it uses an index."""

    def return_user_exc(
        self, builder: Any, exc: Any, exc_args: Any = None, loc: Any = None, func_name: str | None = None
    ) -> None:
        """See Numba's."""
        lower = self.context.lower
        super().return_user_exc(builder, exc, exc_args, loc or lower.loc, func_name or lower.func_ir.func_id.func_name)


class CheckingContext(CPUContext):
    """Numba's target, with :class:`PlacedErrors`."""

    lower: Lower

    @property
    def call_conv(self) -> PlacedErrors:
        """See Numba's."""
        return PlacedErrors(self)


class CalleeLower(Lower):
    """Numba's lowering of one function, in a :class:`CheckingContext` if indices are checked."""

    def init(self) -> None:
        """See Numba's: its own context has been made."""
        super().init()
        if CHECKS_BOUNDS:
            self.context.__class__ = CheckingContext
            self.context.lower = self


@register_pass(mutates_CFG=True, analysis_only=False)
class CalleeLowering(NativeLowering):
    """Numba's lowering, less the machine code."""

    _name = "tracekit_callee_lowering"

    @property
    def lowering_class(self) -> type[Lower]:
        """See Numba's."""
        return CalleeLower

    def run_pass(self, state: Any) -> bool:
        """Leave in `state.cr` a function that kernels can call and Python cannot."""
        state.library = CalleeLibrary(state.targetctx.codegen(), state.func_id.func_qualname)
        state.flags.no_compile = True
        super().run_pass(state)
        description = state.cr.fndesc
        state.library.own = description.mangled_name
        if _number(state.func_id):
            state.library.names.add(description.mangled_name)
        if not state.flags.forceinline:
            # LLVM inlines what is called in one place, however seldom. A loop that takes in all that may ever happen
            # keeps little in registers: camp's kernel takes a tenth to a third longer.
            made = state.library._final_module.get_function(description.mangled_name)
            made.add_function_attribute("noinline")
        entry = entry_point(description, state.cr.env, state.library)
        state.targetctx.insert_user_function(entry, description, [state.library])
        state.cr = state.cr._replace(cfunc=entry)
        return True


def _number(function: Any) -> int:
    """What tells a function from others of its name, the same in all processes; 0 of one that stands in no file."""
    file = Path(function.filename)
    if not file.is_file():
        return 0
    text = f"{function.modname}\0{function.func_qualname}\0{digest(file)}\0{stamp(file)}"
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=6).digest(), "little")


class CalleeCompiler(CompilerBase):
    """Numba's pipeline with :class:`CalleeLowering`."""

    lowering: type[NativeLowering] = CalleeLowering

    def define_pipelines(self) -> list[PassManager]:
        """The passes in their order."""
        if self.lowering is CalleeLowering:
            self.state.func_id.unique_id = _number(self.state.func_id) or self.state.func_id.unique_id
        manager = DefaultPassBuilder.define_nopython_pipeline(self.state)
        manager.passes = [(self.lowering if made is NativeLowering else made, text) for made, text in manager.passes]
        manager.finalize()
        return [manager]


class KernelCompiler(CalleeCompiler):
    """Numba's pipeline with :class:`KernelLowering`."""

    lowering = KernelLowering


class CalleeType(types.Dispatcher):
    """The type of a kernel in another kernel's code."""

    def get_call_type(self, context: Any, args: Sequence[Any], kws: Mapping[str, Any]) -> Any:
        """Compile it for integers, not once more for each constant that it is called with."""
        named = {name: types.unliteral(given) for name, given in kws.items()}
        return super().get_call_type(context, tuple(types.unliteral(given) for given in args), named)


register_model(CalleeType)(OpaqueModel)
