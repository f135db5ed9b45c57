"""The module ``messages`` message by message: lists of what each rank did, and a queue for each channel."""

from __future__ import annotations

from collections import defaultdict, deque
from typing import NamedTuple


class Message(NamedTuple):
    """A send or a receive of a rank."""

    peer: int
    tag: int
    communicator: int
    bytes: int
    instruction: int


class Operation(NamedTuple):
    """A collective operation of a rank."""

    communicator: int
    operation: int
    root: int
    bytes: int
    instruction: int


class Rank(NamedTuple):
    """What a rank did, in order; receives as they were posted."""

    sends: list[Message]
    receives: list[Message]
    operations: list[Operation]


Place = tuple[int, int]
"""A rank, and a number of an instruction there."""


def matched(ranks: dict[int, Rank]) -> dict[tuple[Place | None, Place | None], tuple[int, int]]:
    """Messages and bytes by who sent them and who received them; None: nobody."""
    queues: dict[tuple[int, int, int, int], deque[tuple[Place, int]]] = defaultdict(deque)
    for rank, did in ranks.items():
        for each in did.sends:
            queues[rank, each.peer, each.tag, each.communicator].append(((rank, each.instruction), each.bytes))
    found: dict[tuple[Place | None, Place | None], tuple[int, int]] = {}

    def count(sent: Place | None, received: Place | None, size: int) -> None:
        messages, total = found.get((sent, received), (0, 0))
        found[sent, received] = messages + 1, total + size

    for rank, did in ranks.items():
        for each in did.receives:
            queue = queues[each.peer, rank, each.tag, each.communicator]
            sender = queue.popleft()[0] if queue else None
            count(sender, (rank, each.instruction), each.bytes)
    for queue in queues.values():
        for sender, size in queue:
            count(sender, None, size)
    return found


def first_differences(ranks: dict[int, Rank], communicators: list[int]) -> dict[int, int]:
    """Communicator -> the number, from 1, of the first operation in which not all ranks are alike."""
    found = {}
    for communicator in communicators:
        courses = [
            [(each.operation, each.root) for each in did.operations if each.communicator == communicator]
            for did in ranks.values()
        ]
        for number in range(max(map(len, courses), default=0)):
            if len({course[number] if number < len(course) else None for course in courses}) > 1:
                found[communicator] = number + 1
                break
    return found
