"""A name for the preloaded library that LD_PRELOAD can hold: the dynamic linker splits that at spaces and colons."""

from __future__ import annotations

import os
import stat
import tempfile

from tracekit.formats.errors import TracekitError
from tracekit.recorder.build_cache import digest


def preloadable(library: str) -> str:
    """The path of `library` itself, or of a link to it whose path has neither space nor colon.

    The link stays: programs that were started under ``record`` may start others after its end. It lies in a folder of
    a temporary directory that nobody but the user may write to. Raises TracekitError if there is no place for one.
    """
    if _can_be_named(library):
        return library
    for folder in (tempfile.gettempdir(), "/tmp", "/var/tmp", "/dev/shm"):
        if _can_be_named(folder):
            try:
                return _link(folder, library)
            except OSError:
                continue
    raise TracekitError(
        f"{library} cannot be preloaded, because its path holds a space or a colon; "
        "set XDG_CACHE_HOME or TMPDIR to a folder without them"
    )


def _can_be_named(path: str) -> bool:
    return not any(separator in path for separator in " :\t\n")


def _link(folder: str, library: str) -> str:
    """The link in our own folder below `folder`; OSError if it cannot be made, or if others could change it."""
    own = os.path.join(folder, f"tracekit-{os.getuid()}")
    try:
        os.mkdir(own, 0o700)
    except FileExistsError:
        pass
    found = os.lstat(own)
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o022:
        raise PermissionError(own)
    link = os.path.join(own, f"{digest([os.fsencode(library)])}.so")
    if not os.path.islink(link) or os.readlink(link) != library:
        temporary = f"{link}.{os.getpid()}"
        os.symlink(library, temporary)
        os.rename(temporary, link)
    return link
