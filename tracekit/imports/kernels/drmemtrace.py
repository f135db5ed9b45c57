"""Reads records of DynamoRIO's drmemtrace.

What a record means depends on those before it: the thread and the instruction that accesses belong to, the bytes of
its encoding so far, whether they are the kernel's, the time.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tracekit.formats.drmemtrace import (
    BUNDLE,
    ENCODING,
    FILE_TYPE,
    FOOTER,
    HEADER,
    INSTR,
    MARKER,
    NEWEST,
    NO_FETCH,
    OLDEST,
    PID,
    READ,
    RETURN,
    SWITCH_TRACE_END,
    SWITCH_TRACE_START,
    SYSCALL_TRACE_END,
    SYSCALL_TRACE_START,
    SYSENTER,
    TAKEN_JUMP,
    THREAD,
    TIMESTAMP,
    UNTAKEN_JUMP,
    VERSION,
    WRITE,
)
from tracekit.imports.kernels.records import LOAD, STORE, UNKNOWN, counter_of, has_room, put
from tracekit.jit.kernel import inlined, kernel

LONGEST = 15
"""Bytes of an encoding at most."""

# Elements of the state (uint64).
AT, COUNTER, NEXT, ENCODED, HAS_COUNTER, IN_KERNEL, IS_BEGUN, IS_OVER, TIME, TYPE, FOUND_VERSION, TID = range(12)
"""Entries that are read; the present instruction's program counter, and that behind it; bytes of an encoding that wait
for their instruction; flags; the latest time, the bits of the file's type, its version; the thread."""
INSTRUCTIONS, KERNEL_ACCESSES = 12, 13
"""Numbers of user instructions, and of the kernel's accesses."""
STATE = 14

GOES_ON, FULL, NEW_THREAD, NEW_TIME, DAMAGED, WRONG_VERSION, NO_THREAD = range(7)
"""What the kernel returns: the entries end; `out` is full; a thread begins or goes on; a time after the limit; what
stands there is no entry; another version; an access or an instruction of no thread."""


@inlined
def _is_instruction(kind: Any) -> Any:
    return INSTR <= kind <= RETURN or NO_FETCH <= kind <= SYSENTER or kind == TAKEN_JUMP or kind == UNTAKEN_JUMP


@inlined
def _marked(state: Any, what: Any, value: Any, limit: Any) -> Any:
    """What follows from a marker."""
    if what == SYSCALL_TRACE_START or what == SWITCH_TRACE_START:
        state[IN_KERNEL] = 1
    elif what == SYSCALL_TRACE_END or what == SWITCH_TRACE_END:
        state[IN_KERNEL] = 0
    elif what == FILE_TYPE:
        state[TYPE] = value
    elif what == VERSION:
        state[FOUND_VERSION] = value
    elif what == TIMESTAMP and value > state[TIME]:
        state[TIME] = value
        return NEW_TIME if value > limit else GOES_ON
    return GOES_ON


@inlined
def _pass_bundle(state: Any, count: Any, lengths: Any) -> None:
    """The next `count` instructions without accesses; a byte of `lengths` is the length of one."""
    for place in range(count):
        state[COUNTER] = state[NEXT]
        state[NEXT] += lengths >> np.uint64(8 * place) & np.uint64(255)
    state[INSTRUCTIONS] += np.uint64(count) * np.uint64(state[IN_KERNEL] == 0)


@kernel
def read(entries: Any, state: Any, met: Any, out: Any, limit: int, with_kernel: bool) -> int:
    """Read `entries` (rows of ENTRY) until they end, or something else than an access is to be done."""
    counter = np.int64(UNKNOWN)  # not looked up
    while state[AT] < entries.size:
        row = entries[state[AT]]
        kind, size, value = row.type, row.size, row.value
        status = GOES_ON
        if kind <= WRITE:
            if state[TID] == 0:
                return NO_THREAD
            if not has_room(out, 1):
                return FULL
            if state[IN_KERNEL] == 1:
                state[KERNEL_ACCESSES] += 1
            if size != 0 and (with_kernel or state[IN_KERNEL] == 0):
                if counter == UNKNOWN and state[HAS_COUNTER] == 1:
                    counter = np.int64(counter_of(met, state[COUNTER]))
                put(met, out, counter, LOAD if kind == READ else STORE, value, size)
        elif _is_instruction(kind):
            if state[TID] == 0:
                return NO_THREAD
            state[COUNTER], state[NEXT], state[ENCODED], state[HAS_COUNTER] = value, value + size, 0, 1
            counter = np.int64(UNKNOWN)
            state[INSTRUCTIONS] += np.uint64(size != 0 and state[IN_KERNEL] == 0)
        elif kind == ENCODING:
            state[ENCODED] += size
            if state[ENCODED] > LONGEST:
                return DAMAGED
        elif kind == MARKER:
            status = _marked(state, size, value, np.uint64(limit))
        elif kind == BUNDLE:
            if state[HAS_COUNTER] == 0 or size > 8:
                return DAMAGED
            _pass_bundle(state, size, value)
            counter = np.int64(UNKNOWN)
        elif kind == THREAD:
            if value != state[TID]:
                status = NEW_THREAD
            state[TID] = value
        elif kind == HEADER:
            state[FOUND_VERSION] = value
        elif kind > UNTAKEN_JUMP or (state[IS_BEGUN] == 0 and kind != PID):
            return DAMAGED
        if state[IS_BEGUN] == 0:
            if kind != HEADER:
                return DAMAGED
            state[IS_BEGUN] = 1
        if not OLDEST <= state[FOUND_VERSION] <= NEWEST:
            return WRONG_VERSION
        state[IS_OVER] = np.uint64(kind == FOOTER)
        state[AT] += 1
        if status != GOES_ON:
            return status
    return GOES_ON
