"""Sends matched with receives, and collective operations of all ranks beside one another.

Messages of one sender to one receiver, with one tag and communicator, are taken by receives in the order in which they
were sent and these were posted (MPI 4.0, 3.5): so the n-th send of such a channel belongs to the n-th receive.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from tracekit.dependence.rows import instruction_key
from tracekit.formats.event_values import MpiCollective
from tracekit.messages.log import Log, sorted_logs

Json = dict[str, Any]


@dataclass(frozen=True)
class Run:
    """Equal messages of a channel, one after another."""

    bytes: int
    instruction: Json
    count: int


class Channel(NamedTuple):
    """Whose messages keep their order; ranks are those in MPI_COMM_WORLD."""

    source: int
    destination: int
    tag: int
    communicator: int


@dataclass(frozen=True)
class Pair:
    """Messages and who took them; None: nobody, or a rank of which there is no trace."""

    send: Run | None
    receive: Run | None
    count: int

    @property
    def bytes(self) -> int:
        """What was received, or sent."""
        end = self.receive or self.send
        return end.bytes * self.count if end else 0


def channels(logs: Sequence[Log], sent: bool) -> dict[Channel, list[Run]]:
    """What all ranks sent, or received, in order."""
    found: dict[Channel, list[Run]] = defaultdict(list)
    for log in logs:
        own = -1 if log.rank is None else log.rank
        for peer, tag, communicator, size, instruction, count in (log.sends if sent else log.receives).tolist():
            ends = (own, peer) if sent else (peer, own)
            found[Channel(ends[0], ends[1], tag, communicator)].append(Run(size, log.instructions[instruction], count))
    return found


def pairs(sends: Sequence[Run], receives: Sequence[Run]) -> Iterator[Pair]:
    """The sends of one channel with its receives; at the end those that are left of one kind."""
    first, second = 0, 0
    sent, received = (sends[0].count if sends else 0), (receives[0].count if receives else 0)
    while first < len(sends) or second < len(receives):
        if first == len(sends):
            yield Pair(None, receives[second], received)
            count = received
        elif second == len(receives):
            yield Pair(sends[first], None, sent)
            count = sent
        else:
            count = min(sent, received)
            yield Pair(sends[first], receives[second], count)
        if first < len(sends):
            sent -= count
            if not sent:
                first += 1
                sent = sends[first].count if first < len(sends) else 0
        if second < len(receives):
            received -= count
            if not received:
                second += 1
                received = receives[second].count if second < len(receives) else 0


def report(logs: Sequence[Log]) -> Json:
    """The profile of these ranks."""
    logs = sorted_logs(logs)
    ranks = [log.rank for log in logs if log.rank is not None]
    sends, receives = channels(logs, True), channels(logs, False)
    matrix: dict[tuple[int, int], list[int]] = defaultdict(lambda: [0, 0])
    ends: dict[tuple[Any, ...], Json] = {}
    left: dict[tuple[Any, ...], Json] = {}
    for channel in sorted(sends.keys() | receives.keys()):
        both_known = channel.source in ranks and channel.destination in ranks
        for pair in pairs(sends.get(channel, []), receives.get(channel, [])):
            cell = matrix[channel[:2]]
            cell[0] += pair.count
            cell[1] += pair.bytes
            _count(ends, pair)
            if both_known and not (pair.send and pair.receive):
                _leave(left, channel, pair, _names(logs))
    return {
        "summary": {
            "ranks": ranks,
            "size": max((log.size for log in logs), default=0),
            "messages": sum(count for count, _ in matrix.values()),
            "bytes": sum(size for _, size in matrix.values()),
            "unfinished": sum(log.unfinished for log in logs),
        },
        "ranks": [
            {"source": source, "destination": destination, "messages": count, "bytes": size}
            for (source, destination), (count, size) in sorted(matrix.items())
        ],
        "messages": sorted(ends.values(), key=lambda row: (-row["bytes"], -row["messages"], _ends_key(row))),
        "unmatched": list(left.values()),
        "collectives": _collectives(logs),
        "mismatches": _mismatches(logs),
    }


def _key(end: Run | None) -> tuple[Any, ...]:
    return instruction_key(end.instruction) if end else ()


def _ends_key(row: Json) -> tuple[Any, ...]:
    return tuple(instruction_key(row[end]) if row[end] else () for end in ("send", "receive"))


def _count(ends: dict[tuple[Any, ...], Json], pair: Pair) -> None:
    """Messages by the instructions that sent and received them."""
    fresh = {
        "send": pair.send.instruction if pair.send else None,
        "receive": pair.receive.instruction if pair.receive else None,
        "messages": 0,
        "bytes": 0,
    }
    row = ends.setdefault((_key(pair.send), _key(pair.receive)), fresh)
    row["messages"] += pair.count
    row["bytes"] += pair.bytes


def _leave(left: dict[tuple[Any, ...], Json], channel: Channel, pair: Pair, names: dict[int, str]) -> None:
    """Messages that nobody received, or that were received and never seen to be sent."""
    end = pair.send or pair.receive
    assert end is not None
    fresh = {
        "kind": "send" if pair.send else "receive",
        "source": channel.source,
        "destination": channel.destination,
        "tag": channel.tag,
        "communicator": names.get(channel.communicator, "unknown"),
        "instruction": end.instruction,
        "messages": 0,
        "bytes": 0,
    }
    row = left.setdefault((channel, fresh["kind"], _key(end)), fresh)
    row["messages"] += pair.count
    row["bytes"] += pair.bytes


def _names(logs: Sequence[Log]) -> dict[int, str]:
    """Names of communicators: MPI_COMM_WORLD, and the ranks that the others consist of."""
    members: dict[int, dict[int, int]] = defaultdict(dict)
    for log in logs:
        for number, own, _ in log.communicators.tolist():
            members[number][own] = -1 if log.rank is None else log.rank
    world = {int(log.communicators[0, 0]) for log in logs if len(log.communicators)}
    names: dict[int, str] = {}
    for number, ranks in sorted(
        members.items(), key=lambda each: ([rank for _, rank in sorted(each[1].items())], each)
    ):
        text = ", ".join(str(rank) for _, rank in sorted(ranks.items()))
        names[number] = "world" if number in world else f"of {text}"
    return names


def _collectives(logs: Sequence[Log]) -> list[Json]:
    """Collective operations by the instruction that took part."""
    names = _names(logs)
    found: dict[tuple[Any, ...], Json] = {}
    for log in logs:
        for communicator, operation, _, size, number, count in log.collectives.tolist():
            instruction = log.instructions[number]
            name = MpiCollective(operation).name.lower()
            fresh = {
                "operation": name,
                "communicator": names.get(communicator, "unknown"),
                "instruction": instruction,
                "ranks": [],
                "calls": 0,
                "bytes": 0,
            }
            row = found.setdefault((name, fresh["communicator"], instruction_key(instruction)), fresh)
            row["calls"] += count
            row["bytes"] += size * count
            if log.rank not in row["ranks"]:
                row["ranks"].append(log.rank)
    return [found[key] for key in sorted(found, key=lambda key: (-found[key]["bytes"], -found[key]["calls"], key))]


def _mismatches(logs: Sequence[Log]) -> list[Json]:
    """Of each communicator the first place at which ranks take part in different operations, or one in none."""
    names = _names(logs)
    courses: dict[int, dict[int, list[tuple[int, int, Json, int]]]] = defaultdict(lambda: defaultdict(list))
    for log in logs:
        for number, _, _ in log.communicators.tolist():
            courses[number][-1 if log.rank is None else log.rank] = []
        for communicator, operation, root, _, number, count in log.collectives.tolist():
            own = -1 if log.rank is None else log.rank
            courses[communicator][own].append((operation, root, log.instructions[number], count))
    rows = []
    for communicator, by_rank in courses.items():
        place = _first_difference(by_rank)
        if place is not None:
            rows.append({"communicator": names.get(communicator, "unknown"), **place})
    return sorted(rows, key=lambda row: (row["communicator"], row["number"]))


def _first_difference(by_rank: dict[int, list[tuple[int, int, Json, int]]]) -> Json | None:
    """Ranks go on together by as many operations as are alike."""
    at, left = dict.fromkeys(by_rank, 0), {rank: runs[0][3] if runs else 0 for rank, runs in by_rank.items()}
    number = 1
    while True:
        now = {rank: runs[at[rank]] if at[rank] < len(runs) else None for rank, runs in by_rank.items()}
        kinds = {run[:2] if run else None for run in now.values()}
        if len(kinds) > 1:
            calls = [
                {
                    "rank": rank,
                    "operation": MpiCollective(run[0]).name.lower() if run else None,
                    "root": run[1] if run and run[1] >= 0 else None,
                    "instruction": run[2] if run else None,
                }
                for rank, run in sorted(now.items())
            ]
            return {"number": number, "calls": calls}
        if kinds <= {None}:
            return None
        step = min(left.values())
        number += step
        for rank, runs in by_rank.items():
            left[rank] -= step
            if not left[rank]:
                at[rank] += 1
                left[rank] = runs[at[rank]][3] if at[rank] < len(runs) else 0
