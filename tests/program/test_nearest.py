"""Places of code that the compiler gave no line."""

from __future__ import annotations

from typing import Any

from tests.naive.program_builder import ProgramBuilder
from tracekit.formats.events import NONE
from tracekit.formats.image import BlockFlag, OpKind
from tracekit.program.program import Program


def program(*lines: int | None, inlined: tuple[int, ...] = (), block_line: int = 7) -> Program:
    """A function with one block; its operations have these lines, 0 one without a line, None no location at all.

    The operations `inlined` stand in a function that was inlined.
    """
    b = ProgramBuilder()
    function = b.function("f", line=3)
    block = b.block(function, BlockFlag.ENTRY | BlockFlag.RETURNS, line=block_line)
    call = b.location(40)
    for number, line in enumerate(lines):
        b.op(block, OpKind.LOAD, 4, line=line or 0)
        row = b.ops[-1]
        if line is None:
            row["location"] = NONE
        elif number in inlined:
            row["location"] = b.location(line, inlined_at=call, function="g")
    b.path(block)
    return b.program()


def place(found: Program, op: int) -> tuple[Any, ...]:
    row = found.instruction(op)
    return row["line"], row.get("nearby", False), [user["line"] for user in row["inlined_at"]]


def test_code_with_a_line_keeps_it() -> None:
    assert place(program(11, 0), 0) == (11, False, [])


def test_the_nearest_line_of_the_block() -> None:
    found = program(11, 12, 0, 0, 13)
    assert place(found, 2) == (12, True, [])
    assert place(found, 3) == (13, True, [])
    assert found.instruction(2)["column"] == 0


def test_a_line_of_the_same_scope_comes_before_a_nearer_one() -> None:
    found = program(11, 12, 0, inlined=(0, 2))
    assert place(found, 2) == (11, True, [40])
    assert place(program(11, 12, None, inlined=(0,)), 2) == (12, True, [])


def test_a_block_without_lines_of_its_own() -> None:
    assert place(program(0, None), 0) == (7, True, [])
    assert place(program(0, None, block_line=0), 1) == (3, True, [])


def test_what_a_loop_carries_through_an_inlined_call_stands_at_the_call() -> None:
    b = ProgramBuilder()
    function = b.function("f", line=3)
    block = b.block(function, BlockFlag.ENTRY)
    loop = b.loop(function, line=5)
    header = b.block(function, BlockFlag.LOOP_HEADER, loop=loop, line=0)
    b.op(header, OpKind.LOAD, 4)
    call = b.location(40, inlined_at=b.location(8), function="g")
    b.ops[-1]["location"] = b.location(431, inlined_at=call, function="min")
    b.phis.append({"location": b.location(0)})
    b.loops[loop].update(first_phi=0, phis=1)
    b.path(block, header)
    place = b.program().phi_place(0)
    assert (place["line"], place["nearby"]) == (8, True)
