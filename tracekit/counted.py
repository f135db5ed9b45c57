"""Numbers with their nouns, for text and messages."""

from __future__ import annotations


def counted(number: int, noun: str, plural: str = "") -> str:
    """`1 trace`, `1,000 traces`, `2 accesses`; `plural` where it does not end in s or es alone."""
    ending = "es" if noun.endswith(("s", "ch", "sh", "x")) else "s"
    return f"{number:,} {noun if number == 1 else plural or noun + ending}"


def rounded(number: float) -> str:
    """Three digits and a unit, as in `634 M`."""
    for power, unit in ((4, " T"), (3, " G"), (2, " M"), (1, " k")):
        if number >= 999.5 * 1000 ** (power - 1):
            return f"{number / 1000**power:.3g}{unit}"
    return f"{number:.0f}"


def rounded_bytes(number: float) -> str:
    """The same of bytes, as in `3.51 kB`."""
    text = rounded(number)
    return text + ("B" if " " in text else " B")
