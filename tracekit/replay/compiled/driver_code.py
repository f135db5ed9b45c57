"""The code around paths: the loop over records, what it does with a record that has none, the functions for events.

replay(machine)       records from the cursor on, until the derive kernel says why not; its status
on_<code>(...)        hands an event to all modules that want it; whether its size cannot be
drain(machine, n)     the same for the first n rows of the columns
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tracekit.replay.compiled import machine
from tracekit.replay.compiled.code import Code
from tracekit.replay.compiled.functions import Constants, NumbaFunction, count, loads, types_of
from tracekit.replay.compiled.handled_events import CONSTANT_SIZES, HandledEvents, handler_name
from tracekit.replay.compiled.machine import ARGUMENTS
from tracekit.replay.compiled.path_code import DONE, FALLBACK, ROW
from tracekit.replay.compiled.range_code import range_name
from tracekit.replay.kernels import layouts

SLOW_PATH_PARAMETERS = (
    ("i32", "subject"),
    ("i32", "object"),
    ("i32", "base"),
    ("i8", "flags"),
    ("i64", "address"),
    ("i64", "size"),
)
"""Parameters of the functions of kernels/slow_paths.py, after the stream's."""

INTRINSICS = ("declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)", "declare i64 @llvm.smin.i64(i64, i64)")

ROOM = 100
"""Status: what modules keep of the stream has no room for more events."""
ENDLESS = 1 << 62
"""How many accesses may come in any order if no module says otherwise."""
BROKEN = 101
"""Status: a size is more than any program could have."""


@dataclass(frozen=True)
class Handler:
    """What one module does for an event: code, and its arguments before those of the event."""

    function: NumbaFunction
    state: Any
    contexts: Any
    levels: Any
    """Arrays like those that it is called with; they move."""
    levels_at: int
    """The leaf of the modules' arguments where they begin."""
    clock: Any
    event: Sequence[Any]
    """Values like those of what follows: stream, subject, address, size, value, if it is for single events."""


def declarations(handlers: Iterable[Handler], slow_paths: Mapping[str, tuple[NumbaFunction, Any]]) -> str:
    """Declarations of Numba's functions."""
    lines = {
        handler.function.declaration(
            [*types_of((handler.state, handler.contexts, handler.levels, handler.clock, *handler.event))]
        )
        for handler in handlers
    }
    lines |= {function.declaration([*types_of(arguments)]) for function, arguments in slow_paths.values()}
    return "\n".join([*sorted(lines), *INTRINSICS])


def event_function(event: int, handlers: Sequence[Handler], constants: Constants, first: int) -> str:
    """``on_<code>``: all modules in turn. `first`: the word of the machine where the modules' arguments begin."""
    code = Code()
    code.line(f"%stream = load i64, ptr {code.at('%machine', 8 * machine.STREAM)}")
    damaged = "false"
    event_given = ["i64 %stream", "i32 %subject", "i64 %address", "i64 %size", "i64 %value"]
    for _ in _call_all(code, handlers, constants, first, event_given):
        bad = code.load("%result", 0, "i1")
        damaged = bad if damaged == "false" else code.set(f"or i1 {damaged}, {bad}")
    code.line(f"ret i1 {damaged}")
    parameters = "ptr %machine, i32 %subject, i64 %address, i64 %size, i64 %value"
    return _function(f"i1 @{handler_name(event)}({parameters})", code)


def sized_function(event: int, size: int, is_large: bool) -> str:
    """``on_<code>_<size>``: one copy for a size, that paths call; of what is large, a jump to the function of any."""
    code = Code()
    given = f"ptr %machine, i32 %subject, i64 %address, i64 {size}, i64 %value"
    code.line(
        f"{'tail ' * is_large}call i1 @{handler_name(event)}({given}) {'noinline' if is_large else 'alwaysinline'}"
    )
    code.line("ret void")
    return _function(
        f"void @{handler_name(event, size)}(ptr %machine, i32 %subject, i64 %address, i64 %value)",
        code,
        "noinline",
    )


