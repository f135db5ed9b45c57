"""Sequitur: a stream as a context-free grammar, in linear time (Nevill-Manning and Witten, JAIR 1997).

Two invariants hold after each symbol: no pair of adjacent symbols (digram) stands in the grammar twice, unless the two
overlap, and each rule is used at least twice. A pair that comes again is replaced by a rule, which makes new pairs;
what is to be done next lies on a stack, so nothing recurs.

A rule is a ring of nodes around its guard. A digram is found by hashing (digrams.py): its entry has the first node, or
the rule that the digram is the whole of. An entry is taken out before the links of its digram change. Symbols are
32-bit: of a terminal (a value's row in `values`) twice the number, of a rule twice the number and one more; a guard's
has GUARD, too.

In these kernels, and in those of following.py, pending.py and writing.py, `nodes` (n) is of NODE, a `node` a row of it,
`rule` a row of the grammar's rules, `key` a u8 of a digram's two symbols. Without room for more the nodes' arena is
marked as exhausted.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tracekit.containers.kernels.arena import EXHAUSTED, USED, Arena, take
from tracekit.containers.kernels.hash_table import HashTable
from tracekit.jit.kernel import inlined, kernel
from tracekit.whomp.kernels.digrams import Digrams, clear, expect, find, insert, key_of, place_at, remove, set_place
from tracekit.whomp.kernels.digrams import has_room as has_slots

NODE = np.dtype([("previous", "<u4"), ("next", "<u4"), ("symbol", "<u4")])
RULE = np.dtype([("guard", "<u4"), ("uses", "<u4"), ("number", "<u4")])
TASK = np.dtype([("what", "<u4"), ("node", "<u4"), ("rule", "<u4")])
OPENING = np.dtype([("rule", "<u4"), ("node", "<u4"), ("place", "<u4")])
"""A node of the stream that follows a rule, and the node of the rule that it has come to: following.py."""
GUARD = np.uint32(1 << 31)
OPEN = np.uint32(1 << 30)
"""The symbol of such a node; no other symbol has this bit."""
START = GUARD | np.uint32(3)
"""The symbol of the guard of rule 1, the stream."""
ROOM = 4096
"""Rows that have to be left before a symbol is appended: what one symbol takes at most, beyond what it gives back."""

# What is to be done.
CHECK = 0  # look whether the digram at a node has been there before, else the one behind it
SUBSTITUTE = 1  # put a rule in place of the digram at a node
FINISH = 2  # enter the digram that a new rule is; and what follows
TIDY = 3  # if the first symbol of a rule is a rule that nothing else uses, put its body there

# Elements of Grammar.control.
FREE_NODE = 0
FREE_RULE = 1
TOP = 2  # tasks on the stack
LENGTH = 3  # symbols appended to the present block
TOTAL = 4  # ... to all blocks
PENDING = 5  # values that wait to be appended
OPENED = 6  # open nodes
LATE = 7  # 1 if the stream's last digram is not entered yet: arrival.py
THEN = 8  # the symbol that arrives next, a terminal, or 0 if it is not known
CONTROL = 9
"""How many there are."""


class Grammar(NamedTuple):
    """The grammar of the present block, and those of earlier ones as they are written."""

    nodes: Arena  # NODE
    rules: Arena  # RULE; row 1 is the start
    digrams: Digrams  # their places: place_of
    values: HashTable  # the terminals
    stack: NDArray[Any]  # TASK
    open: NDArray[Any]  # OPENING; of the stream's open nodes, the first of them first
    pending: NDArray[np.uint64]  # the next values, for kernels/pending.py
    written: Arena  # u4; of each block: how many rules, and of each rule: length, symbols
    control: NDArray[np.int64]


@kernel
def begin(grammar: Grammar) -> None:
    """An empty block: the start rule alone."""
    control = grammar.control
    clear(grammar.digrams)
    grammar.nodes.control[USED] = 1
    grammar.rules.control[USED] = 1
    control[FREE_NODE] = control[FREE_RULE] = control[TOP] = control[LENGTH] = control[LATE] = 0
    new_rule(grammar)


@inlined
def has_room(grammar: Any) -> Any:
    """Whether there is room for what one symbol causes; makes more buckets if they get full."""
    enough = grammar.nodes.control[USED] + ROOM <= grammar.nodes.rows.size
    enough &= grammar.rules.control[USED] + ROOM <= grammar.rules.rows.size
    return has_slots(grammar.digrams) and enough


# -- nodes and rules -------------------------------------------------------------------------------


@inlined
def new_node(grammar: Any, symbol: Any) -> Any:
    """A node without neighbours."""
    row = grammar.control[FREE_NODE]
    if row != 0:
        grammar.control[FREE_NODE] = grammar.nodes.rows[row].next
    else:
        row = np.int64(take(grammar.nodes, 1))
    grammar.nodes.rows[row].symbol = symbol
    return row


@inlined
def give_node(grammar: Any, row: Any) -> None:
    """A node that nothing links to any more."""
    grammar.nodes.rows[row].next = grammar.control[FREE_NODE]
    grammar.control[FREE_NODE] = row


@inlined
def link(nodes: Any, left: Any, node: Any, right: Any) -> None:
    """Put a node between two others."""
    nodes[left].next = node
    nodes[node].previous = left
    nodes[node].next = right
    nodes[right].previous = node


@inlined
def new_rule(grammar: Any) -> Any:
    """A rule without symbols; its number."""
    rule = grammar.control[FREE_RULE]
    if rule != 0:
        grammar.control[FREE_RULE] = grammar.rules.rows[rule].guard
    else:
        rule = np.int64(take(grammar.rules, 1))
    guard = new_node(grammar, GUARD | np.uint32(2 * rule + 1))
    grammar.nodes.rows[guard].previous = guard
    grammar.nodes.rows[guard].next = guard
    grammar.rules.rows[rule].guard = guard
    grammar.rules.rows[rule].uses = 0
    return rule


@inlined
def rule_of(symbol: Any) -> Any:
    """The rule that a symbol stands for, or guards; 0 if it is a terminal."""
    return np.int64((symbol & ~GUARD) >> np.uint32(1)) if symbol & np.uint32(1) else np.int64(0)


@inlined
def count_use(grammar: Any, symbol: Any, by: Any) -> None:
    """A rule is used once more, or once less."""
    rule = rule_of(symbol)
    if rule != 0:
        grammar.rules.rows[rule].uses = np.int64(grammar.rules.rows[rule].uses) + by


# -- digrams ---------------------------------------------------------------------------------------


@inlined
def place_of(nodes: Any, node: Any) -> Any:
    """What is entered of the digram at a node: the node, or the guard's symbol of a rule that it is the whole of.

    The stream is no such rule: it goes on.
    """
    head = nodes[nodes[node].previous].symbol
    is_whole = head & nodes[nodes[nodes[node].next].next].symbol & GUARD != 0 and head != START
    return head if is_whole else np.uint32(node)


@inlined
def node_at(grammar: Any, place: Any) -> Any:
    """The node that was entered."""
    nodes = grammar.nodes.rows
    return np.int64(nodes[grammar.rules.rows[rule_of(place)].guard].next if place & GUARD else place)


@kernel
def enter(nodes: Any, digrams: Any, node: Any) -> None:
    """The digram at a node is the one to be found."""
    key = key_of(nodes[node].symbol, nodes[nodes[node].next].symbol)
    slot = find(digrams, key)
    if slot < 0:
        insert(digrams, key, place_of(nodes, node))
    else:
        set_place(digrams, slot, place_of(nodes, node))


@inlined
def forget(nodes: Any, digrams: Any, node: Any) -> None:
    """The digram at a node is no longer to be found there."""
    first, second = nodes[node].symbol, nodes[nodes[node].next].symbol
    if (first | second) & GUARD == 0:
        take_out(digrams, key_of(first, second), np.uint32(node), nodes[nodes[node].previous].symbol)


@kernel
def take_out(digrams: Any, key: Any, node: Any, before: Any) -> None:
    """Take out the entry of a digram that stands at a node, and behind a symbol, if there is one."""
    slot = find(digrams, key)
    if slot >= 0:
        place = place_at(digrams, slot)
        if place == node or (place == before and place & GUARD):
            remove(digrams, key, slot)


@kernel
def enter_anew(nodes: Any, digrams: Any, node: Any, was: Any) -> None:
    """The digram at a node has become the whole of a rule, or is no longer; nothing if it was entered elsewhere."""
    slot = find(digrams, key_of(nodes[node].symbol, nodes[nodes[node].next].symbol))
    if slot >= 0 and place_at(digrams, slot) == was:
        set_place(digrams, slot, place_of(nodes, node))


# -- the two invariants ----------------------------------------------------------------------------


@inlined
def _push(grammar: Any, what: Any, node: Any, rule: Any) -> None:
    task = grammar.stack[grammar.control[TOP]]
    task.what = what
    task.node = node
    task.rule = rule
    grammar.control[TOP] += 1


@kernel
def work(grammar: Grammar) -> None:
    """Do what lies on the stack."""
    while grammar.control[TOP] > 0:
        if grammar.control[TOP] + 4 > grammar.stack.size:
            grammar.nodes.control[EXHAUSTED] = 1
            grammar.control[TOP] = 0
            return
        grammar.control[TOP] -= 1
        task = grammar.stack[grammar.control[TOP]]
        what, node, rule = task.what, np.int64(task.node), np.int64(task.rule)
        if what == CHECK:
            behind = np.int64(grammar.nodes.rows[node].next)
            check(grammar, node, behind)
        elif what == SUBSTITUTE:
            _substitute(grammar, node, rule)
        elif grammar.rules.rows[rule].uses > 0:
            if what == FINISH:
                first = np.int64(grammar.nodes.rows[grammar.rules.rows[rule].guard].next)
                enter(grammar.nodes.rows, grammar.digrams, first)
            _tidy(grammar, rule)


@inlined
def check(grammar: Any, node: Any, behind: Any) -> None:
    """If the digram at a node, or else the one at the node behind, stands elsewhere, too, it is replaced."""
    nodes, digrams = grammar.nodes.rows, grammar.digrams
    for _ in range(2):
        first, second = nodes[node].symbol, nodes[nodes[node].next].symbol
        if (first | second) & GUARD == 0:
            key = key_of(first, second)
            slot = find(digrams, key)
            if slot >= 0:
                there = node_at(grammar, place_at(digrams, slot))
                if nodes[there].next != node and nodes[node].next != there and there != node:
                    _match(grammar, node, there)
                return
            insert(digrams, key, place_of(nodes, node))
        node = behind


@inlined
def _match(grammar: Any, node: Any, there: Any) -> None:
    """A digram at two places: both become a rule, or one does if the other is a whole rule."""
    nodes = grammar.nodes.rows
    before, behind = np.int64(nodes[there].previous), np.int64(nodes[nodes[there].next].next)
    if nodes[before].symbol & nodes[behind].symbol & GUARD:
        rule = rule_of(nodes[before].symbol)
        _expect_rule(grammar, node, rule)
        _push(grammar, TIDY, 0, rule)
        _push(grammar, SUBSTITUTE, node, rule)
        return
    first, second = nodes[node].symbol, nodes[nodes[node].next].symbol
    rule = new_rule(grammar)
    _expect_rule(grammar, there, rule)
    _expect_rule(grammar, node, rule)
    guard = np.int64(grammar.rules.rows[rule].guard)
    one = new_node(grammar, first)
    link(nodes, guard, one, guard)
    link(nodes, one, new_node(grammar, second), guard)
    count_use(grammar, first, 1)
    count_use(grammar, second, 1)
    _push(grammar, FINISH, 0, rule)
    _push(grammar, SUBSTITUTE, node, rule)
    _push(grammar, SUBSTITUTE, there, rule)


@inlined
def _expect_rule(grammar: Any, node: Any, rule: Any) -> None:
    """A rule is about to be put in place of the digram at a node: what is taken out and looked for then."""
    nodes, digrams, symbol = grammar.nodes.rows, grammar.digrams, np.uint32(2 * rule + 1)
    second = np.int64(nodes[node].next)
    before, behind = nodes[nodes[node].previous].symbol, nodes[nodes[second].next].symbol
    expect(digrams, before, nodes[node].symbol)
    expect(digrams, before, symbol)
    if behind == START:
        expect(digrams, symbol, np.uint32(grammar.control[THEN]))
    else:
        expect(digrams, nodes[second].symbol, behind)
        expect(digrams, symbol, behind)


@inlined
def _is_middle(nodes: Any, node: Any) -> Any:
    """Whether a node stands between two of its own symbol."""
    before, after, symbol = nodes[node].previous, nodes[node].next, nodes[node].symbol
    return symbol & GUARD == 0 and nodes[before].symbol == symbol and nodes[after].symbol == symbol


@inlined
def _ends_with_two(nodes: Any, node: Any, symbol: Any) -> Any:
    """Whether a symbol stands at a node and before it."""
    return symbol & GUARD == 0 and nodes[node].symbol == symbol and nodes[nodes[node].previous].symbol == symbol


@inlined
def _substitute(grammar: Any, node: Any, rule: Any) -> None:
    """Put a rule in place of the digram at a node.

    Of three equal symbols in sequence only one of the two pairs is entered; when it goes, the other one is to be found.
    """
    nodes, digrams = grammar.nodes.rows, grammar.digrams
    before, second = np.int64(nodes[node].previous), np.int64(nodes[node].next)
    behind = np.int64(nodes[second].next)
    one, two = nodes[node].symbol, nodes[second].symbol
    forget(nodes, digrams, before)
    if _is_middle(nodes, second):
        enter(nodes, digrams, second)
    if _is_middle(nodes, before):
        enter(nodes, digrams, np.int64(nodes[before].previous))
    forget(nodes, digrams, node)
    if _is_middle(nodes, behind):
        enter(nodes, digrams, behind)
    # before the second symbol, and then before what is behind it, as if they were taken out one after the other
    if _ends_with_two(nodes, before, two):
        enter(nodes, digrams, np.int64(nodes[before].previous))
    forget(nodes, digrams, second)
    if _ends_with_two(nodes, before, nodes[behind].symbol):
        enter(nodes, digrams, np.int64(nodes[before].previous))
    count_use(grammar, one, -1)
    count_use(grammar, two, -1)
    give_node(grammar, second)
    nodes[node].symbol = np.uint32(2 * rule + 1)
    link(nodes, before, node, behind)
    grammar.rules.rows[rule].uses = np.int64(grammar.rules.rows[rule].uses) + 1
    _push(grammar, CHECK, before, 0)


@inlined
def _tidy(grammar: Any, rule: Any) -> None:
    """If the first symbol of a rule is a rule that nothing else uses, its body takes its place."""
    nodes = grammar.nodes.rows
    node = np.int64(nodes[grammar.rules.rows[rule].guard].next)
    inner = rule_of(nodes[node].symbol)
    if inner == 0 or grammar.rules.rows[inner].uses != 1:
        return
    left, right = np.int64(nodes[node].previous), np.int64(nodes[node].next)
    guard = np.int64(grammar.rules.rows[inner].guard)
    first, last = np.int64(nodes[guard].next), np.int64(nodes[guard].previous)
    expect(grammar.digrams, nodes[last].symbol, nodes[right].symbol)
    forget(nodes, grammar.digrams, node)
    nodes[left].next = first
    nodes[first].previous = left
    nodes[last].next = right
    nodes[right].previous = last
    if nodes[first].next == last:
        enter_anew(nodes, grammar.digrams, first, nodes[guard].symbol)
    if nodes[right].symbol & GUARD == 0:
        enter(nodes, grammar.digrams, last)
    give_node(grammar, node)
    give_node(grammar, guard)
    grammar.rules.rows[inner].guard = grammar.control[FREE_RULE]
    grammar.rules.rows[inner].uses = 0
    grammar.control[FREE_RULE] = inner
