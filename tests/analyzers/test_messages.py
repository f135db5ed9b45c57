"""The module ``messages`` against queues of single messages."""

from __future__ import annotations

import random
from collections import defaultdict
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.naive.messages import Message, Operation, Rank, first_differences, matched
from tracekit.analyzers.messages import Messages
from tracekit.formats.event_values import MpiCollective
from tracekit.formats.events import CODE
from tracekit.messages.log import Events, Log
from tracekit.messages.matching import report
from tracekit.module import CannotMergeError
from tracekit.render.registry import as_text
from tracekit.render.text import Style

COMMUNICATORS = (5, 1 << 63)


def some_rank(rng: random.Random, ranks: int, busy: int) -> Rank:
    """Few kinds of messages, so that many are alike and many are not."""

    def message() -> Message:
        return Message(
            rng.randrange(ranks), rng.randrange(2), rng.choice(COMMUNICATORS), rng.choice((0, 8)), rng.randrange(3)
        )

    def operation() -> Operation:
        kind = rng.choices((MpiCollective.BARRIER, MpiCollective.BROADCAST), (9, 1))[0]
        return Operation(rng.choice(COMMUNICATORS), kind, -1 if kind == MpiCollective.BARRIER else 0, 4, 7)

    return Rank(
        [message() for _ in range(rng.randint(0, busy))],
        [message() for _ in range(rng.randint(0, busy))],
        [operation() for _ in range(rng.randint(0, 4))],
    )


def events_of(rank: int, ranks: int, did: Rank, rng: random.Random) -> list[list[tuple[str, int, int, int]]]:
    """What replay delivers of it, by stream: receives end in any order, and two threads take turns."""
    streams: list[list[tuple[str, int, int, int]]] = [[], []]
    for communicator in COMMUNICATORS:
        streams[0].append(("mpi_communicator", rank, communicator, ranks))
    posts = list(enumerate(did.receives, 1))
    streams[0] += [("mpi_post", each.instruction, number, 0) for number, each in posts]
    rng.shuffle(posts)
    for number, each in posts:
        streams[1].append(("mpi_envelope", 0, each.communicator, each.peer | each.tag << 32))
        streams[1].append(("mpi_receive", 9, number, each.bytes))
    for each in did.sends:
        streams[0].append(("mpi_envelope", 0, each.communicator, each.peer | each.tag << 32))
        streams[0].append(("mpi_send", each.instruction, 0, each.bytes))
    for one in did.operations:
        streams[0].append(("mpi_envelope", 0, one.communicator, 0xFFFF_FFFF if one.root < 0 else one.root))
        streams[0].append(("mpi_collective", one.instruction, one.operation, one.bytes))
    return streams


def log_of(rank: int, ranks: int, did: Rank, rng: random.Random) -> Log:
    """As the module takes it: in batches that end anywhere."""
    taken = Events()
    left = [list(stream) for stream in events_of(rank, ranks, did, rng)]
    while any(left):
        stream = 0 if not left[1] or (left[0] and rng.randrange(2)) else 1
        count = rng.randint(1, 4)
        batch, left[stream] = left[stream][:count], left[stream][count:]
        columns = [
            np.array([CODE[name] for name, *_ in batch], np.uint8),
            np.array([subject for _, subject, _, _ in batch], np.uint32),
            np.array([address for _, _, address, _ in batch], np.uint64),
            np.array([size for *_, size in batch], np.uint64),
        ]
        taken.take(SimpleNamespace(stream=stream, **dict(zip(("kind", "subject", "address", "size"), columns))))
    return taken.log(
        lambda number: {"id": f"u:{number}", "file": "a.c", "line": rank, "column": number, "function": "f"}
    )


def place(instruction: dict[str, Any] | None) -> tuple[int, int] | None:
    return (instruction["line"], instruction["column"]) if instruction else None


@settings(max_examples=150, deadline=None)
@given(seed=st.integers(0, 2**32), ranks=st.integers(1, 4), busy=st.sampled_from((1, 6, 25)))
def test_messages(seed: int, ranks: int, busy: int) -> None:
    rng = random.Random(seed)
    did = {rank: some_rank(rng, ranks, busy) for rank in range(ranks)}
    logs = [log_of(rank, ranks, did[rank], rng) for rank in range(ranks)]
    found = report([Log.of(log.merge_state()) for log in rng.sample(logs, ranks)])
    rows = {(place(row["send"]), place(row["receive"])): (row["messages"], row["bytes"]) for row in found["messages"]}
    expected = matched(did)
    assert rows == expected
    alone: dict[Any, int] = defaultdict(int)
    for row in found["unmatched"]:
        alone[row["kind"], place(row["instruction"])] += row["messages"]
    assert alone == {
        ("send", sent) if sent else ("receive", received): count
        for (sent, received), (count, _) in expected.items()
        if not (sent and received)
    }
    assert found["summary"]["messages"] == sum(count for count, _ in expected.values())
    assert sum(row["bytes"] for row in found["ranks"]) == sum(size for _, size in expected.values())
    by_name = {row["communicator"]: row["number"] for row in found["mismatches"]}
    others = ", ".join(map(str, range(ranks)))
    names = {COMMUNICATORS[0]: "world", COMMUNICATORS[1]: f"of {others}"}
    assert by_name == {names[one]: number for one, number in first_differences(did, list(COMMUNICATORS)).items()}
    assert sum(row["calls"] for row in found["collectives"]) == sum(len(each.operations) for each in did.values())


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_profiles_of_ranks_join_in_any_order(seed: int) -> None:
    rng = random.Random(seed)
    logs = [log_of(rank, 3, some_rank(rng, 3, 9), rng) for rank in range(3)]
    profiles = [{"result": {}, "evidence": {"logs": [log.merge_state()]}} for log in logs]
    whole = Messages.merge(profiles, None)
    assert Messages.merge(profiles[::-1], None)["result"] == whole["result"] == report(logs)
    halves = [{"result": {}, **Messages.merge(profiles[:2], None)}, profiles[2]]
    assert Messages.merge(halves, None)["result"] == whole["result"]
    shown = {"module": "messages", "traces": ["a", "b", "c"], "result": whole["result"]}
    assert as_text(shown, {}, 0, Style(False)).startswith("messages, merged of 3 traces\n\nranks 0 to 2 of 3: ")


def test_two_runs_are_not_one() -> None:
    log = log_of(1, 2, Rank([], [], []), random.Random(0))
    with pytest.raises(CannotMergeError, match="two of the traces are of rank 1"):
        Messages.merge([{"evidence": {"logs": [log.merge_state()]}}] * 2, None)


def test_a_program_without_mpi_has_no_messages() -> None:
    found = report([Events().log(dict)])
    assert found["summary"] == {"ranks": [], "size": 0, "messages": 0, "bytes": 0, "unfinished": 0}
