"""A stream follows a rule: a place in the rule is all that moves.

When the last symbol and a new one are the first two of a rule R that has more, Sequitur makes a rule A of them, which
then stands first in R and last in the stream; A grows with each symbol that goes on as R does; and when all of R has
come, A is taken apart, and R takes its place. Of all that only the end shows. So the stream ends with one *open* node
that stands for A, R is left as it is, and a row of `open` has the node of R that was reached. If the stream goes on
otherwise A is made, with the symbols that it has by then (:func:`close_all`). Behind an open node a rule that R goes on
with may be on its way, of which a part may be an open node itself.

No digram with an open node is entered: A is new, so none can be found. Two things are in the table that should not be:
the digram at which R will be parted, and the one that is in A then. Who finds a digram that is not the whole of a rule
closes all open nodes and looks again. Nothing is opened where equal symbols are neighbours.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tracekit.jit.kernel import inlined, kernel
from tracekit.whomp.kernels.digrams import expect
from tracekit.whomp.kernels.sequitur import (
    GUARD,
    OPEN,
    OPENED,
    Grammar,
    enter,
    enter_anew,
    forget,
    give_node,
    link,
    new_node,
    new_rule,
    rule_of,
)


@inlined
def may_open(grammar: Any, there: Any, symbol: Any) -> Any:
    """Whether the digram at a node begins a rule that has more, and that no open node follows."""
    nodes, control = grammar.nodes.rows, grammar.control
    head = nodes[nodes[there].previous].symbol
    third = nodes[nodes[nodes[there].next].next].symbol
    fits = head & GUARD != 0 and third & GUARD == 0 and third != symbol
    rule = rule_of(head)
    fits &= rule != 1 and control[OPENED] < grammar.open.size
    for other in range(control[OPENED]):
        fits &= grammar.open[other].rule != rule
    return fits


@inlined
def open_node(grammar: Any, node: Any, there: Any) -> None:
    """The last node of the stream follows the rule that begins at `there`, and has come to its second symbol."""
    nodes, opened = grammar.nodes.rows, grammar.control[OPENED]
    row = grammar.open[opened]
    row.rule = rule_of(nodes[nodes[there].previous].symbol)
    row.node = node
    row.place = nodes[there].next
    grammar.control[OPENED] = opened + 1
    nodes[node].symbol = OPEN


@inlined
def drop_last(grammar: Any, node: Any) -> None:
    """Take away the stream's last node, which is open: all of its rule has come."""
    nodes = grammar.nodes.rows
    before, behind = np.int64(nodes[node].previous), np.int64(nodes[node].next)
    nodes[before].next = behind
    nodes[behind].previous = before
    give_node(grammar, node)
    grammar.control[OPENED] -= 1


@inlined
def begins(grammar: Any, rule: Any, symbol: Any) -> Any:
    """Whether a symbol is the first one of a rule, or of its first one, and so on."""
    nodes, inner = grammar.nodes.rows, rule
    while inner & np.uint32(1):
        inner = nodes[nodes[grammar.rules.rows[rule_of(inner)].guard].next].symbol
        if inner == symbol:
            return True
    return False


@kernel
def close_all(grammar: Grammar) -> None:
    """Make the rules that open nodes stand for, the first node's first."""
    for opened in range(grammar.control[OPENED]):
        row = grammar.open[opened]
        _close(grammar, np.int64(row.rule), np.int64(row.node), np.int64(row.place))
    grammar.control[OPENED] = 0


@inlined
def _close(grammar: Any, rule: Any, node: Any, place: Any) -> None:
    """The symbols of a rule up to a place become a rule, which stands at the open node, too."""
    nodes, digrams = grammar.nodes.rows, grammar.digrams
    guard, rest = np.int64(grammar.rules.rows[rule].guard), np.int64(nodes[place].next)
    first = np.int64(nodes[guard].next)
    made = new_rule(grammar)
    symbol = np.uint32(2 * made + 1)
    expect(digrams, symbol, nodes[rest].symbol)
    expect(digrams, nodes[nodes[node].previous].symbol, symbol)
    forget(nodes, digrams, place)
    ring = np.int64(grammar.rules.rows[made].guard)
    nodes[ring].next = first
    nodes[first].previous = ring
    nodes[ring].previous = place
    nodes[place].next = ring
    one = new_node(grammar, symbol)
    link(nodes, guard, one, rest)
    grammar.rules.rows[made].uses = 2
    nodes[node].symbol = symbol
    if nodes[first].next == place:
        enter_anew(nodes, digrams, first, np.uint32(first))
    enter(nodes, digrams, one)
    before, behind = np.int64(nodes[node].previous), np.int64(nodes[node].next)
    if nodes[before].symbol & GUARD == 0:
        enter(nodes, digrams, before)
    if nodes[behind].symbol & (GUARD | OPEN) == 0:
        enter(nodes, digrams, node)
