"""Sequitur as it was published: objects, a dictionary, recursion; and what has to hold of any grammar."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import Any


class Symbol:
    """A node of a rule's ring; `value`: a terminal, or a Rule; a guard stands for its rule."""

    def __init__(self, grammar: Sequitur, value: Any, is_guard: bool = False) -> None:
        self.grammar, self.value, self.is_guard = grammar, value, is_guard
        self.previous: Symbol | None = None
        self.next: Symbol | None = None
        if isinstance(value, Rule) and not is_guard:
            value.uses += 1

    @property
    def pair(self) -> tuple[Any, Any]:
        assert self.next is not None
        return self.value, self.next.value

    def join(self, right: Symbol) -> None:
        if self.next is not None:
            self.forget()
            for node in (right, self):
                before, after = node.previous, node.next
                if before and after and not node.is_guard and before.value == node.value == after.value:
                    if not before.is_guard and not after.is_guard:
                        first = node if node is right else before
                        self.grammar.digrams[first.pair] = first
        self.next, right.previous = right, self

    def insert(self, node: Symbol) -> None:
        assert self.next is not None
        node.join(self.next)
        self.join(node)

    def remove(self) -> None:
        assert self.previous is not None and self.next is not None
        self.previous.join(self.next)
        self.forget()
        if isinstance(self.value, Rule):
            self.value.uses -= 1

    def forget(self) -> None:
        if not self.is_guard and self.next is not None and not self.next.is_guard:
            if self.grammar.digrams.get(self.pair) is self:
                del self.grammar.digrams[self.pair]

    def check(self) -> bool:
        assert self.next is not None
        if self.is_guard or self.next.is_guard:
            return False
        there = self.grammar.digrams.setdefault(self.pair, self)
        if there is self:
            return False
        if there.next is not self and self.next is not there:
            self.match(there)
        return True

    def match(self, there: Symbol) -> None:
        assert self.next and there.previous and there.next and there.next.next
        if there.previous.is_guard and there.next.next.is_guard:
            rule: Rule = there.previous.value
            self.substitute(rule)
        else:
            rule = Rule(self.grammar)
            for value in self.pair:
                assert rule.guard.previous is not None
                rule.guard.previous.insert(Symbol(self.grammar, value))
            there.substitute(rule)
            self.substitute(rule)
            assert rule.guard.next is not None
            self.grammar.digrams[rule.guard.next.pair] = rule.guard.next
        first = rule.guard.next
        assert first is not None
        if isinstance(first.value, Rule) and first.value.uses == 1:
            first.expand()

    def substitute(self, rule: Rule) -> None:
        before = self.previous
        assert before is not None
        for _ in range(2):
            assert before.next is not None
            before.next.remove()
        before.insert(Symbol(self.grammar, rule))
        if not before.check():
            assert before.next is not None
            before.next.check()

    def expand(self) -> None:
        left, right, guard = self.previous, self.next, self.value.guard
        assert left is not None and right is not None
        self.forget()
        first, last = guard.next, guard.previous
        left.join(first)
        last.join(right)
        self.grammar.digrams[last.pair] = last


class Rule:
    """A ring around a guard."""

    def __init__(self, grammar: Sequitur) -> None:
        self.uses = 0
        self.guard = Symbol(grammar, self, is_guard=True)
        self.guard.join(self.guard)

    def body(self) -> list[Any]:
        found, node = [], self.guard.next
        while node is not None and not node.is_guard:
            found.append(node.value)
            node = node.next
        return found


class Sequitur:
    """The grammar of a stream."""

    def __init__(self, stream: Sequence[int]) -> None:
        self.digrams: dict[tuple[Any, Any], Symbol] = {}
        self.start = Rule(self)
        for value in stream:
            last = self.start.guard.previous
            assert last is not None
            last.insert(Symbol(self, value))
            last.check()

    def rules(self) -> list[list[Any]]:
        """The bodies, the start's first; rules in them by their place in this list, as (number,)."""
        order: list[Rule] = [self.start]
        for rule in order:
            order += [each for each in dict.fromkeys(rule.body()) if isinstance(each, Rule) and each not in order]
        return [[(order.index(each),) if isinstance(each, Rule) else each for each in rule.body()] for rule in order]


Bodies = list[list[Any]]
"""A rule in a body is a tuple of its number."""


def expansion(bodies: Bodies, rule: int = 0) -> list[int]:
    """What a rule stands for."""
    found: list[int] = []
    for each in bodies[rule]:
        found += expansion(bodies, each[0]) if isinstance(each, tuple) else [each]
    return found


def broken(bodies: Bodies) -> list[str]:
    """Which of the two invariants do not hold."""
    found = []
    pairs: Counter[tuple[Any, Any]] = Counter()
    for body in bodies:
        last = None
        for place, pair in enumerate(pairwise(body)):
            if last == (pair, place - 1):  # the two overlap
                last = None
                continue
            pairs[pair] += 1
            last = (pair, place)
    found += [f"{pair} stands {count} times" for pair, count in pairs.items() if count > 1]
    uses = Counter(each[0] for body in bodies for each in body if isinstance(each, tuple))
    found += [f"rule {rule} is used {uses[rule]} times" for rule in range(1, len(bodies)) if uses[rule] < 2]
    return found
