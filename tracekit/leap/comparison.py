"""LEAP's dependences and strides beside exact ones and Connors' window (Wu et al., CGO 2004, Fig. 6 to 9, Table 1)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from tracekit.containers.hash_table import used_rows
from tracekit.leap.kernels.exact import STRIDE_BITS, Exact
from tracekit.leap.profile import share, strongly_strided

Pairs = Mapping[tuple[int, int], float]
"""(Store, load), as accesses -> which part of the load's executions depends on the store."""
STEPS = range(-10, 11)
"""Errors in steps of 10 %; 0 is what is right."""
PAPER = {
    "compression_ratio": 3539.0,
    "accesses_captured": 46.5,
    "instructions_captured": 40.5,
    "within_10_percent": 75.0,
    "within_10_percent_by_window": 48.0,  # LEAP has 56 % more pairs than it
    "strongly_strided_found": 88.0,
}
"""The paper's averages over seven programs of SPEC CPU2000: Table 1, Fig. 8, Fig. 9; but for the first in percent."""


class Truth(NamedTuple):
    """What is exact, and what the window has."""

    pairs: Pairs  # conflicts
    last: Pairs  # conflicts with the last store before the load: flow dependences
    window: Pairs  # conflicts with one of the last stores
    strides: Mapping[tuple[int, int], float]  # (access, stride): which part of the access's executions moves by it
    strided: Mapping[int, tuple[int, float]]  # as LeapProfile.strides


def truth_of(exact: Exact) -> Truth:
    """Of the tables of a finished run."""
    executions = exact.last["accesses"]
    found: list[dict[tuple[int, int], float]] = [{}, {}, {}]
    for key, *counts in used_rows(exact.pairs)[["key", "exact", "last", "window"]][1:].tolist():
        pair = key >> 32, key & 0xFFFF_FFFF
        for pairs, count in zip(found, counts):
            if count:
                pairs[pair] = count / int(executions[pair[1]])
    rows = used_rows(exact.strides)[1:]
    keys = rows["key"].astype(np.int64)
    shift = 64 - STRIDE_BITS
    accesses, strides = keys >> STRIDE_BITS, (keys << shift) >> shift
    shares = rows["count"] / executions[accesses]
    strong = strongly_strided(accesses, strides, rows["count"], dict(enumerate(executions.tolist())))
    pairs, last, window = found
    return Truth(pairs, last, window, dict(zip(zip(accesses.tolist(), strides.tolist()), shares.tolist())), strong)


def errors(exact: Pairs, estimated: Pairs) -> dict[int, float]:
    """Share, in percent, of the pairs that either has, by error: -10 is -100 % to -90 %, 0 right, 1 up to 10 %."""
    pairs = exact.keys() | estimated.keys()
    counts: Counter[int] = Counter()
    for pair in pairs:
        error = estimated.get(pair, 0.0) - exact.get(pair, 0.0)
        away = 0 if abs(error) < 1e-9 else min(int(abs(error) * 10 - 1e-9) + 1, 10)
        counts[away if error > 0 else -away] += 1
    return {step: share(counts[step], len(pairs)) for step in STEPS}


def comparison(
    summary: Mapping[str, Any], leap: Pairs, leap_strides: Mapping[int, tuple[int, float]], truth: Truth
) -> dict[str, Any]:
    """Tables ``errors`` (Fig. 6 to 8) and ``paper``, and the ``comparison`` in single numbers; `summary`: of LEAP."""
    by_leap, by_window = errors(truth.pairs, leap), errors(truth.pairs, truth.window)
    found = sum(leap_strides.get(each, (0,))[0] == stride for each, (stride, _) in truth.strided.items())
    near = {"within_10_percent": _near(by_leap), "within_10_percent_by_window": _near(by_window)}
    here = {**summary, **near, "strongly_strided_found": share(found, len(truth.strided))}
    return {
        "errors": [{"error": _range(step), "leap": by_leap[step], "window": by_window[step]} for step in STEPS],
        "paper": [{"figure": name, "here": here[name], "paper": average} for name, average in PAPER.items()],
        "comparison": {
            "pairs": len(truth.pairs),
            "pairs_of_leap": len(leap),
            **near,
            "strongly_strided": len(truth.strided),
            "strongly_strided_found": found,
            "strongly_strided_wrong": len(leap_strides) - found,
        },
    }


def _near(shares: Mapping[int, float]) -> float:
    return round(shares[-1] + shares[0] + shares[1], 1)


def _range(step: int) -> str:
    if step == 0:
        return "0 %"
    low, high = sorted((10 * step, 10 * (step - 1 if step > 0 else step + 1)))
    return f"{low} to {high} %"
