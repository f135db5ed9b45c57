"""Where instructions stand in the text of SIMD loops.

OpenMP keeps "lexical forward dependences" within a vector: what an iteration does in a statement comes before what a
later one does in a statement behind that. (OpenMP 5.2, "simd Construct".) Clang makes blocks in the order of the text.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tracekit.formats.events import NONE
from tracekit.formats.image import LoopFlag
from tracekit.races.kernels.state import LEXICAL, ORDERED, SHARED_LOOP

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from tracekit.program.program import Program

REGION = "__captured_stmt"


def lexical_places(program: Program, lanes: NDArray[np.uint8]) -> NDArray[np.void]:
    """LEXICAL by instruction, and one more for libraries; `lanes`: u1 by loop, how many of its iterations run at once.

    The SIMD loop is the outermost one with several lanes. One with `order(concurrent)` keeps nothing. An inner loop has
    one place: that lanes keep the order of its iterations is not said. A region of `ordered simd` has one, too, marked
    by ORDERED: there it is.
    """
    places = np.zeros(len(program.ops) + 1, LEXICAL)
    simd, inner = _outermost(program, (lanes > 1) & (lanes != SHARED_LOOP))
    if (simd == NONE).all():
        return places
    loop = _loops_of_instructions(program)
    inside = np.flatnonzero(loop != NONE)
    inside = inside[simd[loop[inside]] != NONE]
    inside = inside[program.loops["flags"][simd[loop[inside]]] & LoopFlag.CONCURRENT == 0]
    is_direct = inner[loop[inside]] == simd[loop[inside]]
    places["loop"][inside] = simd[loop[inside]] + 1
    places["rank"][inside] = np.where(is_direct, 4 * inside + 4, _of_inner_loops(program)[inner[loop[inside]]])
    for region in _ordered_regions(program, inside):
        places["rank"][region] = places["rank"][region].min() | ORDERED
    return places


def _of_inner_loops(program: Program) -> NDArray[np.int64]:
    """By loop: its place, if it lies directly in a SIMD loop. That is its header's, but before where it goes on to,
    which the optimiser may put before the loop."""
    places: NDArray[np.int64] = 4 * program.blocks["first_op"][program.loops["header"]].astype(np.int64) + 2
    exits = program.loops["exits"].astype(np.int64)
    of = np.repeat(np.arange(len(places)), exits)
    rows = np.repeat(program.loops["first_exit"].astype(np.int64) - (np.cumsum(exits) - exits), exits)
    targets = program.loop_exits["target"][rows + np.arange(len(rows))]
    known = targets != NONE
    np.minimum.at(places, of[known], 4 * program.blocks["first_op"][targets[known]].astype(np.int64) + 2)
    return places


def _ordered_regions(program: Program, inside: NDArray[np.int64]) -> Iterable[list[int]]:
    """The instructions among those `inside` SIMD loops that belong to each region of `ordered simd`: clang makes it a
    function, of which -O0 leaves the call."""
    locations = program.locations
    is_region = {name: program.text(name).startswith(REGION) for name in np.unique(locations["function"]).tolist()}
    calls = np.flatnonzero(np.isin(program.calls["op"], inside)).tolist()
    regions = {
        (-1, call): [int(program.calls["op"][call])] for call in calls if program.callee_name(call).startswith(REGION)
    }
    for instruction in inside.tolist() if any(is_region.values()) else ():
        row = int(program.ops["location"][instruction])
        while row != NONE and not is_region[int(locations["function"][row])]:
            row = int(locations["inlined_at"][row])
        if row != NONE:
            key = int(locations["function"][row]), int(locations["inlined_at"][row])
            regions.setdefault(key, []).append(instruction)
    return regions.values()


def _outermost(program: Program, is_simd: NDArray[np.bool_]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """By loop: the outermost SIMD loop that it is or lies in, or NONE; and what it is or lies in directly inside that,
    itself for the SIMD loop."""
    parents = program.loops["parent"].astype(np.int64)
    simd = np.full(len(parents), NONE, np.int64)
    inner = np.arange(len(parents))
    for loop in np.argsort(program.loops["depth"], kind="stable").tolist() if is_simd.any() else ():
        parent = parents[loop]
        if parent != NONE and simd[parent] != NONE:
            simd[loop] = simd[parent]
            inner[loop] = loop if simd[parent] == parent else inner[parent]
        elif is_simd[loop]:
            simd[loop] = loop
    return simd, inner


def _loops_of_instructions(program: Program) -> NDArray[np.int64]:
    """By instruction: the innermost loop that it lies in, or NONE."""
    loops = np.full(len(program.ops), NONE, np.int64)
    counts = program.blocks["ops"].astype(np.int64)
    starts = np.repeat(program.blocks["first_op"].astype(np.int64) - (np.cumsum(counts) - counts), counts)
    loops[starts + np.arange(counts.sum())] = np.repeat(program.blocks["loop"], counts)
    loops[program.calls["op"]] = program.blocks["loop"][program.calls["block"]]
    return loops
