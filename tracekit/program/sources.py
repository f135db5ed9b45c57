"""Finds the source files that a profile names: in the trace, below the current folder, below folders that are given."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from hashlib import md5
from pathlib import Path, PurePosixPath
from posixpath import commonpath, dirname, isabs, join, normpath
from types import MappingProxyType
from typing import NamedTuple

from tracekit.formats.errors import TracekitError

_CRATE = re.compile(r"(?:.*/)?\.?cargo/registry/(?:src/[^/]+/)?([^/]+-[0-9][^/]*/.*)")
"""Where crates are: ~/.cargo/registry/src/index.crates.io-6f17d22bba15001f, or /usr/share/cargo/registry."""

RUST_SOURCES = "/lib/rustlib/src/rust/library/"
"""Where a toolchain has the source of Rust's library, if it has been asked for."""


def plain_path(file: str) -> str:
    """A name without detours, as where clang finds C++'s headers: /usr/lib/gcc/x86_64-linux-gnu/12/../../../../include.

    That is for reading only: the file system sees it differently where one of the folders is a link.
    """
    return normpath(file) if file else file


def common_folder(files: Iterable[str], compilation: str = "") -> str:
    """The folder that a program's files are in, whatever headers of the system's, or crates of others, are among them.

    It is relative if all names are, and then starts as they do from the folder `compilation` (empty: not known).
    Without a slash at its end; empty if there is no such folder but the root, or that from which names start.
    """
    names = {plain_path(name) for name in files if name}
    own = {name for name in names if not is_system(name) and not in_crate(name)} or names
    if len({_above(name) for name in own}) > 1:  # names that start from several places
        if not isabs(compilation):
            return ""
        own = {normpath(join(compilation, name)) for name in own}
    return commonpath({dirname(name) for name in own}).rstrip("/") if own else ""


def _above(name: str) -> int:
    """How many folders above its start a relative name (without detours) leads; -1 for an absolute one."""
    return -1 if isabs(name) else next(n for n, part in enumerate((*PurePosixPath(name).parts, "")) if part != "..")


def is_system(file: str) -> bool:
    """Whether a file is one of the system's, or of Rust's library (rustup may have unpacked its source)."""
    return file.startswith(("/usr/", "/rustc/", "/rust/deps/")) or RUST_SOURCES in file


def in_crate(file: str) -> str:
    """What is `petgraph-0.6.2/src/lib.rs` of a file in a crate of Rust that cargo, or Debian, has unpacked; else ""."""
    crate = _CRATE.fullmatch(file)
    return crate[1] if crate else ""


def short_ends(files: Iterable[str]) -> dict[str, str]:
    """For each file the least end of its path that no other one has: `ptr/mod.rs`; `list.c` if it is the only one."""
    parts = {file: PurePosixPath(plain_path(file)).parts for file in files}
    found: dict[str, str] = {}
    length, left = 1, dict(parts)
    while left:
        ends = Counter(path[-length:] for path in dict.fromkeys(parts.values()))
        for file, path in list(left.items()):
            if ends[path[-length:]] == 1 or length >= len(path):
                found[file] = str(PurePosixPath(*path[-length:])) if file else file
                del left[file]
        length += 1
    return found


def whole_path(name: str, compilation: str) -> str:
    """The absolute path, without detours, of a file as a profile names it; its name if that is not known.

    `compilation`: the folder that relative names start from, or nothing.
    """
    return plain_path(join(compilation, name)) if name and isabs(compilation) else plain_path(name)


def is_meant(wanted: str, name: str, compilation: str = "") -> bool:
    """Whether someone who writes `wanted`, a path or its last components, may mean the file with this name."""
    tail = "/" + plain_path(wanted)
    return any(f"/{spelling}".endswith(tail) for spelling in (name, plain_path(name), whole_path(name, compilation)))


class Found(NamedTuple):
    """A file's content, and where it was found; None in the trace."""

    content: bytes
    path: Path | None


