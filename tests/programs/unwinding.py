"""Random C++ programs that unwind: longjmp and exceptions through recursion, callbacks and signal handlers.

``program(seed)`` is a deterministic source. Its functions call each other at random, directly, through a table and out
of bsearch, until a budget of steps is spent. Some call setjmp, some catch, rethrow or hold objects whose destructors
access memory and throw inside. Each that control may come back to is on a stack of handlers: leap() jumps only over
frames without destructors, which alone is defined, and throws anywhere. The program counts the calls of each of its
functions, and prints those counts and a checksum of its memory.
"""

from __future__ import annotations

from random import Random

_HEAD = """\
#include <csetjmp>
#include <csignal>
#include <cstdio>
#include <cstdlib>
enum Kind { JUMP, CATCH };
struct Handler { sigjmp_buf env; Kind kind; };
struct Error {
    int code; Error *self;
    explicit Error(int c) : code(c), self(this) {}
    Error(const Error &o) : code(o.code + 1), self(this) {}
};
static Handler handlers[4096];
static int top;
static unsigned state = SEED, steps;
static unsigned data[256];
static unsigned rnd() { return (state = state * 1664525u + 1013904223u) >> 10; }
static bool over() { return ++steps > STEPS || top > 4000; }

// Inside, exceptions come and go while another one may be on its way.
__attribute__((noinline)) static void shaken(unsigned at) {
    try { data[at & 255]++; if (at & 1) throw int(at); data[at & 127] ^= 1; } catch (int code) { data[code & 63] += 2; }
}
struct Guard {
    unsigned *at;
    explicit Guard(unsigned k) : at(data + (k & 255)) { *at += 1; }
    ~Guard() { *at ^= 21; if (*at & 2) shaken(*at); }
};
[[noreturn]] __attribute__((noinline)) static void jump(unsigned choice) {
    int to = top - 1;
    while (to > 0 && handlers[to - 1].kind == JUMP && (choice >>= 1) & 1) to--;
    top = to + 1;
    data[choice & 255] += to;
    siglongjmp(handlers[to].env, 1 + int(choice & 7));
}
__attribute__((noinline)) static void leap(unsigned choice) {
    data[choice & 255] -= 3;
    if (over()) return;
    if (handlers[top - 1].kind == JUMP && choice & 1) jump(choice >> 1);
    if (choice & 2) throw int(choice);
    throw Error(int(choice));
}
static void on_signal(int) {
    data[7]++;
    if (handlers[top - 1].kind == JUMP && steps < STEPS) jump(data[7]);
}
typedef unsigned (*Function)(unsigned);
extern Function const table[];
static int compare(const void *key, const void *element) {
    unsigned k = *(const unsigned *)key, e = *(const unsigned *)element;
    if (e == 4) table[k % COUNT](k);
    return k % 9 < e ? -1 : k % 9 > e;
}
static const unsigned sorted[9] = {0, 1, 2, 3, 4, 5, 6, 7, 8};
"""


def program(seed: int) -> str:
    """The source. Programs of odd seeds have signal handlers, too."""
    random = Random(seed)
    count = random.randint(5, 9)
    lines = [_HEAD.replace("SEED", f"{seed}u").replace("STEPS", "500u").replace("COUNT", f"{count}u")]
    lines.append(f"static unsigned entered[{count}];")
    lines += [f"static unsigned f{k}(unsigned key);" for k in range(count)]
    lines.append(f"Function const table[] = {{{', '.join(f'f{k}' for k in range(count))}}};")
    shapes = ["plain", "jumps", "catches"]
    for k in range(count):
        shape = shapes[k] if k < len(shapes) else random.choice(shapes)
        lines += _function(random, k, count, shape, signals=seed % 2 == 1)
    lines.append(f"""\
int main() {{
    signal(SIGUSR1, on_signal);
    for (unsigned round = 0; steps < 500u && round < 200; round++) {{
        top = 0;
        handlers[top++].kind = CATCH;
        try {{ data[round] += table[round % {count}u](rnd()); }} catch (int code) {{ data[code & 255]++; }}
        catch (Error &error) {{ data[error.code & 255] += error.self == &error; }}
    }}
    unsigned sum = 0;
    for (int k = 0; k < 256; k++) sum = sum * 31 + data[k];
    printf("%u", sum);
    for (int k = 0; k < {count}; k++) printf(" %u", entered[k]);
    printf("\\n");
}}""")
    return "\n".join(lines) + "\n"


def _function(random: Random, k: int, count: int, shape: str, *, signals: bool) -> list[str]:
    body = [line for _ in range(random.randint(2, 4)) for line in _step(random, count, signals)]
    head = [
        f"__attribute__((noinline)) static unsigned f{k}(unsigned key) {{",
        f"    entered[{k}]++;",
        "    volatile unsigned local = key; volatile int here = top;",
        "    if (over()) return local;",
        f"    unsigned *p = data + (key & {random.choice((31, 63, 127))});",
    ]
    if shape == "jumps":
        again = random.choice(("", f"if (local % 5 == {random.randrange(5)}) leap(rnd());", "p[2] ^= local;"))
        middle = [
            "    handlers[top++].kind = JUMP;",
            "    if (sigsetjmp(handlers[here].env, 1) != 0) {",
            f"        local = local + 1; p[1] += local; top = here; {again}",
            "    } else {",
            *body,
            "    }",
        ]
    elif shape == "catches":
        last = random.choice(("", "throw;", "if (p[0] & 4) throw;", "if (p[1] & 1) leap(rnd());"))
        middle = [
            "    handlers[top++].kind = CATCH;",
            "    try {",
            "        Guard guard(key);",
            *body,
            "    } catch (int code) {",
            f"        top = here; p[0] += code; {last}",
            "    } catch (Error &error) {",
            "        top = here; Guard late(error.code);",
            f"        p[3] += error.self == &error; {random.choice(('', 'throw Error(error.code);'))}",
            "    }",
        ]
    else:
        middle = body
    return [*head, *middle, "    top = here;", "    return local + p[0];", "}"]


def _step(random: Random, count: int, signals: bool) -> list[str]:
    to = random.randrange(count)
    choices = [
        f"local = local + f{to}(rnd());",
        "local = local ^ table[rnd() % " + f"{count}u](local);",
        f"for (unsigned i = 0; i < {random.randint(1, 20)}; i++) p[i] += i ^ key;",
        f"for (unsigned i = 0; i < (key & 7); i++) {{ p[i]++; if (rnd() % 4 == 0) local = local + f{to}(i); }}",
        "{ unsigned k = rnd(); p[4] += bsearch(&k, sorted, 9, sizeof *sorted, compare) != nullptr; }",
        f"if (rnd() % {random.randint(2, 4)} == 0) leap(rnd());",
        (
            f"if (p[{random.randrange(9)}] & 1) {{ unsigned array[8]; for (int i = 0; i < 8; i++) array[i] = p[i]; "
            "p[5] += array[key & 7]; leap(array[0]); }"
        ),
    ]
    if signals:
        choices.append("raise(SIGUSR1); p[6]++;")
    return ["        " + random.choice(choices)]
