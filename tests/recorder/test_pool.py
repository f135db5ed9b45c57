"""The pool's layout as Python mirrors it."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from tests.recorder.recording import ENVIRONMENT
from tracekit.formats.errors import TracekitError
from tracekit.recorder import pool, registered
from tracekit.recorder.encoder import Encoder, Payload
from tracekit.recorder.native import Worked


def test_rows_have_the_sizes_of_the_structs() -> None:
    sizes = [
        dtype.itemsize for dtype in (registered._IMAGE, registered._FUNCTION, registered._UNIT, registered._GLOBAL)
    ]
    assert sizes == [80, 24, 16, 16]


def test_a_new_pool_is_empty_and_out_of_the_way_of_other_descriptors() -> None:
    made = pool.Pool(buffer_bytes=pool.SMALLEST_BUFFER, buffers=4)
    status = made.status()
    assert (status.images, status.owner, status.buffers, status.streams, status.waited) == (0, 0, 4, 1, 0)
    assert made.descriptor > 100


def test_buffers_that_no_program_used_have_no_memory() -> None:
    made, encoder = pool.Pool(), Encoder(buffer_words=pool.DEFAULT_BUFFER // 8)
    made.adopt()
    made.say_exited()
    assert encoder.work(made, 1.0, 1.0, Payload())[0] == Worked.ALL
    encoder.close()
    assert os.fstat(made.descriptor).st_blocks * 512 < 2 << 20


def test_too_small_an_address_space_is_said() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (1 << 30, hard))
    try:
        with pytest.raises(TracekitError, match="ulimit -v"):
            pool.Pool()
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def test_record_itself_needs_no_numpy(tmp_path: Path) -> None:
    """Its collector does, which imports it while the program runs, and says nothing on stderr."""
    command = ["record", "--late", "--sample", "2%", "--snapshots", "1s", "true"]
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "tracekit", *command],
        cwd=tmp_path,
        env=ENVIRONMENT,
        text=True,
        capture_output=True,
    )
    assert "tracekit.recorder.session" in done.stderr
    assert "numpy" not in done.stderr
