"""Sequitur: a stream as a context-free grammar, in linear time (Nevill-Manning and Witten, JAIR 1997).

Two invariants hold after each symbol: no pair of adjacent symbols (digram) stands in the grammar twice, unless the two
overlap, and each rule is used at least twice. A pair that comes again is replaced by a rule, which makes new pairs;
what is to be done next lies on a stack, so nothing recurs.

A rule is a ring of nodes around its guard. A digram is found by hashing: a cell has the hash and the digram's first
node. An entry is taken out before the links of its digram change, so keys can be read off the nodes; most cells that
are not the right one are told by the hash. Symbols are 32-bit: of a terminal (a value's row in `values`) twice the
number, of a rule twice the number and one more; a guard's has GUARD, too.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tracekit.containers.kernels.arena import EXHAUSTED, USED, Arena, take
from tracekit.containers.kernels.hash_table import GOLDEN, HashTable
from tracekit.jit.kernel import inlined, kernel

NODE = np.dtype([("previous", "<u4"), ("next", "<u4"), ("symbol", "<u4")])
RULE = np.dtype([("guard", "<u4"), ("uses", "<u4"), ("number", "<u4")])
TASK = np.dtype([("what", "<u4"), ("node", "<u4"), ("rule", "<u4")])
OPENING = np.dtype([("rule", "<u4"), ("node", "<u4"), ("place", "<u4")])
"""A node of the stream that follows a rule, and the node of the rule that it has come to: following.py."""
GUARD = np.uint32(1 << 31)
OPEN = np.uint32(1 << 30)
"""The symbol of such a node; no other symbol has this bit."""
NODE_BITS = np.uint64(0xFFFFFFFF)
"""Of a cell."""
ROOM = 4096
"""Rows that have to be left before a symbol is appended: what one symbol takes at most, beyond what it gives back."""
FIRST_CELLS = 1 << 14

# What is to be done.
CHECK = 0  # look whether the digram at a node has been there before, else the one behind it
SUBSTITUTE = 1  # put a rule in place of the digram at a node
FINISH = 2  # enter the digram that a new rule is; and what follows
TIDY = 3  # if the first symbol of a rule is a rule that nothing else uses, put its body there

# Elements of Grammar.control.
FREE_NODE = 0
FREE_RULE = 1
CELLS = 2  # how many there are; they are those from number CELLS up to twice that
DIGRAMS = 3  # entries
TOP = 4  # tasks on the stack
LENGTH = 5  # symbols appended to the present block
TOTAL = 6  # ... to all blocks
PENDING = 7  # values that wait to be appended
OPENED = 8  # open nodes
CONTROL = 9
"""How many there are."""


class Grammar(NamedTuple):
    """The grammar of the present block, and those of earlier ones as they are written."""

    nodes: Arena  # NODE
    rules: Arena  # RULE; row 1 is the start
    cells: NDArray[np.uint64]  # hash << 32 | node; 0: free
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
    control[CELLS] = FIRST_CELLS
    for cell in range(FIRST_CELLS, 2 * FIRST_CELLS):
        grammar.cells[cell] = 0
    grammar.nodes.control[USED] = 1
    grammar.rules.control[USED] = 1
    control[FREE_NODE] = control[FREE_RULE] = control[DIGRAMS] = control[TOP] = control[LENGTH] = 0
    new_rule(grammar)


@inlined
def has_room(grammar: Any) -> Any:
    """Whether there is room for what one symbol causes; makes more cells if they get scarce."""
    control = grammar.control
    enough = grammar.nodes.control[USED] + ROOM <= grammar.nodes.rows.size
    enough &= grammar.rules.control[USED] + ROOM <= grammar.rules.rows.size
    if 2 * control[DIGRAMS] + ROOM > control[CELLS]:
        if 4 * control[CELLS] > grammar.cells.size:
            enough = False
        else:
            _double(grammar.cells, control)
    return enough


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
def hash_of(first: Any, second: Any) -> Any:
    """32 bits, not 0."""
    key = (np.uint64(first) << np.uint64(32)) | np.uint64(second)
    key ^= key >> np.uint64(29)
    return ((key * GOLDEN) >> np.uint64(32)) | np.uint64(1 << 31)


@inlined
def cell_of(nodes: Any, cells: Any, control: Any, first: Any, second: Any, mixed: Any) -> Any:
    """The cell of a digram, or the free one where it belongs."""
    count = np.uint64(control[CELLS])
    place = mixed & (count - np.uint64(1))
    while True:
        found = cells[count + place]
        if found == 0:
            return count + place
        if found >> np.uint64(32) == mixed:
            there = found & NODE_BITS
            if nodes[there].symbol == first and nodes[nodes[there].next].symbol == second:
                return count + place
        place = (place + np.uint64(1)) & (count - np.uint64(1))


@kernel
def enter(nodes: Any, cells: Any, control: Any, node: Any) -> None:
    """The digram at a node is the one to be found."""
    first, second = nodes[node].symbol, nodes[nodes[node].next].symbol
    mixed = hash_of(first, second)
    cell = cell_of(nodes, cells, control, first, second, mixed)
    if cells[cell] == 0:
        control[DIGRAMS] += 1
    cells[cell] = (mixed << np.uint64(32)) | np.uint64(node)


@inlined
def forget(nodes: Any, cells: Any, control: Any, node: Any) -> None:
    """The digram at a node is no longer to be found there."""
    first, second = nodes[node].symbol, nodes[nodes[node].next].symbol
    if (first | second) & GUARD == 0:
        take_out(cells, control, hash_of(first, second), node)


@kernel
def take_out(cells: Any, control: Any, mixed: Any, node: Any) -> None:
    """Take an entry out, if there is one."""
    count, one = np.uint64(control[CELLS]), np.uint64(1)
    mask = count - one
    wanted, hole = (mixed << np.uint64(32)) | np.uint64(node), mixed & mask
    while cells[count + hole] != wanted:
        if cells[count + hole] == 0:
            return
        hole = (hole + one) & mask
    close(cells, control, hole)


@kernel
def close(cells: Any, control: Any, hole: Any) -> None:
    """Free a cell, counted from the first; what was pushed on by its entry moves back."""
    count, one = np.uint64(control[CELLS]), np.uint64(1)
    mask = count - one
    place = hole
    while True:
        place = (place + one) & mask
        found = cells[count + place]
        if found == 0:
            break
        if (place - (found >> np.uint64(32))) & mask >= (place - hole) & mask:
            cells[count + hole] = found
            hole = place
    cells[count + hole] = 0
    control[DIGRAMS] -= 1


@kernel
def _double(cells: Any, control: Any) -> None:
    """Twice as many cells."""
    old = control[CELLS]
    control[CELLS] = 2 * old
    count, one = np.uint64(2 * old), np.uint64(1)
    for cell in range(2 * old, 4 * old):
        cells[cell] = 0
    for cell in range(old, 2 * old):
        found = cells[cell]
        if found != 0:
            place = (found >> np.uint64(32)) & (count - one)
            while cells[count + place] != 0:
                place = (place + one) & (count - one)
            cells[count + place] = found


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
                enter(grammar.nodes.rows, grammar.cells, grammar.control, first)
            _tidy(grammar, rule)


@inlined
def check(grammar: Any, node: Any, behind: Any) -> None:
    """If the digram at a node, or else the one at the node behind, stands elsewhere, too, it is replaced."""
    nodes, cells = grammar.nodes.rows, grammar.cells
    for _ in range(2):
        first, second = nodes[node].symbol, nodes[nodes[node].next].symbol
        if (first | second) & GUARD == 0:
            mixed = hash_of(first, second)
            cell = cell_of(nodes, cells, grammar.control, first, second, mixed)
            found = cells[cell]
            if found != 0:
                there = np.int64(found & NODE_BITS)
                if nodes[there].next != node and nodes[node].next != there and there != node:
                    _match(grammar, node, there)
                return
            cells[cell] = (mixed << np.uint64(32)) | np.uint64(node)
            grammar.control[DIGRAMS] += 1
        node = behind


@inlined
def _match(grammar: Any, node: Any, there: Any) -> None:
    """A digram at two places: both become a rule, or one does if the other is a whole rule."""
    nodes = grammar.nodes.rows
    before, behind = np.int64(nodes[there].previous), np.int64(nodes[nodes[there].next].next)
    if nodes[before].symbol & nodes[behind].symbol & GUARD:
        rule = rule_of(nodes[before].symbol)
        _push(grammar, TIDY, 0, rule)
        _push(grammar, SUBSTITUTE, node, rule)
        return
    first, second = nodes[node].symbol, nodes[nodes[node].next].symbol
    rule = new_rule(grammar)
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
    nodes, cells, control = grammar.nodes.rows, grammar.cells, grammar.control
    before, second = np.int64(nodes[node].previous), np.int64(nodes[node].next)
    behind = np.int64(nodes[second].next)
    one, two = nodes[node].symbol, nodes[second].symbol
    forget(nodes, cells, control, before)
    if _is_middle(nodes, second):
        enter(nodes, cells, control, second)
    if _is_middle(nodes, before):
        enter(nodes, cells, control, np.int64(nodes[before].previous))
    forget(nodes, cells, control, node)
    if _is_middle(nodes, behind):
        enter(nodes, cells, control, behind)
    # before the second symbol, and then before what is behind it, as if they were taken out one after the other
    if _ends_with_two(nodes, before, two):
        enter(nodes, cells, control, np.int64(nodes[before].previous))
    forget(nodes, cells, control, second)
    if _ends_with_two(nodes, before, nodes[behind].symbol):
        enter(nodes, cells, control, np.int64(nodes[before].previous))
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
    forget(nodes, grammar.cells, grammar.control, node)
    nodes[left].next = first
    nodes[first].previous = left
    nodes[last].next = right
    nodes[right].previous = last
    if nodes[right].symbol & GUARD == 0:
        enter(nodes, grammar.cells, grammar.control, last)
    give_node(grammar, node)
    give_node(grammar, guard)
    grammar.rules.rows[inner].guard = grammar.control[FREE_RULE]
    grammar.rules.rows[inner].uses = 0
    grammar.control[FREE_RULE] = inner
