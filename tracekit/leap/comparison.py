"""LEAP's dependences and strides beside exact ones and Connors' window (Wu et al., CGO 2004, Fig. 6 to 9)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np

from tracekit.containers.hash_table import used_rows
from tracekit.leap.kernels.exact import STRIDE_BITS, Exact
from tracekit.leap.profile import strongly_strided

Pairs = Mapping[tuple[int, int], float]
STEPS = range(-10, 11)
"""Errors in steps of 10 %; 0 is what is right."""


def exact_pairs(exact: Exact) -> tuple[dict[tuple[int, int], float], dict[tuple[int, int], float]]:
    """(Store, load), as accesses -> conflicts over executions of the load: exact, and as the window has them."""
    executions = exact.last["accesses"]
    found: list[dict[tuple[int, int], float]] = [{}, {}]
    for key, *counts in used_rows(exact.pairs)[["key", "exact", "window"]][1:].tolist():
        pair = key >> 32, key & 0xFFFF_FFFF
        for pairs, count in zip(found, counts):
            if count:
                pairs[pair] = count / int(executions[pair[1]])
    return found[0], found[1]


def exact_strides(exact: Exact) -> dict[int, tuple[int, float]]:
    """As LeapProfile.strides."""
    rows = used_rows(exact.strides)[1:]
    keys = rows["key"].astype(np.int64)
    shift = 64 - STRIDE_BITS
    accesses = exact.last["accesses"]
    executions = dict(enumerate(accesses.tolist()))
    return strongly_strided(keys >> STRIDE_BITS, (keys << shift) >> shift, rows["count"], executions)


def errors(exact: Pairs, estimated: Pairs) -> dict[int, float]:
    """Share, in percent, of the pairs that either has, by error: -10 is -100 % to -90 %, 0 right, 1 up to 10 %."""
    pairs = exact.keys() | estimated.keys()
    counts: Counter[int] = Counter()
    for pair in pairs:
        error = estimated.get(pair, 0.0) - exact.get(pair, 0.0)
        away = 0 if abs(error) < 1e-9 else min(int(abs(error) * 10 - 1e-9) + 1, 10)
        counts[away if error > 0 else -away] += 1
    return {step: round(100 * counts[step] / max(len(pairs), 1), 1) for step in STEPS}


def comparison(leap: Pairs, leap_strides: Mapping[int, Any], exact: Exact) -> dict[str, Any]:
    """Tables ``errors`` (Fig. 6 to 8), and the ``comparison`` in single numbers."""
    truth, window = exact_pairs(exact)
    strides = exact_strides(exact)
    by_leap, by_window = errors(truth, leap), errors(truth, window)
    found = sum(leap_strides.get(each, (0,))[0] == stride for each, (stride, _) in strides.items())
    return {
        "errors": [{"error": _range(step), "leap": by_leap[step], "window": by_window[step]} for step in STEPS],
        "comparison": {
            "pairs": len(truth),
            "pairs_of_leap": len(leap),
            "within_10_percent": _near(by_leap),
            "within_10_percent_by_window": _near(by_window),
            "strongly_strided": len(strides),
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