class Sources:
    """Text of source files.

    A profile may come from anywhere and name any file of this machine: nothing outside the folders is ever shown, but
    for headers of the system, and files with the very content that was compiled, as their digests say.
    """

    def __init__(
        self,
        embedded: Mapping[str, bytes],
        folders: Sequence[str | Path] = (),
        compilation: str = "",
        digests: Mapping[str, str] = MappingProxyType({}),
        only: bool = False,
    ) -> None:
        """`embedded`: what the trace holds, by path; `compilation`: the folder that relative names start from.

        `digests`: MD5, in hex, of files where they were compiled, by :func:`whole_path`. `only`: nothing outside
        `folders` is read, nor is the current folder one of them.
        """
        self._only = only
        self._digests = digests
        self._embedded = {plain_path(path): content for path, content in embedded.items()}
        self._folders = [Path(folder).resolve() for folder in (*folders, *(() if only else (".",)))]
        self._compilation = compilation
        self._known: dict[str, list[str] | None] = {}

    def lines(self, name: str) -> list[str] | None:
        """The lines of a file as a profile names it, without their ends; None if it is not found."""
        if name not in self._known:
            content = self._embedded.get(whole_path(name, self._compilation), self._embedded.get(plain_path(name)))
            if content is None:
                content = self._read(name)
            self._known[name] = None if content is None else _lines(content)
        return self._known[name]

    def compiled(self, name: str) -> Found:
        """A file with the very content that was compiled.

        Raises TracekitError if it is not found, has changed since, or if it is not known what was compiled.
        """
        whole = whole_path(name, self._compilation)
        digest = self._digests.get(whole, "")
        if not digest:
            raise TracekitError(f"What {name} held when it was compiled is not known: compile it with -g and clang.")
        found = self._somewhere(name, whole)
        for each in found:
            if md5(each.content, usedforsecurity=False).hexdigest() == digest:
                return each
        if not found and (self._only or not Path(whole).is_file()):
            raise TracekitError(self.missing(name))
        raise TracekitError(f"{name} has changed since it was compiled: build it again, and record again.")

    def _somewhere(self, name: str, whole: str) -> list[Found]:
        """All that may be the file: in the trace, below the folders, where it was compiled."""
        embedded = self._embedded.get(whole, self._embedded.get(plain_path(name)))
        found = [] if embedded is None else [Found(embedded, None)]
        for folder in self._folders:
            paths = dict.fromkeys(_candidates(folder, name, whole))
            contents = ((path, _content(path, folder)) for path in paths)
            found += [Found(content, path) for path, content in contents if content is not None]
        content = None if self._only else _compiled(Path(whole), self._digests.get(whole, ""))
        return found if content is None else [*found, Found(content, Path(whole))]

    def _read(self, name: str) -> bytes | None:
        whole = whole_path(name, self._compilation)
        for folder in self._folders:
            for path in _candidates(folder, name, whole):
                content = _content(path, folder)
                if content is not None:
                    return content
        if self._only:
            return None
        if is_system(name):
            return _content(Path(name), None)
        return _compiled(Path(whole), self._digests.get(whole, ""))

    def missing(self, name: str) -> str:
        """What to do about a file that is not found, in a sentence."""
        whole = whole_path(name, self._compilation)
        if self._only:
            return f"The source {name} is neither in the trace nor below the folders that may be read."
        there = f" (it was compiled in {dirname(whole)})" if isabs(whole) else ""
        return (
            f"The source {name} is neither in the trace nor below the current folder: name its folder with "
            f"--source DIR{there}, or record with --with-sources."
        )


def _candidates(folder: Path, name: str, whole: str) -> Iterable[Path]:
    """Where a file may be below `folder`: where it was compiled, then ever shorter ends of its path."""
    if name:
        yield folder / whole
        yield folder / name
    for path in dict.fromkeys((whole, name)):
        parts = [part for part in PurePosixPath(path).parts if part not in ("/", "..", ".")]
        for start in range(len(parts)):
            yield folder.joinpath(*parts[start:])


def _content(path: Path, folder: Path | None) -> bytes | None:
    """What is in a file, if it really stands below `folder`; None stands for where the system's headers are."""
    try:
        inside = path.resolve()
        allowed = inside.is_relative_to(folder) if folder else _is_header(inside)
        return inside.read_bytes() if allowed and inside.is_file() else None
    except (OSError, ValueError):  # too long, a null byte, not readable
        return None


def _compiled(path: Path, digest: str) -> bytes | None:
    """What is in a file that is still the one that was compiled; nothing that the trace does not know already."""
    try:
        content = path.read_bytes() if digest and path.is_absolute() and path.is_file() else None
    except (OSError, ValueError):
        return None
    return content if content is not None and md5(content, usedforsecurity=False).hexdigest() == digest else None


def _is_header(path: Path) -> bool:
    return path.parts[:2] == ("/", "usr") and "include" in path.parts[2:-1]


def _lines(content: bytes) -> list[str]:
    text = content.decode("utf-8", "replace").replace("\r\n", "\n")
    return text.removesuffix("\n").split("\n")


def chosen_file(wanted: str, names: Collection[str], compilation: str = "") -> str:
    """The file that `wanted` means: its name in the profile, or the end of one. TracekitError if none, or many.

    `compilation`: the folder that relative names start from, or nothing.
    """
    if wanted in names:
        return wanted
    matching = sorted(name for name in names if name and is_meant(wanted, name, compilation))
    if len(matching) == 1:
        return matching[0]
    if matching:
        raise TracekitError(f"{wanted} may be {', '.join(matching)}: name it with more of its path.")
    raise TracekitError(f"Nothing was recorded in {wanted}; without a file all files are listed.")
