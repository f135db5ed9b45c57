"""Events from records, written from formats/SPEC.md ("Deriving events") alone: the naive reader's second half."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from tests.naive.recorded import Activation, Object, RecordedEvents
from tests.naive.tables import RECORDED

if TYPE_CHECKING:
    from tests.naive.reader import Record, Row, Trace

NONE = 0xFFFFFFFF
MASK = (1 << 64) - 1

(
    LOAD,
    STORE,
    ATOMIC,
    COPY_FROM,
    COPY_TO,
    SET,
    CALL,
    STACK_ALLOC,
    STACK_FREE,
    POINTER,
    BASE,
    FRAME,
    LANDING,
    GROUND_TRUTH,
) = range(1, 15)
ONE_WORD = (BASE, FRAME, LANDING, GROUND_TRUTH)
ADDRESSED = (LOAD, STORE, ATOMIC, COPY_FROM, COPY_TO, SET, STACK_ALLOC, STACK_FREE, POINTER)
DYNAMIC_SIZE, VALUE, GROUND_TRUTH_FLAG = 4, 8, 32
RUN, GROUND_TRUTH_RUN = 1, 2
LONGEST_RUN = 1 << 40
ON_RECORD, ON_REGISTER, ON_GLOBAL, ON_STACK = range(4)
ENTRY, LOOP_HEADER, LANDS, RETURNS, TAIL_CALL = 1, 4, 8, 16, 32
RESUMES = ENTRY | LANDS
INDIRECT, MAY_CALL_BACK, PURE, ALLOCATES, RETURNS_TWICE = 1, 2, 4, 16, 32
TESTS_AT_HEADER = 8
FUNCTION_LOCAL = 2

Event = tuple[int, str, int, int, int]


class Process:
    """What the streams share, and the order between them."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.names = {code: (name, words.split()) for code, (name, words) in RECORDED.items()}
        self.heap: dict[int, int] = {}
        self.created: set[int] = set()
        self.streams: list[Stream] = []
        self.events: list[Event] = []
        self.values: list[int | None] = []  # beside them: the bytes moved, where they were recorded
        self.equal = Counter[str]()
        self.unequal = Counter[str]()
        tables = trace.tables
        self.block_of_call = {
            row["call"]: k
            for k, row in enumerate(tables["blocks"])
            if row["call"] != NONE and row["flags"] & RESUMES != RESUMES
        }
        self.functions = {
            (unit if row["flags"] & FUNCTION_LOCAL else NONE, trace.text(unit, row["name"]))
            for row, unit in zip(tables["functions"], trace.unit_of["functions"])
        }

    def run(self) -> None:
        """Deliver all events, in order."""
        self.streams = [Stream(self, number, records) for number, records in sorted(self.trace.streams.items())]
        for stream in self.streams:
            stream.go_on()
        while waiting := [stream for stream in self.streams if stream.at < len(stream.records)]:
            ready = [stream for stream in waiting if not stream.waits()]
            first = min(ready or waiting, key=Stream.ticket)
            first.deliver()
            first.go_on()

    def compare(self, what: str, derived: int, recorded: int) -> None:
        """A ground-truth record: what was derived, and what the program recorded in place."""
        (self.equal if derived == recorded else self.unequal)[what] += 1

    def may_have_effects(self, op: int) -> bool:
        call = self.trace.tables["calls"][self.trace.tables["ops"][op]["base"]]
        return not call["flags"] & (PURE | ALLOCATES | RETURNS_TWICE)

    def cannot_enter(self, op: int) -> bool:
        row = self.trace.tables["ops"][op]["base"]
        call, unit = self.trace.tables["calls"][row], self.trace.unit_of["calls"][row]
        name = self.trace.text(unit, call["callee"])
        known = (unit, name) in self.functions or (NONE, name) in self.functions
        return not call["flags"] & (INDIRECT | MAY_CALL_BACK) and not known

    def in_header(self, block: int, loop: int) -> bool:
        """Whether the block stands in the header of the loop."""
        blocks = self.trace.tables["blocks"]
        while block != self.trace.tables["loops"][loop]["header"]:
            row = blocks[block]
            if row["loop"] != loop or row["continues"] not in self.block_of_call:
                return False
            block = self.block_of_call[row["continues"]]
        return True

    def around(self, block: int) -> list[int]:
        """The loops that contain a block, outermost first."""
        loops: list[int] = []
        loop = self.trace.tables["blocks"][block]["loop"]
        while loop != NONE:
            loops.insert(0, loop)
            loop = self.trace.tables["loops"][loop]["parent"]
        return loops


