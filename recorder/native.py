"""libtracekit-encoder.so through ctypes: the prototypes of recorder/runtime/encoder*.c, and nothing else.

Calls release the GIL, so that workers run side by side.
"""

from __future__ import annotations

import ctypes
import zlib
from ctypes import POINTER, c_char_p, c_int, c_size_t, c_uint32, c_uint64, c_void_p
from enum import IntEnum
from functools import cache

from tracekit.recorder import toolchain


class Worked(IntEnum):
    """Why ``tk_work`` returned (enum tk_worked)."""

    NOTHING = 0
    CHUNK = 1
    IMAGE = 2
    ALL = 3
    FAILED = 4
    DAMAGED = 5


class PoolStatus(ctypes.Structure):
    """struct tk_pool_status."""

    _fields_ = [
        ("mode", c_uint32),
        ("owner", c_uint32),
        ("images", c_uint32),
        ("images_lost", c_uint32),
        ("streams", c_uint32),
        ("buffers", c_uint32),
        ("waited", c_uint64),
        ("waits", c_uint64),
        ("unrecorded", c_uint64),
        ("forked", c_uint64),
    ]


_PROTOTYPES: dict[str, tuple[type | None, tuple[type, ...]]] = {
    "tk_pool_bytes": (c_uint64, (c_uint32, c_uint64)),
    "tk_pool_format": (c_void_p, (c_void_p, c_uint32, c_uint32, c_uint64)),
    "tk_pool_free": (None, (c_void_p,)),
    "tk_pool_adopt": (None, (c_void_p,)),
    "tk_pool_set_windows": (None, (c_void_p, c_int)),
    "tk_pool_set_rule": (c_int, (c_void_p, c_uint32, *(c_uint64,) * 5)),
    "tk_pool_add_event": (c_int, (c_void_p, c_uint32, c_int, c_uint32, c_uint32, c_char_p, c_uint64, c_uint32)),
    "tk_pool_add_filter": (c_int, (c_void_p, c_uint32, c_uint32, c_int, c_uint64, c_char_p)),
    "tk_pool_exited": (None, (c_void_p, c_int)),
    "tk_pool_discard": (None, (c_void_p,)),
    "tk_pool_status": (None, (c_void_p, POINTER(PoolStatus))),
    "tk_pool_exit_status": (c_int, (c_void_p,)),
    "tk_pool_image_offset": (c_uint64, (c_void_p, c_uint32)),
    "tk_pool_area_offset": (c_uint64, (c_void_p,)),
    "tk_pool_table_offset": (c_uint64, (c_void_p,)),
    "tk_pool_words_offset": (c_uint64, (c_void_p,)),
    "tk_encoder_new": (c_void_p, (c_uint32, c_uint32, c_uint32, c_int)),
    "tk_encoder_lanes": (c_uint32, (c_void_p,)),
    "tk_encoder_free": (None, (c_void_p,)),
    "tk_encoder_add": (c_uint32, (c_void_p, c_uint64, c_uint32, c_void_p, c_void_p, c_uint32)),
    "tk_encoder_trim": (c_int, (c_void_p, c_uint32, c_uint32, c_void_p, c_void_p, c_void_p, c_uint64)),
    "tk_encoder_drop": (None, (c_void_p, c_uint32)),
    "tk_encoder_ids": (c_uint32, (c_void_p,)),
    "tk_encoder_counts": (None, (c_void_p, c_void_p, c_uint32)),
    "tk_encoder_iterations": (None, (c_void_p, c_void_p, c_uint32)),
    "tk_encoder_unknown": (c_uint64, (c_void_p,)),
    "tk_encoder_chunk": (c_void_p, (c_void_p, c_uint32, c_uint32, c_uint32)),
    "tk_encoder_rest": (c_void_p, (c_void_p,)),
    "tk_encode": (c_size_t, (c_void_p, c_void_p, c_void_p, c_size_t, c_uint32)),
    "tk_work": (c_int, (c_void_p, c_void_p, c_uint64, c_uint64, POINTER(c_void_p))),
    "tk_chunk_facts": (None, (c_void_p, c_void_p)),
    "tk_chunk_bytes": (c_size_t, (c_void_p, c_void_p)),
    "tk_chunk_write": (None, (c_void_p, c_void_p)),
    "tk_chunk_recycle": (None, (c_void_p, c_void_p)),
    "tk_crc32_is_fast": (c_int, ()),
    "tk_crc32": (c_uint32, (c_uint32, c_char_p, c_size_t)),
}


def crc32(data: bytes) -> int:
    """``zlib.crc32(data)``, in a tenth of its time where the processor helps."""
    return int(library().tk_crc32(0, data, len(data))) if library().tk_crc32_is_fast() else zlib.crc32(data)


@cache
def library() -> ctypes.CDLL:
    """The encoder's library, built on first use; TracekitError if it cannot be built."""
    loaded = ctypes.CDLL(toolchain.runtime_file(toolchain.ENCODER))
    for name, (result, arguments) in _PROTOTYPES.items():
        function = getattr(loaded, name)
        function.restype = result
        function.argtypes = arguments
    return loaded
