"""Names of functions in the image: as LLVM's own demangler writes them, of inlined functions too."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.needs import clang_folder, needs
from tests.recorder.instrumented import Tables, clang, units
from tracekit.recorder.toolchain import find_clang

PROGRAM = """
#include <string>
#include <vector>
#define APART __attribute__((noinline, used))
namespace {
struct S {
  int x;
  int get() const { return x; }
  template <class T> APART T as() const { return T(x); }
};
}
template <class A, class B> struct P { A a; B b; };
template <class T> APART T first(T const *p) { return *p; }
template <class T> APART int sum(std::vector<T> const &v) { int s = 0; for (auto &e : v) s += e.get(); return s; }
struct [[gnu::abi_tag("v2")]] Tagged { int v; };
APART Tagged tagged(int a) { return {a}; }
APART int count(std::vector<std::string> *p) { return p->size(); }
APART int path(std::string const &s) { return s.size(); }
struct Base {
  virtual ~Base();
  virtual int f(int) const &;
  virtual int operator()(int);
  operator bool() const;
};
Base::~Base() {}
int Base::f(int a) const & { return a; }
int Base::operator()(int a) { return a * 2; }
Base::operator bool() const { return true; }
inline namespace v1 { APART int in(P<P<int, char>, P<int, char>> *p) { return p->a.a; } }
inline auto twice() { return [](int a) APART { return 2 * a; }; }
extern "C" APART int plain(int a) { return a; }
int main() {
  std::vector<S> v{{1}, {2}};
  auto generic = [&](auto x) APART { return x + v[0].as<long>(); };
  auto lambda = [&](int x) APART { return x + v[1].x; };
  P<P<int, char>, P<int, char>> p{};
  Base b;
  return sum(v) + generic('c') + lambda(1) + tagged(3).v + path("abc") + b.f(1) + b(2) + bool(b) + in(&p) + plain(1) +
         first(&p).a.a + twice()(2);
}
"""

STRING = "std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char>>", "std::string"
"""How a demangler and the image write the same type."""

DEBUG = pytest.mark.parametrize("debug", ["-g", "-gline-tables-only", "-g0"])


def unit(folder: Path, source: str, *flags: str, suffix: str = ".cpp") -> Tables:
    """The unit of a program, with the debug information that `flags` ask for."""
    file = folder / f"names{suffix}"
    file.write_text(source)
    clang([*flags, "-O2", "-c", file, "-o", folder / "names.o"], cxx=suffix == ".cpp")
    (found,) = units(folder / "names.o")
    return Tables(found)


def shown(tables: Tables) -> dict[str, str]:
    """Linkage name -> source name."""
    return {row["name"]: row["source_name"] for row in tables["functions"]}


def cxxfilt(names: list[str], *options: str) -> list[str]:
    """What the llvm-cxxfilt of the clang under test says."""
    path = clang_folder() / "bin/llvm-cxxfilt"
    run = subprocess.run([path, *options, *names], capture_output=True, text=True, check=True)
    return run.stdout.replace(*STRING).splitlines()


@DEBUG
def test_cxx(debug: str, tmp_path: Path) -> None:
    names = shown(unit(tmp_path, PROGRAM, debug))
    assert names["main"] == "main" and names["plain"] == "plain"
    assert {
        "tagged[abi:v2](int)",
        "path(std::string const&)",
        "Base::~Base()",
        "Base::f(int) const &",
        "count(std::vector<std::string, std::allocator<std::string>>*)",
        "Base::operator()(int)",
        "Base::operator bool() const",
        "v1::in(P<P<int, char>, P<int, char>>*)",
        "long (anonymous namespace)::S::as<long>() const",
        "twice()::'lambda'(int)::operator()(int) const",
        "P<P<int, char>, P<int, char>> first<P<P<int, char>, P<int, char>>>(P<P<int, char>, P<int, char>> const*)",
    } <= set(names.values())
    # one of main's lambdas is generic: LLVM cannot write its parameters since version 18
    assert sum(name.removeprefix("auto ").startswith("main::$_") for name in names.values()) == 2


@DEBUG
def test_callees_that_are_defined_elsewhere(debug: str, tmp_path: Path) -> None:
    source = """#include <cstdio>
    namespace far { struct S { int f(int) const; }; template <class T> T g(T); extern template int g<int>(int); }
    namespace { int near(int n) { return n * 3; } }
    __attribute__((noinline)) int here(int n) { return near(n) + 1; }
    extern "C" int plain(int);
    int main(int n, char **) {
      std::puts("");
      far::S s; int (*called)(int) = n > 2 ? plain : here;
      return s.f(n) + s.f(n + 1) + far::g<int>(n) + plain(n) + here(n) + called(n);
    }"""
    tables = unit(tmp_path, source, debug)
    assert [(row["name"], row["source_name"]) for row in tables["declarations"]] == [
        ("_ZNK3far1S1fEi", "far::S::f(int) const"),
        ("_ZN3far1gIiEET_S1_", "int far::g<int>(int)"),
    ]


@needs("llvm tools")
@DEBUG
def test_names_of_cxx_are_those_of_cxxfilt(debug: str, tmp_path: Path) -> None:
    names = shown(unit(tmp_path, PROGRAM, debug))
    for name, said in zip(names, cxxfilt(list(names)), strict=True):
        known = said != name or not name.startswith("_Z")
        assert names[name] == (said if known else cxxfilt([name], "--no-params")[0]), name
    assert all(not name.startswith("_Z") for name in names.values())


@needs("c++filt")
def test_binutils_agrees(tmp_path: Path) -> None:
    """Another demangler: but for lambdas and spaces between > it says the same."""
    names = {name: text for name, text in shown(unit(tmp_path, PROGRAM)).items() if "operator()" not in text}
    run = subprocess.run(["c++filt", *names], capture_output=True, text=True, check=True)
    said = run.stdout.replace("> >", ">>").replace("> >", ">>").replace(*STRING)
    assert said.splitlines() == list(names.values())


@pytest.mark.parametrize("debug", ["-g", "-gline-tables-only"])
def test_inlined_functions_have_whole_names(debug: str, tmp_path: Path) -> None:
    scopes = {row["function"] for row in unit(tmp_path, PROGRAM, debug)["locations"]}
    assert {"(anonymous namespace)::S::get() const", "main", "plain"} <= scopes
    assert "get" not in scopes


@pytest.mark.parametrize("debug", ["-g", "-gline-tables-only"])
def test_the_parts_of_a_function_that_openmp_runs(debug: str, tmp_path: Path) -> None:
    if find_clang().major < 17:
        pytest.skip("clang names these parts after their function since version 17")
    tables = unit(
        tmp_path,
        """
        struct A { double *p; void run(int n) {
        #pragma omp parallel for
          for (int i = 0; i < n; i++) p[i] += 1; } };
        void all(A &a) { a.run(100); }
        """,
        debug,
        "-fopenmp",
    )
    assert "A::run(int) (.omp_outlined)" in shown(tables).values()
    scopes = {row["function"] for row in tables["locations"]}
    assert "A::run(int) (.omp_outlined)" in scopes and not any(name.startswith("_Z") for name in scopes)


@pytest.mark.parametrize("debug", ["-g", "-gline-tables-only"])
def test_the_parts_of_a_function_with_a_long_name(debug: str, tmp_path: Path) -> None:
    if find_clang().major < 17:
        pytest.skip("clang names these parts after their function since version 17")
    tables = unit(
        tmp_path,
        """
        #include <random>
        template <class N, class E> struct Generator { static void permute(N *p, int n) {
        #pragma omp parallel for
          for (int i = 0; i < n; i++) p[i] = E(i)(); } };
        void all(int *p) { Generator<int, std::mt19937_64>::permute(p, 100); }
        """,
        debug,
        "-fopenmp",
    )
    scopes = {row["function"] for row in tables["locations"]}
    assert any(len(name) > 256 and "::permute(int*, int) (.omp_outlined" in name for name in scopes)
    assert not any(name.startswith("_Z") for name in scopes)


def test_names_that_are_too_long_are_those_of_the_debug_information(tmp_path: Path) -> None:
    """The parameter's type doubles with each alias: 2^13 letters and more, in a linkage name of some dozens."""
    pairs = "".join(f"using T{level} = P<T{level - 1}, T{level - 1}>;\n" for level in range(1, 13))
    tables = unit(
        tmp_path,
        f"""
        template <class A, class B> struct P {{ }};
        using T0 = P<int, int>;
        {pairs}
        int far(T12 *p) {{ return *(int *)p; }}
        static inline int near(T5 *p) {{ return *(int *)p; }}
        int both(T5 *p) {{ return near(p); }}
        """,
        "-gline-tables-only",
    )
    names, scopes = shown(tables), {row["function"] for row in tables["locations"]}
    assert "far" in names.values()
    (both,) = (name for name in names.values() if name.startswith("both("))
    assert 256 < len(both) <= 4096
    assert {"near", "both"} <= scopes