class Stream(RecordedEvents):
    """One stream: its records and its stack."""

    def __init__(self, process: Process, number: int, records: list[Record]) -> None:
        self.process, self.number, self.records, self.at = process, number, records, 0
        self.tables = process.trace.tables
        self.frames: list[Activation] = []
        self.broken = 0

    # -- order --------------------------------------------------------------------------------------
    def has_ticket(self) -> bool:
        code = self.records[self.at][0]
        return code < 256 and self.process.names[code][1][:1] == ["ticket"]

    def ticket(self) -> int:
        return self.records[self.at][1][0]

    def waits(self) -> bool:
        return self.records[self.at][0] == 22 and self.number not in self.process.created

    def go_on(self) -> None:
        while self.at < len(self.records) and not self.has_ticket():
            self.deliver()

    def deliver(self) -> None:
        number, words = self.records[self.at]
        self.at += 1
        if number < 256:
            self.recorded(number, words)
        else:
            self.path(number, words)

    def emit(self, name: str, subject: int = 0, address: int = 0, size: int = 0, value: int | None = None) -> None:
        self.process.events.append((self.number, name, subject & NONE, address & MASK, size))
        self.process.values.append(value)

    # -- paths --------------------------------------------------------------------------------------
    def path(self, number: int, words: list[int]) -> None:
        row = self.tables["paths"][self.process.trace.path_row[number]]
        members = [self.tables["path_blocks"][row["first"] + k]["block"] for k in range(row["blocks"])]
        first = self.tables["blocks"][members[0]]
        if row["flags"] & RUN and row["flags"] & GROUND_TRUTH_RUN:
            self.process.compare("runs", self.visits(first), words[0])
        elif row["flags"] & RUN:
            self.run(first, members, words[0])
        else:
            rest = list(words)
            if self.find_frame(first, rest):
                for block in members:
                    self.visit(block, rest)

    def run(self, first: Row, members: list[int], iterations: int) -> None:
        """So many iterations of a loop, as if each had a record."""
        if iterations > LONGEST_RUN:
            self.broken += 1
            return
        for _ in range(iterations):
            if not self.find_frame(first, []):
                break
            for block in members:
                self.visit(block, [])

    def visits(self, block: Row) -> int:
        """How many iterations the block's loop has had in the top frame; -1 if that is another function's."""
        if not self.frames or self.frames[-1].function != block["function"]:
            return -1
        return sum(iteration + 1 for loop, iteration in self.frames[-1].loops if loop == block["loop"])

    def find_frame(self, block: Row, words: list[int]) -> bool:
        if block["flags"] & ENTRY:
            self.enter(block["function"])
            return True
        top = self.frames[-1] if self.frames else None
        if top and top.function == block["function"] and top.call == block["continues"] and not block["flags"] & LANDS:
            self.outside(top)
            return True
        landing = self.landing_word(block, words)
        for frame in reversed(self.frames):
            if frame.function == NONE:
                break
            if frame.function != block["function"]:
                continue
            if landing is not None and frame.address == landing:
                self.land(frame, block)
                return True
            if landing is None and block["continues"] not in (NONE, -1) and frame.call == block["continues"]:
                self.unwind_to(frame)
                self.outside(frame)
                return True
        return self.broken_rule(block, landing is not None)

    def broken_rule(self, block: Row, landed: bool) -> bool:
        self.broken += 1
        for frame in reversed(self.frames):
            if frame.function == NONE:
                break
            if frame.function == block["function"]:
                if landed:
                    self.land(frame, block)
                else:
                    self.unwind_to(frame)
                return True
        return False

    def land(self, frame: Activation, block: Row) -> None:
        """Control lands in a frame; where it came from is forgotten, but for the first return of setjmp."""
        first_return = frame is self.frames[-1] and frame.call == block["continues"]
        self.unwind_to(frame)
        frame.tail = False
        if not first_return:
            frame.block = NONE

    def landing_word(self, block: Row, words: list[int]) -> int | None:
        """The word of the block's LANDING operation."""
        if not block["flags"] & LANDS:
            return None
        at = 0
        for k in range(block["ops"]):
            op = self.tables["ops"][block["first_op"] + k]
            if op["kind"] == LANDING:
                return words[at]
            at += words_of(op)
        return None

    def outside(self, frame: Activation) -> None:
        """The open call has returned."""
        if frame.call != NONE and not frame.entered and self.process.may_have_effects(frame.call):
            self.emit("external_call", frame.call)

    def enter(self, function: int) -> None:
        if self.frames and self.frames[-1].tail and self.process.cannot_enter(self.frames[-1].call):
            self.end_tail()
        call = NONE
        if self.frames:
            call = self.frames[-1].call
            self.frames[-1].entered = call != NONE
            if len(self.frames) > 1 and self.frames[-1].tail and self.frames[-2].tail:
                self.pop(0)
        self.frames.append(Activation(function))
        self.emit("function_entry", function, 0, call)

    def end_tail(self) -> None:
        call = self.frames[-1].call
        if self.process.cannot_enter(call) and self.process.may_have_effects(call):
            self.emit("external_call", call)
        self.pop(0)

    def unwind_to(self, target: Activation) -> None:
        unwinding = False
        while self.frames[-1] is not target:
            frame = self.frames[-1]
            unwinding = unwinding or not frame.tail or frame.entered
            if not unwinding:
                self.end_tail()
            else:
                self.pop(1)

    def pop(self, unwound: int) -> None:
        frame = self.frames[-1]
        self.close(frame)
        self.frames.pop()
        if frame.function != NONE:
            self.emit("function_exit", frame.function, 0, unwound)

    def close(self, frame: Activation) -> None:
        while frame.loops:
            self.emit("loop_exit", frame.loops.pop()[0])
        for item in reversed(frame.objects):
            if item.alive:
                item.alive = False
                self.emit("stack_free", item.op, item.address, item.size)
        frame.objects = []

    def visit(self, number: int, words: list[int]) -> None:
        block, frame = self.tables["blocks"][number], self.frames[-1]
        self.loops(frame, number)
        size = 0
        for k in range(block["ops"]):
            size = self.operation(frame, number, block["first_op"] + k, words, size)
        frame.block, frame.call, frame.entered = number, block["call"], False
        if block["flags"] & RETURNS:
            self.pop(0)
            while self.frames and self.frames[-1].tail:
                self.pop(0)
        elif block["flags"] & TAIL_CALL:
            self.close(frame)
            frame.tail = True

    def loops(self, frame: Activation, number: int) -> None:
        block = self.tables["blocks"][number]
        around = self.process.around(number)
        while frame.loops and frame.loops[-1][0] not in around:
            loop = frame.loops.pop()[0]
            tests = self.tables["loops"][loop]["flags"] & TESTS_AT_HEADER
            partial = bool(tests) and frame.block != NONE and self.process.in_header(frame.block, loop)
            self.emit("loop_exit", loop, 0, int(partial))
        if len(frame.loops) == len(around):
            if block["flags"] & LOOP_HEADER and around:
                frame.loops[-1][1] += 1
                self.emit("loop_iteration", around[-1])
            return
        for loop in around[len(frame.loops) :]:
            frame.loops.append([loop, 0])
            self.emit("loop_invocation", loop)

    # -- operations ---------------------------------------------------------------------------------
    def operation(self, frame: Activation, row: int, number: int, words: list[int], size_before: int) -> int:
        """Run one operation of a block; returns its size, which a COPY_TO in the next row may share."""
        op, block = self.tables["ops"][number], self.tables["blocks"][row]
        block_number = row - self.tables["functions"][block["function"]]["first_block"]
        kind, addressed = op["kind"], op["kind"] in ADDRESSED
        if kind == CALL:
            if block["call"] != number and self.process.may_have_effects(number):
                self.emit("external_call", number)
            return 0
        address, size = 0, op["size"]
        if kind in ONE_WORD or (addressed and op["base_kind"] == ON_RECORD):
            address = words.pop(0)
            if op["defines"] != NONE:
                frame.registers[op["defines"]] = address
        if kind == FRAME:
            frame.address = address
        if kind == GROUND_TRUTH:
            self.process.compare("blocks", block_number, address)
        if not addressed:
            return 0
        address = (address + self.base(frame, op) + op["offset"] + self.affine(frame, op)) & MASK
        if op["flags"] & DYNAMIC_SIZE:
            size = words.pop(0)
        elif kind == COPY_TO and self.copies_dynamically(number - 1):
            size = size_before
        values = self.values(op, words)
        if op["flags"] & GROUND_TRUTH_FLAG:
            recorded = words.pop(0)
            if size or kind in (STACK_ALLOC, STACK_FREE, POINTER):
                self.process.compare("addresses", address, recorded)
        self.access(frame, op, number, address, size, values)
        return size

    def values(self, op: Row, words: list[int]) -> list[int | None]:
        """The values that an operation moves: of an ATOMIC those before and after."""
        count = value_words(op)
        if count == 0:
            return [None, None]
        whole = sum(words.pop(0) << (64 * k) for k in range(count))
        half = 32 * count
        return [whole & ((1 << half) - 1), whole >> half] if op["kind"] == ATOMIC else [whole, whole]

    def copies_dynamically(self, number: int) -> bool:
        before = self.tables["ops"][number]
        return before["kind"] == COPY_FROM and bool(before["flags"] & DYNAMIC_SIZE)

    def base(self, frame: Activation, op: Row) -> int:
        if op["base_kind"] == ON_REGISTER:
            return frame.registers.get(op["base"], 0)
        if op["base_kind"] == ON_GLOBAL:
            return self.process.trace.address.get(op["base"], 0)
        if op["base_kind"] == ON_STACK and op["base"] in frame.begun:
            return frame.begun[op["base"]].address
        return 0

    def affine(self, frame: Activation, op: Row) -> int:
        total = 0
        for term in self.tables["terms"][op["first_term"] : op["first_term"] + op["terms"]] if op["terms"] else []:
            iterations = [iteration for loop, iteration in frame.loops if loop == term["loop"]]
            stride = term["stride"]
            if term["stride_register"] != NONE:
                stride += frame.registers.get(term["stride_register"], 0)
            total += stride * sum(iterations)
        return total

    def access(
        self, frame: Activation, op: Row, number: int, address: int, size: int, values: list[int | None]
    ) -> None:
        kind = op["kind"]
        if kind == STACK_ALLOC:
            self.begin(frame, number, address, size)
        elif kind == STACK_FREE:
            self.end(frame, op, number, address)
        elif kind == POINTER:
            self.emit("pointer_creation", number, address, op["type_class"])
        elif size:
            if kind in (LOAD, COPY_FROM, ATOMIC):
                self.emit("load", number, address, size, values[0])
            if kind in (STORE, SET, ATOMIC):
                self.emit("store", number, address, size, values[1])
            if kind == COPY_TO:
                self.emit("store", number - 1, address, size, values[1])

    def begin(self, frame: Activation, number: int, address: int, size: int) -> None:
        last = frame.begun.get(number)
        if last and last.alive and last.address == address:
            self.emit("stack_free", number, address, last.size)
            last.size = size
        else:
            frame.begun[number] = Object(number, address, size)
            frame.objects.append(frame.begun[number])
        self.emit("stack_alloc", number, address, size)

    def end(self, frame: Activation, op: Row, number: int, address: int) -> None:
        if op["base_kind"] == ON_STACK:
            found = [frame.begun[op["base"]]] if op["base"] in frame.begun else []
        else:
            found = [item for item in frame.objects if item.address == address]
        found = [item for item in found if item.alive]
        if found:
            found[-1].alive = False
            self.emit("stack_free", number, found[-1].address, found[-1].size)


def words_of(op: Row) -> int:
    """How many words an operation records."""
    if op["kind"] in ONE_WORD:
        return 1
    if op["kind"] not in ADDRESSED:
        return 0
    words = sum((op["base_kind"] == ON_RECORD, bool(op["flags"] & DYNAMIC_SIZE), bool(op["flags"] & GROUND_TRUTH_FLAG)))
    return words + value_words(op)


def value_words(op: Row) -> int:
    """How many of them are values."""
    values = (2 if op["kind"] == ATOMIC else 1) if op["flags"] & VALUE else 0
    return values * ((op["size"] + 7) // 8)
