"""Traces of random walks through random programs, with events between, and with records that break the rules."""

from __future__ import annotations

import random
from pathlib import Path

from tests.naive.random_program import RandomProgram
from tests.naive.trace_file import Record, write_trace
from tests.naive.walker import Walk
from tracekit.formats.events import BY_CODE, CODE

TICKETED = {event.code for event in BY_CODE.values() if event.words[:1] == ("ticket",)}


def disturb(records: list[Record], rng: random.Random, runs: set[int]) -> list[Record]:
    """Records that break rules: swapped, dropped, repeated, with other words."""
    records = list(records)
    for _ in range(rng.randint(0, 6)):
        at = rng.randrange(len(records))
        choice = rng.randrange(4)
        if choice == 0 and len(records) > 1:
            del records[at]
        elif choice == 1:
            records.insert(rng.randrange(len(records)), records[at])
        elif choice == 2:
            other = rng.randrange(len(records))
            records[at], records[other] = records[other], records[at]
        else:
            identity, words = records[at]
            records[at] = identity, [rng.choice((word, rng.getrandbits(40))) for word in words]
            if identity in runs:
                records[at] = identity, [rng.choice((rng.randrange(50), (1 << 40) + 1, (1 << 64) - 1))]
    return records


def some_events(rng: random.Random, streams: int) -> Record:
    """One of the events that a walk does not make."""
    stream = rng.randrange(streams)
    return rng.choice(
        [
            (CODE["signal_enter"], [rng.randrange(32)]),
            (CODE["signal_leave"], [rng.randrange(32), rng.randrange(2)]),
            (CODE["thread_create"], [0, stream]),
            (CODE["thread_start"], [0, stream]),
            (CODE["thread_exit"], [0, stream]),
            (CODE["image_load"], [0, rng.randrange(2)]),
            (CODE["dropped"], []),
            (CODE["lock"], [0, 4096]),
            (CODE["resource_use"], [1 << 62 | rng.randrange(3)]),
            (CODE["resource_end"], [0, 4096]),
            (CODE["mpi_communicator"], [0, rng.getrandbits(64), rng.randrange(4), 4]),
            (CODE["mpi_send"], [0, rng.getrandbits(40), rng.randrange(100)]),
            (CODE["mpi_post"], [0, rng.randrange(9)]),
            (CODE["heap_realloc"], [0, 0, 4096, 16]),
            (CODE["heap_realloc"], [0, 4096, 0, rng.randrange(2)]),
        ]
    )


def of_a_window(rng: random.Random) -> Record:
    """One of the events of windows, whatever stands around it."""
    return rng.choice(
        [
            (CODE["window_begin"], [0, rng.randrange(3), 1000]),
            (CODE["window_end"], [0, rng.randrange(3), 2000]),
            (CODE["resumed_register"], [rng.randrange(3), rng.getrandbits(40)]),
            (CODE["resumed_loop"], [rng.randrange(3), rng.randrange(50)]),
            (CODE["resumed_object"], [rng.randrange(3), rng.randrange(2) << 44, 16]),
            (CODE["resumed_frame"], [rng.getrandbits(2)]),
            (CODE["resumed_return"], [rng.getrandbits(2)]),
            (CODE["hand_over"], [rng.getrandbits(40), rng.randrange(4)]),
        ]
    )


def runs_of(made: RandomProgram) -> set[int]:
    """The record ids that are runs."""
    return {made.layout.path_number(handle) for handle, path in enumerate(made.b.paths) if path["flags"]}


def walked(made: RandomProgram, rng: random.Random) -> list[Record]:
    """The records of a random walk through the program."""
    walk = Walk(made, rng, [], budget=100)
    walk.run()
    return walk.records()


def write_walks(path: Path, seed: int, streams: int, *, done: bool = True, chunk: int = 40) -> RandomProgram:
    """A trace of random walks with nothing between their records; `done`: it has an end."""
    rng = random.Random(seed)
    made = RandomProgram(rng)
    recorded = {stream: walked(made, rng) for stream in range(streams)}
    write_trace(path, made.layout, recorded, done=done, chunk=chunk)
    return made


def write_random(
    path: Path, rng: random.Random, streams: int, broken: bool, events: int = 8
) -> tuple[RandomProgram, dict[int, list[Record]]]:
    """A trace of random walks, with at most so many events between their records, whose tickets make them take turns.

    Returns the program, and the records of each stream.
    """
    made = RandomProgram(rng)
    recorded: dict[int, list[Record]] = {}
    for stream in range(streams):
        recorded[stream] = walked(made, rng)
        for _ in range(rng.randint(0, events)):
            made_up = of_a_window(rng) if rng.randrange(6) == 0 else some_events(rng, streams)
            recorded[stream].insert(rng.randrange(len(recorded[stream])), made_up)
        if broken:
            recorded[stream] = disturb(recorded[stream], rng, runs_of(made))
    ticket = 0
    for stream, records in recorded.items():
        for at, (identity, words) in enumerate(records):
            if identity in TICKETED:
                ticket += rng.randint(1, 3)
                records[at] = identity, [rng.choice((ticket, rng.randrange(200))) * streams + stream, *words[1:]]
    write_trace(path, made.layout, recorded, totals={}, chunk=rng.randint(1, 60))
    return made, recorded
