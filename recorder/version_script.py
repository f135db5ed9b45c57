"""Keeps `__tk_state` and `__tk_activations` exported where a linker's version script hides what it does not name.

All images of a process share one position in the thread's buffer, so the symbol must stay visible
in each. A version script ending in ``local: *;`` would give a library a position of its own, and
nothing it does could be recorded. The linker gets a copy of the script that names the symbol.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from tracekit.recorder.build_cache import cache_folder, digest, remember

STATE = "__tk_state"
ACTIVATIONS = "__tk_activations"
SHARED = (STATE, ACTIVATIONS)
"""What all images of a process have in common."""
_OPTIONS = ("--version-script", "-version-script")


def export_state(words: Sequence[str]) -> list[str]:
    """The command line with each version script replaced by a copy, in the cache, that exports the state.

    Scripts named by ``-Wl,`` and ``-Xlinker`` are found; a script that cannot be read stays as it is.
    """
    result: list[str] = []
    expected = False  # the next word for the linker is the script's name
    for position, word in enumerate(words):
        if word.startswith("-Wl,"):
            pieces = word.split(",")
        elif position and words[position - 1] == "-Xlinker":
            pieces = [word]
        else:
            result.append(word)
            continue
        for index, piece in enumerate(pieces):
            option, equals, path = piece.partition("=")
            if expected and piece != "-Wl":
                pieces[index], expected = _copy(piece), False
            elif option in _OPTIONS and equals:
                pieces[index] = f"{option}={_copy(path)}"
            elif piece in _OPTIONS:
                expected = True
        result.append(",".join(pieces))
    return result


def _copy(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            script = file.read()
    except OSError:
        return path  # the linker says so better
    exporting = add_global(script, "; ".join(SHARED))
    name = f"version-script-{digest([exporting.encode(errors='surrogateescape')])}"
    remember(name, exporting)
    copy = os.path.join(cache_folder(), name)
    return copy if os.path.exists(copy) else path


def add_global(script: str, symbol: str) -> str:
    """A version script whose first version also exports ``symbol`` (or several, ``a; b``)."""
    import re

    bare = re.sub(r"/\*.*?\*/", " ", script, flags=re.DOTALL)
    bare = re.sub(r"#[^\n]*", "", bare)
    match = re.search(r"\{\s*(global\s*:|(?=local\s*:)|)", bare)
    if not match:
        return script
    # A version may have one `global:` only; without any word, its names are global too.
    label = match[1] or ("global:" if re.match(r"local\s*:", bare[match.end() :]) else "")
    return f"{bare[: match.start()]}{{ {label} {symbol}; {bare[match.end() :]}"
