"""The longest way through a graph whose edges lead from lesser nodes to greater ones."""

from __future__ import annotations

from typing import Any

from tracekit.jit.kernel import kernel


@kernel
def longest(first: Any, sources: Any, weights: Any, finish: Any, before: Any) -> None:
    """Fill `finish`: the greatest sum of weights on a way that ends with each node; `before`: the node ahead on it.

    The edges into node n come from ``sources[first[n]:first[n + 1]]``; first (nodes + 1), sources (edges), before
    (nodes) are of integers, weights and finish (nodes) of one type of numbers. Node 0 is none; of equal ways the first
    counts.
    """
    for node in range(1, len(weights)):
        begin = finish[0]
        chosen = 0
        for place in range(first[node], first[node + 1]):
            source = sources[place]
            if chosen == 0 or finish[source] > begin:
                begin = finish[source]
                chosen = source
        finish[node] = begin + weights[node]
        before[node] = chosen


@kernel
def sum_uses(first: Any, count: Any, record: Any, times: Any, each: Any, sums: Any) -> None:
    """Fill `sums` (steps): the sum over a step's uses of `each` (by record id) times how often it was used.

    A step has `count` (steps) uses from `first` (steps) on; record, times (uses): the record id of each, and how often.
    """
    for step in range(len(sums)):
        total = sums[0] - sums[0]
        for place in range(first[step], first[step] + count[step]):
            total += times[place] * each[record[place]]
        sums[step] = total


@kernel
def mark(before: Any, node: Any, marked: Any) -> None:
    """Set `marked` (nodes) for a node and all that are before it, by `before` (nodes) as :func:`longest` fills it."""
    while node != 0:
        marked[node] = 1
        node = before[node]
