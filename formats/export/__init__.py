"""Traces in the formats of simulators: loads and stores, one file here for each format.

Every format has a kernel that takes batches of accesses and fills a buffer; it stops where the next line may have no
room, and goes on from there when it is called again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tracekit.formats.errors import TracekitError
from tracekit.formats.events import NONE
from tracekit.formats.export import champsim, dinero, gem5, lackey, ramulator2

Encode = Callable[..., int]
"""Of kinds (uint8), instructions (uint32), addresses and sizes (uint64) of n accesses, a place (int64[PLACE]: accesses
that are done, and bytes of the next one that are; the others are the format's own, which the next batch finds) and the
buffer (uint8): how many bytes of it are filled."""

PLACE = 4

BUFFER = 1 << 20
"""Bytes, few enough for the processor's cache."""

NO_COUNTER = np.uint64(2**64 - 1)
"""In place of a program counter."""


class Format(NamedTuple):
    """A format: what it is called in the help, and its kernel."""

    help: str
    encode: Encode
    is_text: bool = True
    counters: Callable[[Any], Any] | None = None
    """What gives the kernel program counters (uint64) in place of instructions, where the trace has none."""
    begin: bytes = b""
    end: Callable[[Any], bytes] | None = None
    """What follows the last access, of the place."""
    last: int = 2**64 - 1
    """The greatest address that can be written."""


FORMATS = {
    "din": Format("Dinero IV, -informat d: a line for each word of 4 bytes", dinero.encode_words),
    "xdin": Format("Dinero IV, -informat D: with sizes", dinero.encode),
    "lackey": Format("valgrind --tool=lackey --trace-mem=yes", lackey.encode),
    "lackey-i": Format(
        "the same with a line I before each access", lackey.encode_instructions, counters=champsim.counters
    ),
    "ramulator2": Format(
        "Ramulator 2, LoadStoreTrace: a line for each 64 bytes", ramulator2.encode, last=ramulator2.LAST
    ),
    "ramulator2-o3": Format(
        "Ramulator 2, SimpleO3: bubbles, load, store", ramulator2.encode_o3, end=ramulator2.end_o3, last=ramulator2.LAST
    ),
    "champsim": Format(
        "ChampSim's input_instr; an instruction for each access", champsim.encode, False, champsim.counters
    ),
    "gem5": Format(
        "gem5's packet trace, for TraceGen; a packet for each 64 bytes",
        gem5.encode,
        False,
        champsim.counters,
        gem5.begin(),
    ),
}


def exported(
    batches: Iterable[Any], form: Format, known: NDArray[np.uint64] | None = None, bubbles: int = 0
) -> Iterator[bytes | memoryview]:
    """The accesses of batches (kind, subject, address, size) in a format, in parts of at most BUFFER bytes.

    The next part may overwrite the one before it.

    Raises TracekitError for an address that the format cannot hold.
    `known`: the program counter of each instruction of an imported trace, NO_COUNTER where there is none.
    `bubbles`: what ramulator2-o3 says of instructions without accesses before each line.
    """
    buffer = np.zeros(BUFFER, np.uint8)
    place = np.zeros(PLACE, np.int64)
    place[ramulator2.BUBBLES] = bubbles
    if form.begin:
        yield form.begin
    for batch in batches:
        place[:2] = 0
        _refuse(batch.address, form.last)
        instructions = batch.subject if form.counters is None else counters(batch.subject, form.counters, known)
        while place[0] < len(batch.kind):
            filled = form.encode(batch.kind, instructions, batch.address, batch.size, place, buffer)
            if filled:
                yield buffer.data[:filled]
    if form.end is not None:
        yield form.end(place)


def counters_of(rows: NDArray[Any], instructions: int) -> NDArray[np.uint64]:
    """The program counter of each instruction; `rows` are those of the table ``counters``."""
    known = np.full(instructions, NO_COUNTER, np.uint64)
    known[rows["op"]] = rows["counter"]
    return known


def counters(instructions: Any, made: Callable[[Any], Any], known: NDArray[np.uint64] | None) -> NDArray[np.uint64]:
    """The program counters of instructions: those that are known, or those that a format has `made`."""
    counters: NDArray[np.uint64]
    if known is None:
        counters = made(instructions)
    else:
        found = known[instructions]
        counters = np.where(found == NO_COUNTER, made(np.full(1, NONE, np.uint32)), found)
    return counters


def _refuse(addresses: NDArray[np.uint64], last: int) -> None:
    """Raises TracekitError for an address that is greater than `last`."""
    if last < 2**64 - 1 and len(addresses) and addresses.max() > last:
        raise TracekitError(f"There is an access to {addresses.max():#x}, and this format ends at {last:#x}.")
