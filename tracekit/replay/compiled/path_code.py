"""The code of one path: what kernels/templates.py does with its template, as straight-line LLVM text.

A path function is ``i64 (machine, words, frame)``: DONE, FALLBACK before it has changed anything, or DAMAGED. What the
kernel looks up in tables stands in the code as a constant. Where control comes from (the frame's last block) decides
which loops begin, iterate and end: one way for each kind of block that can come before it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tracekit.formats.events import CODE, NONE
from tracekit.replay.compiled import machine
from tracekit.replay.compiled.code import Code
from tracekit.replay.compiled.handled_events import CONSTANT_SIZES, HandledEvents, handler_name
from tracekit.replay.compiled.loop_chains import chain_of, shared
from tracekit.replay.compiled.range_code import INSIDE, Ranges, accesses_of
from tracekit.replay.kernels import layouts
from tracekit.replay.kernels.layouts import FRAME_ROW
from tracekit.replay.kernels.slow_paths import Step

DONE = 0
FALLBACK = -1
DAMAGED = -2
LONGEST = 1 << 22
"""Iterations of a run that are replayed without a pause."""
LONGEST_RANGED = 1 << 26
"""... of one whose accesses may be handed on many at a time."""
ROWS_OF_RUN = 1 << 16
"""What modules that look at the open levels keep of a stream grows by a few rows in a run, not with its iterations."""
ROW = FRAME_ROW.itemsize


def function_name(number: int) -> str:
    """The function of a path."""
    return f"path_{number}"


class PathCode:
    """Writes the function of one path."""

    def __init__(
        self, tables: layouts.Tables, handled: HandledEvents, before: Sequence[int], number: int, checks: bool = False
    ) -> None:
        """`checks`: whether the code makes sure that it does not leave its tables (bounds.py)."""
        self.tables, self.handled, self.number = tables, handled, number
        self.path = tables.templates[number]
        self.flags = int(self.path["flags"])
        self.before = before
        self.code = Code((number, len(tables.functions)) if checks else None)
        self.slots = int(self.path["slots"])
        self.is_run = bool(self.flags & layouts.TEMPLATE_RUN)
        self.ranges: Ranges | None = None
        if self.is_run:
            self.level = len(chain_of(tables.loops, int(self.path["loop"]))) - 1
            accesses = accesses_of(tables, self.path, self.level)
            self.ranges = Ranges(self.code, int(self.path["loop"]), accesses, handled, self._address)
        self.budget = 0
        """Events that it hands on at most; of a run: in each iteration."""

    def text(self) -> str:
        """The function."""
        code = self.code
        self._guards()
        if self.flags & layouts.TEMPLATE_ENTERS:
            self._enter()
            self._move(None)
        else:
            self._continue()
        base = code.wide(code.field(FRAME_ROW, "%frame.own", "register_base"))
        self.registers = code.element("i64", code.word(machine.REGISTERS, "ptr"), base)
        if self.flags & layouts.TEMPLATE_TERMS:
            levels = code.wide(code.field(FRAME_ROW, "%frame.own", "loop_base"))
            self.levels = code.element("i64", code.word(machine.ITERATIONS, "ptr"), levels)
        again, once, done = code.label("again"), code.label("once"), code.label("done")
        if self.ranges:
            self._begin_run(self.ranges, again, once, done)
        self._deliver(self.path)
        first = int(self.path["first_dynamic_step"])
        for row in range(first, first + int(self.path["dynamic_steps"])):
            self._dynamic_step(self.tables.dynamic_steps[row])
        if self.is_run:
            left = code.set(f"sub i64 {code.load('%left', 0)}, 1")
            code.store("%left", 0, left)
            code.branch(code.test("eq", left, 0), done, again)
            code.place(done)
        self._define()
        self._change()
        self._end()
        code.line(f"ret i64 {DONE}")
        code.place("fallback")
        code.line(f"ret i64 {FALLBACK}")
        code.place("damaged")
        code.line(f"ret i64 {DAMAGED}")
        head = f"define i64 @{function_name(self.number)}(ptr %machine, ptr %words, ptr %frame) {{"
        return "\n".join([head, "begin:", *self._budgeted(), *code.lines, "}"])

    def _begin_run(self, ranges: Ranges, again: str, once: str, done: str) -> None:
        """What comes before an iteration of a run; its other events follow, behind `once`."""
        code, choose = self.code, self.code.label("choose")
        if ranges.looks:
            ranges.look()
        code.jump(choose)
        code.place(again)
        self._count_iteration("%frame.own", self.level)
        self._emit("loop_iteration", int(self.path["loop"]))
        code.jump(choose)
        code.place(choose)
        if ranges.may_be_used:
            ranges.choose(lambda: self._counter("%frame.own", self.level), again, once, done)
        else:
            code.jump(once)
        code.place(once)

    def _budgeted(self) -> list[str]:
        """Lines that take the events that the path may cause from the budget; a long run falls back without it."""
        taking = Code()
        if self.is_run:
            taking.line("%left = alloca i64")
            taking.line("%inside = alloca i8")
            taking.line("%ranged = alloca i64")
            taking.line("%iterations = load i64, ptr %words")
            taking.line("store i64 %iterations, ptr %left")
            most = LONGEST_RANGED if self.ranges and self.ranges.may_be_used else LONGEST
            taking.line(f"%short = icmp ule i64 %iterations, {most}")
            taking.branch("%short", "is.short", "fallback")
            taking.place("is.short")
            taking.line("%some = icmp ne i64 %iterations, 0")
            taking.branch("%some", "has.some", "nothing")
            taking.place("nothing")
            taking.line(f"ret i64 {DONE}")
            taking.place("has.some")
        if (self.handled.has_budget or self.is_run) and self.budget:
            taking.line(f"%budget.at = getelementptr i64, ptr %machine, i64 {machine.BUDGET}")
            taking.line("%budget = load i64, ptr %budget.at")
            need = f"mul i64 %iterations, {self.budget}" if self.is_run else f"add i64 0, {self.budget}"
            taking.line(f"%{'all' if self.is_run else 'need'} = {need}")
            if self.is_run:
                most = ROWS_OF_RUN if self.handled.iterated else 1 << 62
                taking.line(f"%need = call i64 @llvm.smin.i64(i64 %all, i64 {most})")
            taking.line("%budget.left = sub i64 %budget, %need")
            if self.is_run:
                taking.line("%rich = icmp sge i64 %budget.left, 0")
                taking.branch("%rich", "is.rich", "fallback")
                taking.place("is.rich")
            taking.line("store i64 %budget.left, ptr %budget.at")
        return taking.lines

    # -- guards ----------------------------------------------------------------------------------

    def _guards(self) -> None:
        """Whatever has to hold, tested before anything is changed."""
        code = self.code
        if self.is_run:
            code.check("%words", 8)
            begun = code.load(code.word(machine.SCALARS, "ptr"), 8 * layouts.RUN_DONE)
            code.require(code.test("eq", begun, 0), "fallback")
        if self.flags & layouts.TEMPLATE_DYNAMIC:
            objects = code.load(code.word(machine.SCALARS, "ptr"), 8 * layouts.OBJECTS)
            most = code.add(objects, int(self.path["dynamic_steps"]))
            code.require(code.test("sle", most, code.word(machine.OBJECTS_ROOM)), "fallback")
        if self.flags & layouts.TEMPLATE_LEAVES:
            objects = code.load(code.word(machine.SCALARS, "ptr"), 8 * layouts.OBJECTS)
            first = objects
            if not self.flags & layouts.TEMPLATE_ENTERS:
                first = code.wide(code.field(FRAME_ROW, "%frame", "object_base"))
            live = code.set(f"sub i64 {objects}, {first}")
            need = code.add(live, int(self.path["room"]) + 1)
            code.require(code.test("sle", need, code.word(machine.ROOM)), "fallback")

    def _enter(self) -> None:
        """Begin an activation, from the open call of the top frame (frames.push)."""
        code, function = self.code, int(self.path["function"])
        depth, own_slots = (int(self.tables.functions[name][function]) for name in ("depth", "slots"))
        call = code.field(FRAME_ROW, "%frame", "pending")
        code.require(code.test("ne", call, NONE, "i32"), "fallback")
        code.require(code.test("eq", code.field(FRAME_ROW, "%frame", "tail"), 0, "i8"), "fallback")
        code.line(f"%frame.own = getelementptr i8, ptr %frame, i64 {ROW}")
        end = code.set(f"getelementptr i8, ptr %frame, i64 {2 * ROW}")
        code.require(code.set(f"icmp ule ptr {end}, {code.word(machine.FRAMES_END, 'ptr')}"), "fallback")
        above = code.wide(code.field(FRAME_ROW, "%frame", "function"))
        row = code.element("{i32, i32}", "@functions", above)
        slots_above, depth_above = code.load(row, 0, "i32"), code.load(row, 4, "i32")
        loop_base = code.set(f"add i32 {code.field(FRAME_ROW, '%frame', 'loop_base')}, {depth_above}")
        register_base = code.set(f"add i32 {code.field(FRAME_ROW, '%frame', 'register_base')}, {slots_above}")
        levels = code.add(code.wide(loop_base), depth)
        code.require(code.test("sle", levels, code.word(machine.LOOPS_ROOM)), "fallback")
        behind = code.add(code.wide(register_base), own_slots + layouts.SPARE)
        code.require(code.test("sle", behind, code.word(machine.REGISTERS_ROOM)), "fallback")
        code.set_field(FRAME_ROW, "%frame", "entered", 1)
        scalars = code.word(machine.SCALARS, "ptr")
        code.store(scalars, 8 * layouts.TOP, code.add(code.load(scalars, 8 * layouts.TOP), 1))
        objects = code.set(f"trunc i64 {code.load(scalars, 8 * layouts.OBJECTS)} to i32")
        fields: Mapping[str, int | str] = {
            "address": 0,
            "function": function,
            "pending": NONE,
            "block": NONE,
            "loop": NONE,
            "loops": 0,
            "loop_base": loop_base,
            "register_base": register_base,
            "object_base": objects,
            "dead": 0,
            "entered": 0,
            "tail": 0,
            "effects": 0,
        }
        for name, value in fields.items():
            code.set_field(FRAME_ROW, "%frame.own", name, value)
        code.set_word(machine.FRAME, "%frame.own", "ptr")
        zeros = code.element("i64", code.word(machine.REGISTERS, "ptr"), code.wide(register_base))
        code.check(zeros, 8 * own_slots)
        code.line(f"call void @llvm.memset.p0.i64(ptr align 8 {zeros}, i8 0, i64 {8 * own_slots}, i1 false)")
        self._emit("function_entry", function, size=code.wide(call))

    def _continue(self) -> None:
        """Go on in the top frame: a case for each kind of block that it may stand at."""
        code = self.code
        ways: dict[tuple[int, int], list[int]] = {}
        for block in self.before:
            row = self.tables.blocks[block]
            ways.setdefault((int(row["loop"]), int(row["test_of"])), []).append(block)
        stands_at = code.field(FRAME_ROW, "%frame", "block")
        labels = {way: code.label("from") for way in ways}
        cases = " ".join(f"i32 {number}, label %{labels[way]}" for way, numbers in ways.items() for number in numbers)
        code.line(f"switch i32 {stands_at}, label %fallback [ {cases} ]")
        body = code.label("body")
        for way in ways:
            code.place(labels[way])
            self._effects()
            self._move(way)
            code.jump(body)
        code.place(body)
        code.line("%frame.own = getelementptr i8, ptr %frame, i64 0")

    def _effects(self) -> None:
        """The call that the path continues has unknown effects unless it entered instrumented code."""
        if self.flags & layouts.TEMPLATE_EFFECTS and "external_call" in self.handled:
            code = self.code
            call, behind = code.label("effects"), code.label("behind")
            entered = code.field(FRAME_ROW, "%frame", "entered")
            code.branch(code.test("eq", entered, 0, "i8"), call, behind)
            code.place(call)
            self._emit("external_call", int(self.path["continues"]))
            code.jump(behind)
            code.place(behind)

    # -- loops -----------------------------------------------------------------------------------

    def _move(self, way: tuple[int, int] | None) -> None:
        """Loop events on the way to the path's first block (frames.move_to)."""
        frame = "%frame.own" if way is None else "%frame"
        loop, tested = way or (NONE, NONE)
        code, target = self.code, int(self.path["loop"])
        open_loops, target_loops = chain_of(self.tables.loops, loop), chain_of(self.tables.loops, target)
        header = bool(self.flags & layouts.TEMPLATE_HEADER)
        kept = shared(open_loops, target_loops)
        for ended in open_loops[kept:][::-1]:
            self._emit("loop_exit", ended, size=int(ended == tested))
        if kept == len(target_loops):
            if header:
                self._count_iteration(frame, kept - 1)
                self._emit("loop_iteration", target)
        else:
            for level in range(kept, len(target_loops)):
                self._open(frame, level, target_loops[level])
            for level in range(kept, len(target_loops)):
                self._emit("loop_invocation", target_loops[level])
        if loop != target:
            code.set_field(FRAME_ROW, frame, "loops", len(target_loops))
            code.set_field(FRAME_ROW, frame, "loop", target)

    def _level(self, frame: str, level: int) -> str:
        """The place of a level of the frame in the stream's arrays."""
        return self.code.add(self.code.wide(self.code.field(FRAME_ROW, frame, "loop_base")), level)

    def _counter(self, frame: str, level: int) -> str:
        """Where the iterations of a level are counted."""
        place = self._level(frame, level)
        return self.code.element("i64", self.code.word(machine.ITERATIONS, "ptr"), place)

    def _count_iteration(self, frame: str, level: int) -> None:
        code = self.code
        counter = self._counter(frame, level)
        code.store(counter, 0, code.add(code.load(counter, 0), 1))

    def _open(self, frame: str, level: int, loop: int) -> None:
        code = self.code
        place = self._level(frame, level)
        counter = code.element("i64", code.word(machine.ITERATIONS, "ptr"), place)
        code.store(counter, 0, 0)
        opened = code.element("i32", code.word(machine.OPEN_LOOPS, "ptr"), place)
        code.store(opened, 0, loop, "i32")

    def _change(self) -> None:
        """The loops that the path leaves open, and their iterations (templates._change)."""
        if not self.flags & layouts.TEMPLATE_LOOPS:
            return
        first = int(self.path["first_change"])
        for change in self.tables.changes[first : first + int(self.path["changes"])]:
            if change["opens"]:
                self._open("%frame.own", int(change["level"]), int(change["loop"]))
            else:
                self._count_iteration("%frame.own", int(change["level"]))
        self.code.set_field(FRAME_ROW, "%frame.own", "loop", int(self.path["last_loop"]))
        self.code.set_field(FRAME_ROW, "%frame.own", "loops", int(self.path["last_depth"]))

    # -- events ----------------------------------------------------------------------------------

    def _emit(self, name: str, subject: int, address: int | str = 0, size: int | str = 0, value: int | str = 0) -> None:
        self._emit_code(CODE[name], subject, address, size, value)

    def _emit_code(
        self, event: int, subject: int, address: int | str = 0, size: int | str = 0, value: int | str = 0
    ) -> None:
        """Hand an event to the modules, if one wants it."""
        if event not in self.handled.codes:
            return
        self.budget += 1
        code = self.code
        if isinstance(size, int) and size in CONSTANT_SIZES and event in self.handled.sized:
            code.line(
                f"call void @{handler_name(event, size)}(ptr %machine, i32 {subject}, i64 {address}, i64 {value})"
            )
            return
        damaged = code.set(
            f"call i1 @{handler_name(event)}(ptr %machine, i32 {subject}, i64 {address}, i64 {size}, i64 {value})"
        )
        if not isinstance(size, int):
            sound = code.label("sound")
            code.branch(damaged, "damaged", sound)
            code.place(sound)

    def _base(self, which: int) -> str | None:
        """The word or the register of this number (TEMPLATE_EVENT.base); None for the one that is always 0."""
        if which >= self.slots:
            return self.code.load("%words", 8 * (which - self.slots))
        if which == self.slots - 2:
            return None
        return self.code.load(self.registers, 8 * which)

    def _plus(self, base: str | None, offset: int, strides: Any) -> str:
        """``base + offset`` and the products of `strides`."""
        code = self.code
        offset = offset - (1 << 64) if offset >> 63 else offset
        address = str(offset) if base is None else code.add(base, offset)
        for which in range(1, layouts.MOST_TERMS + 1):
            stride = int(strides[f"stride{which}"].astype(np.uint64).astype(np.int64)) if strides is not None else 0
            if stride:
                count = code.load(self.levels, 8 * int(strides[f"level{which}"]))
                address = code.add(code.set(f"mul i64 {count}, {stride}"), address)
        return address

    def _address(self, base: int, offset: int, strides: Any) -> str:
        """An address of these parts, of a template event or a dynamic step."""
        return self._plus(self._base(base), offset, strides if self.flags & layouts.TEMPLATE_TERMS else None)

    def _deliver(self, part: Any) -> None:
        """The events of a part of the path (templates._deliver), without the padding."""
        first, count = int(part["first_template_event"]), int(part["template_events"])
        for number in range(count):
            group, place = first + number // layouts.GROUP, number % layouts.GROUP
            events = self.tables.template_events[group]
            strides = None
            if self.flags & layouts.TEMPLATE_TERMS:
                strides = self.tables.strides[group * layouts.GROUP + place]
            event = int(events["kind"][place])
            if event not in self.handled.codes:
                continue
            address = self._plus(self._base(int(events["base"][place])), int(events["offset"][place]), strides)
            value = self._base(int(events["value"][place])) or 0
            self._emit_code(event, int(events["subject"][place]), address, int(events["size"][place]), value)

    # -- dynamic steps ---------------------------------------------------------------------------

    def _dynamic_step(self, step: Any) -> None:
        """A dynamic step, and the events behind it (templates._parts)."""
        code = self.code
        strides = step if self.flags & layouts.TEMPLATE_TERMS else None
        address = self._plus(self._base(int(step["base"])), int(step["offset"]), strides)
        size_base = self._base(int(step["size_base"]))
        size: int | str = int(step["size"]) if size_base is None else code.add(size_base, int(step["size"]))
        if step["code"] in (layouts.ALLOC, layouts.FREE):
            name = "begin_object" if step["code"] == layouts.ALLOC else "finish_object"
            code.require(code.set(_slow_path(name, step, address, size)), "damaged")
        elif step["code"] == layouts.FRAME:
            code.set_field(FRAME_ROW, "%frame.own", "address", address)
        else:
            if step["flags"] & (layouts.STEP_GLOBAL | layouts.STEP_STACK):
                self._check(step, address, size)
            self._access(step, address, size)
        self._deliver(step)

    def _check(self, step: Any, address: str, size: int | str) -> None:
        """Count an access that leaves its object; those of a run may all be known to stay inside."""
        code = self.code
        behind = code.label("checked")
        if self.ranges and self.ranges.looks:
            check = code.label("check")
            code.branch(code.test("eq", code.load(INSIDE, 0, "i8"), 0, "i8"), check, behind)
            code.place(check)
        code.line(_slow_path("check_object", step, address, size))
        code.jump(behind)
        code.place(behind)

    def _access(self, step: Any, address: str, size: int | str) -> None:
        """A load or store; of size 0 it is none."""
        if size == 0:
            return
        code = self.code
        behind = code.label("behind")
        if not isinstance(size, int):
            moved = code.label("moved")
            code.branch(code.test("ne", size, 0), moved, behind)
            code.place(moved)
        if step["flags"] & layouts.STEP_LOADS_TOO:
            self._emit_code(CODE["load"], int(step["subject"]), address, size)
        self._emit_code(int(step["kind"]), int(step["subject"]), address, size)
        code.jump(behind)
        code.place(behind)

    # -- the end ---------------------------------------------------------------------------------

    def _define(self) -> None:
        """Set the registers that the path defines (templates._define), without the padding."""
        first = int(self.path["first_define"])
        rows = self.tables.defines[first : first + int(self.path["defines"])]
        values = [(int(row["register"]), self._base(int(row["word"])) or "0") for row in rows]
        for register, value in values:
            self.code.store(self.registers, 8 * register, value)

    def _end(self) -> None:
        code = self.code
        if self.flags & layouts.TEMPLATE_LEAVES:
            self._leave()
            return
        code.set_field(FRAME_ROW, "%frame.own", "block", int(self.path["block"]))
        code.set_field(FRAME_ROW, "%frame.own", "pending", int(self.path["call"]))
        code.set_field(FRAME_ROW, "%frame.own", "entered", 0)

    def _leave(self) -> None:
        """The top frame returns (frames.leave): its loops, its stack objects, itself, frames that tail-called it."""
        code = self.code
        in_loops = bool(self.flags & layouts.TEMPLATE_LOOPS)
        last = int(self.path["last_loop"] if in_loops else self.path["loop"])
        for loop in chain_of(self.tables.loops, last)[::-1]:
            self._emit("loop_exit", loop)
        scalars = code.word(machine.SCALARS, "ptr")
        first = code.wide(code.field(FRAME_ROW, "%frame.own", "object_base"))
        if {CODE["stack_free"]} & self.handled.codes:
            some, behind = code.label("objects"), code.label("behind")
            objects = code.load(scalars, 8 * layouts.OBJECTS)
            code.branch(code.test("sgt", objects, first), some, behind)
            code.place(some)
            code.require(code.set(_slow_path("free_all")), "damaged")
            code.jump(behind)
            code.place(behind)
        code.store(scalars, 8 * layouts.OBJECTS, first)
        code.set_field(FRAME_ROW, "%frame.own", "dead", 0)
        code.set_field(FRAME_ROW, "%frame.own", "loop", NONE)
        code.set_field(FRAME_ROW, "%frame.own", "loops", 0)
        top = code.set(f"sub i64 {code.load(scalars, 8 * layouts.TOP)}, 1")
        code.store(scalars, 8 * layouts.TOP, top)
        below = code.at("%frame.own", -ROW)
        alive = code.test("sge", top, 0)
        code.set_word(machine.FRAME, code.set(f"select i1 {alive}, ptr {below}, ptr null"), "ptr")
        self._emit("function_exit", int(self.path["function"]))
        some, tails, done = code.label("below"), code.label("tails"), code.label("done")
        code.branch(alive, some, done)
        code.place(some)
        code.branch(code.test("eq", code.field(FRAME_ROW, below, "tail"), 0, "i8"), done, tails)
        code.place(tails)
        code.require(code.set(_slow_path("pop_tails")), "damaged")
        code.jump(done)
        code.place(done)


def _slow_path(name: str, step: Any = None, address: int | str = 0, size: int | str = 0) -> str:
    """A call of one of kernels/slow_paths.py."""
    fields = (0, 0, 0, 0) if step is None else tuple(int(step[name]) for name in Step._fields)
    subject, thing, base, flags = fields
    return (
        f"call i1 @{name}(ptr %machine, i32 {subject}, i32 {thing}, i32 {base}, i8 {flags}, i64 {address}, i64 {size})"
    )