RANGE = ("address", "size", "step", "count", "passed", "period")
"""Words that a function for many accesses takes after the instruction."""


def range_function(event: int, handlers: Sequence[Handler], constants: Constants, first: int) -> str:
    """``range_<code>``: many accesses of one instruction, all modules in turn."""
    code = Code()
    code.line(f"%stream = load i64, ptr {code.at('%machine', 8 * machine.STREAM)}")
    event_given = ["i64 %stream", "i32 %subject", *(f"i64 %{name}" for name in RANGE)]
    deque(_call_all(code, handlers, constants, first, event_given), 0)
    code.line("ret void")
    parameters = ", ".join(["ptr %machine", "i32 %subject", *(f"i64 %{name}" for name in RANGE)])
    return _function(f"void @{range_name(event)}({parameters})", code, "noinline")


def unordered_function(handlers: Sequence[Handler], constants: Constants, first: int) -> str:
    """``unordered``: how many of the next accesses may come in any order, the least that a module says."""
    code = Code()
    least = str(ENDLESS)
    for _ in _call_all(code, handlers, constants, first, []):
        least = code.set(f"call i64 @llvm.smin.i64(i64 {least}, i64 {code.load('%result', 0)})")
    code.line(f"ret i64 {least}")
    return _function("i64 @unordered(ptr %machine)", code, "noinline")


def passed_function(handlers: Sequence[Handler], constants: Constants, first: int) -> str:
    """``passed``: so many accesses are over."""
    code = Code()
    deque(_call_all(code, handlers, constants, first, ["i64 %count"]), 0)
    code.line("ret void")
    return _function("void @passed(ptr %machine, i64 %count)", code, "noinline")


def iterated_function(handlers: Sequence[Handler], constants: Constants, first: int) -> str:
    """``iterated``: so many iterations of a loop are over."""
    code = Code()
    code.line(f"%stream = load i64, ptr {code.at('%machine', 8 * machine.STREAM)}")
    deque(_call_all(code, handlers, constants, first, ["i64 %stream", "i32 %loop", "i64 %count"]), 0)
    code.line("ret void")
    return _function("void @iterated(ptr %machine, i32 %loop, i64 %count)", code, "noinline")


def _call_all(
    code: Code, handlers: Sequence[Handler], constants: Constants, first: int, event: Sequence[str]
) -> Iterator[Handler]:
    """Call what all modules have for an event, one at each step."""
    code.line("%result = alloca i64")
    code.line("%raised = alloca ptr")
    for number, handler in enumerate(handlers):
        lines, levels = loads(handler.levels, first + handler.levels_at, f"levels{number}.")
        code.lines += ["  " + line for line in lines]
        given = [*constants.text(handler.state), *constants.text(handler.contexts), *levels]
        _call(code, handler.function, [*given, *constants.text(handler.clock), *event])
        yield handler


def _call(code: Code, function: NumbaFunction, given: Sequence[str]) -> None:
    """Call a Numba function; what it raises is noted."""
    status = code.set(function.call(given))
    raising, fine = code.label("raising"), code.label("fine")
    code.branch(code.test("eq", status, 0, "i32"), fine, raising)
    code.place(raising)
    code.line(f"call void @note(ptr %machine, ptr {code.load('%raised', 0, 'ptr')})")
    code.jump(fine)
    code.place(fine)


def _function(head: str, code: Code, *attributes: str) -> str:
    return "\n".join([f"define {head} {' '.join(attributes)} {{", "begin:", *code.lines, "}"])


