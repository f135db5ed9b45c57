"""How functions, instructions and loops of a program are shown in profiles: demangled, with relative paths."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from tracekit.formats.events import NONE
from tracekit.formats.image import OpFlag, OpKind

if TYPE_CHECKING:
    from tracekit.replay.program import Program

KIND_NAMES: dict[int, str] = {
    OpKind.LOAD: "load", OpKind.STORE: "store", OpKind.ATOMIC: "atomic", OpKind.COPY_FROM: "copy",
    OpKind.COPY_TO: "copy", OpKind.SET: "set", OpKind.CALL: "library",
    OpKind.STACK_ALLOC: "stack_alloc", OpKind.STACK_FREE: "stack_free", OpKind.POINTER: "pointer",
}

_LIBRARY = int(OpFlag.LIBRARY)

INLINING_LIMIT = 256
"""Longest inlined-at chain shown; a damaged table could hold a cycle."""


class Presentation:
    """Answers for one program, remembered."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.function_name = lru_cache(maxsize=None)(self._function_name)

    def _function_name(self, function: int) -> str:
        row = self.program.functions[function]
        return demangle(self.program.text(int(row["name"])), self.program.text(int(row["source_name"])))

    def place(self, location: int) -> dict[str, Any]:
        """File, line and column of a row of ``locations``; empty and zeros for NONE."""
        if location == NONE:
            return {"file": "", "line": 0, "column": 0}
        row = self.program.locations[location]
        source = int(row["source"])
        path = "" if source == NONE else self.program.text(int(self.program.sources["path"][source]))
        return {"file": path, "line": int(row["line"]), "column": int(row["column"])}

    def instruction(self, op: int, free: bool) -> dict[str, Any]:
        """See Program.instruction."""
        program = self.program
        row = program.ops[op]
        unit = int(np.searchsorted(program.unit_first_op, op, side="right")) - 1
        kind = KIND_NAMES.get(int(row["kind"]), "")
        if int(row["flags"]) & _LIBRARY:
            kind = "library"
        owner = int(program.op_function[op])
        function = self.function_name(owner) if owner != NONE else ""
        location = int(row["location"])
        chain = self._inlined_at(location, function)
        return {
            "id": f"{program.unit_hashes[unit]}:{op - int(program.unit_first_op[unit])}",
            "kind": "free" if free else kind,
            "function": self._scope(location) if chain else function,
            **self.place(location),
            "inlined_at": chain,
        }

    def loop(self, loop: int) -> dict[str, Any]:
        """See Program.loop."""
        row = self.program.loops[loop]
        return {
            "function": self.function_name(int(row["function"])),
            **self.place(int(row["location"])),
            "depth": int(row["depth"]),
        }

    def _scope(self, location: int) -> str:
        return demangle(self.program.text(int(self.program.locations["function"][location])), "")

    def _inlined_at(self, location: int, function: str) -> list[dict[str, Any]]:
        """Where the code was inlined, innermost first; the last entry stands in `function` itself."""
        chain: list[dict[str, Any]] = []
        while location != NONE and len(chain) < INLINING_LIMIT:
            location = int(self.program.locations["inlined_at"][location])
            if location != NONE:
                chain.append({"function": self._scope(location), **self.place(location)})
        if chain:
            chain[-1]["function"] = function
        return chain


def demangle(name: str, fallback: str) -> str:
    """A C++ linkage name in the notation of C++; `fallback` (or the name) where that fails; other names as they are."""
    if not name.startswith("_Z"):
        return name
    # A clone's suffix (.isra.0, .cold) is no part of the mangling.
    stem, dot, suffix = name.partition(".")
    text = _demangled_by_runtime(stem) or _demangled_by_package(stem)
    return text.replace(*_STRING) + (f" [{suffix}]" if dot else "") if text else fallback or name


_STRING = "std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char>>", "std::string"


def _demangled_by_runtime(name: str) -> str:
    """What the C++ library's own function says; empty where that fails."""
    function = _cxa_demangle()
    if function is None:
        return ""
    status = ctypes.c_int(0)
    text = function(name.encode("utf-8", "replace"), None, None, ctypes.byref(status))
    if not text:
        return ""
    try:
        # GNU's closes nested templates with "> >", clang's with ">>"
        return ctypes.string_at(text).decode("utf-8", "replace").replace("> >", ">>").replace("> >", ">>")
    finally:
        _free()(text)


@cache
def _cxa_demangle() -> Callable[..., int | None] | None:
    """The function __cxa_demangle of libstdc++, which llvmlite has loaded, or of macOS's libc++abi; None elsewhere."""
    for library in ("libstdc++.so.6", "libc++abi.dylib"):
        try:
            function = ctypes.CDLL(library).__cxa_demangle
        except (OSError, AttributeError):
            continue
        function.restype = ctypes.c_void_p
        function.argtypes = [ctypes.c_char_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p]
        return function
    return None


@cache
def _free() -> Callable[[int], None]:
    function = ctypes.CDLL(None).free
    function.restype, function.argtypes = None, [ctypes.c_void_p]
    return function


def _demangled_by_package(name: str) -> str:
    """Where there is no such library. The package knows no local names, and writes constructors as {ctor}."""
    from itanium_demangler import parse

    try:
        tree = parse(name)
        text = "" if tree is None else str(tree)
    except Exception:
        return ""
    return re.sub(r"_GLOBAL__N_\w+", "(anonymous namespace)", text)


def shorter_names(shown: str) -> set[str]:
    """What a function whose name is shown so may be called as well: without parameters, without the result's type.

    ``void (anonymous namespace)::f<int>(int) const`` is ``(anonymous namespace)::f<int>``, too.
    """
    text = _QUALIFIERS.sub("", shown)
    if text.endswith(")"):
        depth = 0
        for at in range(len(text) - 1, -1, -1):
            depth += (text[at] == ")") - (text[at] == "(")
            if depth == 0:
                text = text[:at]
                break
    names = {shown, text}
    if "operator" not in text:
        depth = start = 0
        for at, letter in enumerate(text):
            depth += (letter in "<(") - (letter in ">)")
            if letter == " " and depth == 0:
                start = at + 1
        names.add(text[start:])
    return names - {""}


_QUALIFIERS = re.compile(r"( \[[^]]*\]| const| volatile| &&?)+$")
