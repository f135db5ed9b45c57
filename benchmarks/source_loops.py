"""Loops in the text of C and C++: where OpenMP annotates them, directives put in, iterations put in another order.

All of it is done line by line, without a compiler, and keeps the numbers of lines that it does not insert itself.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

PRAGMA = re.compile(r"^\s*#\s*pragma\s+omp\b(?P<what>.*)$")
WORKSHARING = re.compile(r"^\s+(?:target\s+)?(?:teams\s+)?(?:distribute\s+)?(?:parallel\s+)?for\b")
OPERATOR = re.compile(r"""_Pragma\s*\(\s*"\s*omp\b(?:[^"\\]|\\.)*"\s*\)""")
FOR = re.compile(r"\bfor\s*\(")
COMMENT_OR_TEXT = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)*\'', re.DOTALL)


class NotRewritable(Exception):  # noqa: N818 - it is an answer
    """Why the head of a loop is not one that can be rewritten."""


def bare(text: str) -> str:
    """`text` with comments and the contents of strings as blanks, each character in its place."""
    return COMMENT_OR_TEXT.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), text)


def _logical_line(lines: list[str], first: int) -> int:
    """The index behind a line and the lines that continue it."""
    end = first
    while end < len(lines) - 1 and lines[end].rstrip().endswith("\\"):
        end += 1
    return end + 1


def annotated(text: str) -> dict[int, str]:
    """Line of each `for` statement that a `parallel for` or `for` pragma stands before -> the pragma, in one line."""
    lines = bare(text).split("\n")
    loops = {}
    for number, line in enumerate(lines):
        found = PRAGMA.match(line)
        if not found or not WORKSHARING.match(found["what"]):
            continue
        end = _logical_line(lines, number)
        pragma = " ".join(part.strip().rstrip("\\").strip() for part in lines[number:end])
        place = _next_for(lines, end)
        if place is not None:
            loops[place + 1] = pragma
    return loops


def _next_for(lines: list[str], at: int) -> int | None:
    """The line of the `for` that is next; None if something else comes first."""
    while at < len(lines):
        if not lines[at].strip():
            at += 1
        elif lines[at].lstrip().startswith("#"):
            at = _logical_line(lines, at)
        else:
            return at if FOR.search(lines[at]) else None
    return None


def without_pragmas(text: str) -> str:
    """`text` with each OpenMP pragma replaced by empty lines, so that -fopenmp means nothing to it."""
    lines = text.split("\n")
    number = 0
    while number < len(lines):
        end = _logical_line(lines, number)
        if PRAGMA.match(lines[number]):
            lines[number:end] = [""] * (end - number)
        number = end
    return OPERATOR.sub("", "\n".join(lines))


def with_directives(
    text: str,
    directives: Mapping[int, str],
    clause: str = "schedule(runtime)",
    columns: Mapping[int, int] | None = None,
) -> str:
    """`text` with a directive, and one more clause, before each of the lines (counted from 1).

    A line is cut where its loop stands if `columns` (by line, from 1) says that something else stands before that.
    """
    lines = text.split("\n")
    for line in sorted(directives, reverse=True):
        at = (columns or {}).get(line, 1) - 1
        before = lines[line - 1][:at]
        cut = [before] if before.strip() else []
        lines[line - 1 : line] = [
            *cut,
            f"{directives[line]} {clause}",
            lines[line - 1][at:] if cut else lines[line - 1],
        ]
    return "\n".join(lines)


# -- another order ---------------------------------------------------------------------------------

ORDER = """\
#ifdef __cplusplus
#include <cstdlib>
#include <cstddef>
#else
#include <stdlib.h>
#include <stddef.h>
#endif
typedef struct { long long *values, last; long count, room, at; } tracekit_order;
static inline long long tracekit_note(tracekit_order *o, long long value) {
  if (o->count == o->room)
    o->values = (long long *)realloc(o->values, sizeof *o->values * (size_t)(o->room = o->room * 2 + 64));
  return o->values[o->count++] = value;
}
static inline void tracekit_swap(tracekit_order *o, long i, long j) {
  long long kept = o->values[i];
  o->values[i] = o->values[j], o->values[j] = kept;
}
/* By a function of its own: where a loop stands, `free` may be a parameter or a macro (libimagequant). */
static inline void *tracekit_forget(tracekit_order *o) { return free(o->values), (void *)0; }
/* TRACEKIT_ORDER: 0 as written, 1 backwards, n at random from seed n; the last iteration stays the last if KeepLast. */
static inline int tracekit_shuffle(tracekit_order *o, long long last, int keep_last) {
  const char *asked = getenv("TRACEKIT_ORDER");
  unsigned long long seed = asked ? strtoull(asked, 0, 10) : 0;
  long n = o->count - (keep_last && o->count > 0);
  o->last = last;
  if (seed == 1)
    for (long i = 0; i < n / 2; ++i)
      tracekit_swap(o, i, n - 1 - i);
  for (long i = n - 1; seed > 1 && i > 0; --i) {
    seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
    tracekit_swap(o, i, (long)((seed >> 33) % (unsigned long long)(i + 1)));
  }
  return 0;
}
"""
"""What stands at the head of a file with a loop whose order is changed."""

