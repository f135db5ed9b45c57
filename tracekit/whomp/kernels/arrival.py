"""A symbol arrives at the stream's end: what happens to most of them, in place.

Where a stream repeats itself, two things happen at its end, one to nearly every symbol. The digram of the last symbol
and the new one is the whole of a rule: the rule takes its place, and arrives in turn. Or the last symbol is a rule that
stands at one other place, where the new symbol follows it, too: the rule grows by that symbol. Sequitur makes a rule of
both for that and at once takes the old one apart; the outcome is the same, without nodes and entries that come and go.

Where the stream goes on as a longer rule does, that rule is followed: following.py.

Everything else is left to sequitur.py: what is seldom, and symbols with equal neighbours, whose digrams overlap.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tracekit.containers.kernels.arena import EXHAUSTED
from tracekit.jit.kernel import inlined
from tracekit.whomp.kernels.following import begins, close_all, drop_last, may_open, open_node
from tracekit.whomp.kernels.sequitur import (
    CELLS,
    DIGRAMS,
    GUARD,
    LENGTH,
    NODE_BITS,
    OPEN,
    OPENED,
    TOP,
    TOTAL,
    cell_of,
    check,
    close,
    count_use,
    enter,
    forget,
    give_node,
    has_room,
    hash_of,
    link,
    new_node,
    rule_of,
    work,
)


@inlined
def add(grammar: Any, terminal: Any) -> None:
    """The next symbol of the stream, by the number of its value."""
    control = grammar.control
    if not has_room(grammar):
        grammar.nodes.control[EXHAUSTED] = 1
        return
    control[LENGTH] += 1
    control[TOTAL] += 1
    nodes, cells, symbol = grammar.nodes.rows, grammar.cells, np.uint32(terminal << np.uint64(1))
    guard = np.int64(grammar.rules.rows[1].guard)
    while True:
        last = np.int64(nodes[guard].previous)
        first = nodes[last].symbol
        if first & OPEN:
            step = _follow(grammar, last, symbol)
            if step == 0:
                return
            symbol = step
            continue
        before = nodes[nodes[last].previous].symbol
        if last == guard or first == symbol or before == first or before == symbol:
            break
        mixed = hash_of(first, symbol)
        place = cell_of(nodes, cells, control, first, symbol, mixed)
        if cells[place] == 0:
            cells[place] = (mixed << np.uint64(32)) | np.uint64(last)
            control[DIGRAMS] += 1
            _put(grammar, last, symbol)
            return
        there = np.int64(cells[place] & NODE_BITS)
        rule, stays = _whole(grammar, there), _stays(grammar, first)
        if rule != 0 and stays:
            _take_last(grammar, last)
            symbol = np.uint32(2 * rule + 1)
        elif rule == 0 and stays and may_open(grammar, there, symbol):
            if before & (GUARD | OPEN) == 0:
                forget(nodes, cells, control, np.int64(nodes[last].previous))
            count_use(grammar, first, -1)
            open_node(grammar, last, there)
            return
        elif control[OPENED] > 0:
            close_all(grammar)
        elif rule == 0 and _may_grow(grammar, last, there, symbol):
            close(cells, control, place - np.uint64(control[CELLS]))
            _grow(grammar, there)
            return
        else:
            break
    if control[OPENED] > 0:
        close_all(grammar)
    node = _put(grammar, last, symbol)
    if last != guard:
        check(grammar, last, node)
        if control[TOP] > 0:
            work(grammar)


@inlined
def _follow(grammar: Any, last: Any, symbol: Any) -> Any:
    """A symbol behind an open node; returns what arrives then: nothing (0), a rule of which all has come, or itself."""
    nodes = grammar.nodes.rows
    row = grammar.open[grammar.control[OPENED] - 1]
    there = np.int64(nodes[row.place].next)
    wanted, after = nodes[there].symbol, nodes[nodes[there].next].symbol
    if wanted == symbol and after & GUARD:
        drop_last(grammar, last)
        return np.uint32(after & ~GUARD)
    if wanted == symbol and after != symbol:
        row.place = there
        return np.uint32(0)
    if wanted != symbol and begins(grammar, wanted, symbol):
        _put(grammar, last, symbol)
        return np.uint32(0)
    close_all(grammar)
    return symbol


@inlined
def _put(grammar: Any, last: Any, symbol: Any) -> Any:
    """A symbol behind the last one; its node."""
    node = new_node(grammar, symbol)
    link(grammar.nodes.rows, last, node, np.int64(grammar.rules.rows[1].guard))
    count_use(grammar, symbol, 1)
    return node


@inlined
def _whole(grammar: Any, node: Any) -> Any:
    """The rule that the digram at a node is the whole of, or 0."""
    nodes = grammar.nodes.rows
    before, behind = nodes[node].previous, nodes[nodes[node].next].next
    return rule_of(nodes[before].symbol) if nodes[before].symbol & GUARD and before == behind else np.int64(0)


@inlined
def _stays(grammar: Any, symbol: Any) -> Any:
    """Whether a symbol is no rule that would be used but once if it stood at one place less."""
    rule = rule_of(symbol)
    return rule == 0 or grammar.rules.rows[rule].uses > 2


@inlined
def _take_last(grammar: Any, last: Any) -> None:
    """Take the stream's last symbol away."""
    nodes = grammar.nodes.rows
    before, behind = np.int64(nodes[last].previous), np.int64(nodes[last].next)
    if nodes[before].symbol & OPEN == 0:
        forget(nodes, grammar.cells, grammar.control, before)
    count_use(grammar, nodes[last].symbol, -1)
    nodes[before].next = behind
    nodes[behind].previous = before
    give_node(grammar, last)


@inlined
def _may_grow(grammar: Any, last: Any, there: Any, symbol: Any) -> Any:
    """Whether the last symbol is a rule that stands at one other place, there, and no digram overlaps another."""
    nodes = grammar.nodes.rows
    rule = rule_of(nodes[last].symbol)
    if rule == 0 or grammar.rules.rows[rule].uses != 2:
        return False
    before = nodes[nodes[there].previous].symbol
    behind = np.int64(nodes[nodes[there].next].next)
    after = nodes[behind].symbol
    alone = before != symbol and after != symbol and before != after
    return alone and behind != last and before != nodes[nodes[last].previous].symbol


@inlined
def _grow(grammar: Any, there: Any) -> None:
    """The symbol behind a rule becomes the rule's last. Their digram has been taken out."""
    nodes, cells, control = grammar.nodes.rows, grammar.cells, grammar.control
    node = np.int64(nodes[there].next)
    behind = np.int64(nodes[node].next)
    forget(nodes, cells, control, node)
    nodes[there].next = behind
    nodes[behind].previous = there
    if nodes[behind].symbol & GUARD == 0:
        enter(nodes, cells, control, there)
    guard = np.int64(grammar.rules.rows[rule_of(nodes[there].symbol)].guard)
    end = np.int64(nodes[guard].previous)
    link(nodes, end, node, guard)
    enter(nodes, cells, control, end)
