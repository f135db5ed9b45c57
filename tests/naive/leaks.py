"""The slow, obvious references of how memory_errors finds what leaked: a dict of bytes, and sets of ways."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

Block = tuple[int, int]
"""First address, and the one behind the last."""


class Memory:
    """Bytes; None: anything."""

    def __init__(self) -> None:
        self.bytes: dict[int, int | None] = {}

    def put(self, address: int, data: Sequence[int | None]) -> None:
        self.bytes.update(zip(range(address, address + len(data)), data))

    def get(self, address: int, size: int) -> list[int | None]:
        return [self.bytes.get(at, 0) for at in range(address, address + size)]

    def words(self) -> dict[int, int]:
        """The aligned words all of whose bytes are known, and that are not zero."""
        found = {}
        for address in {at & -8 for at in self.bytes}:
            data = self.get(address, 8)
            if any(data) and None not in data:
                found[address] = int.from_bytes(bytes(byte or 0 for byte in data), "little")
        return found

    def hidden(self) -> set[int]:
        """Words with a byte that may be anything."""
        return {at & -8 for at, byte in self.bytes.items() if byte is None}


def block_at(blocks: Sequence[Block], address: int) -> int | None:
    return next((row for row, (start, end) in enumerate(blocks) if start <= address < max(end, start + 1)), None)


def reaches(blocks: Sequence[Block], libraries: Sequence[bool], words: Mapping[int, int]) -> list[str]:
    """How each block is reached, by the definitions of memcheck's manual."""
    edges = set()  # from a block (None: other memory), to a block, whether to its first byte
    for address, value in words.items():
        target = block_at(blocks, value)
        if target is not None:
            start, end = blocks[target]
            count = words.get(start, 0)
            counts = 0 < count < 1 << 63 and value == start + 8 and (end - start - 8) % count == 0
            edges.add((block_at(blocks, address), target, value == start or counts))

    def closure(begin: set[int | None], inside: bool) -> set[int | None]:
        known = set(begin)
        while more := {to for of, to, exact in edges if of in known and (exact or inside)} - known:
            known |= more
        return known

    everyone = set(range(len(blocks)))
    still = closure({None}, False)
    possibly = closure({None}, True)
    unknown = closure({row for row in everyone - possibly if libraries[row]}, True) if any(libraries) else set()
    lost = everyone - possibly - unknown
    indirectly: set[int] = set()
    for leader in sorted(lost):  # memcheck looks at block after block, and what it has found already leads nowhere
        waiting = [leader] if leader not in indirectly else []
        while waiting:
            here = waiting.pop()
            new = {to for of, to, _ in edges if of == here and to in lost - indirectly - {leader}}
            indirectly |= new
            waiting += new
    names = {
        **dict.fromkeys(lost, "definitely_lost"),
        **dict.fromkeys(indirectly, "indirectly_lost"),
        **dict.fromkeys(unknown, "unknown"),
        **dict.fromkeys(possibly, "possibly_lost"),
        **dict.fromkeys(still, "still_reachable"),
    }
    return [names[row] for row in range(len(blocks))]
