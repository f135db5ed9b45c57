"""The kernel of a module: its callbacks inside the loop over events, specialised to what they ask for.

Its text; kernel_files.py makes a file of it, and loads that.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields as option_fields
from textwrap import indent
from typing import Any, NamedTuple

from tracekit.formats.events import ACCESS_EVENTS, BY_NAME, CONTEXT_EVENTS, FUNCTION_EVENTS, OBJECT_EVENTS
from tracekit.modules import address_services, ranges
from tracekit.modules.contract import Module
from tracekit.modules.services import LOCATED, TRANSLATED

SIZED_EVENTS = (*ACCESS_EVENTS, *OBJECT_EVENTS)
"""The events whose size is a number of bytes."""

LARGEST = 1 << 40
"""More bytes than an access or an object of any program has: one that claims so many is damaged."""

PAGE_BITS = 12
"""Workers that share by address have pages of this size."""


class Plan(NamedTuple):
    """What the kernel of one module has to do."""

    callbacks: Mapping[str, Callable[..., None]]  # by event, in the order of event codes
    parameters: Mapping[str, tuple[str, ...]]  # of each callback, without the state
    services: frozenset[str]
    shard_by: str
    options: Mapping[str, bool | int | float]
    ranges: Mapping[str, Callable[..., Any]]  # those for many accesses (ranges.py), by name
    groups_by: str = "site"
    stack_objects: bool = False
    counts_iterations: bool = True

    @property
    def translates(self) -> bool:
        """Whether live objects are kept, and addresses translated."""
        return bool(self.services & TRANSLATED)

    @property
    def locates(self) -> bool:
        """Whether page frames are kept."""
        return bool(self.services & LOCATED)

    @property
    def names_contexts(self) -> bool:
        """Whether contexts have to be told apart, not only levels."""
        return "context" in self.services or (self.translates and self.groups_by == "context")

    @property
    def followed(self) -> tuple[str, ...]:
        """Events that the context manager looks at: all that change a context; for calls of wrappers, calls alone."""
        if self.names_contexts or "levels" in self.services:
            events = (*CONTEXT_EVENTS, "external_call")
            return tuple(name for name in events if name != "loop_iteration" or self.counts_iterations)
        return FUNCTION_EVENTS if self.translates and self.groups_by == "caller" else ()

    @property
    def keeps_contexts(self) -> bool:
        """Whether the context manager runs."""
        return bool(self.followed)

    @property
    def own_state(self) -> str:
        """What the kernel's source calls the module's state."""
        return "state.own" if self.translates or self.locates else "state"

    def columns(self) -> dict[str, frozenset[str]]:
        """Event -> the columns that the kernel reads of it; no other event has to be made."""
        needed: dict[str, set[str]] = {}
        for name, parameters in self.parameters.items():
            column_of = {field.name: field.column for field in BY_NAME[name].fields}
            needed[name] = {column_of[parameter] for parameter in parameters if parameter in column_of}
        for name in self.followed:
            if name in CONTEXT_EVENTS:
                needed.setdefault(name, set()).update(("subject", "size"))
            elif name in needed:
                needed[name].add("subject")
        if self.translates:
            for name, columns in address_services.columns(self.stack_objects).items():
                needed.setdefault(name, set()).update(columns)
            for name in self.parameters:
                if TRANSLATED & set(self.parameters[name]):
                    needed[name].add("address")
        if self.locates:
            for name, column in address_services.TIMES.items():
                needed.setdefault(name, set()).add(column)
            for name, parameters in self.parameters.items():
                if "physical" in parameters:
                    needed[name].add("address")
        if "time" in self.services:
            for name in ACCESS_EVENTS:
                needed.setdefault(name, set())
        shared = {"address": {"address", "size"}, "instruction": {"subject"}, "work": set(), "": set()}[self.shard_by]
        for name in ACCESS_EVENTS:
            if name in self.callbacks:
                needed[name].update(shared)
        return {name: frozenset(columns) for name, columns in needed.items()}


def plan(module: Module) -> Plan:
    """Read a module's callbacks."""
    callbacks = dict(sorted(module.callbacks().items(), key=lambda item: BY_NAME[item[0]].code))
    parameters = {name: _parameters(function) for name, function in callbacks.items()}
    services = set(module.services())
    many = dict(sorted(module.range_callbacks().items()))
    asked = {name for function in many.values() for name in _parameters(function)}
    services |= asked & {"options", "time", "levels", "context"}
    values: dict[str, Any] = {}
    if "options" in services:  # else one kernel serves all
        values = {field.name: getattr(module.options, field.name) for field in option_fields(module.options)}
    return Plan(
        callbacks,
        parameters,
        frozenset(services),
        module.shard_by,
        {name: value for name, value in values.items() if isinstance(value, (bool, int, float))},
        many,
        module.groups_by,
        module.stack_objects,
        module.counts_iterations,
    )


