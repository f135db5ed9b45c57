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
from tracekit.whomp.kernels.digrams import expect, find, insert, key_of, place_at, remove
from tracekit.whomp.kernels.following import begins, close_all, drop_last, may_open, open_node
from tracekit.whomp.kernels.sequitur import (
    GUARD,
    LATE,
    LENGTH,
    OPEN,
    OPENED,
    THEN,
    TOP,
    TOTAL,
    check,
    count_use,
    enter,
    enter_anew,
    forget,
    give_node,
    has_room,
    link,
    new_node,
    rule_of,
    work,
)


@inlined
def add(grammar: Any, terminal: Any, then: Any) -> None:
    """The next symbol of the stream, by the number of its value, and that of the one behind it, or 0."""
    control = grammar.control
    control[THEN] = then << np.uint64(1)
    if not has_room(grammar):
        grammar.nodes.control[EXHAUSTED] = 1
        return
    control[LENGTH] += 1
    control[TOTAL] += 1
    nodes, digrams = grammar.nodes.rows, grammar.digrams
    symbol = np.uint32(terminal << np.uint64(1))
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
        has_equals = first == symbol or before == first or before == symbol
        if first & GUARD or (has_equals and control[OPENED] > 0):
            break
        key = key_of(first, symbol)
        slot = find(digrams, key)
        if slot < 0:
            _put_new(grammar, last, symbol, key)
            return
        place, stays = place_at(digrams, slot), _stays(grammar, first)
        if place & GUARD and stays:
            _take_last(grammar, last)
            if before == first or before == symbol:
                _enter_equals(grammar, before)
            symbol = place & ~GUARD
            expect(digrams, symbol, np.uint32(control[THEN]))
        elif has_equals:
            break
        elif place & GUARD == 0 and stays and may_open(grammar, np.int64(place), symbol):
            _forget_last(grammar, np.int64(nodes[last].previous))
            count_use(grammar, first, -1)
            open_node(grammar, last, np.int64(place))
            return
        elif control[OPENED] > 0:
            close_all(grammar)
        elif place & GUARD == 0 and _may_grow(grammar, last, np.int64(place), symbol):
            remove(digrams, key, slot)
            _grow(grammar, np.int64(place))
            return
        else:
            break
    _append(grammar, last, symbol)


@inlined
def _append(grammar: Any, last: Any, symbol: Any) -> None:
    """A symbol behind the last one as sequitur.py does it, with all that follows from their digram."""
    control, nodes = grammar.control, grammar.nodes.rows
    if control[OPENED] > 0:
        close_all(grammar)
    if control[LATE]:
        control[LATE] = 0
        enter(nodes, grammar.digrams, np.int64(nodes[last].previous))
    first = nodes[last].symbol
    node = _put(grammar, last, symbol)
    if first & GUARD == 0:
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
    if wanted == symbol and after != symbol:
        _enter_equals_before(grammar, last, symbol)
        if after & GUARD:
            drop_last(grammar, last)
            return np.uint32(after & ~GUARD)
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
def _put_new(grammar: Any, last: Any, symbol: Any, key: Any) -> None:
    """A symbol that makes a digram with the last one which stands nowhere else; that is entered later, if it stays."""
    nodes, digrams, control = grammar.nodes.rows, grammar.digrams, grammar.control
    first = nodes[last].symbol
    if control[LATE]:
        insert(digrams, key_of(nodes[nodes[last].previous].symbol, first), np.uint32(nodes[last].previous))
    _put(grammar, last, symbol)
    control[LATE] = first != symbol
    if first == symbol:
        insert(digrams, key, np.uint32(last))


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
    _forget_last(grammar, before)
    count_use(grammar, nodes[last].symbol, -1)
    nodes[before].next = behind
    nodes[behind].previous = before
    give_node(grammar, last)


@inlined
def _forget_last(grammar: Any, node: Any) -> None:
    """The stream's last digram, which is at a node, goes."""
    if grammar.control[LATE]:
        grammar.control[LATE] = 0
    elif grammar.nodes.rows[node].symbol & OPEN == 0:
        forget(grammar.nodes.rows, grammar.digrams, node)


@inlined
def _enter_equals(grammar: Any, symbol: Any) -> None:
    """The stream ends with a symbol: if with two of them, their digram is the one to be found, as in sequitur.py."""
    nodes = grammar.nodes.rows
    last = np.int64(nodes[grammar.rules.rows[1].guard].previous)
    if nodes[nodes[last].previous].symbol == symbol:
        enter(nodes, grammar.digrams, np.int64(nodes[last].previous))


@inlined
def _enter_equals_before(grammar: Any, last: Any, symbol: Any) -> None:
    """The same for two of a symbol before the last one, behind which the symbol stands while that is taken out."""
    nodes = grammar.nodes.rows
    before = np.int64(nodes[last].previous)
    if nodes[before].symbol == symbol and nodes[nodes[before].previous].symbol == symbol:
        enter(nodes, grammar.digrams, np.int64(nodes[before].previous))


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
    nodes, digrams = grammar.nodes.rows, grammar.digrams
    node, before = np.int64(nodes[there].next), np.int64(nodes[there].previous)
    behind = np.int64(nodes[node].next)
    guard = np.int64(grammar.rules.rows[rule_of(nodes[there].symbol)].guard)
    first, end = np.int64(nodes[guard].next), np.int64(nodes[guard].previous)
    expect(digrams, nodes[end].symbol, nodes[node].symbol)
    expect(digrams, nodes[there].symbol, nodes[behind].symbol)
    forget(nodes, digrams, node)
    nodes[there].next = behind
    nodes[behind].previous = there
    if nodes[behind].symbol & GUARD == 0:
        enter(nodes, digrams, there)
    elif nodes[before].symbol & GUARD == 0:
        enter_anew(nodes, digrams, before, np.uint32(before))
    link(nodes, end, node, guard)
    if nodes[first].next == end:
        enter_anew(nodes, digrams, first, nodes[guard].symbol)
    enter(nodes, digrams, end)