DECLARATION = re.compile(r"^(?P<type>.*[\w>*&\s])\b(?P<name>[A-Za-z_]\w*)\s*$", re.DOTALL)


class Head(NamedTuple):
    """A `for` statement's head: from `begin` to `end` in the text, both parentheses in between."""

    begin: int
    end: int
    start: str
    test: str
    step: str

    def counter(self) -> tuple[str, str]:
        """The counter's declared type, empty if it is declared before the loop, and its name."""
        left = re.split(r"(?<![=<>!])=(?!=)", self.start)
        if len(left) != 2 or "," in bare(self.start):
            raise NotRewritable("its head does not set one variable")
        target = left[0].strip()
        if re.fullmatch(r"[A-Za-z_]\w*", target):
            return "", target
        found = DECLARATION.match(target)
        if not found or re.search(r"[.\[\]()]|->", target):
            raise NotRewritable("its head sets no plain variable")
        if re.search(r"auto|iterator", found["type"]):
            raise NotRewritable("its counter may be an iterator, which is no number")
        return found["type"].strip(), found["name"]


def head_at(text: str, line: int, column: int) -> Head:
    """The head of the `for` statement at a place (counted from 1). Raises NotRewritable if there is none."""
    plain = bare(text)
    begin = sum(len(each) + 1 for each in text.split("\n")[: line - 1]) + column - 1
    found = FOR.match(plain, begin)
    if not found:
        raise NotRewritable("no `for` stands at its place")
    depth, cuts, at = 1, [], found.end()
    while depth and at < len(plain):
        depth += (plain[at] in "([{") - (plain[at] in ")]}")
        if plain[at] == ";" and depth == 1:
            cuts.append(at)
        at += 1
    if depth or len(cuts) != 2:
        raise NotRewritable("its head has no three parts")
    first, second = cuts
    return Head(begin, at, text[found.end() : first], text[first + 1 : second], text[second + 1 : at - 1])


def in_another_order(text: str, line: int, column: int, *, keep_last: bool) -> str:
    """`text` with the loop at a place run in the order that the environment's TRACEKIT_ORDER says.

    The head is run once without the body, which notes the counter's values; the body runs for each of them, and the
    counter ends as the head left it. So it has to be a loop whose body changes neither counter nor bound.
    """
    head = head_at(text, line, column)
    kind, name = head.counter()
    where = f"{line}_{column}"
    order, once = f"tracekit_order_{where}", f"tracekit_once_{where}"
    declared = f"{kind} {name}" if kind else name
    value = f"({kind or f'__typeof__({name})'})(ptrdiff_t){order}.values[{order}.at++]"
    prepared = (
        f"for (tracekit_order {order} = {{0, 0, 0, 0, 0}}, *tracekit_p_{where} = &{order}; tracekit_p_{where}; "
        f"tracekit_p_{where} = (tracekit_order *)tracekit_forget(&{order})) "
        f"for (int tracekit_noted_{where} = 0; tracekit_noted_{where} < 2; ++tracekit_noted_{where}) "
        f"if (!tracekit_noted_{where}) {{ "
        f"long long tracekit_last = 0; "
        f"for ({head.start};{head.test};{head.step}) tracekit_note(&{order}, (long long)(ptrdiff_t){name}); "
        + (f"tracekit_last = (long long)(ptrdiff_t){name}; " if not kind else "")
        + f"tracekit_shuffle(&{order}, tracekit_last, {int(keep_last)}); }} else "
    )
    restored = f"(({name} = (__typeof__({name}))(ptrdiff_t){order}.last), 0)" if not kind else "0"
    body = f"for (; {order}.at < {order}.count ? 1 : {restored}; ) for (int {once} = 1; {once}; ) " + (
        f"for ({declared} = {value}; {once}; {once} = 0) " if kind else f"for ({name} = {value}; {once}; {once} = 0) "
    )
    rewritten = (prepared + body).replace("\n", " ")
    return text[: head.begin] + rewritten + "\n" * text[head.begin : head.end].count("\n") + text[head.end :]
