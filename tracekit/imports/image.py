"""The image of an imported trace: one function, in which every program counter, kind and size is a block of its own.

Each stream enters the function once and stays in it: nothing is known of calls and loops. The first path is the
entry, which accesses nothing.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracekit.containers.hash_table import used_rows
from tracekit.formats.events import FIRST_PATH, NONE
from tracekit.formats.image import DTYPES, IMPORTED, Base, BlockFlag, OpFlag, OpKind
from tracekit.formats.image_frame import FUNCTION, GLOBAL, build_image
from tracekit.formats.unit import Unit
from tracekit.imports.binaries import Binaries, Place
from tracekit.imports.kernels.records import BOTH, COUNTER_AT, KIND_AT, LOAD, UNKNOWN, Instructions

U8 = NDArray[np.uint64]


def words_of(keys: U8) -> NDArray[np.uint32]:
    """Words of a record of each path, by its key."""
    is_dynamic = _sizes(keys) == 0
    words: NDArray[np.uint32] = (1 + is_dynamic * np.where(_kinds(keys) == BOTH, 2, 1)).astype(np.uint32)
    return words


def image_of(met: Instructions, form: str, binaries: Binaries) -> tuple[bytes, dict[str, bytes]]:
    """The IMAG payload, and the text of the source files that it names and that can be read."""
    strings = _Strings()
    keys, counters = used_rows(met.paths)["key"][1:], used_rows(met.counters)["key"]
    tables = {name: np.zeros(0, dtype) for name, dtype in DTYPES.items()}
    tables["unit"] = _rows("unit", 1, producer=strings.of(form), at=strings.of(IMPORTED))
    places = [Place(), *(binaries.place(counter) for counter in counters[1:].tolist())]
    _locations(tables, places, strings)
    _operations(tables, keys, counters, [strings.of(place.binary) for place in places])
    count = 1 + len(keys)
    tables["path_blocks"] = _rows("path_blocks", count, block=np.arange(count))
    words = np.concatenate([[0], words_of(keys)])
    tables["paths"] = _rows("paths", count, first=np.arange(count), blocks=1, words=words)
    name, ops = strings.of("program"), len(tables["ops"])
    runs = {"paths": count, "blocks": count, "ops": ops, "location": NONE, "registers": 1}
    tables["functions"] = _rows("functions", 1, name=name, **runs)
    tables["strings"] = np.frombuffer(bytes(strings.data), np.uint8).view(DTYPES["strings"])
    payload = build_image(0, FIRST_PATH, count, form, [Unit.build(tables)], np.zeros(1, FUNCTION), np.zeros(0, GLOBAL))
    return payload, binaries.sources({place.file for place in places} - {""})


def _kinds(keys: U8) -> Any:
    return keys >> np.uint64(KIND_AT) & np.uint64(3)


def _sizes(keys: U8) -> Any:
    return keys & np.uint64((1 << KIND_AT) - 1)


def _operations(tables: dict[str, Any], keys: U8, counters: U8, names: list[int]) -> None:
    """The ops, the program counters of those that have one, and the blocks.

    What loads and stores one place is a load and a store that takes its address from the register 0.
    """
    kind, is_both = _kinds(keys), _kinds(keys) == BOTH
    per_path = np.where(is_both, 2, 1)
    first = np.cumsum(per_path) - per_path
    ops = _rows("ops", int(per_path.sum()), location=NONE, defines=NONE, base_kind=Base.RECORDED)
    counter = np.repeat((keys >> np.uint64(COUNTER_AT)).astype(np.int64), per_path)
    ops["size"] = np.repeat(_sizes(keys), per_path)
    ops["flags"] = np.where(ops["size"] == 0, int(OpFlag.DYNAMIC_SIZE), 0)
    ops["location"] = counter
    ops["kind"][first] = np.where((kind == LOAD) | is_both, int(OpKind.LOAD), int(OpKind.STORE))
    second = first[is_both] + 1
    ops["defines"][second - 1] = 0
    ops["kind"][second], ops["base_kind"][second] = int(OpKind.STORE), int(Base.REGISTER)
    tables["ops"] = ops
    known = np.flatnonzero(counter != UNKNOWN)
    of_op = counter[known]
    tables["counters"] = _rows(
        "counters", len(known), counter=counters[of_op], op=known, binary=np.array(names, np.uint32)[of_op]
    )
    nothing = {"loop": NONE, "call": NONE, "continues": NONE, "location": NONE}
    blocks = _rows("blocks", 1 + len(keys), **nothing)
    blocks["first_op"][1:], blocks["ops"][1:] = first, per_path
    blocks["flags"][0] = int(BlockFlag.ENTRY)
    tables["blocks"] = blocks


def _locations(tables: dict[str, Any], places: list[Place], strings: _Strings) -> None:
    """A location for each row of counters, and the files that they lie in."""
    files = {file: row for row, file in enumerate(sorted({place.file for place in places} - {""}))}
    tables["sources"] = _rows("sources", len(files), path=[strings.of(file) for file in files])
    tables["locations"] = _rows(
        "locations",
        len(places),
        source=[files.get(place.file, NONE) for place in places],
        line=[place.line for place in places],
        column=[place.column for place in places],
        function=[strings.of(place.function) for place in places],
        inlined_at=NONE,
    )


def _rows(table: str, count: int, **columns: Any) -> Any:
    made = np.zeros(count, DTYPES[table])
    for name, values in columns.items():
        made[name] = values
    return made


class _Strings:
    """A table of strings; offset 0 is the empty one."""

    def __init__(self) -> None:
        self.data = bytearray(b"\0")
        self._offsets = {"": 0}

    def of(self, text: str) -> int:
        """The offset of a string."""
        if text not in self._offsets:
            self._offsets[text] = len(self.data)
            self.data += text.replace("\0", "?").encode("utf-8", "replace") + b"\0"
        return self._offsets[text]