def drain_function(handled: HandledEvents, columns: Mapping[int, bool]) -> str:
    """``drain``: the first rows of the columns as events. `columns`: by the word of each, whether there is one."""
    code = Code()
    code.line("%kinds = load ptr, ptr " + code.at("%machine", 8 * machine.KIND))
    code.jump("loop")
    code.place("loop")
    code.line("%row = phi i64 [ 0, %begin ], [ %next, %done ]")
    code.line("%bad = phi i1 [ false, %begin ], [ %worse, %done ]")
    code.branch(code.test("slt", "%row", "%n"), "look", "end")
    code.place("look")
    kind = code.set(f"load i8, ptr {code.set('getelementptr i8, ptr %kinds, i64 %row')}")
    given = []
    for word, width in (
        (machine.SUBJECT, "i32"),
        (machine.ADDRESS, "i64"),
        (machine.SIZE, "i64"),
        (machine.VALUE, "i64"),
    ):
        if columns[word]:
            place = code.set(f"getelementptr {width}, ptr {code.word(word, 'ptr')}, i64 %row")
            given.append(f"{width} {code.set(f'load {width}, ptr {place}')}")
        else:
            given.append(f"{width} 0")
    cases = " ".join(f"i8 {event}, label %event{event}" for event in sorted(handled.codes))
    code.line(f"switch i8 {kind}, label %done [ {cases} ]")
    results = ["[ false, %look ]"]
    for event in sorted(handled.codes):
        code.place(f"event{event}")
        code.line(f"%damaged{event} = call i1 @{handler_name(event)}(ptr %machine, {', '.join(given)})")
        code.jump("done")
        results.append(f"[ %damaged{event}, %event{event} ]")
    code.place("done")
    code.line(f"%now = phi i1 {', '.join(results)}")
    code.line("%worse = or i1 %bad, %now")
    code.line("%next = add i64 %row, 1")
    code.jump("loop")
    code.place("end")
    code.line("ret i1 %bad")
    return _function("internal i1 @drain(ptr %machine, i64 %n)", code, "noinline")


def _calling(function: NumbaFunction, arguments: Any, places: Sequence[int]) -> Code:
    """A call of one of kernels/slow_paths.py; what it returns is in ``%result``."""
    code = Code()
    code.line("%result = alloca i64")
    code.line("%raised = alloca ptr")
    given = []
    for number, (argument, place) in enumerate(zip(arguments, places)):
        lines, names = loads(argument, place, f"a{number}.")
        code.lines += ["  " + line for line in lines]
        given += names
    _call(code, function, [*given, *(f"{kind} %{name}" for kind, name in SLOW_PATH_PARAMETERS)])
    return code


def _slow_path_called(name: str, code: Code) -> str:
    parameters = ", ".join(f"{kind} %{name}" for kind, name in SLOW_PATH_PARAMETERS)
    return _function(f"i1 @{name}(ptr %machine, {parameters})", code, "noinline")


def slow_path_function(name: str, function: NumbaFunction, arguments: Any, places: Sequence[int]) -> str:
    """One of kernels/slow_paths.py. `arguments`: tables, stream and columns; `places`: the words where they begin."""
    code = _calling(function, arguments, places)
    n = code.load("%result", 0)
    _find_frame(code)
    damaged = code.set(f"call i1 @drain(ptr %machine, i64 {n})")
    code.line(f"ret i1 {code.set(f'xor i1 {damaged}, true')}")
    return _slow_path_called(name, code)


def predicate_function(name: str, function: NumbaFunction, arguments: Any, places: Sequence[int]) -> str:
    """One of kernels/slow_paths.py that says whether something holds."""
    code = _calling(function, arguments, places)
    code.line(f"ret i1 {code.load('%result', 0, 'i1')}")
    return _slow_path_called(name, code)


def _find_frame(code: Code) -> None:
    """Note where the top frame lies now."""
    top = code.load(code.word(machine.SCALARS, "ptr"), 8 * layouts.TOP)
    offset = code.set(f"mul i64 {top}, {ROW}")
    there = code.at(code.word(machine.FRAMES, "ptr"), offset)
    alive = code.test("sge", top, 0)
    code.set_word(machine.FRAME, code.set(f"select i1 {alive}, ptr {there}, ptr null"), "ptr")


