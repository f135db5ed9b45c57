"""The pool's layout as Python mirrors it."""

from __future__ import annotations

import resource

import pytest

from tracekit.formats.errors import TracekitError
from tracekit.recorder import pool


def test_rows_have_the_sizes_of_the_structs() -> None:
    sizes = [dtype.itemsize for dtype in (pool._IMAGE, pool._FUNCTION, pool._UNIT, pool._GLOBAL)]
    assert sizes == [80, 24, 16, 16]


def test_a_new_pool_is_empty_and_out_of_the_way_of_other_descriptors() -> None:
    made = pool.Pool(buffer_bytes=pool.SMALLEST_BUFFER, buffers=4)
    status = made.status()
    assert (status.images, status.owner, status.buffers, status.streams, status.waited) == (0, 0, 4, 1, 0)
    assert made.descriptor > 100


def test_too_small_an_address_space_is_said() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (1 << 30, hard))
    try:
        with pytest.raises(TracekitError, match="ulimit -v"):
            pool.Pool()
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