@pytest.mark.parametrize(
    ("linkage", "name"),
    [
        ("_ZN5alloc3vec12Vec$LT$T$GT$3new17h0123456789abcdefE", "alloc::vec::Vec<T>::new"),
        (
            "_ZN61_$LT$alloc..vec..Vec$LT$T$GT$$u20$as$u20$core..ops..Deref$GT$5deref17h0123456789abcdefE.llvm.12",
            "<alloc::vec::Vec<T> as core::ops::Deref>::deref (.llvm.12)",
        ),
        ("_ZN4main28_$u7b$$u7b$closure$u7d$$u7d$17h0123456789abcdefE", "main::{{closure}}"),
        ("_ZN3foo17h0123456789abcdegE", "foo::h0123456789abcdeg"),
        ("_ZN3foo17h0123456789abcdefEi", "foo::h0123456789abcdef(int)"),
        ("_ZN1a10$RF$u8$XX$17h0123456789abcdefE", "a::&u8$XX$"),
        ("_RNvMs_CsX_7mycrateINtB4_3VecjE4push", "<mycrate::Vec<usize>>::push"),
        ("_ZN3foo3barEi.isra.0", "foo::bar(int) (.isra.0)"),
        ("_QMheatPstep", "f"),  # Fortran's: no mangling that LLVM knows; the debug information has the name
        ("_Znot.a.name", "f"),
    ],
)
def test_names_of_other_languages(linkage: str, name: str, tmp_path: Path) -> None:
    source = f'int f(int) __asm__("{linkage}");\nint f(int a) {{ return a; }}'
    assert shown(unit(tmp_path, source, "-g", suffix=".c")) == {linkage: name}
    without = unit(tmp_path, source, "-g0", suffix=".c")
    assert shown(without) == {linkage: name if name != "f" else linkage}
