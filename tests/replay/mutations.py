"""Damaged traces whose checksums are valid: compiled paths must do with them what the kernels do, inside their tables.

    python -m tests.replay.mutations --count 10000

A mutation changes rows of an image's tables, records, or bytes of either payload. Each is replayed twice, by compiled
paths that check their bounds (replay/compiled/bounds.py) and by the kernels, in arrays so small that they have to grow
again and again; all events, the error, and the broken rules have to be the same. With TRACEKIT_CHECK_BOUNDS=all the
kernels check their bounds, too. A crash costs its own mutation: they run in another process.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tests.formats.test_hostile import damage, wrap
from tests.formats.traces import arities, payload_of
from tests.naive.program_builder import HandImage
from tests.naive.random_program import RandomProgram
from tests.naive.random_trace import TICKETED, disturb, runs_of, some_events
from tests.naive.trace_file import Record
from tests.naive.walker import Walk
from tests.replay.event_log import EventLog
from tracekit.formats.chunk_codec import encode
from tracekit.formats.errors import TracekitError
from tracekit.formats.events import BY_CODE, NONE
from tracekit.formats.image import DTYPES
from tracekit.formats.reader import TraceReader
from tracekit.formats.records import RecordSource
from tracekit.program.program import Program
from tracekit.replay.compiled.compiler import CompiledPaths
from tracekit.replay.compiled.cost_model import SETTING
from tracekit.replay.engine import Replay

MOST = 1 << 14
"""Events that are compared of a trace that may claim any number."""
PROGRAMS = 100
"""Programs that are mutated: few, so that the code of their paths is found on disk where they are not."""
EVENT_TABLES = ("paths", "path_blocks", "blocks", "ops", "terms", "loops", "functions", "calls", "globals")
"""Tables that replay depends on."""
Event = tuple[int, str, int, int, int]


@dataclass(frozen=True)
class Outcome:
    """What came of a replay."""

    events: Sequence[Event]
    error: str
    rules: Any
    """Broken rules and comparisons; None if the replay was not finished."""
    by_paths: int = 0
    """Records that compiled paths replayed."""

    def same(self, other: Outcome) -> bool:
        """Whether both are the same but for who replayed."""
        return (self.events, self.error, self.rules) == (other.events, other.error, other.rules)


# -- replay ------------------------------------------------------------------------------------------
def outcome(data: bytes, with_paths: bool, checks: bool = True) -> Outcome:
    """The first events of a trace that may be damaged, the error that ended it, and the rules that it breaks.

    checks: whether path code checks its bounds. Raises OutsideTableError if it then leaves them.
    """
    events: list[Event] = []
    log = EventLog(MOST)
    replay = None
    error, rules = "", None
    try:
        trace = TraceReader(data)
        program = Program.from_images(trace.images())
        replay = Replay(RecordSource(trace, program.arity), program)
        _shrink(replay)
        if with_paths:
            replay.compiled = CompiledPaths([log], b"", 0)
            replay.compiled.checks = checks
        for batch in replay.batches():
            columns = (batch.kind, batch.subject, batch.address, batch.size)
            rows = zip(*(column[:MOST].tolist() for column in columns))
            events += log.taken()
            events += [(batch.stream, BY_CODE[kind].name, *rest) for kind, *rest in rows]
            if len(events) >= MOST:
                break
        else:
            rules = replay.violations(), replay.compared()
    except TracekitError as raised:
        error = "" if "The log is full" in str(raised) else str(raised)
    events = (events + log.taken())[:MOST]
    compiled = replay.compiled if replay else None
    by_paths = round(compiled.share(1)) if compiled else 0
    return Outcome(events, error, None if len(events) == MOST else rules, by_paths)


def _shrink(replay: Replay) -> None:
    """Begin with the smallest arrays: what leaves them is seen at once, and they grow all the time."""
    for stream in replay.streams:
        state = stream.state
        arrays = {name: getattr(state, name) for name in ("frames", "open_loops", "iterations", "registers", "objects")}
        stream.state = state._replace(**{name: np.zeros(1, array.dtype) for name, array in arrays.items()})


# -- mutations ---------------------------------------------------------------------------------------
def mutated(seed: int) -> tuple[bytes, str]:
    """A damaged trace, and what was damaged."""
    rng = random.Random(seed)
    made = RandomProgram(random.Random(rng.randrange(PROGRAMS)))
    image = made.layout.image()
    streams = rng.choice((1, 1, 2, 3))
    records = {stream: _walk(made, rng, streams) for stream in range(streams)}
    kind = rng.choice(("rows", "rows", "records", "records", "bytes of the image", "bytes of a chunk"))
    if kind == "records":
        records = {stream: _disturbed(some, rng, made) for stream, some in records.items()}
    _number_tickets(records, rng)
    arity = arities([image])
    chunks = [(stream, len(some), _chunk(some, arity)) for stream, some in records.items()]
    if kind == "rows":
        for _ in range(rng.choice((1, 1, 2, 4))):
            _change_row(image, rng)
    payload = payload_of(image)
    if kind == "bytes of the image":
        payload = damage(payload, rng)
    if kind == "bytes of a chunk":
        chunks = [(stream, count, damage(chunk, rng)) for stream, count, chunk in chunks]
    return wrap([payload], chunks), kind


def _walk(made: RandomProgram, rng: random.Random, streams: int) -> list[Record]:
    walk = Walk(made, rng, [], budget=60)
    walk.run()
    records = walk.records()
    for _ in range(rng.randint(0, 3)):
        records.insert(rng.randrange(len(records)), some_events(rng, streams))
    return records


def _chunk(records: Sequence[Record], arity: Any) -> bytes:
    words = np.array([word for _, values in records for word in values], np.uint64)
    return encode(np.array([number for number, _ in records], np.uint32), words, arity).build()


def _disturbed(records: list[Record], rng: random.Random, made: RandomProgram) -> list[Record]:
    """Records in another order, with other words, or of other paths with as many of them."""
    records = disturb(records, rng, runs_of(made))
    same = {number: len(words) for number, words in records}
    for _ in range(rng.randint(1, 5)):
        at = rng.randrange(len(records))
        number, words = records[at]
        choice = rng.randrange(3)
        if choice == 0:
            others = [other for other, count in same.items() if count == len(words)]
            records[at] = rng.choice(others), words
        elif choice == 1:
            extreme = (0, 1, (1 << 64) - 1, 1 << 63, rng.getrandbits(64), rng.getrandbits(6))
            records[at] = number, [rng.choice((word, rng.choice(extreme))) for word in words]
        else:
            first, behind = sorted(rng.randrange(len(records) + 1) for _ in range(2))
            into = rng.randrange(len(records))
            records[into:into] = records[first : min(behind, first + 20)]
    return records


def _number_tickets(records: dict[int, list[Record]], rng: random.Random) -> None:
    """Tickets that ascend, most of the time."""
    ticket, streams = 0, len(records)
    for stream, some in records.items():
        for at, (number, words) in enumerate(some):
            if number in TICKETED and words:
                ticket += rng.randint(1, 3)
                some[at] = number, [rng.choice((ticket, ticket, rng.randrange(200))) * streams + stream, *words[1:]]


def _change_row(image: HandImage, rng: random.Random) -> None:
    """Put into a field of some row another one that may be sound, or that cannot be."""
    tables = image.units[0].tables
    name = rng.choice([name for name in EVENT_TABLES if len(tables[name])])
    table = tables[name] = tables[name].copy()
    row = rng.randrange(len(table))
    column = rng.choice(DTYPES[name].names or ())
    width = 8 * table.dtype[column].itemsize
    here, elsewhere = int(table[column][row]), int(table[column][rng.randrange(len(table))])
    extremes = (0, 1, 2, NONE, (1 << width) - 1, 1 << (width - 1), rng.getrandbits(width))
    close = (here + 1, here - 1, here ^ (1 << rng.randrange(width)), here ^ (1 << rng.randrange(min(width, 8))))
    value = rng.choice((elsewhere, elsewhere, rng.choice(close), rng.choice(close), rng.choice(extremes)))
    table[column][row] = np.uint64(value & ((1 << width) - 1)).astype(table.dtype[column])


# -- by the thousand ---------------------------------------------------------------------------------
def verdict(seed: int) -> tuple[int, str]:
    """How many records of a mutation compiled paths replayed, and what came of it."""
    data, kind = mutated(seed)
    with_paths, without = outcome(data, True), outcome(data, False)
    if not with_paths.same(without):
        return with_paths.by_paths, "DIFFERENT"
    if with_paths.error:
        return with_paths.by_paths, f"{kind}: the same error"
    return (
        with_paths.by_paths,
        f"{kind}: the same events, {'some' if with_paths.by_paths else 'none'} by compiled paths",
    )


def _verdicts(first: int, count: int) -> Iterator[tuple[int, int, str]]:
    """Seed and verdict of so many, made in another process; again in a new one after a crash."""
    while count > 0:
        command = [sys.executable, "-u", "-m", __spec__.name, "--alone", f"--first={first}", f"--count={count}"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
            assert child.stdout is not None
            for line in child.stdout:
                records, text = line.strip().split(" ", 1)
                yield first, int(records), text
                first, count = first + 1, count - 1
        if count > 0:
            yield first, 0, f"CRASHED with status {child.returncode}"
            first, count = first + 1, count - 1


def _alone(first: int, count: int) -> None:
    """Print the verdict of each seed."""
    for seed in range(first, first + count):
        try:
            print(*verdict(seed))
        except Exception as error:
            print(f"0 RAISED {type(error).__name__}: {error}".replace("\n", " "))


def main() -> int:
    """Run many mutations, and print what came of them; 1 if any is wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--alone", action="store_true", help="in this process: a crash ends it")
    given = parser.parse_args()
    os.environ[SETTING] = "always"
    if given.alone:
        _alone(given.first, given.count)
        return 0
    counts: Counter[str] = Counter()
    by_paths = 0
    for seed, records, text in _verdicts(given.first, given.count):
        counts[text] += 1
        by_paths += records
        if not _is_fine(text):
            print(f"mutation {seed}: {text}", flush=True)
    for text, number in sorted(counts.items()):
        print(f"{number:6}  {text}")
    print(f"{by_paths} records by compiled paths")
    return int(not all(map(_is_fine, counts)))


def _is_fine(text: str) -> bool:
    return ": the same " in text


if __name__ == "__main__":
    raise SystemExit(main())
