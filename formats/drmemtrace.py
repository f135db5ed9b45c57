"""Records of DynamoRIO's drmemtrace: ``trace_entry_t`` of its drcachesim, 12 bytes each, of 32-bit programs 8."""

from __future__ import annotations

import numpy as np

ENTRY = np.dtype([("type", "<u2"), ("size", "<u2"), ("value", "<u8")])
ENTRY_32 = np.dtype([("type", "<u2"), ("size", "<u2"), ("value", "<u4")])
"""The same of a 32-bit program: 8 bytes, and the low halves of values that are longer."""

# trace_type_t. What lies between READ and INSTR, and between SYSENTER and ENCODING, are prefetches.
READ, WRITE, INSTR, RETURN, BUNDLE = 0, 1, 10, 16, 17
INSTR_FLUSH, DATA_FLUSH_END = 18, 21
THREAD, THREAD_EXIT, PID, HEADER, FOOTER, HARDWARE_PREFETCH, MARKER = 22, 23, 24, 25, 26, 27, 28
NO_FETCH, SYSENTER, ENCODING, TAKEN_JUMP, UNTAKEN_JUMP = 29, 31, 47, 48, 49

# trace_marker_type_t, in the field `size` of a MARKER.
TIMESTAMP, CPU_ID, FILE_TYPE, CACHE_LINE_SIZE, INSTRUCTION_COUNT, VERSION, PAGE_SIZE = 2, 3, 9, 10, 11, 12, 18
CHUNK_INSTRUCTIONS, CHUNK_FOOTER, RECORD_ORDINAL = 20, 21, 22
SYSCALL_TRACE_START, SYSCALL_TRACE_END, SWITCH_TRACE_START, SWITCH_TRACE_END = 27, 28, 34, 35

# offline_file_type_t, a sum.
AARCH64, ARM32, X86_32, X86_64, INSTRUCTIONS_FILTERED, CORE_SHARDED = 0x8, 0x10, 0x20, 0x40, 0x80, 0x10000
ARCHITECTURES = AARCH64 | ARM32 | X86_32 | X86_64

OLDEST, NEWEST = 1, 7
"""Versions of the format that are read."""
