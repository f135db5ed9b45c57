"""Programs of musl: how a command line asks for it, and what clang is told then.

clang finds a musl below ``--sysroot`` by itself. Of one that is installed beside glibc, as Debian's musl-tools, it
knows nothing; there the file of specs by which musl-gcc makes gcc use it says where it is. Imported for every file that
``tracekit cc`` compiles.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import NamedTuple

from tracekit.formats.errors import TracekitError
from tracekit.recorder import command_line
from tracekit.recorder.toolchain import GLIBC, Libc

SPECS = "musl-gcc.specs"
PLACES = ("/usr/lib/x86_64-linux-musl", "/usr/lib/musl/lib", "/usr/local/musl/lib")
"""Folders that have this file: Debian's, Arch's, and where musl installs itself."""
_CHOOSING = (
    "--gcc-install-dir=",
    "--gcc-toolchain=",
    "-rtlib=",
    "--rtlib=",
    "-unwindlib=",
    "--unwindlib=",
    "-fuse-ld=",
)
"""How options begin that choose what programs are linked with beside."""
INSTALL = "apt-get install musl-tools"


class Asked(NamedTuple):
    """The C library that a command line asks for."""

    libc: Libc
    words: list[str]
    """The command line, without what only gcc understands."""
    options: tuple[str, ...] = ()
    """What clang is told beside."""


def read(words: Sequence[str]) -> Asked:
    """Read the words after the compiler's name.

    Raises TracekitError if they ask for musl, and it is not said where that is.
    """
    rest, specs = _without_specs(words)
    if specs:
        libc = _from_specs(specs)
        return Asked(libc, rest, libc.options)
    target, sysroot, others = _target(rest)
    if _is_musl(target):
        if sysroot:
            return Asked(_below(sysroot, target, others), rest)
        libc = _from_specs(_known_specs(target))
        return Asked(libc, rest, libc.options)
    for word in command_line.expand(rest) if command_line.read(rest).links else ():
        if _is_musl(word):  # its files are named one by one
            return Asked(_from_specs(_known_specs(word)), rest)
    return Asked(GLIBC, rest)


def _is_musl(word: str) -> bool:
    return re.search(r"-linux-musl(?![a-z])", word) is not None


def _without_specs(words: Sequence[str]) -> tuple[list[str], str]:
    """The words without gcc's option ``-specs`` with musl's file, and the file's path."""
    rest: list[str] = []
    specs = ""
    remaining = iter(words)
    for word in remaining:
        option, equals, value = word.partition("=")
        if option not in ("-specs", "--specs"):
            rest.append(word)
            continue
        value = value if equals else next(remaining, "")
        if os.path.basename(value) == SPECS:
            specs = value
        else:
            rest.append(f"{option}={value}")
    return rest, specs


def _target(words: Sequence[str]) -> tuple[str, str, tuple[str, ...]]:
    """The values of clang's options ``--target`` and ``--sysroot``, empty without them, and _CHOOSING ones."""
    target = sysroot = ""
    others: list[str] = []
    for option, value in command_line.each_option(command_line.expand(words)):
        name, _, joined = option.partition("=")
        if name in ("-target", "--target"):
            target = joined or value
        elif name == "--sysroot":
            sysroot = joined or value
        elif option.startswith(_CHOOSING):
            others.append(option)
    return target, sysroot, tuple(others)


def _known_specs(asking: str) -> str:
    for place in PLACES:
        path = os.path.join(place, SPECS)
        if os.path.exists(path):
            return path
    raise TracekitError(
        f"{asking} asks for musl, which is not here: install it with `{INSTALL}`, or say where it is by --sysroot"
    )


def _below(sysroot: str, target: str, others: tuple[str, ...]) -> Libc:
    """The musl that clang finds there by itself."""
    places = [os.path.join(sysroot, folder, "libc.a") for folder in ("usr/lib", "lib")]
    archive = next((place for place in places if os.path.exists(place)), "")
    return Libc("musl", (f"--target={target}", f"--sysroot={sysroot}", *others), archive)


def _from_specs(path: str) -> Libc:
    """The musl that a file of specs is for."""
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            text = file.read()
    except OSError as error:
        raise TracekitError(f"{path} cannot be read: {error.strerror}") from None
    headers = re.search(r"-isystem (/\S+)", text)
    libraries = re.search(r"-L(/\S+)", text)
    if not headers or not libraries:
        raise TracekitError(f"{path} does not say where musl's headers and libraries are")
    place = libraries[1]
    options = ("--target=x86_64-linux-musl", "-nostdlibinc", "-isystem", headers[1], f"-B{place}", f"-L{place}")
    return Libc("musl", options, os.path.join(place, "libc.a"))
