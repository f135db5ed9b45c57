"""How Numba compiles a kernel, and a function that only kernels call: that one as intermediate code alone.

Numba gives each function that it meets wrappers for calls from Python, a full optimisation together with all that it
calls, and machine code. A wrapper that unpacks a state of a hundred arrays is longer than most functions, and the
helpers of a helper are optimised and emitted once for each level of calls above them. Here a helper is what its caller
links: all is optimised once, as a private part of a kernel. A module's kernel takes less than half of the time.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import CodeType
from typing import Any

from llvmlite.binding import Linkage
from numba.core import dispatcher, event, itanium_mangler, sigutils, types  # noqa: F401  (numba.core.compiler cannot be imported before the dispatcher)
from numba.core.codegen import CPUCodeLibrary, JITCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_lock import global_compiler_lock
from numba.core.compiler_machinery import PassManager, register_pass
from numba.core.datamodel.models import OpaqueModel
from numba.core.lowering import Lower
from numba.core.typed_passes import NativeLowering, NopythonTypeInference
from numba.extending import register_model

from tracekit.jit.cache import digest, stamp
from tracekit.jit.callee_cache import described, entry_point, is_of_one_process
from tracekit.jit.inference import Inference
from tracekit.jit.lifetimes import found_when_asked_for
from tracekit.jit.lowering import CalleeLower, caller_of


@cache
def _function_passes(codegen: Any) -> tuple[Any, Any]:
    passes, builder = codegen._function_pass_manager()
    return passes, builder


class CalleeLibrary(CPUCodeLibrary):
    """Code for linking alone: it never enters the execution engine of the process."""

    is_for_linking = True

    def __init__(self, codegen: Any, name: str) -> None:
        super().__init__(codegen, name)
        self.own = ""
        """The function that it is for."""
        self.used: tuple[int, ...] = ()
        """Which of the arguments that Numba makes of its own the function has (arguments.py)."""
        self.names: set[str] = set()
        """The functions in it whose names mean the same in all processes, so that their code may be linked once."""

    def restore(self, module: Any, names: set[str], used: tuple[int, ...]) -> None:
        """Become what :meth:`bitcode` was taken of."""
        self._final_module = module
        self.used = used
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

    def _optimize_functions(self, module: Any) -> None:
        """As Numba does, with the passes for all functions made once. Nothing is known of those only declared."""
        try:
            passes, builder = _function_passes(self._codegen)
        except TypeError:  # an older Numba makes them for one module
            super()._optimize_functions(module)
            return
        module.data_layout = self._codegen._data_layout
        for function in module.functions:
            if not function.is_declaration:
                passes.run(function, builder)

    def _optimize_final_module(self) -> None:
        """No optimisation of the whole: that is done once, in the caller. What is not ours becomes private.

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
    """The code of a kernel, with that of all its callees. Numba's wrapper calls it with all arguments."""

    is_for_linking = False

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

    @property
    def lowering_class(self) -> type[Lower]:
        """See Numba's."""
        return CalleeLower

    def run_pass(self, state: Any) -> bool:
        """See Numba's."""
        state.library = KernelLibrary(state.targetctx.codegen(), state.func_id.func_qualname)
        changed: bool = super().run_pass(state)
        return changed


@contextmanager
def _short_names(target: Any) -> Iterator[None]:
    """Without the types of the arguments, which take 10 KB for a state: the number in a name tells functions apart."""

    def mangler(name: str, types: Any, *, abi_tags: Sequence[str] = (), uid: int | None = None) -> str:
        mangled: str = itanium_mangler.mangle(name, (), abi_tags=abi_tags, uid=uid)
        return mangled

    outer = target.mangler
    target.mangler = mangler
    try:
        yield
    finally:
        target.mangler = outer


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
        with _short_names(state.targetctx):
            super().run_pass(state)
        description = state.cr.fndesc
        state.library.own = description.mangled_name
        if _number(state):
            state.library.names.add(description.mangled_name)
        entry = entry_point(description, state.cr.env, state.library)
        insert(state.targetctx, entry, description, state.library)
        state.cr = state.cr._replace(cfunc=entry)
        return True


def insert(target: Any, entry: Any, description: Any, library: CalleeLibrary) -> None:
    """In place of Numba's `insert_user_function`: tell it how the function is called that `entry` stands for."""
    call = caller_of(description, library, library.used)
    target.insert_func_defn([(call, entry, call.signature)])


def _number(state: Any) -> int:
    """What tells a function for these types from others of its name, the same in all processes.

    0 if there is no such number: of a function that stands in no file or within another function, or for types that one
    process alone knows. The types count because Numba's names have a number of the process in place of a record's type.
    """
    function = state.func_id
    file = Path(function.filename)
    types_of_arguments = repr([described(each) for each in state.args])
    if not file.is_file() or function.func.__closure__ or is_of_one_process(types_of_arguments):
        return 0
    place = f"{function.func_qualname}\0{function.func.__code__.co_firstlineno}"
    text = "\0".join((function.modname, place, digest(file), stamp(file), types_of_arguments))
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=6).digest(), "little")


_OF_CLOSURES = ("WithLifting", "InlineClosureLikes", "MakeFunctionToJitFunction")
"""Numba's passes for functions and `with` in a function."""
_OF_ARRAYS = ("NopythonRewrites", "IRLegalization")
"""Those for expressions whose value is an array, and for the ends of references, which a function without them has not.
"""


class CalleeCompiler(CompilerBase):
    """Numba's pipeline with :class:`CalleeLowering`."""

    lowering: type[NativeLowering] = CalleeLowering

    def define_pipelines(self) -> list[PassManager]:
        """The passes in their order."""
        self.state.func_id.unique_id = _number(self.state) or self.state.func_id.unique_id
        manager = DefaultPassBuilder.define_nopython_pipeline(self.state)
        ours = {NativeLowering: self.lowering, NopythonTypeInference: Inference}
        manager.passes = [(ours.get(made, made), text) for made, text in manager.passes if self._is_needed(made)]
        manager.finalize()
        return [manager]

    def _is_needed(self, made: type) -> bool:
        """Whether a pass may find anything to do in this function."""
        code = self.state.func_id.code
        if made.__name__ in _OF_CLOSURES:
            return any(isinstance(constant, CodeType) for constant in code.co_consts)
        return made.__name__ not in _OF_ARRAYS or self.state.flags.nrt


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


def compile_callee(of: Any, signature: Any) -> Any:
    """In place of Numba's Dispatcher.compile, of which each one under way hears of every lock that LLVM takes."""
    with global_compiler_lock, of._compiling_counter:
        arguments, return_type = sigutils.normalize_signature(signature)
        made = of.overloads.get(tuple(arguments))
        if made is not None:
            return made.entry_point
        made = of._cache.load_overload(signature, of.targetctx)
        if made is not None:
            insert(of.targetctx, made.entry_point, made.fndesc, made.library)
            of.add_overload(made)
            return made.entry_point
        details = {"dispatcher": of, "args": arguments, "return_type": return_type}
        with event.trigger_event("numba:compile", data=details), found_when_asked_for():
            made = of._compiler.compile(arguments, return_type)
            of.add_overload(made)
        of._cache.save_overload(signature, made)
        return made.entry_point
