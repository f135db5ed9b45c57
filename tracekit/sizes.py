"""Sizes of memory: whole numbers are read (4096, 32K, 1M), fractions are shown (1.5 MiB)."""

from __future__ import annotations

UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def parsed(text: str) -> int:
    """The bytes of ``4096``, ``32K``, ``1M`` or ``2G``; a B or iB behind the letter changes nothing.

    Raises ValueError, with a sentence, for anything else, and for 0.
    """
    plain = text.strip().upper().removesuffix("IB").removesuffix("B")
    unit = plain[-1:] if plain[-1:] in ("K", "M", "G") else ""
    number = plain.removesuffix(unit)
    if not (number.isascii() and number.isdigit() and int(number)):
        raise ValueError(f"a size is a number of bytes, as 4096, 32K or 1M, not {text!r}.")
    return int(number) * UNITS[unit]


def rounded(size: float) -> str:
    """Three digits and a unit, as `1.5 MiB`; bytes are whole."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < 1024:
            return f"{size:.3g} {unit}" if unit != "B" else f"{size:.0f} B"
        size /= 1024
    return f"{size:.3g} TiB"


def shown(size: int) -> str:
    """`64 B`, `32 KiB`, `1.5 MiB`."""
    for unit in ("G", "M", "K"):
        if size >= UNITS[unit]:
            return f"{size / UNITS[unit]:.4g} {unit}iB"
    return f"{size} B"
