"""From LLVM's text to functions that can be called: linked with Numba's code, optimised, loaded where the data lies."""

from __future__ import annotations

import ctypes
import itertools
import os
from collections.abc import Collection, Iterable, Mapping
from functools import cache
from typing import Any

import llvmlite.binding as llvm_binding

llvm: Any = llvm_binding

FAR = 'external global [0 x i8], code_model "large"'
"""What lies anywhere in memory."""


def externals(symbols: Collection[str]) -> str:
    """Declarations of data that the loader is told of."""
    return "\n".join(f"@{name} = {FAR}" for name in symbols)


@cache
def _processor() -> tuple[str, str]:
    """The name and the features to compile for: this machine's, unless Numba's variables name others."""
    name = os.environ.get("NUMBA_CPU_NAME") or llvm.get_host_cpu_name()
    return name, os.environ.get("NUMBA_CPU_FEATURES") or llvm.get_host_cpu_features().flatten()


@cache
def _machine() -> Any:
    """The target: code for the processor, that may lie anywhere."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    name, features = _processor()
    return llvm.Target.from_default_triple().create_target_machine(
        cpu=name,
        features=features,
        opt=2,
        reloc="pic",
        codemodel="small",
    )


@cache
def _engine() -> Any:
    return llvm.create_lljit_compiler(_machine(), use_jit_link=True)


def target() -> bytes:
    """What machine code depends on beside its text."""
    return " ".join([str(llvm.llvm_version_info), *_processor()]).encode()


def object_of(
    text: str, linked: Iterable[bytes] = (), exported: Collection[str] = (), vectorizes: bool = False
) -> bytes:
    """Machine code of the text, with the bitcode of what it calls; with `exported` nothing else can be called.

    `vectorizes`: optimised as Numba does, which takes longer.
    """
    context = llvm.create_context()
    module = llvm.parse_assembly(text, context=context)
    for code in linked:
        module.link_in(llvm.parse_bitcode(code, context=context))
    module.triple = llvm.get_process_triple()
    module.data_layout = str(_machine().target_data)
    for function in module.functions:
        if exported and not function.is_declaration and function.name not in exported:
            function.linkage = llvm.Linkage.internal
    options = llvm.create_pipeline_tuning_options(speed_level=3 if vectorizes else 2)
    options.loop_vectorization = options.slp_vectorization = vectorizes
    builder = llvm.create_pass_builder(_machine(), options)
    builder.getModulePassManager().run(module, builder)
    made: bytes = _machine().emit_object(module)
    return made


class Loaded:
    """Code in memory, as long as this lives."""

    _numbers = itertools.count(1)  # next() of it is one step, also for several threads

    def __init__(self, code: bytes, symbols: Mapping[str, int], functions: Iterable[str]) -> None:
        builder = llvm.JITLibraryBuilder().add_object_img(code).add_current_process()
        for name, address in symbols.items():
            builder.import_symbol(name, address)
        names = list(functions)
        for name in names:
            builder.export_symbol(name)
        self._tracker = builder.link(_engine(), f"paths{next(Loaded._numbers)}")
        self.functions: dict[str, int] = {name: self._tracker[name] for name in names}
        """The addresses of these functions."""


def callable_at(address: int) -> Any:
    """The function ``i64 (i64, i64, i64, i64)`` at an address; Python's lock is free while it runs."""
    word = ctypes.c_int64
    return ctypes.CFUNCTYPE(word, *[word] * 4)(address)
