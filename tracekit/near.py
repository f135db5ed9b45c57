"""Names that a user may have meant."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def nearest(name: str, known: Iterable[str], least: float = 0.6) -> list[str]:
    """Those of `known` that look most like `name`, as they stand there: several that are as near, or none.

    `least`: difflib's ratio below which a name is no other's misspelling.
    """
    ratios = {other: difflib.SequenceMatcher(None, other, name).ratio() for other in known}
    best = max(ratios.values(), default=0.0)
    return [other for other, ratio in ratios.items() if ratio == best >= least]
