"""Program: joining units, refusing damaged tables, resolving calls, presenting rows."""

from __future__ import annotations

import pytest

from tests.naive.program_builder import ProgramBuilder
from tracekit.formats.errors import TracekitError
from tracekit.formats.events import FIRST_PATH, NONE
from tracekit.formats.image import Base, BlockFlag, CallFlag, FunctionFlag, OpKind
from tracekit.program.program import Program


def two_functions(extra: str = "f") -> ProgramBuilder:
    b = ProgramBuilder()
    main, callee = b.function("main"), b.function(extra, flags=FunctionFlag.ADDRESS_TAKEN)
    entry = b.block(main, BlockFlag.ENTRY)
    b.op(entry, OpKind.LOAD, size=4, line=7)
    call = b.call(entry, extra, line=8)
    after = b.block(main, BlockFlag.RETURNS, continues=call)
    body = b.block(callee, BlockFlag.ENTRY | BlockFlag.RETURNS)
    b.op(body, OpKind.STORE, size=8, line=20)
    for block in (entry, after, body):
        b.path(block)
    return b


def test_two_units_are_joined_with_global_indices() -> None:
    first, second = two_functions().layout().image(), two_functions("g").layout().image()
    second.number, second.first_path = 1, FIRST_PATH + first.span
    program = Program.from_images([first, second])
    assert [program.function_name(k) for k in range(4)] == ["main", "f", "main", "g"]
    assert program.path_row.tolist() == [NONE] * FIRST_PATH + [0, 1, 2, 3, 4, 5]
    assert program.arity[FIRST_PATH:].tolist() == [1, 0, 1, 1, 0, 1]
    assert program.blocks["function"].tolist() == [0, 0, 1, 2, 2, 3]
    assert program.call_callees(0).tolist() == [1] and program.call_callees(1).tolist() == [3]
    assert program.instruction(5)["id"] == f"{program.unit_hashes[1]}:2"


def test_a_local_function_binds_before_an_external_one() -> None:
    b = two_functions()
    b.functions[1]["flags"] |= FunctionFlag.LOCAL
    other = two_functions().layout().image()
    own = b.layout().image()
    own.number, own.first_path = 1, FIRST_PATH + other.span
    program = Program.from_images([other, own])
    assert program.call_callees(1).tolist() == [3]


def test_indirect_and_calling_back_calls_reach_functions_whose_address_is_taken() -> None:
    b = ProgramBuilder()
    main = b.function("main")
    for name, signature in (("a", "i (p)"), ("b", "i (p)"), ("c", "v ()")):
        function = b.function(name, flags=FunctionFlag.ADDRESS_TAKEN, signature=signature)
        b.path(b.block(function, BlockFlag.ENTRY | BlockFlag.RETURNS))
    block = b.block(main, BlockFlag.ENTRY)
    b.call(block, signature="i (p)", ends=False)
    b.call(block, "qsort", flags=CallFlag.MAY_CALL_BACK, targets=("b",), ends=False)
    b.call(block, "bsearch", flags=CallFlag.MAY_CALL_BACK, ends=False)
    b.call(block, "puts", ends=False)
    b.path(block)
    program = b.program()
    assert [program.call_callees(k).tolist() for k in range(4)] == [[1, 2], [2], [1, 2, 3], []]


def test_an_address_taken_in_another_unit_counts() -> None:
    b = ProgramBuilder()
    main = b.function("main")
    for name, flags in (("a", 0), ("b", FunctionFlag.LOCAL), ("c", 0)):
        b.path(b.block(b.function(name, flags=flags, signature="i (p)"), BlockFlag.ENTRY | BlockFlag.RETURNS))
    block = b.block(main, BlockFlag.ENTRY)
    b.call(block, signature="i (p)", ends=False)
    b.path(block)
    other = ProgramBuilder(taken=["a", "b", "elsewhere"])
    other.path(other.block(other.function("table"), BlockFlag.ENTRY | BlockFlag.RETURNS))
    first, second = b.layout().image(), other.layout().image()
    second.number, second.first_path = 1, FIRST_PATH + first.span
    assert Program.from_images([first, second]).call_callees(0).tolist() == [1]


def test_presentation_shows_the_inlined_place_and_where_it_was_inlined() -> None:
    b = ProgramBuilder()
    function = b.function("_ZN3foo3barEi", source_name="foo::bar(int)")
    block = b.block(function, BlockFlag.ENTRY)
    op = b.op(block, OpKind.ATOMIC, size=4)
    b.ops[op]["location"] = b.location(3, 9, inlined_at=b.location(40, 2, function="bar"), function="get")
    b.path(block)
    shown = b.program().instruction(op)
    assert shown["kind"] == "atomic" and shown["function"] == "get"
    assert (shown["file"], shown["line"], shown["column"]) == ("app.c", 3, 9)
    assert shown["inlined_at"] == [{"function": "foo::bar(int)", "file": "app.c", "line": 40, "column": 2}]


@pytest.mark.parametrize(
    ("table", "field", "value"),
    [
        ("blocks", "function", 9),
        ("blocks", "first_op", 99),
        ("paths", "words", 3),
        ("functions", "first_path", 2),
        ("path_blocks", "block", NONE),
        ("ops", "location", 999),
        ("ops", "kind", 200),
        ("ops", "defines", 0),
        ("calls", "op", NONE),
        ("functions", "name", 5000),
    ],
)
def test_a_damaged_table_is_refused(table: str, field: str, value: int) -> None:
    image = two_functions().layout().image()
    image.units[0].tables[table][field][0] = value
    with pytest.raises(TracekitError, match="damaged"):
        Program.from_images([image])


def test_a_stack_address_must_name_a_stack_object() -> None:
    b = two_functions()
    b.op(0, OpKind.LOAD, size=4, base=Base.STACK, of=0)
    with pytest.raises(TracekitError, match="stack object"):
        b.program()


def test_more_path_numbers_than_the_tables_justify_are_refused() -> None:
    image = two_functions().layout().image()
    image.span = 1 << 31
    with pytest.raises(TracekitError, match="path numbers"):
        Program.from_images([image])
