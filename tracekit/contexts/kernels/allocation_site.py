"""The allocation site of an object: the call that made it, outside of wrappers of allocators."""

from __future__ import annotations

from typing import Any

import numpy as np

from tracekit.contexts.kernels.streams import FRAMES, NO_CALL
from tracekit.jit.kernel import inlined, kernel


@inlined
def allocation_site(in_wrapper: Any, instruction: Any, levels: Any) -> Any:
    """The innermost of an allocation and the calls around it whose function keeps what is allocated.

    in_wrapper: u1 by instruction, 1 if its function is a wrapper, which returns what it allocates. levels: the stream.
    """
    if instruction < in_wrapper.size and in_wrapper[np.uint64(instruction)] != 0:
        return _outside_wrappers(in_wrapper, instruction, levels.frames, levels.control[FRAMES])
    return instruction


@kernel
def _outside_wrappers(in_wrapper: Any, instruction: Any, frames: Any, open_calls: Any) -> int:
    frame = np.int64(open_calls)
    while frame > 0 and instruction < in_wrapper.size and in_wrapper[instruction] != 0:
        frame -= 1
        call = np.int64(frames[frame].call)
        if call == NO_CALL:
            break
        instruction = call
    return int(instruction)
