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
_FOUR_GROUPS, _SEVEN_GROUPS = np.uint64(1 << 28), np.uint64(1 << 49)
_CONTINUED = np.uint64(0x8080808080808080)
_TAGS = np.uint64(0x08 << 40 | 0x20 << 24 | 0x10 << 8)
"""The tags of command and size, whose values have one byte, and of the tick, behind the length of the packet."""


def begin() -> bytes:
    """Magic number and header."""
    header = b"\x0a" + bytes([len(OBJECT)]) + OBJECT + b"\x18" + _varint(FREQUENCY)
    return b"gem5" + _varint(len(header)) + header


@kernel
def encode(kinds: Any, counters: Any, addresses: Any, sizes: Any, place: Any, out: Any) -> int:
    """`counters`: program counters (u8)."""
    at, access, begun, tick = 0, place[0], np.uint64(place[1]), np.uint64(place[TICK])
    ticks, step, groups, limit = _spread(tick), _spread(np.uint64(TICKS)), 0, np.uint64(0)
    while access < kinds.size and at + MOST <= out.size:
        start, length = addresses[access], sizes[access]
        if begun != 0 or length - np.uint64(1) >= np.uint64(LINE) - start % np.uint64(
            LINE
        ):  # no bytes, or several lines
            if length == 0:
                access += 1
                continue
            left = length - begun
            start, begun = next_piece(start, length, begun, LINE)
            length = min(np.uint64(LINE) - start % np.uint64(LINE), left)
        command = np.uint64(WRITE if kinds[access] == _STORE else READ)
        put_word(out, at, _TAGS | command << np.uint64(16) | length << np.uint64(32))
        if tick >= limit:
            groups = _groups(tick)
            limit = np.uint64(1) << np.uint64(7 * groups) if groups < 9 else ~np.uint64(0)
        put_word(out, at + 6, ticks | _continued(groups))
        end = at + 6 + groups if groups < 9 else _long(out, at + 6, tick)
        end = _put(out, end, 0x18, start)
        end = _put(out, end, 0x38, counters[access])
        out[at] = end - at - 1
        tick += np.uint64(TICKS)
        ticks = (ticks | _CONTINUED) + step & ~_CONTINUED  # the top bit of each group hands what it carries on
        at = end
        access += begun == 0
    place[0], place[1], place[TICK] = access, np.int64(begun), np.int64(tick)
    return at


@inlined
def _spread(value: Any) -> Any:
    """The lowest eight groups of seven bits of a number as the bytes of a word."""
    return _spread_half(
        value & np.uint64(0x0FFFFFFF) | (value >> np.uint64(28) & np.uint64(0x0FFFFFFF)) << np.uint64(32)
    )


@inlined
def _spread_half(value: Any) -> Any:
    """The same of both halves of a word, each of four groups."""
    value = value & np.uint64(0x00003FFF00003FFF) | (value & np.uint64(0x0FFFC0000FFFC000)) << np.uint64(2)
    return value & np.uint64(0x007F007F007F007F) | (value & np.uint64(0x3F803F803F803F80)) << np.uint64(1)


@inlined
def _groups(value: Any) -> Any:
    """How many groups of seven bits a varint has, up to nine: then nine or more."""
    groups = 4 if value >> np.uint64(21) != 0 else 1
    while groups < 9 and value >> np.uint64(7 * groups) != 0:
        groups += 1
    return groups


@inlined
def _continued(groups: Any) -> Any:
    """The top bits of a varint's bytes: of all but the last, of at most eight."""
    return _CONTINUED >> np.uint64(72 - 8 * groups) if groups > 1 else np.uint64(0)


@inlined
def _put(out: Any, at: Any, tag: Any, value: Any) -> Any:
    """Write a field that is a varint, and its tag (below 128); returns where it ends."""
    tag = np.uint64(tag)
    if value >> np.uint64(42) != 0 and value < _SEVEN_GROUPS:  # as addresses of most programs
        put_word(out, at, _spread(value) << np.uint64(8) | np.uint64(0x0080808080808000) | tag)
        return at + 8
    if value >> np.uint64(21) != 0 and value < _FOUR_GROUPS:  # as program counters of most
        put_word(out, at, _spread_half(value) << np.uint64(8) | np.uint64(0x0000000080808000) | tag)
        return at + 5
    out[at] = tag
    return _long(out, at + 1, value)


@kernel
def _long(out: Any, at: Any, value: Any) -> Any:
    """Any varint, byte by byte."""
    while value > np.uint64(127):
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
