"""Trees and lists of libstdc++: what its library's functions do to nodes, and what a trace says of them."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.programs.running import compile_program, record
from tracekit.api import analyze
from tracekit.formats.library_functions import KEY, VERSION, recorded
from tracekit.recorder.toolchain import RUNTIME_SOURCES, find_clang

HEADER = """
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#define TK_EXPORT
#define TK_IS_RECORDED() 1
#define TK_REAL(name) name
#define TK_WRAP_BEFORE(type, name, parameters, arguments, accesses)
static inline void tk_library_load(const void *address, size_t size) {}
static inline void tk_library_store(const void *address, size_t size) {}
"""
CHECK = """
#define _ZSt29_Rb_tree_insert_and_rebalancebPSt18_Rb_tree_node_baseS0_RS_ wrapped_insert
#define _ZNSt8__detail15_List_node_base7_M_hookEPS0_ wrapped_hook
#define _ZNSt8__detail15_List_node_base9_M_unhookEv wrapped_unhook
#define _ZNSt8__detail15_List_node_base11_M_transferEPS0_S1_ wrapped_transfer
#define _ZNSt8__detail15_List_node_base4swapERS0_S1_ wrapped_swap
#define _ZNSt8__detail15_List_node_base10_M_reverseEv wrapped_reverse
#include "interceptors_nodes.c"
#include <stdio.h>
#include <stdlib.h>

void do_insert(bool, struct node *, struct node *, struct node *)
    __asm__("_ZSt29_Rb_tree_insert_and_rebalancebPSt18_Rb_tree_node_baseS0_RS_");
struct node *do_erase(struct node *, struct node *)
    __asm__("_ZSt28_Rb_tree_rebalance_for_erasePSt18_Rb_tree_node_baseRS_");
struct node *do_increment(struct node *) __asm__("_ZSt18_Rb_tree_incrementPSt18_Rb_tree_node_base");
struct node *do_decrement(struct node *) __asm__("_ZSt18_Rb_tree_decrementPSt18_Rb_tree_node_base");
void do_hook(struct link *, struct link *) __asm__("_ZNSt8__detail15_List_node_base7_M_hookEPS0_");
void do_unhook(struct link *) __asm__("_ZNSt8__detail15_List_node_base9_M_unhookEv");
void do_transfer(struct link *, struct link *, struct link *)
    __asm__("_ZNSt8__detail15_List_node_base11_M_transferEPS0_S1_");
void do_swap(struct link *, struct link *) __asm__("_ZNSt8__detail15_List_node_base4swapERS0_S1_");

enum { NODES = 200, LINKS = 20, STEPS = 40000 };
static struct {
    struct node nodes[NODES], header; /* a node's key is its number */
    struct link links[LINKS], lists[2];
} memory, expected;
static int in_tree[NODES], list_of[LINKS], done[8];

static void fail(const char *what) { printf("%s differs\\n", what), exit(1); }

/* The real function has done what the plan says, and nothing else. */
static void check(const char *what, struct plan *plan, int number)
{
    for (int place = 0; place < plan->count; place++)
        if (plan->places[place].is_written)
            memcpy((char *)&expected + ((char *)plan->places[place].at - (char *)&memory),
                   &plan->places[place].value, plan->places[place].size);
    if (plan->is_full || memcmp(&expected, &memory, sizeof memory))
        fail(what);
    done[number]++;
}

#define CHECK(what, number, planned, real) \\
    do { \\
        struct plan plan; \\
        plan.count = plan.is_full = 0; \\
        expected = memory; \\
        planned; \\
        real; \\
        check(what, &plan, number); \\
    } while (0)

static void change_tree(int key)
{
    struct node *node = &memory.nodes[key], *header = &memory.header, *above = header;
    if ((in_tree[key] ^= 1)) {
        bool is_left = true;
        for (struct node *at = header->parent; at; at = at->child[!is_left])
            above = at, is_left = node < at;
        CHECK("insertion", 0, plan_insertion(&plan, is_left, node, above, header),
              do_insert(is_left, node, above, header));
    } else {
        CHECK("removal", 1, plan_removal(&plan, node, header), do_erase(node, header));
    }
}

/* A step reads what leads to the node that it comes to, and writes nothing. */
static void check_step(const struct plan *plan, const struct node *to)
{
    int leading = 0;
    for (int place = 0; place < plan->count; place++)
        if (plan->places[place].is_written)
            fail("what a step writes");
        else
            leading += plan->places[place].is_read && plan->places[place].value == (uintptr_t)to;
    if (!leading)
        fail("what a step reads");
}

static void check_steps(void)
{
    struct node *at = memory.header.child[LEFT], *next;
    for (; at != &memory.header; at = next) {
        CHECK("step", 2, plan_step(&plan, at, RIGHT), next = do_increment(at); check_step(&plan, next));
        CHECK("step back", 3, plan_step(&plan, next, LEFT), at = do_decrement(next); check_step(&plan, at));
        if (next != &memory.header && next <= at)
            fail("order");
    }
}

