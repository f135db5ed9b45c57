"""gem5's packet traces: what a CommMonitor's MemTraceProbe writes and a TraceGen reads (gem5, src/proto/packet.proto).

A magic number, then messages of protocol buffers, each behind its length: a PacketHeader, and a Packet for each line of
64 bytes that an access touches. The trace knows no time, so each packet is TICKS later than the one before.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tracekit.formats.events import CODE
from tracekit.formats.export.lines import LINE, take_piece
from tracekit.jit.kernel import inlined, kernel

OBJECT = b"tracekit"
"""What the header says that the packets were seen at."""
FREQUENCY = 10**12
"""Ticks in a second. gem5's own; a TraceGen refuses another."""
TICKS = 1000
"""From one packet to the next: a nanosecond."""
READ, WRITE = 1, 4
"""Commands: ReadReq and WriteReq of gem5's MemCmd."""

PACKETS = 2
"""The element of the place that counts them."""
MOST = 2 + 3 * 11 + 2 * 2
"""Bytes of a packet at most: length, tick, address, program counter, command, size."""

_STORE = CODE["store"]


def begin() -> bytes:
    """Magic number and header."""
    header = b"\x0a" + bytes([len(OBJECT)]) + OBJECT + b"\x18" + _varint(FREQUENCY)
    return b"gem5" + _varint(len(header)) + header


@kernel
def encode(kinds: Any, counters: Any, addresses: Any, sizes: Any, place: Any, out: Any) -> int:
    """`counters`: program counters (u8)."""
    at = 0
    while place[0] < kinds.size and at + MOST <= out.size:
        access = place[0]
        if sizes[access] == 0:
            place[0] += 1
            continue
        begun = place[1]
        start = take_piece(place, addresses[access], sizes[access], LINE)
        length = min(np.uint64(LINE) - start % np.uint64(LINE), sizes[access] - np.uint64(begun))
        end = _field(out, at + 1, 0x08, np.uint64(place[PACKETS]) * np.uint64(TICKS))
        end = _field(out, end, 0x10, np.uint64(WRITE if kinds[access] == _STORE else READ))
        end = _field(out, end, 0x18, start)
        end = _field(out, end, 0x20, length)
        end = _field(out, end, 0x38, counters[access])
        out[at] = end - at - 1
        place[PACKETS] += 1
        at = end
    return at


@inlined
def _field(out: Any, at: Any, tag: Any, value: Any) -> Any:
    """Write a field that is a varint; returns where it ends."""
    out[at] = tag
    at += 1
    while value >= np.uint64(128):
        out[at] = value & np.uint64(127) | np.uint64(128)
        value >>= np.uint64(7)
        at += 1
    out[at] = value
    return at + 1


def _varint(value: int) -> bytes:
    found = b""
    while value > 127:
        found += bytes([value & 127 | 128])
        value >>= 7
    return found + bytes([value])
