"""What simulators say of the addresses that decided, as text."""

from __future__ import annotations

from tracekit.render.text import Json


def addresses_text(summary: Json) -> str:
    """The end of a sentence: nothing of virtual addresses, which are the usual ones."""
    if "unlocated" not in summary:
        return ""
    if not summary["unlocated"]:
        return "; by physical addresses"
    return f"; by physical addresses, but for {summary['unlocated']:,} accesses to pages whose frame is not known"