def _parameters(function: Callable[..., Any]) -> tuple[str, ...]:
    """Those of a callback, without the state."""
    return tuple(inspect.signature(function).parameters)[1:]


# -- the source ------------------------------------------------------------------------------------

_HEAD = '''"""Written by tracekit for the callbacks of {origin}; it may be deleted."""

from typing import NamedTuple

import numpy as np

from tracekit.jit.kernel import inlined, kernel, uncached
from tracekit.contexts.kernels.contexts import (
    enter_function,
    enter_loop,
    iterate,
    leave_function,
    leave_loop,
    note_external,
)
from tracekit.contexts.kernels.iterations import iterate_often
from tracekit.contexts.kernels.streams import ACCESSES, CONTEXT
from tracekit.dependence.kernels.sharding import owner_of
{imports}
{options}


def use(functions):
    """Take the callbacks and hand the kernels back."""
    for name, function in functions.items():
        globals()["on_" + name] = uncached(function)
    return consume, handlers, ranges


@kernel
def consume(state, contexts, levels, clock, stream, kind, subject, address, size, value, inside, worker, workers):
    """Call the callbacks; returns whether a size is more than any program could have.

    One that is alone has no number (None): then nothing of what shares work among several is compiled.
    """
    within = first_worker = alone = np.int64(1)
    if worker is not None:
        first_worker, alone = np.int64(worker == 0), np.int64(0)
    for event in range(kind.size):
        code = kind[event]
'''

_ENTERING = {
    "function_entry": "enter_function(contexts, levels, np.int64(subject[event]), np.int64(size[event]))",
    "loop_invocation": "enter_loop(contexts, levels, np.int64(subject[event]))",
    "loop_iteration": "iterate(levels)",
    "external_call": "note_external(contexts, levels, np.int64(subject[event]))",
}
"""What the context manager does before the callback."""
_LEAVING = {
    "function_exit": "leave_function(contexts, levels)",
    "loop_exit": "leave_loop(contexts, levels, np.int64(size[event]))",
}
"""And after it."""


def source(made: Plan, origin: str) -> str:
    """The text of the kernel's file."""
    imports = address_services.IMPORTS if made.translates else ""
    if made.locates:
        imports += address_services.LOCATING_IMPORTS
    text = _HEAD.format(origin=origin, options=_options(made.options), imports=imports)
    followed = [name for name in made.columns() if name in made.followed]
    text += _chain({_ENTERING[name]: [name] for name in followed if name in _ENTERING})
    text += _chain(_handling(made))
    text += _chain({_LEAVING[name]: [name] for name in followed if name in _LEAVING})
    return text + "    return False\n" + _handlers(made) + _ranges(made)


_HANDLER = '''

@inlined
def handle_{name}(state, contexts, levels, clock, stream, subject, address, size, value):
    """What consume does for a {name}."""
    within = first_worker = alone = np.int64(1)
{lines}
    return False
'''


def _handlers(made: Plan) -> str:
    """A function for each event, of one that is alone and without a window: what compiled paths call."""
    alone = made._replace(shard_by="")
    text = ""
    for name in sorted(made.columns(), key=lambda name: BY_NAME[name].code):
        is_followed = name in made.followed
        lines = [
            *([_ENTERING[name]] if is_followed and name in _ENTERING else []),
            *_branch(alone, name, in_window=False),
            *([_LEAVING[name]] if is_followed and name in _LEAVING else []),
        ]
        body = indent("\n".join(lines), " " * 4).replace("[event]", "")
        text += _HANDLER.format(name=name, lines=body)
    names = ", ".join(f'"{name}": handle_{name}' for name in made.columns())
    return text + f"\n\nhandlers = {{{names}}}\n"


