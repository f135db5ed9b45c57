"""The slow, obvious reference of shadow memory: a dict from (stream, byte) to what is known of the byte."""

from __future__ import annotations

from dataclasses import dataclass, field

Known = tuple[int, int]
"""Number of the last write, and the changes since."""


@dataclass
class NaiveShadow:
    """What is known of each byte of each stream; nothing is (0, 0)."""

    bytes: dict[tuple[int, int], Known] = field(default_factory=dict)

    def write(self, stream: int, address: int, size: int, number: int) -> None:
        for byte in range(address, address + size):
            self.bytes[stream, byte] = (number, 0)

    def change(self, stream: int, address: int, size: int) -> None:
        for byte in range(address, address + size):
            number, changes = self.at(stream, byte)
            self.bytes[stream, byte] = (number, changes + 1)

    def clear(self, address: int, size: int) -> None:
        for stream, byte in [key for key in self.bytes if address <= key[1] < address + size]:
            del self.bytes[stream, byte]

    def at(self, stream: int, byte: int) -> Known:
        return self.bytes.get((stream, byte), (0, 0))
