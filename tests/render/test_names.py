"""Names of functions in text."""

from __future__ import annotations

import pytest

from tracekit.program.function_names import LONGEST, brief
from tracekit.render.dependence import object_text
from tracekit.render.names import brief_type, variable_name, with_brief_names

VECTOR = "std::vector<std::pair<int, long>, std::allocator<std::pair<int, long>>>"
"""Longer than any name that is shown whole."""


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("main", "main"),
        ("Grid<double>::at(int, int) const", "Grid<double>::at(int, int) const"),
        (f"void f<{VECTOR}>({VECTOR}&, int) (.isra.0)", "f<...>"),
        (f"f({VECTOR})", "f"),
        (f"(anonymous namespace)::Grid<{VECTOR}>::at(int, int) const", "(anonymous namespace)::Grid<...>::at"),
        (f"Map<{VECTOR}>::operator[](unsigned long)", "Map<...>::operator[]"),
        (f"main::$_0::operator()<{VECTOR}>", "main::$_0::operator()<...>"),
        (f"bool operator< <{VECTOR}>(int, int)", "bool operator< <...>"),
        (f"Out& operator<< <{VECTOR}>(Out&, int)", "Out& operator<< <...>"),
        (f"Ptr<{VECTOR}>::operator->() const", "Ptr<...>::operator->"),
        (f"Some::operator {VECTOR}()", "Some::operator std::vector<...>"),
        (
            "Rule::run(Values&) const::'lambda'(void (*)())::operator()(int) const::'lambda'()::operator()() const",
            "Rule::run::'lambda'::operator()::'lambda'::operator()",
        ),
        (
            f"(anonymous namespace)::f<{VECTOR}>(int) const::Local::g({VECTOR})",
            "(anonymous namespace)::f<...>::Local::g",
        ),
        (
            "<alloc::vec::Vec<T> as core::iter::traits::collect::FromIterator<T>>::from_iter",
            "<Vec<T> as FromIterator<T>>::from_iter",
        ),
        ("alloc::raw_vec::RawVec<T,A>::ptr", "RawVec<T,A>::ptr"),
        ("core::cmp::impls::<impl core::cmp::PartialEq for u32>::eq", "core::cmp::impls::<impl PartialEq for u32>::eq"),
        (
            "<petgraph::graph_impl::Neighbors<E,Ix> as core::iter::traits::iterator::Iterator>::next",
            "<petgraph::graph_impl::Neighbors<E,Ix> as Iterator>::next",
        ),
        ("alloc::alloc::realloc", "alloc::alloc::realloc"),
        ("mystd::core::Point::new", "mystd::core::Point::new"),
        ("_Z" + "x" * LONGEST, "_Z" + "x" * LONGEST),
    ],
)
def test_long_names_are_brief(name: str, shown: str) -> None:
    assert brief(name) == shown


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("Vec<u8, alloc::alloc::Global>", "Vec<u8>"),
        ("LeafNode<usize, alloc::vec::Vec<usize, alloc::alloc::Global>>", "LeafNode<usize, Vec<usize>>"),
        ("Edge<search::Road, u32>", "Edge<search::Road, u32>"),
        ("Vec<u8, arena::Global>", "Vec<u8, arena::Global>"),
        ("vector<std::pair<int, long>, std::allocator<int> >", "vector<std::pair<int, long>, std::allocator<int> >"),
    ],
)
def test_types_of_rusts_library_are_brief(name: str, shown: str) -> None:
    assert brief_type(name) == shown
    assert with_brief_names([{"type": name, "also": [name]}]) == [{"type": shown, "also": [shown]}]


def test_names_are_found_wherever_a_profile_has_them() -> None:
    long = f"void f<{VECTOR}>({VECTOR}&)"
    rows = [
        {
            "source": {"function": long, "file": long},
            "levels": [{"loop": {"recursion": f"{long}:3:5"}}],
            "context": {"root": long, "path": [f"loop {long}:12", f"{long}:12:3", f"recursion {long}:1:2"]},
            "callers": [f"{long}:7:1"],
            "name": long,
        }
    ]
    assert with_brief_names(rows) == [
        {
            "source": {"function": "f<...>", "file": long},
            "levels": [{"loop": {"recursion": "f<...>:3:5"}}],
            "context": {"root": "f<...>", "path": ["loop f<...>:12", "f<...>:12:3", "recursion f<...>:1:2"]},
            "callers": ["f<...>:7:1"],
            "name": long,
        }
    ]


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("total", "total"),
        ("", ""),
        (".omp.ub", "OpenMP's upper bound"),
        (".omp.comb.lb", "OpenMP's lower bound"),
        (".previous.lb.", "OpenMP's lower bound"),
        (".omp.sections.iv.", "OpenMP's counter"),
        (".global_tid.", "OpenMP's number of the thread"),
        (".capture_expr.3", "a bound that OpenMP keeps"),
        (".compoundliteral", "a compound literal"),
        (".new", "a variable of the compiler"),
    ],
)
def test_a_variable_of_the_compiler_is_said_in_words(name: str, shown: str) -> None:
    assert variable_name(name) == shown


def test_a_variable_of_the_compiler_is_no_local_of_the_source() -> None:
    thing = {"kind": "stack", "name": ".omp.ub", "site": None}
    assert object_text(thing) == "OpenMP's upper bound"
    assert object_text({**thing, "name": "total"}) == "local total"
