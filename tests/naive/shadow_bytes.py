"""The slow, obvious reference of shadow memory: a dict from (stream, byte) to what is known of the byte."""

from __future__ import annotations

from dataclasses import dataclass, field

Known = tuple[int, int]
"""Number of the last write, and the changes since."""


@dataclass
class NaiveShadow:
    """What is known of each byte of each stream; nothing is (0, 0)."""

    bytes: dict[tuple[int, int], Known] = field(default_factory=dict)

    def _span(self, address: int, size: int) -> range:
        """The bytes of an access; an address may be given with its sign."""
        return range(address % 2**64, address % 2**64 + size)

    def write(self, stream: int, address: int, size: int, number: int) -> None:
        for byte in self._span(address, size):
            self.bytes[stream, byte] = (number, 0)

    def change(self, stream: int, address: int, size: int) -> None:
        for byte in self._span(address, size):
            number, changes = self.at(stream, byte)
            self.bytes[stream, byte] = (number, changes + 1)

    def clear(self, address: int, size: int) -> None:
        for stream, byte in [key for key in self.bytes if key[1] in self._span(address, size)]:
            del self.bytes[stream, byte]

    def at(self, stream: int, byte: int) -> Known:
        return self.bytes.get((stream, byte % 2**64), (0, 0))
