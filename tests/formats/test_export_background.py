"""Work in a thread beside the caller's."""

from __future__ import annotations

import threading

import pytest

from tracekit.formats.export.background import AHEAD, background_thread


def test_calls_are_made_in_order_in_another_thread() -> None:
    made: list[tuple[int, bool]] = []
    own = threading.get_ident()
    with background_thread() as hand_over:
        for number in range(100):
            hand_over(lambda number: made.append((number, threading.get_ident() == own)), number)
    assert made == [(number, False) for number in range(100)]


def test_no_more_than_a_few_calls_wait() -> None:
    gate = threading.Event()
    begun = 0

    def call() -> None:
        nonlocal begun
        begun += 1
        gate.wait(5)

    with background_thread() as hand_over:
        for _ in range(AHEAD + 1):
            hand_over(call)  # one is being made
        late = threading.Thread(target=hand_over, args=(call,))
        late.start()
        late.join(0.2)
        assert late.is_alive()
        gate.set()
        late.join()
    assert begun == AHEAD + 2


def test_what_a_call_raises_is_raised_in_the_block_or_at_its_end() -> None:
    def fail() -> None:
        raise OSError("full")

    with pytest.raises(OSError, match="full"), background_thread() as hand_over:
        hand_over(fail)
    done = 0

    def fail_often() -> None:
        nonlocal done
        with background_thread() as hand_over:
            for _ in range(100):
                hand_over(fail)
                done += 1

    with pytest.raises(OSError, match="full"):
        fail_often()
    assert done == AHEAD + 1
