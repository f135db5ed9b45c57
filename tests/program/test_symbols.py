"""Names of C++ as profiles show them, and as the command line takes them."""

from __future__ import annotations

import numpy as np
import pytest

from tests.naive.program_builder import ProgramBuilder
from tracekit.formats.errors import TracekitError
from tracekit.formats.image import BlockFlag, CallFlag
from tracekit.program.function_names import brief, shorter_names
from tracekit.program.lookup import functions_named, names_of
from tracekit.program.program import Program

STRING = "std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char>>"


def program(*functions: tuple[str, str]) -> Program:
    """A program with these functions: linkage name and source name."""
    b = ProgramBuilder()
    for name, source_name in functions:
        b.path(b.block(b.function(name, source_name=source_name), BlockFlag.ENTRY | BlockFlag.RETURNS))
    return b.program()


def test_functions_are_shown_by_their_source_names() -> None:
    found = program(("main", "main"), ("_Z4pathv", "path(std::string const&)"), ("_QMheatPstep", "step"))
    assert [found.function_name(row) for row in range(3)] == ["main", "path(std::string const&)", "step"]


def test_a_function_without_a_source_name_is_shown_as_the_linker_knows_it() -> None:
    found = program(("_Znot_a_name", ""))
    found.functions["source_name"] = 0
    assert found.function_name(0) == "_Znot_a_name"
    assert names_of(found, 0) == {"_Znot_a_name"}


def test_a_callee_that_nothing_describes_is_shown_as_a_unit_declares_it() -> None:
    b = ProgramBuilder()
    block = b.block(b.function("main"), BlockFlag.ENTRY)
    for callee in ("_ZN3foo4pathEv", "_Znot_declared", "printf"):
        b.call(block, callee)
    b.call(block, flags=CallFlag.INDIRECT)
    b.path(block)
    b.declared = {"_ZN3foo4pathEv": "foo::path()"}
    found = b.program()
    assert [found.callee_name(call) for call in range(4)] == ["foo::path()", "_Znot_declared", "printf", ""]
    b.declared = {}  # as traces are from before there was this table
    assert b.program().callee_name(0) == "_ZN3foo4pathEv"


@pytest.mark.parametrize(
    "name", ["_ZN3foo4pathEv", "foo::path(std::string) const", "foo::path", f"foo::path({STRING}) const"]
)
def test_a_function_may_be_named_as_shown_or_as_a_demangler_has_it_or_as_the_linker_knows_it(name: str) -> None:
    found = program(("main", "main"), ("_ZN3foo4pathEv", "foo::path(std::string) const"))
    assert np.flatnonzero(functions_named(found, name)).tolist() == [1]


def test_a_function_may_be_named_as_text_shows_it() -> None:
    iterators = [f"std::array<{number}, 1024>::iterator" for number in ("unsigned int", "unsigned long")]
    sorting = [f"void std::sort<{each}, std::less<>>({each}, {each}, std::less<>)" for each in iterators]
    found = program(
        ("main", "main"), ("_Z1", sorting[0]), ("_Z2", sorting[1]), ("_Z3", sorting[1].replace("sort", "s"))
    )
    shown = brief(found.function_name(1))
    assert shown == "std::sort<...>"
    assert np.flatnonzero(functions_named(found, shown)).tolist() == [1, 2]
    with pytest.raises(TracekitError, match=r"no function 'std::sort'; there is std::sort<\.\.\.>, "):
        functions_named(found, "std::sort")


@pytest.mark.parametrize(
    ("whole", "shorter"),
    [
        ("main", set()),
        ("foo::bar(int)", {"foo::bar"}),
        ("Edge::CollectInputs(bool) const", {"Edge::CollectInputs"}),
        ("Edge::CollectInputs(bool) const &", {"Edge::CollectInputs"}),
        ("S<int>::h() const requires std::integral<T>", {"S<int>::h"}),
        ("(anonymous namespace)::f(void (*)(int))", {"(anonymous namespace)::f"}),
        (
            "void (anonymous namespace)::f<int (*)(int)>(int)",
            {"void (anonymous namespace)::f<int (*)(int)>", "(anonymous namespace)::f<int (*)(int)>"},
        ),
        ("main::'lambda'()::operator()() const", {"main::'lambda'()::operator()"}),
        ("main::$_0::operator()<int>", set()),
        ("tagged[abi:v2](int)", {"tagged[abi:v2]"}),
        ("foo::bar(int) (.isra.0)", {"foo::bar"}),
        ("foo::bar(int) const (.llvm.12)", {"foo::bar"}),
        ("<alloc::vec::Vec<u8>>::push", set()),
    ],
)
def test_a_function_may_be_named_without_what_is_around_its_name(whole: str, shorter: set[str]) -> None:
    assert shorter_names(whole) == {whole} | shorter
