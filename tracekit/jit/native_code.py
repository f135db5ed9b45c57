"""Makes the code that native.py calls: what Numba makes of a kernel, and a function that takes arguments as words."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from llvmlite import ir
from numba.core import dispatcher, event, types  # noqa: F401  (the dispatcher first, as in callee.py)

from tracekit.jit import machine_code
from tracekit.jit.arguments import FIRST
from tracekit.jit.native import RUN

_types: Any = types
_NONE_RETURNED = -2
"""Numba's status of a function that has returned None."""


def code_of(kernel: Any, arguments: Sequence[Any]) -> bytes:
    """A line of JSON, and machine code behind it; without code if only Numba's dispatcher can call the kernel.

    The line: ``callable``; ``results``, a letter for each number that it gives (native.Code); ``is_tuple``.
    """
    callee = kernel.callee
    argument_types = tuple(callee.typeof_pyval(argument) for argument in arguments)
    with event.trigger_event("numba:compile", data={"dispatcher": callee, "args": argument_types, "return_type": None}):
        callee.compile(argument_types)
        made = callee.overloads[argument_types]
        given = made.signature.return_type
        parts = _parts(given)
        forms = [_form(part) for part in parts] if parts is not None else [None]
        if None in forms:
            return json.dumps({"callable": False}).encode() + b"\n"
        text = _text(callee.targetctx, made, argument_types, forms)
        code = machine_code.object_of(text, [made.library.bitcode()], [RUN], vectorizes=True)
    head = {"callable": True, "results": forms, "is_tuple": isinstance(given, _types.BaseTuple)}
    return json.dumps(head).encode() + b"\n" + code


def _parts(given: Any) -> Sequence[Any] | None:
    """The types of the numbers that make a result; None if there may be something else in it."""
    if isinstance(given, _types.NoneType):
        return ()
    if isinstance(given, _types.BaseNamedTuple):
        return None
    return tuple(given.types) if isinstance(given, _types.BaseTuple) else (given,)


def _form(part: Any) -> str | None:
    if isinstance(part, _types.Boolean):
        return "b"
    if isinstance(part, _types.Integer):
        return "i" if part.signed else "u"
    return "f" if part == _types.float64 else None


def _text(context: Any, made: Any, argument_types: Sequence[Any], forms: Sequence[Any]) -> str:
    convention, given = context.call_conv, made.signature.return_type
    name, used = made.fndesc.mangled_name, made.library.used
    returned = convention.get_return_type(given).pointee
    all_types = [_named(each) for each in convention.get_function_type(given, argument_types).args[FIRST:]]
    is_tuple = isinstance(given, _types.BaseTuple)
    lines = [
        f'declare i32 @"{name}"(ptr, ptr{"".join(f", {all_types[number]}" for number in used)})',
        f"define i64 @{RUN}(ptr %words, ptr %results) {{",
        f"%result = alloca {_named(returned)}",
        "%raised = alloca ptr",
        f"store {_named(returned)} zeroinitializer, ptr %result",
    ]
    for number in used:
        lines.append(f"%at{number} = getelementptr i64, ptr %words, i64 {number}")
        lines.append(f"%word{number} = load {all_types[number]}, ptr %at{number}")
    words = "".join(f", {all_types[number]} %word{number}" for number in used)
    lines += [
        f'%status = call i32 @"{name}"(ptr %result, ptr %raised{words})',
        "%is.fine = icmp eq i32 %status, 0",
        f"%is.none = icmp eq i32 %status, {_NONE_RETURNED}",
        "%is.done = or i1 %is.fine, %is.none",
        "br i1 %is.done, label %done, label %failed",
        "done:",
    ]
    for number, form in enumerate(forms):
        kind = returned.elements[number] if is_tuple else returned
        place = f", i32 0, i32 {number}" if is_tuple else ", i32 0"
        lines.append(f"%part{number} = getelementptr {_named(returned)}, ptr %result{place}")
        lines.append(f"%value{number} = load {_named(kind)}, ptr %part{number}")
        lines.append(f"%wide{number} = {_widened(form, kind, number)}")
        lines.append(f"%to{number} = getelementptr i64, ptr %results, i64 {number}")
        lines.append(f"store i64 %wide{number}, ptr %to{number}")
    lines += [
        "ret i64 0",
        "failed:",
        "%why = load ptr, ptr %raised",
        "%number = ptrtoint ptr %why to i64",
        "ret i64 %number",
        "}",
    ]
    return "\n".join(lines)


def _widened(form: str, kind: Any, number: int) -> str:
    """An instruction that makes a word of a result."""
    if form == "f":
        return f"bitcast double %value{number} to i64"
    if kind.width == 64:
        return f"add i64 %value{number}, 0"
    return f"{'sext' if form == 'i' else 'zext'} {kind} %value{number} to i64"


def _named(kind: Any) -> str:
    """A type in LLVM's text, where all pointers are one type."""
    return "ptr" if isinstance(kind, ir.PointerType) else str(kind)