static void change_list(void)
{
    int number = rand() % LINKS, which = rand() % 2;
    struct link *link = &memory.links[number], *list = &memory.lists[which];
    struct link *places[LINKS + 1], *at = list->next;
    int count = 0;
    for (; at != list; at = at->next)
        places[count++] = at;
    places[count] = list;
    if (list_of[number] < 0) {
        struct link *behind = places[rand() % (count + 1)];
        CHECK("hook", 4, plan_hook(&plan, link, behind), do_hook(link, behind));
        list_of[number] = which;
    } else if (rand() % 3 == 0) {
        CHECK("unhook", 5, plan_unhook(&plan, link), do_unhook(link));
        list_of[number] = -1;
    } else if (rand() % 2 && count) {
        int first = rand() % count, behind = first + 1 + rand() % (count - first);
        struct link *to = rand() % 2 ? &memory.lists[!which] : places[rand() % 2 ? rand() % (first + 1) : behind];
        if (to == places[first])
            return;
        if (to == &memory.lists[!which])
            for (int moved = first; moved < behind; moved++)
                list_of[places[moved] - memory.links] = !which;
        CHECK("transfer", 6, plan_transfer(&plan, to, places[first], places[behind]),
              do_transfer(to, places[first], places[behind]));
    } else {
        CHECK("swap", 7, plan_swap(&plan, &memory.lists[0], &memory.lists[1]),
              do_swap(&memory.lists[0], &memory.lists[1]));
        for (int each = 0; each < LINKS; each++)
            list_of[each] = list_of[each] < 0 ? -1 : !list_of[each];
    }
}

int main(void)
{
    memory.header.child[LEFT] = memory.header.child[RIGHT] = &memory.header;
    for (int which = 0; which < 2; which++)
        memory.lists[which] = (struct link){&memory.lists[which], &memory.lists[which]};
    for (int number = 0; number < LINKS; number++)
        list_of[number] = -1;
    for (int step = 0; step < STEPS; step++) {
        change_tree(rand() % (step < STEPS / 2 ? NODES : 12)); /* large trees, and small ones */
        change_list();
        if (step % 50 == 0)
            check_steps();
    }
    for (int number = 0; number < 8; number++)
        if (done[number] < 1000)
            fail("how often each is done");
    puts("as planned");
}
"""


def test_what_is_planned_is_what_the_library_does(tmp_path: Path) -> None:
    """Random trees and lists: after each call nothing has changed but what the plan says, and that as it says."""
    shutil.copy(Path(RUNTIME_SOURCES) / "interceptors_nodes.c", tmp_path)
    (tmp_path / "preload_library.h").write_text(HEADER)
    (tmp_path / "check.c").write_text(CHECK)
    clang = find_clang().path
    built = [clang, "-O1", "-g", "-w", "check.c", "-o", "check", "-lstdc++"]
    subprocess.run(built, cwd=tmp_path, check=True, timeout=120)
    done = subprocess.run([tmp_path / "check"], capture_output=True, text=True, timeout=120)
    assert done.stdout == "as planned\n"


PROGRAM = """#include <cstdio>
#include <list>
#include <map>
#include <vector>
int main() {
    std::map<int, long> numbers;
    std::list<int> list;
    for (int i = 0; i < 200; i++) numbers[i * 37 % 101] += i; // inserts
    for (int i = 0; i < 50; i++) list.push_back(i); // hooks
    long sum = 0;
    for (auto &number : numbers) sum += number.second; // steps
    for (auto number = numbers.begin(); number != numbers.end();) // erases
        number = number->second & 1 ? numbers.erase(number) : ++number;
    std::vector<std::map<int, int>> own(40);
    for (int i = 0; i < 40; i++) // each its own
        for (int k = 0; k < 30; k++) own[i][k] = i;
    std::list<int> other;
    other.splice(other.begin(), list, list.begin());
    list.reverse();
    list.swap(other);
    for (int number : other) sum += number;
    printf("%ld %zu %zu", sum, numbers.size(), other.size());
}
"""


@pytest.mark.parametrize("flags", [["-O0"], ["-O2"], ["-O2", "-static"]], ids=" ".join)
def test_nodes_of_the_library_are_in_the_trace(flags: list[str], tmp_path: Path) -> None:
    """Which dependences there are between its functions, and that nobody has to guess what they wrote."""
    source = tmp_path / "app.cpp"
    source.write_text(PROGRAM)
    made = record(compile_program([source], tmp_path / "app", ["-g", *flags], instrumented=True))
    assert made.outcome.stdout == b"21125 1 49"
    rows = analyze(made.trace, "advise", jobs=1, top=0, min_share=0.0).result["loops"]
    found = {row["loop"]["line"]: row for row in rows if row["loop"]["file"].endswith("app.cpp")}
    line = {text.split("// ")[1]: number for number, text in enumerate(PROGRAM.splitlines(), 1) if "// " in text}
    for loop in ("inserts", "hooks", "erases"):
        blocked = found[line[loop]]["cases"][0]["blocked_by"]
        assert "external" not in {row["reason"] for row in blocked}
    assert found[line["each its own"]]["verdict"] in ("doall", "doall-with")
    flows = analyze(made.trace, "dependence", jobs=1).result["dependences"]
    assert ("library", "library") in {(row["source"]["kind"], row["destination"]["kind"]) for row in flows}
    errors = analyze(made.trace, "memory_errors", jobs=1).result
    assert errors["errors"] == [] and not any(errors["summary"]["undecided"].values())


def test_older_traces_do_not_have_what_is_written_in_nodes() -> None:
    erase = "_ZSt28_Rb_tree_rebalance_for_erasePSt18_Rb_tree_node_baseRS_"
    assert [erase in recorded({KEY: version}) for version in (1, 2, 3, VERSION)] == [False, False, True, True]
