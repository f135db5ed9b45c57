"""Shorter names of functions of C++ and Rust: what a user may call one, and what text shows of a long one."""

from __future__ import annotations

import re

LONGEST = 60
"""A name of so many letters is shown as it is."""

LIBRARY = re.compile(r"(?<![\w:])(?:alloc|core|std)::(?:[a-z_][a-z0-9_]*::)*(?=[A-Z])")
"""The modules before a type or a trait of Rust's library; names of C++'s library have no capitals."""
_SYMBOL = re.compile(r"^(?:\(\)|\[\]|->\*?|<=>|<<=?|>>=?|[<>]=?|[-+*/%^&|~!=,]+) ?")
"""The operator behind the word `operator`."""
_PARAMETERS_OF_ENCLOSING = re.compile(
    r"(?<!operator)\((?!anonymous namespace\))(?:[^()]|\([^()]*\))*\)(?: const| volatile| &&?)*(?=::)"
)
"""The parameters and qualifiers of a function in whose name another one's stands: of a lambda, or a local type."""
_QUALIFIERS = re.compile(r"( \(\.[^()]*\)| const| volatile| &&?| requires .*)+$")
"""What stands after the parameters; in parentheses and with a dot, a clone's suffix."""
_ENCLOSING = re.compile(r"( const| volatile| &&?)+::")
"""The qualifiers of a function that the named one's class is local to: `f() const::Local::g()`."""


def shorter_names(name: str) -> set[str]:
    """What a function with this name may be called as well: without parameters, without the result's type.

    ``void (anonymous namespace)::f<int>(int) const`` is ``(anonymous namespace)::f<int>``, too.
    """
    text = _QUALIFIERS.sub("", name)
    if text.endswith(")"):
        depth = 0
        for at in range(len(text) - 1, -1, -1):
            depth += (text[at] == ")") - (text[at] == "(")
            if depth == 0:
                text = text[:at]
                break
    names = {name, text}
    if "operator" not in text:
        depth = start = 0
        for at, letter in enumerate(text):
            depth += (letter in "<(") - (letter in ">)")
            if letter == " " and depth == 0 and not _ENCLOSING.match(text, at):
                start = at + 1
        names.add(text[start:])
    return names - {""}


def shortest_name(name: str) -> str:
    """The shortest of these: without parameters and the result's type."""
    return min(shorter_names(name), key=lambda each: (len(each), each), default=name)


def brief(name: str, longest: int = LONGEST) -> str:
    """A function's name; one of more than `longest` letters is without parameters and result.

    If that is too long, too, `<...>` stands for the arguments of templates:
    `void std::sort<It, Less>(It, It, Less)` is `std::sort<...>`, and a lambda of it `std::sort<...>::'lambda'`;
    `(anonymous namespace)` and operators stay. Types and traits of Rust's library are named without their modules:
    `<Vec<T,A> as Deref>::deref`.
    """
    name = LIBRARY.sub("", name)
    if len(name) <= longest:
        return name
    shortest = shortest_name(name)
    if len(shortest) <= longest:
        return shortest
    scope, operator, rest = shortest.partition("operator")
    symbol = rest.removesuffix(_SYMBOL.sub("", rest, count=1))
    rust = scope[: scope.startswith("<")]  # `<type as trait>::f`: both keep their names
    plain = _without_arguments(scope.removeprefix(rust)) + operator + symbol + _without_arguments(rest[len(symbol) :])
    return rust + _PARAMETERS_OF_ENCLOSING.sub("", plain)


def _without_arguments(name: str) -> str:
    """Outermost `<` ... `>` without what is between."""
    kept, depth = [], 0
    for letter in name:
        depth -= letter == ">" and depth > 0
        if depth == 0:
            kept.append("<..." if letter == "<" else letter)
        depth += letter == "<"
    return "".join(kept)
