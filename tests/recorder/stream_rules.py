"""What every recorded stream must obey, checked record by record against the image tables."""

from __future__ import annotations

from dataclasses import dataclass

from tests.recorder.instrumented import NO_ROW, Record, Tables
from tracekit.formats.image import BlockFlag, CallFlag, LoopFlag, OpKind


@dataclass
class Frame:
    """An activation: where it is, the call it waits in, and the address that names it."""

    record: Record
    pending: int = NO_ROW
    name: int | None = None

    @property
    def block(self) -> dict[str, int]:
        return self.record.tables["blocks"][self.record.block]


def ops(record: Record) -> list[dict[str, int]]:
    block = record.tables["blocks"][record.block]
    return record.tables["ops"][block["first_op"] : block["first_op"] + block["ops"]]


def loops_around(tables: Tables, block: int) -> list[int]:
    """The loops around a block, innermost first."""
    found = []
    loop = tables["blocks"][block]["loop"]
    while loop != NO_ROW:
        found.append(loop)
        loop = tables["loops"][loop]["parent"]
    return found


def check_step(before: Record, after: Record) -> None:
    """The loop tables must account for a step from one block to another in one activation."""
    tables = after.tables
    left, entered = loops_around(tables, before.block), loops_around(tables, after.block)
    target = tables["blocks"][after.block]
    for loop in set(entered) - set(left):
        assert tables["loops"][loop]["header"] == after.block, "a natural loop is entered at its header"
    for loop in set(left) - set(entered):
        row = tables["loops"][loop]
        exits = tables["loop_exits"][row["first_exit"] : row["first_exit"] + row["exits"]]
        assert any(exit["source"] == before.block and exit["target"] == after.block for exit in exits)
        if before.block == row["header"] and len(exits) == 1 and row["flags"] & LoopFlag.TESTS_AT_HEADER:
            assert not tables["blocks"][before.block]["flags"] & BlockFlag.LATCH
    if target["flags"] & BlockFlag.LOOP_HEADER and entered[0] in left and left[0] == entered[0]:
        assert tables["blocks"][before.block]["flags"] & BlockFlag.LATCH, "a loop is repeated from a latch"


def check_stream(records: list[Record]) -> None:
    """Calls nest; continuations follow their calls; control lands in activations that exist; loops are as described."""
    stack: list[Frame] = []
    for record in records:
        tables = record.tables
        block = tables["blocks"][record.block]
        flags = block["flags"]
        kinds = [op["kind"] for op in ops(record)]
        if flags & BlockFlag.ENTRY:
            assert not stack or stack[-1].pending != NO_ROW, "a function is entered in the middle of a block"
            stack.append(Frame(record, name=record.words[0] if OpKind.FRAME in kinds else None))
        elif flags & BlockFlag.LANDING:
            assert kinds[0] == OpKind.LANDING
            while stack[-1].name != record.words[0]:
                stack.pop()
            assert stack[-1].record.function is record.function
        else:
            if flags & BlockFlag.CONTINUES:
                while stack[-1].pending != block["continues"] or stack[-1].record.tables is not tables:
                    stack.pop()
            frame = stack[-1]
            assert frame.record.function is record.function
            assert frame.pending == (block["continues"] if flags & BlockFlag.CONTINUES else NO_ROW)
            if flags & BlockFlag.CONTINUES or frame.pending == NO_ROW:
                check_step(frame.record, record)
        frame = stack[-1]
        frame.record, frame.pending = record, block["call"]
        if block["call"] != NO_ROW:
            assert kinds[-1] == OpKind.CALL and block["first_op"] + len(kinds) - 1 == block["call"]
        if flags & BlockFlag.RETURNS:
            assert frame.pending == NO_ROW
            stack.pop()
        elif flags & BlockFlag.TAIL_CALL:
            call = tables["calls"][ops(record)[-1]["base"]]
            assert call["flags"] & CallFlag.TAIL
            stack.pop()
            # The callee takes the caller's place; whoever called this function is still waiting.
            assert not stack or stack[-1].pending != NO_ROW
