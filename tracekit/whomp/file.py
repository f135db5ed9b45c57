"""Files of grammars: arrays in the format of NumPy (.npz), for each dimension NAME

* ``NAME_rules`` (u4): block by block: how many rules; then of each rule its length and its symbols, the start first. A
  symbol is twice the number of a value, or twice the number of a rule of the block and one more.
* ``NAME_values`` (i8): the values; number 0 is none.
* ``NAME_length`` (i8): how many values the stream has.

and ``groups``: JSON, what the numbers of groups mean.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tracekit.formats.errors import TracekitError
from tracekit.whomp.grammar import Written


def save(path: str | Path, grammars: Mapping[str, Written], groups: Sequence[Any]) -> None:
    """Write a file. Raises TracekitError if that cannot be."""
    arrays: dict[str, Any] = {"groups": np.frombuffer(json.dumps(list(groups)).encode(), np.uint8)}
    for name, made in grammars.items():
        arrays |= {
            f"{name}_rules": made.written,
            f"{name}_values": made.values,
            f"{name}_length": np.array(made.length, np.int64),
        }
    try:
        with open(path, "wb") as file:
            np.savez_compressed(file, **arrays)
    except OSError as error:
        raise TracekitError(f"{path} cannot be written: {error.strerror}.") from None


def load(path: str | Path, names: Sequence[str]) -> list[Written]:
    """The grammars of these dimensions."""
    arrays = _arrays(path, [f"{name}_{part}" for name in names for part in ("rules", "values", "length")])
    return [Written(arrays[f"{name}_rules"], arrays[f"{name}_values"], int(arrays[f"{name}_length"])) for name in names]


def load_groups(path: str | Path) -> list[dict[str, Any]]:
    """What the numbers of groups mean."""
    found: list[dict[str, Any]] = json.loads(_arrays(path, ["groups"])["groups"].tobytes())
    return found


def _arrays(path: str | Path, names: Sequence[str]) -> dict[str, Any]:
    try:
        with np.load(path, allow_pickle=False) as file:
            missing = [name for name in names if name not in file.files]
            if missing:
                raise TracekitError(f"{path} has no grammar of {missing[0].rpartition('_')[0] or missing[0]!r}.")
            return {name: file[name] for name in names}
    except OSError as error:
        raise TracekitError(f"{path} cannot be read: {error.strerror or error}.") from None
    except (ValueError, zipfile.BadZipFile, TypeError, EOFError, AttributeError):
        raise TracekitError(f"{path} is no file of grammars (tracekit analyze -m whomp --grammars FILE).") from None
