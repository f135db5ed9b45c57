"""`record --intercept`: calls of library functions come by a small library that is preloaded, a shim for each function.

It is compiled once for each set of prototypes. The program's own functions have their probes from ``tracekit cc
--intercept``; for those the library has the list of prototypes that hold instead of the compiler's.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from tracekit.formats import prototypes
from tracekit.formats.errors import TracekitError
from tracekit.formats.prototypes import Prototype, Type
from tracekit.recorder import elf, toolchain
from tracekit.recorder.build_cache import build_once, digest

SHIM = "libtracekit-intercept.so"

_C_TYPES = {
    "i8": "int8_t", "u8": "uint8_t", "i16": "int16_t", "u16": "uint16_t", "i32": "int32_t", "u32": "uint32_t",
    "i64": "int64_t", "u64": "uint64_t", "f32": "float", "f64": "double", "ptr": "void *", "bool": "_Bool",
}  # fmt: skip

_HEAD = """\
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include "probe.h"

extern __typeof__(__tk_call) __tk_call __attribute__((weak));

"""


def chosen(texts: Sequence[str], program: str) -> list[Prototype]:
    """What the options say. Raises TracekitError for what is no prototype, and for a name without types that has none.

    A name alone is a function of the program's own, built with ``cc --intercept``: its types are in the program.
    """
    found: list[Prototype] = []
    for text in texts:
        if "(" in text:
            found.append(prototypes.parse(text))
        elif text not in {known.partition("(")[0] for known in elf.probes(program)}:
            raise TracekitError(
                f"--intercept {text}: {program} has no types of it: build it with `tracekit cc --intercept={text}`, "
                f"or write them, as in '{text}(src: bytes[len], len: u64) -> i32'"
            )
    return found


def shim(chosen: Sequence[Prototype], program: str) -> str:
    """The path of the library to preload. Raises TracekitError if it cannot be built."""
    own = {known.partition("(")[0] for known in elf.probes(program)}
    shims = [_function(one, number) for number, one in enumerate(chosen) if one.name not in own]
    text = _HEAD + "".join(shims) + _list(chosen)
    name = f"intercept-{digest([text.encode(), toolchain.runtime_folder_name().encode()])}"
    return os.path.join(build_once(name, "what intercepts calls", lambda into: _build(text, into)), SHIM)


def _build(text: str, into: str) -> None:
    source = os.path.join(into, "intercept.c")
    with open(source, "w") as file:
        file.write(text)
    clang = toolchain.find_clang()
    flags = ["-O1", "-fPIC", "-shared", "-fno-builtin", "-w", f"-I{toolchain.RUNTIME_SOURCES}"]
    toolchain.compile_one(clang, [clang.path, *flags, source, "-ldl", "-o", os.path.join(into, SHIM)])


def _list(chosen: Sequence[Prototype]) -> str:
    rows = "".join(f"    {_quoted(one.text)},\n" for one in chosen)
    return f'__attribute__((visibility("default"))) const char *const __tk_prototypes[] = {{\n{rows}    0}};\n'


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _c_type(type_: Type | None) -> str:
    if type_ is None:
        return "void"
    return "void *" if type_.is_pointer else _C_TYPES[type_.base]


def _word(name: str, type_: Type) -> str:
    """The bits of a C value, as 64 of them; a float's by memcpy."""
    if not type_.is_pointer and type_.base in ("f32", "f64"):
        return f"({{ uint64_t word = 0; __builtin_memcpy(&word, &{name}, sizeof {name}); word; }})"
    return f"(uint64_t){'(uintptr_t)' if _c_type(type_) == 'void *' else ''}{name}"


def _function(one: Prototype, number: int) -> str:
    result = _c_type(one.result)
    types = [_c_type(type_) for _, type_ in one.parameters]
    declared = ", ".join(f"{type_} a{index}" for index, type_ in enumerate(types)) or "void"
    passed = ", ".join(f"a{index}" for index in range(len(types)))
    words = ", ".join(_word(f"a{index}", type_) for index, (_, type_) in enumerate(one.parameters)) or "0"
    call = f"real({passed})"
    returned = _word("result", one.result) if one.result else "0"
    return f"""\
{result} shim_{number}({declared}) __asm__("{one.name}");
{result} shim_{number}({declared})
{{
    static struct tk_probe probe = {{{_quoted(one.text)}, {len(types)}, 0}};
    static {result} (*real)({", ".join(types) or "void"});
    if (!real && !(real = dlsym(RTLD_NEXT, "{one.name}")))
        __builtin_trap();
    uint64_t words[] = {{{words}}};
    if (__tk_call)
        __tk_call(&probe, 0, 0, words);
    {f"{result} result = {call}" if one.result else call};
    if (__tk_call)
        __tk_call(&probe, 1, {returned}, words);
    return{" result" if one.result else ""};
}}

"""
