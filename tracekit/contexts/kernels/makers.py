"""Which call made an object that a wrapper of an allocator hands on."""

from __future__ import annotations

from typing import Any

import numpy as np

from tracekit.contexts.kernels.streams import FRAMES, NO_CALL
from tracekit.jit.kernel import inlined, kernel


@inlined
def maker(handed_on: Any, instruction: Any, levels: Any) -> Any:
    """The innermost of an allocation and the calls around it whose function keeps what is allocated.

    handed_on: u1 by instruction, 1 if its function returns what it makes. levels: the stream.
    """
    if instruction < handed_on.size and handed_on[np.uint64(instruction)] != 0:
        return _maker(handed_on, instruction, levels.frames, levels.control[FRAMES])
    return instruction


@kernel
def _maker(handed_on: Any, instruction: Any, frames: Any, open_calls: Any) -> int:
    frame = np.int64(open_calls)
    while frame > 0 and instruction < handed_on.size and handed_on[instruction] != 0:
        frame -= 1
        call = np.int64(frames[frame].call)
        if call == NO_CALL:
            break
        instruction = call
    return int(instruction)