_RANGE = '''

@inlined
def range_{name}(state, contexts, levels, clock, stream, subject, address, size, step, count, passed, period):
    """What consume does for `count` events {name} of one instruction, the first after `passed` accesses from now."""
    {line}
    return False
'''
_UNORDERED = '''

@inlined
def unordered(state, contexts, levels, clock):
    """How many of the next accesses may come in any order."""
    return np.int64({call})
'''
_PASSED = '''

@inlined
def passed(state, contexts, levels, clock, count):
    """So many accesses are over."""
    clock[0] += count
    return False
'''
_ITERATED = '''

@inlined
def iterated(state, contexts, levels, clock, stream, subject, count):
    """`count` iterations of a loop are over, with all that came of them."""
    {lines}
    return False
'''
_CONTEXT = "np.int64(contexts.tree.rows[np.uint64(levels.control[CONTEXT])].printed)"
"""The present context, as profiles name it."""
_IN_RANGE = {
    **{field: f"np.int64({field})" for field in ("address", "size", "step", "count", "stream", "period")},
    **dict.fromkeys(("instruction", "loop"), "np.int64(subject)"),
    **{service: service for service in ("options", "levels")},
    "context": _CONTEXT,
}
"""What parameters of callbacks for many accesses and iterations are given."""


def _ranges(made: Plan) -> str:
    """What compiled paths call for many accesses at once: a function for each event where that is possible."""
    text, names = "", {}
    if made.ranges.keys() & ranges.EVENT_OF.keys():
        for many, name in ranges.EVENT_OF.items():
            if many in made.ranges:
                given = _IN_RANGE | {"time": "clock[0] + passed"}
                line = _calling(made, many, given)
                if "levels" in made.services:
                    line = f"levels.control[ACCESSES] += count\n    {line}"
            elif name in made.callbacks:
                continue
            else:
                line = "pass  # nothing but that time passes"
                if "levels" in made.services:
                    line = "levels.control[ACCESSES] += count"
            text += _RANGE.format(name=name, line=line)
            names[name] = f"range_{name}"
        if ranges.UNORDERED in made.ranges:
            given = {"time": "clock[0]", "options": "options"}
            text += _UNORDERED.format(call=_calling(made, ranges.UNORDERED, given))
            names["unordered"] = "unordered"
        if "time" in made.services:
            text += _PASSED
            names["passed"] = "passed"
        lines = ["iterate_often(levels, count)"] if "loop_iteration" in made.followed else []
        if ranges.ITERATIONS in made.ranges:
            lines.append(_calling(made, ranges.ITERATIONS, _IN_RANGE))
        if lines:
            text += _ITERATED.format(lines="\n    ".join(lines))
            names["iterated"] = "iterated"
    return text + f"\n\nranges = {{{', '.join(f'{name!r}: {function}' for name, function in names.items())}}}\n"


def _calling(made: Plan, name: str, given: Mapping[str, str]) -> str:
    """The call of a callback for many accesses."""
    return (
        f"on_{name}({', '.join([made.own_state, *(given[parameter] for parameter in _parameters(made.ranges[name]))])})"
    )


def _handling(made: Plan) -> dict[str, list[str]]:
    """What is done for an event beside the contexts -> the events: a callback of several is compiled once."""
    branches: dict[str, list[str]] = {}
    known_as: dict[Callable[..., None], str] = {}
    for name in sorted(made.columns(), key=lambda name: BY_NAME[name].code):
        as_name = known_as.setdefault(made.callbacks[name], name) if name in made.callbacks else name
        lines = "\n".join(_branch(made, name)).replace(f"on_{name}(", f"on_{as_name}(")
        if lines:
            branches.setdefault(lines, []).append(name)
    return branches


def _chain(branches: Mapping[str, list[str]]) -> str:
    """An if statement that tells events apart by their code."""
    text, word = "", "if"
    for lines, names in branches.items():
        codes = sorted(BY_NAME[name].code for name in names)
        text += f"        {word} {' or '.join(f'code == {code}' for code in codes)}:  # {', '.join(names)}\n"
        text += indent(lines, " " * 12) + "\n"
        word = "elif"
    return text


_OPTIONS = '''
class Options(NamedTuple):
    """The module's options that are numbers."""

{members}

options = Options({given})
'''


def _options(values: Mapping[str, Any]) -> str:
    if not values:
        return "options = None\n"
    members = "".join(f"    {name}: {type(value).__name__}\n" for name, value in values.items())
    given = ", ".join(f"{name}={value!r}" for name, value in values.items())
    return _OPTIONS.format(members=members, given=given)


