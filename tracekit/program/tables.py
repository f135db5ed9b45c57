"""The image tables of a program, every index global, and what follows from them without names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from tracekit.formats.errors import TracekitError
from tracekit.formats.image import IMPORTED, OpFlag, OpKind
from tracekit.program.allocators import own_allocators
from tracekit.program.callees import Callees
from tracekit.program.linker import Rows
from tracekit.program.source_names import SourceNames

U4 = NDArray[np.uint32]
U8 = NDArray[np.uint64]


@dataclass(frozen=True)
class Tables:
    """The static tables of a trace. Rows are those of ``formats.image.TABLES``, every index global.

    A *function*, *loop*, *instruction* (a row of ``ops``), ... is named by its row everywhere in replay.
    """

    functions: Rows
    paths: Rows
    path_blocks: Rows
    blocks: Rows
    ops: Rows
    terms: Rows
    calls: Rows
    call_targets: Rows
    loops: Rows
    loop_exits: Rows
    phis: Rows
    edges: Rows
    updates: Rows
    globals: Rows
    address_taken: Rows
    variables: Rows
    declarations: Rows
    options: Rows
    causes: Rows
    update_parts: Rows
    loop_fates: Rows
    variable_updates: Rows
    types: Rows
    members: Rows
    typed: Rows
    counters: Rows
    lines: Rows
    locations: Rows
    sources: Rows
    units: Rows
    strings: bytes = field(repr=False)
    unit_hashes: tuple[str, ...]
    source_folders: tuple[str, ...]
    """The compilation folder of each row of ``sources``; empty if it is not known."""
    unit_first_op: NDArray[np.int64]
    """First row of ``ops`` of each unit, and their number at the end."""
    unit_first_function: NDArray[np.int64]
    """First row of ``functions`` of each unit, and their number at the end."""
    image_names: Mapping[int, str]
    global_address: U8
    """Run-time address of each row of ``globals``, 0 if it was not placed (thread-local, dropped by the linker)."""
    global_image: U4
    """The image number of each row of ``globals``."""
    path_row: U4
    """Record id -> row of ``paths``, NONE for events and unused numbers."""
    arity: U4
    """Record id -> number of words after it, NONE for ids that no record may have."""
    linked: NDArray[np.bool_]
    """Whether each function was linked into an image (duplicates of inline functions are not)."""
    op_function: U4
    path_function: U4
    callees: Callees
    """For each row of ``calls``, the functions that it may enter."""

    def text(self, offset: int) -> str:
        """The string at `offset`; offset 0 is the empty string."""
        return string_at(self.strings, offset)

    @cached_property
    def source_names(self) -> SourceNames:
        """The names of source files, one for each row of ``sources``, and their folders."""
        return SourceNames([self.text(path) for path in self.sources["path"].tolist()], self.source_folders)

    @cached_property
    def is_imported(self) -> bool:
        """Whether the trace was made of another tool's: it has loads and stores of program counters, nothing else."""
        return any(self.text(at) == IMPORTED for at in self.units["at"].tolist())

    @cached_property
    def valued(self) -> NDArray[np.bool_]:
        """Whether the loads and stores of each instruction (row of ``ops``) have values."""
        moves = np.isin(self.ops["kind"], (OpKind.LOAD, OpKind.STORE, OpKind.ATOMIC))
        valued: NDArray[np.bool_] = moves & (self.ops["flags"] & OpFlag.VALUE != 0) & (self.ops["size"] != 0)
        return valued

    @property
    def has_values(self) -> bool:
        """Whether there are values at all: some part of the program was built with ``tracekit cc --values``."""
        return bool(self.valued.any())

    def require_values(self) -> None:
        """Raise TracekitError, which says what to do, if there are none; a program may have no loads and stores."""
        if self.is_imported:
            raise TracekitError("The trace is imported: it holds no values of loads and stores.")
        if not self.has_values and not any(option.startswith("values=") for option in self.requested):
            raise TracekitError(
                "The trace holds no values of loads and stores: build the program again with "
                "tracekit cc --values, and record it."
            )

    @property
    def requested(self) -> frozenset[str]:
        """What the compiler pass was asked to record of some unit beyond accesses, e.g. ``pointers=1``."""
        return frozenset(string_at(self.strings, offset) for offset in self.options["option"].tolist())

    @cached_property
    def own_allocators(self) -> dict[str, str]:
        """See tracekit.program.allocators."""
        return own_allocators(self.requested)

    @property
    def has_atomic_order(self) -> bool:
        """Whether the order of atomic operations is in a trace: some unit was built with ``tracekit cc --threads``."""
        return "threads=1" in self.requested

    def require_pointers(self, otherwise: str = "") -> None:
        """Raise TracekitError if no part of the program says where pointers come from; it ends with `otherwise`."""
        if self.is_imported:
            raise TracekitError("The trace is imported: it does not say where pointers come from.")
        if "pointers=1" not in self.requested and not bool(np.any(self.ops["kind"] == OpKind.POINTER)):
            raise TracekitError(
                "The trace does not say where pointers come from: build the program again with "
                f"tracekit cc --pointers, and record it{otherwise}."
            )


def string_at(strings: bytes, offset: int) -> str:
    """The string that begins at `offset` of a table of strings; they end with a zero byte, and are UTF-8."""
    end = strings.find(b"\0", offset)
    return strings[offset:end].decode("utf-8", "replace")
