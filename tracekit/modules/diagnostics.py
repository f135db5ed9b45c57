"""What is wrong with an author's module, in one line with theirs: from what Numba says, or from what it raised."""

from __future__ import annotations

import inspect
import linecache
import re
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tracekit.formats.errors import TracekitError
from tracekit.jit import exceptions, kernel
from tracekit.jit.cache import home

Callbacks = Mapping[str, Callable[..., None]]

ALLOCATES = ("NRT required", "Only accept returning of array")
"""What Numba says of code that needs memory where there is no memory management."""

_PACKAGE = Path(__file__).parents[1]
_OURS = tuple(folder for folder in _PACKAGE.iterdir() if folder.is_dir() and folder.name != "analyzers")
"""The folders of tracekit that hold no module: an error that passed through them is laid at the door of its caller."""

_PLACE = re.compile(r" at (\S[^\n]*?\.py|<[^>\n]+>) \((\d+)\)")
_FUNCTION = re.compile(r"<function (?:[\w<>]+\.)*(\w+) at 0x")


def of_compiler(callbacks: Callbacks, error: Exception) -> str:
    """Why the kernel around `callbacks` does not compile."""
    text = str(error)
    reason = _reason(text)
    return reason + (_place(text) or _place_of_name(callbacks, text) or _place_of_callback(callbacks, text))


def of_run(error: Exception) -> str | None:
    """What a callback raised, and where; None for an error that is not its own."""
    frames = traceback.extract_tb(error.__traceback__)
    if (
        len(frames) < 2
        or frames[-2].filename not in (kernel.__file__, exceptions.__file__)
        or not _is_authors(frames[-1].filename)
    ):
        return None  # not raised by compiled code
    return _raised_in(error, frames[-1])


@contextmanager
def of_author(module: object, name: str) -> Iterator[None]:
    """Raise TracekitError, with the author's line, for what a method of a module raises that is plain Python."""
    try:
        yield
    except TracekitError:
        raise
    except Exception as error:
        reason = of_file(inspect.getsourcefile(type(module)), error)
        if reason is None:
            raise
        raise TracekitError(f"Module {name!r} failed: {reason}.") from error


def of_file(file: str | None, error: Exception) -> str | None:
    """What was raised, and the innermost line of `file` on its way; None if it did not pass through the file."""
    own = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == file]
    return _raised_in(error, own[-1]) if own else None


def of_place(error: Exception, file: str, line: int) -> str:
    """What was raised, with the line that it comes from."""
    reason = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    return reason + _shown(file, line)


def _raised_in(error: Exception, frame: traceback.FrameSummary) -> str:
    return of_place(error, frame.filename, frame.lineno or 0)


def _reason(text: str) -> str:
    """Numba's complaint, without where it passed on its way."""
    if any(sign in text for sign in ALLOCATES):
        return (
            "callbacks run without memory management: they make no array, list, dictionary or string, "
            "and the state has none but arrays; make arrays in state()"
        )
    if "non-precise type pyobject" in text:
        return "callbacks cannot take what state() returns: arrays, or a tuple or NamedTuple of them"
    if found := re.search(r"Untyped global name '(\w+)'.*<class 'function'>", text):
        return f"{found[1]} is an ordinary function; callbacks call functions that are @inlined (tracekit.module)"
    if found := re.search(r">>> (\w+\(.*\))", text):
        return f"there is no {found[1]}"
    lines = [line.strip().removesuffix(". Raised from None").rstrip(".") for line in text.splitlines()]
    return next((line for line in lines if line and not line.startswith(("Failed in", "File ", "During"))), text)


def _place(text: str) -> str:
    """The innermost place in code of the author's that Numba names."""
    for path, line in _PLACE.findall(text):
        if _is_authors(path):
            return _shown(path, int(line))
    return ""


def _here(path: str) -> str:
    """The same file of this tracekit, for one of another tracekit: this one may run what that one compiled."""
    file = Path(path)
    for at, part in enumerate(file.parts):
        ours = _PACKAGE.joinpath(*file.parts[at + 1 :])
        if part == _PACKAGE.name and ours.is_file() and (not file.exists() or file.read_bytes() == ours.read_bytes()):
            return str(ours)
    return path


def _is_authors(path: str) -> bool:
    file = Path(_here(path))
    ours = any(folder.resolve() in file.resolve().parents for folder in (*_OURS, home()))
    return not ours and "numba" not in file.parts


def _shown(path: str, line: int) -> str:
    path = _here(path)
    source = linecache.getline(path, line).strip()
    return f" ({path}, line {line}{': ' if source else ''}{source})"


def _place_of_name(callbacks: Callbacks, text: str) -> str:
    """Where a name that is not defined, or means nothing to Numba, is used."""
    match = re.search(r"(?<=name ')\w+(?=' is not defined|':)", text)
    for function in callbacks.values():
        if match and match[0] in function.__code__.co_names:
            try:
                lines, first = inspect.getsourcelines(function)
            except OSError:
                return ""
            for number, line in enumerate(lines):
                if re.search(rf"\b{match[0]}\b", line):
                    return _shown(function.__code__.co_filename, first + number)
    return ""


def _place_of_callback(callbacks: Callbacks, text: str) -> str:
    """The callback that Numba was at, or all of them."""
    at = [name for name in _FUNCTION.findall(text) if name in callbacks]
    names = at[:1] or list(callbacks)
    if not names:
        return ""
    code = callbacks[names[0]].__code__
    return f" ({code.co_filename}, line {code.co_firstlineno}: in {' or '.join(names)})"