def derive_function(derive: NumbaFunction, arguments: Sequence[Any]) -> str:
    """``generic``: one record by the derive kernel, and its events. Returns its status."""
    code = Code()
    code.line("%result = alloca i64")
    code.line("%raised = alloca ptr")
    lines, given = loads(tuple(arguments), ARGUMENTS, "a")
    code.lines += ["  " + line for line in lines]
    ids = count(tuple(arguments[:4]))
    given[ids + 2] = given[ids + 5] = "i64 %behind"  # as if there were no records but those up to this one
    _call(code, derive, given)
    status = code.load("%result", 0)
    _find_frame(code)
    filled = code.at(code.word(machine.CURSOR, "ptr"), 8 * layouts.FILLED)
    n = code.set(f"load i64, ptr {filled}")
    code.line(f"store i64 0, ptr {filled}")
    code.set_word(machine.BUDGET, code.set(f"sub i64 {code.word(machine.BUDGET)}, {n}"))
    damaged = code.set(f"call i1 @drain(ptr %machine, i64 {n})")
    full = code.test("eq", status, layouts.FULL)
    some = code.test("ne", n, 0)
    go_on = code.set(f"select i1 {code.set(f'and i1 {full}, {some}')}, i64 {layouts.INPUT}, i64 {status}")
    code.line(f"ret i64 {code.set(f'select i1 {damaged}, i64 {BROKEN}, i64 {go_on}')}")
    return _function("internal i64 @generic(ptr %machine, i64 %behind)", code, "noinline")


