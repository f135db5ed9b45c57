"""Reads rustc's command line as far as `tracekit rustc` must: what it makes, how far it optimises."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple

_WITH_VALUE = frozenset(
    "-L -l -C -o -A -W -D -F -Z --cfg --check-cfg --crate-type --crate-name --edition --emit --print --out-dir "
    "--explain --target --allow --warn --force-warn --deny --forbid --cap-lints --codegen --extern --sysroot "
    "--error-format --json --color --diagnostic-width --remap-path-prefix --remap-path-scope --env-set".split()
)
"""Options whose value is the next word, or the rest of theirs."""

_TELLING = frozenset({"-h", "-V", "--explain", "--print"})
"""Options with which rustc compiles nothing."""

_SHORT = {"--verbose": "-v", "--version": "-V", "--help": "-h"}


class RustcOptions(NamedTuple):
    """What a command line of rustc asks for, as far as instrumenting depends on it."""

    links: bool  # a program or a library is made (--emit=link, the default)
    level: str  # clang's option that optimises as far
    debug: bool  # source lines are asked for
    tells_version: bool  # by -vV, of which cargo makes the key of what it has compiled
    output: str  # the path that is asked for, empty if rustc makes the name
    folder: str  # where names that rustc makes go, empty: here


def read(words: Sequence[str]) -> RustcOptions:
    """Read the words after the compiler's name."""
    names: set[str] = set()
    emitted: set[str] = set()
    settings: dict[str, str] = {}  # of -C: the last one counts
    output = folder = ""
    inputs = 0
    for option, value in each_option(_expanded(words)):
        names.add(_SHORT.get(option, option))
        inputs += not option
        if option == "--emit":
            kinds = dict(kind.partition("=")[::2] for kind in value.split(","))
            emitted |= kinds.keys()
            output = kinds.get("link") or output
        elif option == "-o":
            output = output or value
        elif option == "--out-dir":
            folder = value
        elif option == "-O":
            settings["opt-level"] = "2"
        elif option == "-g":
            settings["debuginfo"] = "2"
        elif option in ("-C", "--codegen"):
            name, _, setting = value.partition("=")
            settings[name.replace("_", "-")] = setting
    return RustcOptions(
        links=inputs > 0 and not names & _TELLING and (not emitted or "link" in emitted),
        level=f"-O{settings.get('opt-level', '0')}",
        debug=settings.get("debuginfo", "0") not in ("0", "none"),
        tells_version=not inputs and {"-v", "-V"} <= names,
        output=output,
        folder=folder,
    )


def each_option(words: Iterable[str]) -> Iterator[tuple[str, str]]:
    """(option, its value) for each option, ("", name) for each input."""
    rest = iter(words)
    for word in rest:
        name, equals, value = word.partition("=")
        if word in _WITH_VALUE:
            yield word, "".join(islice(rest, 1))
        elif equals and name in _WITH_VALUE and name.startswith("--"):
            yield name, value
        elif word[:2] in _WITH_VALUE:
            yield word[:2], word[2:]
        elif word != "-" and word.startswith("-"):
            yield from ((f"-{letter}", "") for letter in word[1:]) if word in ("-vV", "-Vv") else ((word, ""),)
        else:
            yield "", word


def _expanded(words: Iterable[str]) -> Iterator[str]:
    """The words with those of argument files (``@file``, one to a line) in place of their names."""
    for word in words:
        if not word.startswith("@"):
            yield word
            continue
        try:
            with open(word[1:], encoding="utf-8", errors="surrogateescape") as file:
                yield from file.read().splitlines()
        except OSError:
            yield word  # rustc says so better


def is_rustc(word: str) -> bool:
    """Whether a first word is the compiler to run, as cargo gives it to what RUSTC_WRAPPER names."""
    name = os.path.basename(word)
    return name == "rustc" or (name.startswith(("rustc-", "rustc.")) and os.access(word, os.X_OK))