def _branch(made: Plan, name: str, in_window: bool = True) -> Iterator[str]:
    """The lines for one event; `in_window`: there may be a window."""
    is_access = name in ACCESS_EVENTS
    if in_window and "inside" in made.parameters.get(name, ()):
        yield "if inside is not None:"
        yield "    within = np.int64(inside[event])"
    if name in SIZED_EVENTS and "size" in made.columns()[name]:
        yield f"if size[event] > {LARGEST}:"
        yield "    return True"
    if is_access and "levels" in made.services:
        yield "levels.control[ACCESSES] += 1"
    if made.locates and name in address_services.TIMES:
        yield f"passed(state.frames, stream, np.int64({address_services.TIMES[name]}[event]))"
    if made.translates and name in address_services.BEFORE:
        yield from address_services.before(name, made.groups_by, made.stack_objects)
    if name in made.callbacks:
        yield from _shared(made, name) if is_access and made.shard_by else _call(made, name)
    if made.translates and name in address_services.AFTER:
        yield from address_services.after(name, made.stack_objects)
    if is_access and "time" in made.services:
        yield "clock[0] += 1"


WHOLE = {
    "worker": "np.int64(0)",
    "workers": "np.int64(1)",
    "first": "np.int64(1)",
    "whole": "np.int64(1)",
    "mine": "np.int64(1)",
    "address": "np.int64(address[event])",
    "size": "np.int64(size[event])",
}
OF_WORK = {**WHOLE, "worker": "np.int64(worker)", "workers": "np.int64(workers)"}
PART = {
    "worker": "np.int64(0)",
    "workers": "np.int64(1)",
    "first": "np.int64(begin == low)",
    "whole": "np.int64(begin == low and end == high)",
    "mine": "np.int64(mine)",
    "address": "begin",
    "size": "end - begin",
}
"""What a callback for a load or store is told of the worker's share: all of it, or a part."""


def _call(made: Plan, name: str, share: Mapping[str, str] = WHOLE) -> Iterator[str]:
    """The call of a callback."""
    given = {
        "options": "options",
        "stream": "stream",
        "own_stream": "stream",
        "time": "clock[0]",
        "inside": "within",
        "levels": "levels",
        "context": _CONTEXT,
        "start": "np.int64(address[event])",
    }
    given |= {field.name: f"np.int64({field.column}[event])" for field in BY_NAME[name].fields}
    if name in ACCESS_EVENTS:
        given |= share
    else:
        numbers = {"worker": "np.int64(0)", "workers": "np.int64(1)"}
        given |= {"first": "first_worker", "whole": "alone", "mine": "first_worker", **numbers}
    if TRANSLATED & set(made.parameters[name]) - {field.name for field in BY_NAME[name].fields}:
        address = given.get("address", "np.int64(address[event])")
        yield f"here = block_at(state.translation, {address})"
        given = {**address_services.GIVEN, "offset": f"{address} - here.start", **given}
    if made.locates:
        address = given.get("address", "np.int64(address[event])")
        given = {"physical": f"physical_of(state.frames, stream, {address})", "frames": "state.frames", **given}
    yield f"on_{name}({', '.join([made.own_state, *(given[parameter] for parameter in made.parameters[name])])})"


def _shared(made: Plan, name: str) -> Iterator[str]:
    """The call, for a worker that has a share of the accesses."""
    yield "if worker is None:"
    yield from (f"    {line}" for line in _call(made, name))
    if made.shard_by == "work":
        yield "else:"
        yield from (f"    {line}" for line in _call(made, name, OF_WORK))
        return
    if made.shard_by == "instruction":
        yield "elif np.int64(subject[event]) % workers == worker:"
        yield from (f"    {line}" for line in _call(made, name))
        return
    yield "else:"
    yield "    low = np.int64(address[event])"
    yield "    high = low + np.int64(size[event])"
    yield f"    page, last = low >> {PAGE_BITS}, max(low, high - 1) >> {PAGE_BITS}"
    yield f"    begin, end = low, min(high, (page + 1) << {PAGE_BITS})"
    yield "    while page <= last:"
    yield "        mine = owner_of(page, workers) == worker"
    called = _call(made, name, PART)
    if "mine" in made.parameters[name]:
        yield from (f"        {line}" for line in called)
    else:
        yield "        if mine:"
        yield from (f"            {line}" for line in called)
    yield "        page += 1"
    yield f"        begin, end = page << {PAGE_BITS}, min(high, (page + 1) << {PAGE_BITS})"
