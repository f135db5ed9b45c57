"""The time of each access, interpolated between hand-overs of its stream: slices of the run in seconds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracekit.formats.errors import TracekitError
from tracekit.modules.options import option
from tracekit.paths.tables import has_known_size
from tracekit.program.program import Program
from tracekit.schedule.kernels.time_slices import UNTIMED, TimeSlices

I8 = NDArray[np.int64]

PARTS = 20
"""log2 of the parts of a stream at most."""


def axis_option() -> Any:
    """The option `axis` of a module whose rows are slices of the run; its default is not said in profiles."""
    return option(
        "accesses",
        "What slices are equal in: accesses, in the order of replay, or seconds of the run, by hand-overs of buffers.",
        choices=("accesses", "seconds"),
        unsaid=True,
    )


def slice_length(hand_overs: Mapping[int, tuple[I8, I8]], slices: int) -> int:
    """Nanoseconds of each of at most `slices` slices of the run, up to its last hand-over.

    Raises TracekitError if there is none.
    """
    if not hand_overs:
        raise TracekitError(
            "The trace has no times: no thread filled a buffer of records, or an older tracekit recorded it. "
            "Leave out --axis seconds."
        )
    return max(int(times[-1]) for times, _ in hand_overs.values()) // slices + 1


def time_slices(program: Program, hand_overs: Mapping[int, tuple[I8, I8]], slices: int) -> TimeSlices:
    """The state of :func:`next_slice`: accesses are spread evenly between two hand-overs of their stream.

    Behind a stream's last hand-over, and in a stream without any, nothing is known of the time.
    """
    length = slice_length(hand_overs, slices)
    streams = max(hand_overs) + 1
    most = max(int(before[-1]) for _, before in hand_overs.values())
    bits = max(most.bit_length() - PARTS, 0)
    parts = [_slices(*hand_overs[number], bits, length) if number in hand_overs else _NONE for number in range(streams)]
    return TimeSlices(
        np.zeros(streams, np.int64),
        np.concatenate([[0], np.cumsum([len(part) for part in parts])]),
        np.concatenate(parts),
        np.array([bits]),
        has_known_size(program).astype(np.uint8),
    )


_NONE = np.array([UNTIMED])


def _slices(times: I8, before: I8, bits: int, length: int) -> I8:
    """Those of the parts of a stream, by the first access of each."""
    accesses = np.arange(0, int(before[-1]), 1 << bits)
    place = np.searchsorted(before, accesses, side="right") - 1
    since, until = before[place], before[place + 1]
    passed = (accesses - since) / (until - since) * (times[place + 1] - times[place])
    made: I8 = (times[place] + passed).astype(np.int64) // length
    return np.concatenate([made, _NONE])
