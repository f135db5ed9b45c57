"""gem5's packet traces: what a CommMonitor's MemTraceProbe writes and a TraceGen reads (gem5, src/proto/packet.proto).

A magic number, then messages of protocol buffers, each behind its length: a PacketHeader, and a Packet for each line of
64 bytes that an access touches. The trace knows no time, so each packet is TICKS later than the one before.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tracekit.formats.events import CODE
from tracekit.formats.export.lines import LINE, next_piece, put_word
from tracekit.jit.kernel import inlined, kernel

OBJECT = b"tracekit"
"""What the header says that the packets were seen at."""
FREQUENCY = 10**12
"""Ticks in a second. gem5's own; a TraceGen refuses another."""
TICKS = 1000
"""From one packet to the next: a nanosecond."""
READ, WRITE = 1, 4
"""Commands: ReadReq and WriteReq of gem5's MemCmd."""

TICK = 2
"""The element of the place that has the next packet's."""
MOST = 2 + 3 * 11 + 2 * 2 + 8
"""Bytes of a packet at most: length, tick, address, program counter, command, size; and those of a word behind it."""

_STORE = CODE["store"]
_EIGHT_GROUPS = np.uint64(1 << 56)


def begin() -> bytes:
    """Magic number and header."""
    header = b"\x0a" + bytes([len(OBJECT)]) + OBJECT + b"\x18" + _varint(FREQUENCY)
    return b"gem5" + _varint(len(header)) + header


@kernel
def encode(kinds: Any, counters: Any, addresses: Any, sizes: Any, place: Any, out: Any) -> int:
    """`counters`: program counters (u8)."""
    at, access, begun, tick = 0, place[0], np.uint64(place[1]), np.uint64(place[TICK])
    while access < kinds.size and at + MOST <= out.size:
        if sizes[access] == 0:
            access += 1
            continue
        left = sizes[access] - begun
        start, begun = next_piece(addresses[access], sizes[access], begun, LINE)
        length = min(np.uint64(LINE) - start % np.uint64(LINE), left)
        end = _field(out, at + 1, 0x08, tick)
        end = _field(out, end, 0x10, np.uint64(WRITE if kinds[access] == _STORE else READ))
        end = _field(out, end, 0x18, start)
        end = _field(out, end, 0x20, length)
        end = _field(out, end, 0x38, counters[access])
        out[at] = end - at - 1
        tick += np.uint64(TICKS)
        at = end
        access += begun == 0
    place[0], place[1], place[TICK] = access, np.int64(begun), np.int64(tick)
    return at


@inlined
def _field(out: Any, at: Any, tag: Any, value: Any) -> Any:
    """Write a field that is a varint, groups of seven bits at once; returns where it ends. The last word is whole."""
    out[at] = tag
    at += 1
    while value >= _EIGHT_GROUPS:
        out[at] = value & np.uint64(127) | np.uint64(128)
        value >>= np.uint64(7)
        at += 1
    groups = 1
    rest = value
    for bits in (28, 14, 7):
        if rest >> np.uint64(bits) != 0:
            groups += bits // 7
            rest >>= np.uint64(bits)
    value = value & np.uint64(0x0FFFFFFF) | (value >> np.uint64(28)) << np.uint64(32)
    value = value & np.uint64(0x00003FFF00003FFF) | (value & np.uint64(0x0FFFC0000FFFC000)) << np.uint64(2)
    value = value & np.uint64(0x007F007F007F007F) | (value & np.uint64(0x3F803F803F803F80)) << np.uint64(1)
    others = (np.uint64(1) << np.uint64(8 * groups - 8)) - np.uint64(1)  # a mask of the bytes before the last
    put_word(out, at, value | others & np.uint64(0x8080808080808080))
    return at + groups


def _varint(value: int) -> bytes:
    found = b""
    while value > 127:
        found += bytes([value & 127 | 128])
        value >>= 7
    return found + bytes([value])
