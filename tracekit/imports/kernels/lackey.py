"""Reads what ``valgrind --tool=lackey --trace-mem=yes`` prints: an instruction's line, then those of its accesses.

I  04001030,3
 S 1ffeffff98,8
 M 0402d1a0,4
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tracekit.imports.kernels.records import BOTH, LOAD, STORE, UNKNOWN, counter_of, has_room, put
from tracekit.jit.kernel import inlined, kernel

# Elements of the state.
AT, LINE, COUNTER, INSTRUCTIONS, IS_KNOWN = range(5)
"""Where the next line begins, lines before it, the counter of the present instruction as its row (a number that is only
looked up once an access asks for it), instructions so far, and whether there is a present instruction."""
STATE = 6

GOES_ON, DAMAGED = 0, 1
"""What the kernel returns."""

_PENDING = 5  # element of the state: the counter itself, not looked up yet
_END = ord("\n")


@inlined
def _hex(data: Any, at: Any) -> Any:
    """A number in hexadecimal digits, and where they end; at `at` if there is none, or too many."""
    value, start = np.uint64(0), at
    while True:
        letter = data[at]
        if ord("0") <= letter <= ord("9"):
            digit = letter - ord("0")
        elif ord("a") <= letter <= ord("f"):
            digit = letter - (ord("a") - 10)
        else:
            break
        value = value << np.uint64(4) | np.uint64(digit)
        at += 1
    return (value, at) if at - start <= 16 else (value, start)


@inlined
def _decimal(data: Any, at: Any) -> Any:
    """A number in decimal digits, and where they end; at `at` if there is none, or it has more than 19."""
    value, start = np.uint64(0), at
    while ord("0") <= data[at] <= ord("9"):
        value = value * np.uint64(10) + np.uint64(data[at] - ord("0"))
        at += 1
    return (value, at) if at - start <= 19 else (value, start)


@kernel
def read(data: Any, state: Any, met: Any, out: Any) -> int:
    """Read lines of `data` (uint8, ends with the end of a line) until it ends or `out` is full."""
    at = state[AT]
    while at < data.size and has_room(out, 1):
        first = data[at]
        if first == _END or (first == data[at + 1] and (first == ord("=") or first == ord("-") or first == ord("#"))):
            while data[at] != _END:
                at += 1
        elif first == ord("I") or first == ord(" "):
            letter = data[at + 1]
            kind = LOAD if letter == ord("L") else STORE if letter == ord("S") else BOTH
            is_access = first == ord(" ") and (kind != BOTH or letter == ord("M"))
            if not (is_access or (first == ord("I") and letter == ord(" "))) or data[at + 2] != ord(" "):
                return DAMAGED
            number, end = _hex(data, at + 3)
            if end == at + 3 or data[end] != ord(","):
                return DAMAGED
            size, last = _decimal(data, end + 1)
            if last == end + 1 or data[last] != _END or size == 0:
                return DAMAGED
            if is_access:
                if state[IS_KNOWN] == 1 and state[COUNTER] == UNKNOWN:
                    state[COUNTER] = counter_of(met, np.uint64(state[_PENDING]))
                put(met, out, state[COUNTER], kind, number, size)
            else:
                state[_PENDING], state[IS_KNOWN], state[COUNTER] = np.int64(number), 1, UNKNOWN
                state[INSTRUCTIONS] += 1
            at = last
        else:
            return DAMAGED
        at += 1
        state[AT] = at
        state[LINE] += 1
    return GOES_ON
