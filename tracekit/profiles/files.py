"""Profile files: what ``analyze -o`` writes, and merge, diff, annotate and report read.

A file is JSON: one profile as an object, several as a list. Beside what ``analyze --json`` prints, an object has

* ``format``: the version of this layout; a reader refuses a newer one,
* ``build``: the hashes of the units of each image of the program, which tell builds apart,
* ``complete``: false if the trace was cut off,
* ``rules_broken``: true if records of the trace broke rules of replay; else it is left out,
* ``facts``: numbers that only the text shows,
* ``images``: the image tables as the trace has them (frames of SPEC.md, "IMAG", in base64), for modules that need them,
* ``shared``: values that rows have in common, for which a number stands in them (tracekit.profiles.shared),
* ``evidence``: the module's merge state (``tracekit.module.Analysis.merge``); last, as it is long.

What ``analyze --json`` prints names source files as the compiler was given them. ``folders`` has the folder from which
relative names start (``compilation``), and the one that all of them but the system's are in (``sources``); it is left
out if the former is not known, as of older traces.

A merged profile has ``traces``, the sorted content hashes, in place of ``trace``.

A file whose name ends in ``.zst`` is compressed (tracekit.profiles.compressed).
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from tracekit import interrupts, progress
from tracekit.formats.errors import TracekitError
from tracekit.profiles import compressed, shared
from tracekit.profiles.gc_paused import gc_paused
from tracekit.profiles.json import json_parts

if TYPE_CHECKING:
    from tracekit.profiles.profile import Profile

FORMAT = 2
"""The version of the layout that this code writes, and the newest that it reads: 2 since rows share values."""

STANDARD_OUTPUT = ("-", "/dev/stdout")
"""Names of what a command prints to."""

TRACE = "the trace"
"""What is written where a trace is."""

PRINTED = ("tracekit", "module", "trace", "traces", "folders", "options", "window", "windows", "filters", "result")
"""The keys of what ``analyze --json`` prints; the others are of files alone."""


@gc_paused()
def save(path: str | Path, profiles: Sequence[Profile]) -> None:
    """Write a profile file, whole or not at all. Raises TracekitError if it cannot be written."""
    parts = (part.encode() for part in json_parts([_object(profile) for profile in profiles], share=True))
    with progress.step(f"writing {path}"):
        write_bytes_whole(path, compressed.parts(parts) if compressed.wanted(path) else parts, "the profile")


def write_whole(path: str | Path, text: Iterable[str], what: str) -> None:
    """Write a file under another name, then rename it: nobody sees half of it, and a failure leaves the old one.

    text: its parts, in order. See :func:`write_bytes_whole`.
    """
    write_bytes_whole(path, (part.encode() for part in text), what)


def write_bytes_whole(path: str | Path, parts: Iterable[bytes | memoryview], what: str) -> None:
    """`write_whole` of bytes; `what` is what an error says is not written. See :func:`written_whole`."""
    with written_whole(path, what) as file:
        file.writelines(parts)


@contextmanager
def written_whole(path: str | Path, what: str) -> Iterator[BinaryIO]:
    """A file to write to, which takes its name once the block ends without an error; else nothing is left of it.

    What is no regular file (a pipe, a device) is written as it is, and so is STANDARD_OUTPUT, which may be the middle
    of a file. Raises TracekitError if that cannot be done, and if something else than a trace is to be written over
    one: a trace cannot be had again by analysing it. What standard output raises stays as it is.
    """
    if str(path) in STANDARD_OUTPUT:
        sys.stdout.flush()
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    target = Path(path)
    if what != TRACE and target.is_file() and is_trace(target):
        raise TracekitError(f"{path} is a trace: give {what} another name, or remove the trace first.")
    try:
        if target.exists() and not target.is_file():
            with target.open("wb") as file:
                yield file
            return
        target = target.resolve()  # a symbolic link stays one
        handle, part = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
        try:
            with open(handle, "wb") as file:
                yield file
            interrupts.check()
            os.chmod(part, target.stat().st_mode & 0o777 if target.exists() else 0o666 & ~_umask())
            os.replace(part, target)
        except BaseException:
            os.unlink(part)
            raise
    except BrokenPipeError:  # the reader of a pipe went away
        raise
    except OSError as error:
        raise TracekitError(f"Cannot write {what} to {path}: {error.strerror}.") from None


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _object(profile: Profile) -> dict[str, Any]:
    more = {
        "build": [list(image) for image in profile.build],
        "complete": profile.complete,
        **({"rules_broken": True} if profile.rules_broken else {}),
        "facts": dict(profile.facts),
        **({"images": list(profile.images)} if profile.images else {}),
    }
    head = {key: value for key, value in profile.report.items() if key != "result"}
    return {
        "format": FORMAT,
        **head,
        **more,
        "result": profile.result,
        **({} if profile.evidence is None else {"evidence": profile.evidence}),
    }


@gc_paused()
def load(path: str | Path) -> list[Profile]:
    """The profiles in a file. What `analyze --json` printed is read, too; it cannot be merged.

    Raises TracekitError if the file cannot be read, is no profile, or is of a newer version.
    """
    try:
        with progress.step(f"reading {path}"), open(path, "rb") as file:
            if not _begins_as_one(file):
                raise TracekitError(f"{path} is no profile: {_what(file.read(12))}.")
            content = json.loads(compressed.text(file))
    except OSError as error:
        raise TracekitError(f"Cannot read {path}: {error.strerror}.") from None
    except compressed.NotWhole as error:
        raise TracekitError(f"{path} is no profile: {error}.") from None
    except (ValueError, RecursionError):
        raise TracekitError(f"{path} is no profile: it is not JSON, or not all of it.") from None
    objects = content if isinstance(content, list) else [content]
    if not objects:
        raise TracekitError(f"{path} is no profile: it is an empty list.")
    return [_profile(path, content) for content in objects]


def _what(beginning: bytes) -> str:
    """What a file is instead of a profile, by its first 12 bytes."""
    from tracekit.formats.container import begins_as_trace

    if not beginning:
        return "it is empty"
    if begins_as_trace(beginning):
        return "it is a trace; `tracekit analyze -o FILE` makes a profile of it"
    return "it is not JSON"


def is_trace(path: Path) -> bool:
    """Whether a file begins as traces do."""
    from tracekit.formats.container import begins_as_trace

    try:
        with path.open("rb") as file:
            return begins_as_trace(file.read(12))
    except OSError:
        return False


def is_profile(path: str | Path) -> bool:
    """Whether a file is a profile rather than a trace, by its first byte, decompressed if need be."""
    try:
        with open(path, "rb") as file:
            return _begins_as_one(file)
    except OSError:
        return False


def _begins_as_one(file: BinaryIO) -> bool:
    """Whether an open file begins as JSON, compressed or not; it stands at its start afterwards."""
    first = compressed.first_byte(file)
    file.seek(0)
    return first in (b"{", b"[")


_KINDS: dict[str, type] = {
    "options": dict,
    "result": dict,
    "build": list,
    "facts": dict,
    "images": list,
    "folders": dict,
    shared.KEY: list,
}
"""What the values of some keys are."""


def _profile(path: str | Path, content: Any) -> Profile:
    from tracekit.profiles.profile import Profile

    if not isinstance(content, dict) or not isinstance(content.get("module"), str) or "tracekit" not in content:
        raise TracekitError(f"{path} is no profile: it lacks the keys `tracekit` and `module`.")
    version = content.get("format", 1)
    if not isinstance(version, int) or version > FORMAT:
        raise TracekitError(
            f"{path} has the profile format {version}; this tracekit reads up to {FORMAT}: install a newer one."
        )
    for key, kind in _KINDS.items():
        missing = key in ("options", "result") and key not in content
        if missing or not isinstance(content.get(key, kind()), kind):
            raise TracekitError(f"{path} is no profile: its `{key}` is missing or of the wrong kind.")
    if not all(isinstance(folder, str) for folder in content.get("folders", {}).values()):
        raise TracekitError(f"{path} is no profile: its `folders` are no names.")
    try:
        if version >= 2:  # what looks as if it named a value does not in one of format 1, or in what was printed
            shared.resolve(content["result"], content.get(shared.KEY, []))
    except shared.DanglingReference:
        raise TracekitError(f"{path} is no profile: a row names a value that the file lacks.") from None
    report = {key: content[key] for key in PRINTED if key in content}
    build = tuple(tuple(map(str, image)) for image in content.get("build", []))
    return Profile(
        report,
        content.get("facts", {}),
        bool(content.get("complete", True)),
        build=build,
        images=tuple(content.get("images", [])),
        evidence=content.get("evidence"),
        rules_broken=bool(content.get("rules_broken")),
    )
