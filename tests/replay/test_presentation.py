"""Names of C++ as profiles show them, and as the command line takes them."""

from __future__ import annotations

import pytest

from tracekit.replay import presentation
from tracekit.replay.presentation import demangle, shorter_names

STRING = "NSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE"


@pytest.mark.parametrize(("linkage", "shown"), [
    ("main", "main"),
    ("_ZN12_GLOBAL__N_19NinjaMain8RunBuildEv", "(anonymous namespace)::NinjaMain::RunBuild()"),
    ("_ZN10MountPointD2Ev", "MountPoint::~MountPoint()"),
    ("_ZN5LexerC1EPKc", "Lexer::Lexer(char const*)"),
    ("_ZNK4Edge13CollectInputsEb", "Edge::CollectInputs(bool) const"),
    ("_Z4pathOi", "path(int&&)"),
    (f"_Z4pathRK{STRING}", "path(std::string const&)"),
    ("_ZN1AI1BI1CIiEEE1fEv", "A<B<C<int>>>::f()"),
    # a local name: what a function defines inside itself, such as a lambda expression
    ("_ZZ4mainENKUlvE_clEv", "main::{lambda()#1}::operator()() const"),
    ("_ZN3foo3barEi.isra.0", "foo::bar(int) [isra.0]"),
])
def test_a_linkage_name_is_shown_as_cxx_has_it(linkage: str, shown: str) -> None:
    assert demangle(linkage, "fallback") == shown


def test_a_name_that_cannot_be_demangled_is_the_source_name() -> None:
    assert demangle("_Znot a name", "f") == "f"
    assert demangle("_Znot a name", "") == "_Znot a name"
    # longer than the library's function takes; the package does
    assert demangle(f"_Z1fPN{'1a' * 700}E", "f") == f"f({'::'.join('a' * 700)}*)"


def test_without_the_cxx_library_the_package_demangles(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(presentation, "_cxa_demangle", lambda: None)
    assert demangle("_ZN12_GLOBAL__N_13barEi", "bar") == "(anonymous namespace)::bar(int)"
    assert demangle("_ZZ4mainENKUlvE_clEv", "operator()") == "operator()"  # local names it does not know


@pytest.mark.parametrize(("shown", "shorter"), [
    ("main", set()),
    ("foo::bar(int)", {"foo::bar"}),
    ("Edge::CollectInputs(bool) const", {"Edge::CollectInputs"}),
    ("(anonymous namespace)::f(void (*)(int))", {"(anonymous namespace)::f"}),
    ("void (anonymous namespace)::f<int (*)(int)>(int)",
     {"void (anonymous namespace)::f<int (*)(int)>", "(anonymous namespace)::f<int (*)(int)>"}),
    ("main::{lambda()#1}::operator()() const", {"main::{lambda()#1}::operator()"}),
    ("foo::bar(int) [isra.0]", {"foo::bar"}),
])
def test_a_function_may_be_named_without_what_is_around_its_name(shown: str, shorter: set[str]) -> None:
    assert shorter_names(shown) == {shown} | shorter
