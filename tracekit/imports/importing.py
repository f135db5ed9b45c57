"""From a file of another tool's to a trace of ours."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from tracekit import progress
from tracekit.formats.errors import TracekitError
from tracekit.formats.reader import TraceReader
from tracekit.imports import binaries, champsim, drmemtrace, drmemtrace_files, lackey
from tracekit.imports.files import pieces
from tracekit.imports.trace_builder import TraceBuilder
from tracekit.profiles.files import TRACE, is_trace, written_whole


def import_trace(
    form: str,
    path: str,
    output: str | Path,
    known_binaries: Iterable[tuple[str, int | None]] = (),
    module_list: str | None = None,
    **options: Any,
) -> None:
    """Make a trace of the file at `path` (``-``: standard input), whose format is `form`.

    `known_binaries`, `module_list`: binaries that its program counters may lie in, as of :func:`binaries.known`.
    `options` are those of the format's ``read``. The trace is there whole or not at all. Raises TracekitError, also if
    it would take the place of a recorded one.
    """
    _keep_recordings(Path(output))
    known = binaries.known(known_binaries, module_list)
    with TraceBuilder(_folder(output)) as made:
        facts = _READ[form](path, made, **options)
        made.stream(0)
        with progress.step("writing the trace"), written_whole(output, TRACE) as file:
            made.write(file, form, facts, known)


def _lackey(path: str, made: TraceBuilder) -> dict[str, Any]:
    with _opened(path) as file:
        return lackey.read(pieces(file, path), made, path)


def _champsim(path: str, made: TraceBuilder, size: int = 1) -> dict[str, Any]:
    with _opened(path) as file:
        return champsim.read(pieces(file, path), made, path, size)


def _keep_recordings(target: Path) -> None:
    """Raises TracekitError if a trace is there that was not imported: what a run was cannot be had again."""
    if target.is_file() and is_trace(target):
        with TraceReader(target) as there:
            imported = "imported" in there.meta
        if not imported:
            raise TracekitError(f"{target} is the trace of a run: give the import another name, or remove it first.")


def _folder(output: str | Path) -> Path | None:
    """Where chunks wait: beside the trace, if that is to be a file."""
    target = Path(output)
    return None if target.exists() and not target.is_file() else target.resolve().parent


def _drmemtrace(path: str, made: TraceBuilder, with_kernel: bool = False) -> dict[str, Any]:
    with ExitStack() as stack, progress.step("importing"):
        files = [drmemtrace_files.opened(file, stack) for file in drmemtrace_files.files_of(path)]
        return drmemtrace.read(files, made, with_kernel)


_READ = {"lackey": _lackey, "champsim": _champsim, "drmemtrace": _drmemtrace}


@contextmanager
def _opened(path: str) -> Iterator[BinaryIO]:
    """The file, and how far it is read."""
    if path == "-":
        with progress.step("importing"):
            yield sys.stdin.buffer
        return
    try:
        file = open(path, "rb")  # noqa: SIM115
    except OSError as error:
        raise TracekitError(f"Cannot read {path}: {error.strerror}.") from None
    with file:
        size = os.fstat(file.fileno()).st_size
        with progress.step("importing", size or None, file.tell):
            yield file
