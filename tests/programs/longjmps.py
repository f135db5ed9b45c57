"""Random C programs of setjmp and longjmp, as standard C has them: in loops, several in a function, out of recursion.

``program(seed)`` is a deterministic source. Its functions call each other at random until a budget of steps is spent.
Most call setjmp, under one of its names: once, in each iteration of a loop, again after each return, or inside one
another. Each buffer is on a stack of handlers, of which leap() and jump() choose one of the newest three. What changes
between setjmp and longjmp is volatile, all else has its value still; no longjmp leaves the block of an object in
memory. The program prints how often each of its functions was called, and a checksum of its memory.
"""

from __future__ import annotations

from random import Random

_HEAD = """\
#include <setjmp.h>
#include <stdio.h>
struct Handler { sigjmp_buf env; int masks; };
static struct Handler handlers[4096];
static int top;
static unsigned state = SEED, steps;
static unsigned data[256];
static unsigned rnd() { return (state = state * 1664525u + 1013904223u) >> 10; }
static int over(void) { return ++steps > STEPS || top > 4000; }
static inline __attribute__((always_inline)) void jump(unsigned choice) {
    data[choice & 255] -= 3;
    if (over() || top == 0) return;
    int to = top - 1 - (int)(choice % 3u);
    if (to < 0) to = 0;
    top = to + 1;
    if (handlers[to].masks) siglongjmp(handlers[to].env, (int)(choice % 4u));
    longjmp(handlers[to].env, (int)(choice % 4u));
}
__attribute__((noinline)) static void leap(unsigned choice) { jump(choice); }
typedef unsigned (*Function)(unsigned);
extern Function const table[];
"""

_SETJMPS = (
    ("setjmp(handlers[{at}].env)", 0),
    ("_setjmp(handlers[{at}].env)", 0),
    ("sigsetjmp(handlers[{at}].env, 1)", 1),
)


def program(seed: int) -> str:
    """The source."""
    random = Random(seed)
    count = random.randint(4, 8)
    lines = [_HEAD.replace("SEED", f"{seed}u").replace("STEPS", "500u")]
    lines.append(f"static unsigned entered[{count}];")
    lines += [f"static unsigned f{k}(unsigned key);" for k in range(count)]
    lines.append(f"Function const table[] = {{{', '.join(f'f{k}' for k in range(count))}}};")
    shapes = list(_SHAPES)
    for k in range(count):
        shape = shapes[k] if k < len(shapes) else random.choice(shapes)
        lines += _function(random, k, count, shape)
    lines.append(f"""\
int main(void) {{
    for (unsigned round = 0; steps < 500u && round < 200; round++) {{
        top = 0;
        data[round] += table[round % {count}u](rnd());
    }}
    unsigned sum = 0;
    for (int k = 0; k < 256; k++) sum = sum * 31 + data[k];
    printf("%u", sum);
    for (int k = 0; k < {count}; k++) printf(" %u", entered[k]);
    printf("\\n");
    return 0;
}}""")
    return "\n".join(lines) + "\n"


def _function(random: Random, k: int, count: int, shape: str) -> list[str]:
    return [
        f"__attribute__((noinline)) static unsigned f{k}(unsigned key) {{",
        f"    entered[{k}]++;",
        "    volatile unsigned local = key, array[4] = {key, 1, 2, 3}, i;",
        "    int here = top;",
        "    if (over()) return local;",
        f"    unsigned *p = data + (key & {random.choice((31, 63, 127))}), kept = key * 7 + data[key & 255];",
        *_loops(random),
        *_SHAPES[shape](random, count),
        *_loops(random),
        "    top = here;",
        "    return local + array[key & 3] + p[0] + kept;",
        "}",
    ]


def _setjmp(random: Random, at: str) -> tuple[str, str]:
    """What pushes the handler, and the call."""
    call, masks = random.choice(_SETJMPS)
    return f"top = {at} + 1; handlers[{at}].masks = {masks};", call.format(at=at)