REPLAY = f"""
define internal void @note(ptr %machine, ptr %raised) cold noinline {{
begin:
  %raised.at = getelementptr i64, ptr %machine, i64 {machine.RAISED}
  store ptr %raised, ptr %raised.at
  %budget.at = getelementptr i64, ptr %machine, i64 {machine.BUDGET}
  store i64 {-(1 << 62)}, ptr %budget.at
  ret void
}}

define i64 @replay(ptr %machine, ptr %paths, i64 %known, i64 %reserve) {{
begin:
  %scalars.at = getelementptr i64, ptr %machine, i64 {machine.SCALARS}
  %scalars = load ptr, ptr %scalars.at
  %records.at = getelementptr i64, ptr %scalars, i64 {layouts.RECORDS}
  %cursor.at = getelementptr i64, ptr %machine, i64 {machine.CURSOR}
  %cursor = load ptr, ptr %cursor.at
  %word.at = getelementptr i64, ptr %cursor, i64 {layouts.WORD}
  %ids.at = getelementptr i64, ptr %machine, i64 {machine.IDS}
  %ids = load ptr, ptr %ids.at
  %all.at = getelementptr i64, ptr %machine, i64 {machine.WORDS}
  %all = load ptr, ptr %all.at
  %count.at = getelementptr i64, ptr %machine, i64 {machine.RECORDS}
  %count = load i64, ptr %count.at
  %words.end.at = getelementptr i64, ptr %machine, i64 {machine.WORDS_END}
  %words.end = load ptr, ptr %words.end.at
  %frame.at = getelementptr i64, ptr %machine, i64 {machine.FRAME}
  %budget.at = getelementptr i64, ptr %machine, i64 {machine.BUDGET}
  %compiled.at = getelementptr i64, ptr %machine, i64 {machine.COMPILED}
  %compiled.first = load i64, ptr %compiled.at
  %record.first = load i64, ptr %cursor
  %so.far = load i64, ptr %records.at
  %start = sub i64 %so.far, %record.first
  %word.first = load i64, ptr %word.at
  %words.first = getelementptr i64, ptr %all, i64 %word.first
  br label %loop

loop:
  %record = phi i64 [ %record.first, %begin ], [ %record.next, %compiled ], [ %record.there, %replayed ]
  %words = phi ptr [ %words.first, %begin ], [ %words.behind, %compiled ], [ %words.there, %replayed ]
  %done = phi i64 [ %compiled.first, %begin ], [ %done.next, %compiled ], [ %done, %replayed ]
  %now = add i64 %start, %record
  store i64 %now, ptr %records.at
  %more = icmp ult i64 %record, %count
  br i1 %more, label %may, label %input
may:
  %budget = load i64, ptr %budget.at
  %rich = icmp sge i64 %budget, %reserve
  br i1 %rich, label %look, label %room
look:
  %id.at = getelementptr i32, ptr %ids, i64 %record
  %id = load i32, ptr %id.at
  %id.wide = zext i32 %id to i64
  %is.known = icmp ult i64 %id.wide, %known
  br i1 %is.known, label %fetch, label %generic
fetch:
  %path.at = getelementptr {{ptr, i64}}, ptr %paths, i64 %id.wide
  %path = load ptr, ptr %path.at
  %needed.at = getelementptr {{ptr, i64}}, ptr %paths, i64 %id.wide, i32 1
  %needed = load i64, ptr %needed.at
  %is.compiled = icmp ne ptr %path, null
  %frame = load ptr, ptr %frame.at
  %has.frame = icmp ne ptr %frame, null
  %words.behind = getelementptr i64, ptr %words, i64 %needed
  %has.words = icmp ule ptr %words.behind, %words.end
  %two = and i1 %is.compiled, %has.frame
  %three = and i1 %two, %has.words
  br i1 %three, label %call, label %generic
call:
  %used = call i64 %path(ptr %machine, ptr %words, ptr %frame)
  %is.done = icmp eq i64 %used, {DONE}
  br i1 %is.done, label %compiled, label %failed
compiled:
  %record.next = add i64 %record, 1
  %done.next = add i64 %done, 1
  br label %loop
failed:
  %is.fallback = icmp eq i64 %used, {FALLBACK}
  br i1 %is.fallback, label %generic, label %broken

generic:
  store i64 %record, ptr %cursor
  %words.number = ptrtoint ptr %words to i64
  %all.number = ptrtoint ptr %all to i64
  %bytes = sub i64 %words.number, %all.number
  %word = lshr i64 %bytes, 3
  store i64 %word, ptr %word.at
  %behind = add i64 %record, 1
  %status = call i64 @generic(ptr %machine, i64 %behind)
  %goes.on = icmp eq i64 %status, {layouts.INPUT}
  br i1 %goes.on, label %replayed, label %stopped
replayed:
  %record.there = load i64, ptr %cursor
  %word.there = load i64, ptr %word.at
  %words.there = getelementptr i64, ptr %all, i64 %word.there
  br label %loop

stopped:
  store i64 %done, ptr %compiled.at
  ret i64 %status
input:
  br label %leave
room:
  br label %leave
broken:
  br label %leave
leave:
  %reason = phi i64 [ {layouts.INPUT}, %input ], [ {ROOM}, %room ], [ {BROKEN}, %broken ]
  store i64 %done, ptr %compiled.at
  store i64 %record, ptr %cursor
  %last.number = ptrtoint ptr %words to i64
  %first.number = ptrtoint ptr %all to i64
  %span = sub i64 %last.number, %first.number
  %last = lshr i64 %span, 3
  store i64 %last, ptr %word.at
  ret i64 %reason
}}
"""
"""``replay``: records by their paths' functions, and by the derive kernel where there is none or it falls back.

``note``: a module has raised something; as if there were no room, the loop ends.
"""


def declared(handled: HandledEvents, slow_paths: Sequence[str]) -> str:
    """Declarations of what paths call."""
    lines = [
        '@functions = external global [0 x i8], code_model "large"',
        *INTRINSICS,
    ]
    lines += [f"declare i1 @{handler_name(event)}(ptr, i32, i64, i64, i64)" for event in sorted(handled.codes)]
    lines += [
        f"declare void @{handler_name(event, size)}(ptr, i32, i64, i64)"
        for event in sorted(handled.sized)
        for size in CONSTANT_SIZES
    ]
    lines += [f"declare i1 @{name}(ptr, {', '.join(kind for kind, _ in SLOW_PATH_PARAMETERS)})" for name in slow_paths]
    words = ", ".join("i64" for _ in RANGE)
    lines += [f"declare void @{range_name(event)}(ptr, i32, {words})" for event in sorted(handled.ranges)]
    lines += ["declare i64 @unordered(ptr)", "declare void @passed(ptr, i64)", "declare void @iterated(ptr, i32, i64)"]
    return "\n".join(lines)
