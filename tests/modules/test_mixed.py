"""Mixed batches, of several streams that take turns, fed to modules made of callbacks."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.modules.test_runner import Everything, Options, profile
from tests.naive.program_builder import ProgramBuilder
from tests.naive.random_trace import write_random
from tests.naive.trace_file import write_trace
from tracekit.formats.errors import TracekitError
from tracekit.formats.events import CODE
from tracekit.formats.image import BlockFlag
from tracekit.module import Module
from tracekit.modules.options import NoOptions


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 2**32), streams=st.integers(2, 5))
def test_mixed_batches_are_to_a_module_what_those_of_single_streams_are(
    tmp_path_factory: Any, seed: int, streams: int
) -> None:
    path = tmp_path_factory.mktemp("t") / "trace.zst"
    write_random(path, random.Random(seed), streams, broken=False, events=60)
    alone = profile(path, Everything, Options(), 1, 1)
    for workers, jobs in ((1, 1), (2, 1), (3, 2)):
        assert profile(path, Everything, Options(), workers, jobs, mixes=True) == alone


class Allocated(Module):
    """Sums up the sizes of objects."""

    def state(self) -> Any:
        return (np.zeros(1, np.int64),)

    @staticmethod
    def heap_alloc(state: Any, size: int) -> None:
        state[0][0] += size

    def result(self, state: Any) -> dict[str, Any]:
        return {"bytes": int(state[0][0])}


@pytest.mark.parametrize("mixes", [False, True])
def test_an_event_that_claims_too_many_bytes_is_refused(mixes: bool, tmp_path: Path) -> None:
    builder = ProgramBuilder()
    builder.block(builder.function("main"), BlockFlag.ENTRY)
    alloc, size = CODE["heap_alloc"], 8
    streams = {
        stream: [(alloc, [2 * k + stream, ((stream + 1) << 40) + 64 * k, size]) for k in range(20)] for stream in (0, 1)
    }
    write_trace(tmp_path / "good.zst", builder.layout(), streams)
    assert profile(tmp_path / "good.zst", Allocated, NoOptions(), 1, 1, mixes) == {"bytes": 40 * size}
    streams[1][10][1][2] = 1 << 41
    write_trace(tmp_path / "bad.zst", builder.layout(), streams)
    with pytest.raises(TracekitError, match="claims more bytes than a program can have"):
        profile(tmp_path / "bad.zst", Allocated, NoOptions(), 1, 1, mixes)
