"""Ball-Larus paths of a trace, by keeping the blocks of each activation's path in a list."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator

from tests.naive.deriver import (
    GROUND_TRUTH_RUN,
    LONGEST_RUN,
    LOOP_HEADER,
    NONE,
    RETURNS,
    RUN,
    TAIL_CALL,
    Process,
    Stream,
)
from tests.naive.reader import Record, Row, Trace
from tests.naive.recorded import Activation

Ended = tuple[tuple[int, ...], str, int]
"""Blocks, how the path ended, and the header that a back edge led to."""


class Open:
    """What an activation is at."""

    def __init__(self, entered_from: tuple[int, int], begun: int) -> None:
        self.blocks: list[int] = []
        self.sums = [0, 0, 0, 0]  # loads, stores, bytes, accesses of what was called
        self.ended: Ended | None = None  # the path that a tail call ended
        self.entered_from = entered_from
        self.begun = begun


class PathStream(Stream):
    """One stream, whose paths are counted."""

    def __init__(self, profile: Paths, number: int, records: list[Record]) -> None:
        super().__init__(profile.process, number, records)
        self.profile = profile
        self.of: dict[Activation, Open] = {}
        self.clock = 0
        self.counting = False

    def run_all(self) -> None:
        """All records, and the end of what is open."""
        while self.at < len(self.records):
            self.deliver()
        while self.frames:
            self.pop(1)

    # -- what counts --------------------------------------------------------------------------------
    def recorded(self, code: int, words: list[int]) -> None:
        self.counting = self.process.names[code][0].startswith("library_")
        super().recorded(code, words)
        self.counting = False

    def emit(self, name: str, subject: int = 0, address: int = 0, size: int = 0, value: int | None = None) -> None:
        if not self.counting or name not in ("load", "store"):
            return
        moved = [int(name == "load"), int(name == "store"), size]
        if not self.frames or self.frames[-1].function == NONE:
            self.profile.outside = [one + other for one, other in zip(self.profile.outside, moved)]
            return
        sums = self.of[self.frames[-1]].sums
        sums[:3] = [one + other for one, other in zip(sums, moved)]
        self.clock += 1

    # -- paths --------------------------------------------------------------------------------------
    def path(self, number: int, words: list[int]) -> None:
        row = self.tables["paths"][self.process.trace.path_row[number]]
        members = [self.tables["path_blocks"][row["first"] + k]["block"] for k in range(row["blocks"])]
        if not row["flags"] & RUN:
            self.record(members, list(words))
        elif not row["flags"] & GROUND_TRUTH_RUN and words[0] <= LONGEST_RUN:
            for _ in range(words[0]):
                if not self.record(members, []):
                    break

    def record(self, members: list[int], words: list[int]) -> bool:
        """The blocks of one record, divided where a back edge stands between two."""
        if not self.find_frame(self.tables["blocks"][members[0]], words):
            return False
        frame = self.frames[-1]
        for part in self.parts(members):
            opened = self.of[frame]
            if opened.blocks and (set(part) & set(opened.blocks) or self.is_back(opened.blocks[-1], part[0])):
                self.ends(opened, "back edge", part[0])
            for source, target in zip([*opened.blocks[-1:], *part], part if opened.blocks else part[1:]):
                self.edge(source, target)
            opened.blocks += part
            self.counting = True
            for block in part:
                self.profile.blocks[block] += 1
                self.visit(block, words)
            self.counting = False
        return True

    def parts(self, members: list[int]) -> Iterator[list[int]]:
        part: list[int] = []
        for block in members:
            if part and (block in part or self.is_back(part[-1], block)):
                yield part
                part = []
            part.append(block)
        yield part

    def is_back(self, source: int, target: int) -> bool:
        row = self.tables["blocks"][target]
        return bool(row["flags"] & LOOP_HEADER) and row["loop"] in self.process.around(source)

    def edge(self, source: int, target: int) -> None:
        call = self.tables["blocks"][target]["continues"]
        if call == NONE or call != self.tables["blocks"][source]["call"]:
            self.profile.edges[source, target] += 1

    def ends(self, opened: Open, how: str, header: int = NONE) -> None:
        if how == "back edge":
            self.edge(opened.blocks[-1], header)
        ended = (tuple(opened.blocks), how, header)
        self.profile.frequency[ended] += 1
        self.flush(opened, ended)
        opened.blocks = []

    def flush(self, opened: Open, ended: Ended) -> None:
        known = self.profile.sums[ended]
        known[:] = [one + other for one, other in zip(known, opened.sums)]
        opened.sums = [0, 0, 0, 0]

    # -- activations --------------------------------------------------------------------------------
    def enter(self, function: int) -> None:
        if self.frames and self.frames[-1].tail and self.process.cannot_enter(self.frames[-1].call):
            self.pop(0)
        site = NONE
        if self.frames and self.frames[-1].call != NONE:
            caller = self.of[self.frames[-1]]
            site = caller.blocks[-1] if caller.blocks or caller.ended is None else caller.ended[0][-1]
        super().enter(function)
        self.of[self.frames[-1]] = Open((site, function), self.clock)

    def land(self, frame: Activation, block: Row) -> None:
        first_return = frame is self.frames[-1] and frame.call == block["continues"]
        super().land(frame, block)
        opened = self.of[frame]
        opened.ended = None
        if block["continues"] != NONE and not first_return and opened.blocks:
            self.ends(opened, self.how(opened.blocks[-1]))

    def how(self, block: int) -> str:
        flags = self.tables["blocks"][block]["flags"]
        return "return" if flags & RETURNS else "tail call" if flags & TAIL_CALL else "cut"

    def visit(self, number: int, words: list[int]) -> None:
        frame = self.frames[-1]
        super().visit(number, words)
        if frame.tail and frame in self.frames and frame.block == number:
            opened = self.of[frame]
            if opened.blocks and self.how(number) == "tail call":
                ended = (tuple(opened.blocks), "tail call", NONE)
                self.ends(opened, "tail call")
                opened.ended = ended

    def pop(self, unwound: int) -> None:
        frame = self.frames[-1]
        super().pop(unwound)
        if frame.function == NONE:
            return
        opened = self.of.pop(frame)
        if opened.blocks:
            self.ends(opened, self.how(opened.blocks[-1]))
        elif opened.ended:
            self.flush(opened, opened.ended)
        calls = self.profile.calls[opened.entered_from]
        calls[0] += 1
        if all(other.function != frame.function for other in self.frames):
            calls[1] += self.clock - opened.begun
        if self.frames and self.frames[-1].function != NONE:
            self.of[self.frames[-1]].sums[3] += self.clock - opened.begun


class Paths:
    """The paths of a trace.

    ``frequency`` and ``sums`` by path, ``blocks``, ``edges``; ``calls``: (block, function) -> count and accesses.
    """

    def __init__(self, trace: Trace) -> None:
        self.process = Process(trace)
        self.frequency: Counter[Ended] = Counter()
        self.sums: dict[Ended, list[int]] = defaultdict(lambda: [0, 0, 0, 0])
        self.blocks: Counter[int] = Counter()
        self.edges: Counter[tuple[int, int]] = Counter()
        self.calls: dict[tuple[int, int], list[int]] = defaultdict(lambda: [0, 0])
        self.outside = [0, 0, 0]
        for number, records in sorted(trace.streams.items()):
            PathStream(self, number, records).run_all()


def line_counts(trace: Trace, blocks: Counter[int]) -> dict[tuple[str, int], int]:
    """(name of the file, line) -> how often it ran: of each copy of its code the block that ran most, copies added."""
    tables = trace.tables
    assert [len(image.units) for image in trace.images] == [1], "rows of locations are those of one unit"
    held = {function for image in trace.images for _, function, _ in image.functions}
    places: list[tuple[int, int]] = [(number, row["location"]) for number, row in enumerate(tables["blocks"])]
    places += [(row["block"], row["location"]) for row in tables["lines"]]
    copies: dict[tuple[int, int, int, int], int] = defaultdict(int)
    for block, location in places:
        function = tables["blocks"][block]["function"]
        if location == NONE or function not in held or not tables["locations"][location]["line"]:
            continue
        row = tables["locations"][location]
        copy = (row["source"], row["line"], function, row["inlined_at"])
        copies[copy] = max(copies[copy], blocks[block])
    counts: dict[tuple[str, int], int] = defaultdict(int)
    for (source, line, _, _), count in copies.items():
        if source != NONE:
            path = trace.text(trace.unit_of["sources"][source], tables["sources"][source]["path"])
            counts[path.rpartition("/")[2], line] += count
    return dict(counts)


def path_steps(trace: Trace, blocks: tuple[int, ...]) -> list[tuple[int, str, int]]:
    """The lines of blocks that have any: in their function's text; of inlined code, the function and the line there."""
    tables = trace.tables
    steps: list[tuple[int, str, int]] = []
    for block in blocks:
        beside = [row["location"] for row in tables["lines"] if row["block"] == block]
        for location in (tables["blocks"][block]["location"], *beside):
            if location == NONE or not tables["locations"][location]["line"]:
                continue
            chain = [location]
            while tables["locations"][chain[-1]]["inlined_at"] != NONE:
                chain.append(tables["locations"][chain[-1]]["inlined_at"])
            users = (row for row in chain if not _is_of_system(trace, tables["locations"][row]["source"]))
            inner, line = next(users, chain[-1]), tables["locations"][chain[-1]]["line"]
            step = (line, "", 0)
            if inner != chain[-1] and tables["locations"][inner]["line"]:
                function = trace.text(trace.unit_of["locations"][inner], tables["locations"][inner]["function"])
                step = (line, function, tables["locations"][inner]["line"])
            if steps[-1:] != [step]:
                steps.append(step)
    return steps


def _is_of_system(trace: Trace, source: int) -> bool:
    if source == NONE:
        return True
    return trace.text(trace.unit_of["sources"][source], trace.tables["sources"][source]["path"]).startswith("/usr/")
