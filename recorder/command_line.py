"""Reads a compiler's command line as far as the driver must: what it compiles, and whether it links.

Nothing is changed here. Response files are looked into, so that what they say counts.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from itertools import islice
from typing import NamedTuple

_WITH_SEPARATE_VALUE = frozenset(
    "-o -x -I -D -U -L -l -F -T -u -z -e -B -A -G -MF -MT -MQ -MJ -include -imacros -isystem -idirafter -iprefix "
    "-iquote -isysroot -iwithprefix -iwithprefixbefore -iframework -include-pch -cxx-isystem -ivfsoverlay -Xclang "
    "-Xlinker -Xassembler -Xpreprocessor -Xanalyzer -Xopenmp-target -mllvm -target -arch -framework -rpath --param "
    "--sysroot --config -working-directory --serialize-diagnostics -dependency-file -stdlib++-isystem -install_name "
    "-gcc-toolchain -rtlib -soname -Tbss -Tdata -Ttext -fmodule-file -ftrapv-handler".split()
)
"""Options whose value is the next word; the same options with the value joined need no entry."""

_COMPILED_SUFFIXES = frozenset(".c .i .cc .cp .cxx .cpp .c++ .C .CPP .ii .m .mi .mm .M .mii .cppm .ll .bc".split())
_ASSEMBLER_SUFFIXES = frozenset(".s .S .sx .asm".split())
_HEADER_SUFFIXES = frozenset(".h .hh .hpp .hxx .H .h++ .tcc".split())

STOPS_BEFORE_BACKEND = frozenset(
    "-E -M -MM -fsyntax-only --precompile --analyze -emit-ast -module-file-info -verify-pch".split()
)
STOPS_BEFORE_LINK = frozenset({"-c", "-S", *STOPS_BEFORE_BACKEND})
_LONG_NAMES = {
    "--compile": "-c", "--assemble": "-S", "--preprocess": "-E", "--shared": "-shared", "--static": "-static",
    "--dependencies": "-M", "--user-dependencies": "-MM", "-static-pie": "-static",
}  # fmt: skip


class CommandLine(NamedTuple):
    """What a command line asks for, as far as instrumenting depends on it."""

    compiles: bool  # C, C++ or LLVM IR goes through the optimiser
    links: bool
    shared: bool  # the link makes a shared library
    static: bool  # the link makes a program without a dynamic section
    relocatable: bool  # the link makes an object file (-r)
    debug: bool  # source lines are asked for by a -g of the user's
    tail_recursion: bool  # -foptimize-sibling-calls is asked for: recursion may become loops
    llvm_options: frozenset[str]  # names given with -mllvm, without value


def read(words: Sequence[str]) -> CommandLine:
    """Read the words after the compiler's name."""
    options: set[str] = set()
    llvm_options: set[str] = set()
    linker: list[str] = []
    languages: list[str] = []
    language = "none"
    tail_recursion = False
    given = list(each_option(expand(words)))
    for option, value in given:
        if option == "":
            languages.append(_language(value, language))
        elif option == "-x":
            language = value
        elif option == "-mllvm":
            llvm_options.add(value.lstrip("-").split("=")[0])
        elif option == "-Xlinker":
            linker.append(value)
        elif option.startswith("-Wl,"):
            linker += option.split(",")[1:]
        elif option in ("-foptimize-sibling-calls", "-fno-optimize-sibling-calls"):
            tail_recursion = option.startswith("-fopt")
        options.add(_LONG_NAMES.get(option, option))
    compiles = "compiled" in languages and not options & STOPS_BEFORE_BACKEND
    links = bool(languages or "-l" in options) and "header" not in languages and not options & STOPS_BEFORE_LINK
    return CommandLine(
        compiles=compiles,
        links=links,
        shared="-shared" in options or "-shared" in linker or "-Bshareable" in linker,
        static="-static" in options,
        relocatable=bool({"-r", "--relocatable", "-relocatable", "-i"} & {*linker, *(options & {"-r"})}),
        debug=asks_for_debug(option for option, _ in given),
        tail_recursion=tail_recursion,
        llvm_options=frozenset(llvm_options),
    )


def expand(words: Iterable[str], depth: int = 0) -> Iterator[str]:
    """The words with the contents of response files (``@file``) in place of their names, as clang reads them."""
    for word in words:
        content = _response_file(word) if word.startswith("@") and depth < 20 else None
        if content is None:
            yield word
        else:
            yield from expand(split_response(content), depth + 1)


def _response_file(word: str) -> str | None:
    try:
        with open(word[1:], encoding="utf-8", errors="surrogateescape") as file:
            return file.read()
    except OSError:
        return None  # then it is an ordinary word, for clang too


def split_response(text: str) -> list[str]:
    """Split a response file into words by GNU rules: quotes of both kinds, a backslash before any character."""
    words: list[str] = []
    word: list[str] | None = None
    quote = ""
    characters = iter(text)
    for character in characters:
        if character == "\\":
            word = [*(word or []), next(characters, "\\")]
        elif quote:
            if character == quote:
                quote = ""
            else:
                word = [*(word or []), character]
        elif character in "'\"":
            quote, word = character, word or []
        elif character.isspace():
            if word is not None:
                words.append("".join(word))
            word = None
        else:
            word = [*(word or []), character]
    if word is not None:
        words.append("".join(word))
    return words


def each_option(words: Iterable[str]) -> Iterator[tuple[str, str]]:
    """(option, its value) for each option, ("", name) for each input."""
    return ((option, value) for option, value, _ in each_piece(words))


def each_piece(words: Iterable[str], separate: AbstractSet[str] = frozenset()) -> Iterator[tuple[str, str, list[str]]]:
    """As each_option, with the words that say so; `separate`: more options whose value is the next word."""
    rest = iter(words)
    for word in rest:
        if word == "--":
            yield from (("", name, [name]) for name in rest)
        elif word in _WITH_SEPARATE_VALUE or word in separate:
            values = list(islice(rest, 1))
            yield word, "".join(values), [word, *values]
        elif word == "-" or not word.startswith("-"):
            yield "", word, [word]
        elif word[:2] in ("-x", "-l"):
            yield word[:2], word[2:], [word]
        elif word.startswith("--language="):
            yield "-x", word.partition("=")[2], [word]
        else:
            yield word, "", [word]


def _language(name: str, language: str) -> str:
    """compiled, assembler, header, or object (whatever only the linker reads)."""
    if language != "none":
        if language.startswith("assembler"):
            return "assembler"
        return "header" if language.endswith("header") else "compiled"
    suffix = os.path.splitext(name)[1]
    if suffix in _COMPILED_SUFFIXES:
        return "compiled"
    if suffix in _ASSEMBLER_SUFFIXES:
        return "assembler"
    return "header" if suffix in _HEADER_SUFFIXES else "object"


def asks_for_debug(options: Iterable[str]) -> bool:
    """Whether source lines are asked for: the last option that says so counts."""
    levels = [option for option in options if _is_debug_level(option)]
    return bool(levels) and levels[-1] not in ("-g0", "-ggdb0")


def _is_debug_level(option: str) -> bool:
    """Whether an option turns debug information on or off (-gz and its like only say how it is written)."""
    if option in ("-g", "-gline-tables-only", "-gmlt", "-gfull", "-gused", "-gcodeview"):
        return True
    return option.startswith(("-ggdb", "-glldb", "-gsce", "-gdbx", "-gdwarf-")) or (
        len(option) == 3 and option.startswith("-g") and option[2].isdigit()
    )