def _once(random: Random, count: int) -> list[str]:
    push, call = _setjmp(random, "here")
    return [
        f"    {push}",
        f"    switch ({call}) {{",
        "    case 0:",
        *_body(random, count),
        "        break;",
        "    case 1: array[1] += kept; p[1] ^= kept; break;",
        f"    case 2: top = here; array[2] = key; {_again(random)} break;",
        "    default: local += kept; p[2] -= local; break;",
        "    }",
    ]


def _in_a_loop(random: Random, count: int) -> list[str]:
    push, call = _setjmp(random, "here")
    return [
        f"    for (i = 0; i < {random.randint(2, 5)}; i++) {{",
        "        unsigned number = i * 3 + kept;",
        f"        {push}",
        f"        if ({call} == 0) {{",
        *_body(random, count),
        "            array[number & 3] += number;",
        "        } else {",
        f"            p[3] += number; top = here; {_again(random)}",
        "        }",
        "        top = here;",
        *_loops(random),
        "    }",
    ]


def _again(random: Random) -> str:
    """What a second return may do, once its handler is off the stack."""
    return random.choice(("", f"if (local % 5 == {random.randrange(5)}) leap(rnd());", "p[2] ^= local;"))


def _retried(random: Random, count: int) -> list[str]:
    push, call = _setjmp(random, "here")
    return [
        "    i = 0;",
        f"    {push}",
        f"    {call};",
        "    p[1] += kept;",
        f"    if (i++ < {random.randint(1, 3)}) {{",
        *_body(random, count),
        "    }",
    ]


def _nested(random: Random, count: int) -> list[str]:
    (push, call), (inner_push, inner_call) = _setjmp(random, "here"), _setjmp(random, "here + 1")
    return [
        f"    {push}",
        f"    if ({call} == 0) {{",
        *_body(random, count),
        f"        for (i = 0; i < {random.randint(1, 3)}; i++) {{",
        f"            {inner_push}",
        f"            if ({inner_call}) {{",
        "                array[3] ^= kept; local++;",
        "            } else {",
        *_body(random, count),
        "            }",
        "        }",
        "    } else {",
        f"        array[0] += 5; top = here; {_again(random)}",
        "    }",
    ]


def _plain(random: Random, count: int) -> list[str]:
    return _body(random, count)


_SHAPES = {"once": _once, "loop": _in_a_loop, "retried": _retried, "nested": _nested, "plain": _plain}


def _loops(random: Random) -> list[str]:
    """Maybe loops in loops, where control may go over into the other body, too."""
    trips = random.randint(1, 9)
    choices = [
        "",
        f"    for (unsigned a = 0; a < {trips}; a++) p[a] += a ^ kept;",
        f"    for (unsigned a = 0; a < (key & 3); a++) for (unsigned b = 0; b < {trips}; b++) p[a + b]++;",
        "    for (unsigned a = 0; a < 3; a++) { if (rnd() & 1) p[a]++; }",
    ]
    return [random.choice(choices)]


def _body(random: Random, count: int) -> list[str]:
    return [_step(random, count) for _ in range(random.randint(2, 4))]


def _step(random: Random, count: int) -> str:
    to = random.randrange(count)
    choices = [
        f"local = local + f{to}(rnd());",
        f"local = local ^ table[rnd() % {count}u](local);",
        f"for (unsigned a = 0; a < {random.randint(1, 20)}; a++) p[a] += a ^ kept;",
        f"for (unsigned a = 0; a < (key & 7); a++) {{ p[a]++; if (rnd() % 4 == 0) local = local + f{to}(a); }}",
        f"if (rnd() % {random.randint(2, 4)} == 0) leap(rnd());",
        f"if (rnd() % {random.randint(2, 4)} == 0) jump(rnd());",
        f"if (p[{random.randrange(9)}] & 1) {{ array[key & 3] += kept; leap(array[1] + kept); }}",
    ]
    return "        " + random.choice(choices)
