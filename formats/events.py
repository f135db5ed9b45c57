"""The event table: every event that a stream may hold as a record, or that replay may deliver, or both.

* A *recorded* event is written by the runtime as a record of its own: its code (u4), then its ``words`` (u8). Codes
  are below :data:`FIRST_PATH`; greater record ids name paths.
* A *derived* event is computed by replay from path records and the program image (PROMPT, Table 2: loads, stores,
  function and loop events).

Replay delivers an event as one row of the columns ``kind`` (u1, its code), ``subject`` (u4), ``address`` (u8), ``size``
(u8) and, if the program was compiled with ``--values``, ``value`` (u8). What an event calls a column is its *field*:
modules declare fields, ``tracekit modules --events`` prints them. What the numbers in a field mean stands in
event_values.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

FIRST_PATH = 256
"""Record ids below it are codes of events, ids from it on numbers of paths (``image.first_path`` + row)."""

NONE = 0xFFFF_FFFF
"""In a u4 column of rows of a table: none of them."""


COLUMNS: dict[str, str] = {"subject": "u4", "address": "u8", "size": "u8", "value": "u8"}
"""The columns of a batch that a field may stand in -> their dtypes; ``kind`` is always there."""


class Field(NamedTuple):
    """A column of an event: the name that the event has for it, and one of COLUMNS with its dtype."""

    name: str
    column: str
    dtype: str


@dataclass(frozen=True)
class Event:
    """A row of the event table."""

    code: int
    name: str
    subject: str = ""
    """The field in this column of replay's, as in the next three; empty: the column is not used, and holds 0."""
    address: str = ""
    size: str = ""
    value: str = ""
    words: tuple[str, ...] = ()
    """The names of the words of its record, in order; none if it is only derived."""
    since: int = 1
    """The version of the format that introduced it."""
    delivered: bool = True
    """Whether replay delivers it; else it becomes several of other events."""
    doc: str = ""
    """What SPEC.md says of it in the table of events."""

    @property
    def fields(self) -> tuple[Field, ...]:
        """Its fields, in the order of COLUMNS."""
        return tuple(
            Field(getattr(self, column), column, dtype) for column, dtype in COLUMNS.items() if getattr(self, column)
        )


# Tickets order the events of all streams. They come from one counter of the process, and are taken when the event
# happens: after an allocation returns, before a deallocation begins.
EVENTS: tuple[Event, ...] = (
    # -- memory accesses (derived from paths) -------------------------------------------------
    Event(1, "load", "instruction", "address", "size", "value"),
    Event(2, "store", "instruction", "address", "size", "value"),
    Event(3, "pointer_creation", "instruction", "address", "type"),
    # -- objects ------------------------------------------------------------------------------
    Event(
        4,
        "heap_alloc",
        "instruction",
        "address",
        "size",
        words=("ticket", "address", "size"),
        doc="malloc family and operator new; instruction is the call open in instrumented code",
    ),
    Event(
        5,
        "heap_free",
        "instruction",
        "address",
        "size",
        words=("ticket", "address"),
        doc="size is that of the object freed, 0 if its allocation was not seen",
    ),
    Event(6, "stack_alloc", "instruction", "address", "size"),
    Event(7, "stack_free", "instruction", "address", "size"),
    Event(
        8, "global_init", "object", "address", "size", doc="one for each global of an image when the image is loaded"
    ),
    Event(
        9,
        "heap_realloc",
        "instruction",
        "address",
        "size",
        words=("ticket", "old_address", "address", "size"),
        delivered=False,
        doc="recorded only; replay delivers it as heap_alloc, load, store and heap_free "
        "(moved), or as heap_free of the tail or heap_alloc of it (in place)",
    ),
    # -- context (derived from paths) ---------------------------------------------------------
    Event(10, "function_entry", "function", "", "call", doc="call is the instruction of the call site, NONE at a root"),
    Event(
        11, "function_exit", "function", "", "unwound", doc="unwound is 1 if the frame ended by longjmp or an exception"
    ),
    Event(12, "loop_invocation", "loop"),
    Event(13, "loop_iteration", "loop", doc="from the second visit of the header on"),
    Event(
        14, "loop_exit", "loop", "", "partial", doc="partial is 1 if the last visit of the header only tested and left"
    ),
    Event(
        15,
        "external_call",
        "instruction",
        doc="a call returned without entering instrumented code, and its effects are unknown",
    ),
    # -- library accesses: made by code that was not instrumented, for the open call -----------
    Event(
        16,
        "library_load",
        "instruction",
        "address",
        "size",
        words=("address", "size"),
        delivered=False,
        doc="recorded only; delivered as load with the call as instruction",
    ),
    Event(
        17,
        "library_store",
        "instruction",
        "address",
        "size",
        words=("address", "size"),
        delivered=False,
        doc="recorded only; delivered as store with the call as instruction",
    ),
    # -- process, threads, signals, images -----------------------------------------------------
    Event(20, "program_start", "", "", "process", words=("ticket", "process")),
    Event(21, "program_end", "", "", "status", words=("ticket", "status")),
    Event(22, "thread_start", "stream", words=("ticket", "stream")),
    Event(23, "thread_exit", "stream", words=("ticket", "stream")),
    Event(
        24,
        "thread_create",
        "stream",
        words=("ticket", "stream"),
        doc="stream is the one that the new thread will write",
    ),
    Event(25, "thread_join", "stream", words=("ticket", "stream")),
    Event(26, "lock", "", "address", words=("ticket", "address")),
    Event(27, "unlock", "", "address", words=("ticket", "address")),
    Event(28, "barrier", "", "address", words=("ticket", "address"), doc="left; recorded by tracekit 0.1 alone"),
    Event(29, "fork", "", "", "process", words=("ticket", "process"), doc="a child process was forked or spawned"),
    Event(30, "exec", words=("ticket",)),
    Event(31, "signal_enter", "signal", words=("signal",), doc="begins a handler's run, on the handler's own stream"),
    Event(
        32,
        "signal_leave",
        "signal",
        "",
        "abnormal",
        words=("signal", "abnormal"),
        doc="abnormal is 1 if the handler was left by siglongjmp or an exception",
    ),
    Event(33, "image_load", "image", words=("ticket", "image")),
    Event(34, "image_unload", "image", words=("ticket", "image")),
    Event(35, "dropped", words=(), doc="records of an unfinished region were dropped (siglongjmp, cancellation)"),
    Event(36, "window_open", words=("ticket",)),
    Event(37, "window_close", words=("ticket",)),
    Event(
        38,
        "fork_begin",
        words=("ticket",),
        doc="the process is about to fork: a recorded child's trace begins with what stands before this",
    ),
    # -- the order of threads ------------------------------------------------------------------
    Event(39, "lock_shared", "", "address", words=("ticket", "address"), since=2, doc="taken by one reader of several"),
    Event(
        40,
        "release",
        "kind",
        "address",
        "thread",
        words=("ticket", "address", "kind", "thread"),
        since=2,
        doc="by a thread: in a signal handler, the one that it interrupted",
    ),
    Event(
        41,
        "acquire",
        "kind",
        "address",
        "thread",
        words=("ticket", "address", "kind", "thread"),
        since=2,
        doc="what follows comes after all that stood before releases of the address so far",
    ),
    Event(
        42,
        "barrier_init",
        "",
        "address",
        "count",
        words=("ticket", "address", "count"),
        since=2,
        doc="from now on count arrivals make a round",
    ),
    Event(43, "barrier_enter", "", "address", words=("ticket", "address"), since=2, doc="arrives, before it waits"),
    Event(
        44, "barrier_leave", "", "address", words=("ticket", "address"), since=2, doc="the round that it is in is over"
    ),
    Event(
        45,
        "atomic",
        "order",
        "address",
        words=("ticket", "address", "order"),
        since=2,
        doc="an atomic operation, with `tracekit cc --threads`; its accesses (none of assembly) before it",
    ),
    Event(46, "fence", "order", words=("ticket", "order"), since=2, doc="with `tracekit cc --threads`"),
    Event(
        47,
        "thread_memory",
        "",
        "address",
        "size",
        words=("address", "size"),
        since=2,
        doc="stack and thread-local storage of a thread that has just started, where an earlier thread had its own",
    ),
    # -- windows at record time: what a thread does is recorded between begin and end -----------
    Event(
        48,
        "window_begin",
        "window",
        "",
        "time",
        words=("ticket", "window", "time"),
        since=2,
        doc="recording of the thread begins; windows count from 1, time is in nanoseconds since the program's start",
    ),
    Event(
        49,
        "window_end",
        "window",
        "",
        "time",
        words=("ticket", "window", "time"),
        since=2,
        doc="recording of the thread ends: all its frames are popped",
    ),
    Event(
        50,
        "resumed_register",
        words=("register", "content"),
        since=2,
        delivered=False,
        doc="recorded only; of the top frame, which was there before the window",
    ),
    Event(
        51,
        "resumed_loop",
        words=("loop", "iteration"),
        since=2,
        delivered=False,
        doc="recorded only; the number of an iteration under way, loops counting from 0 in their function",
    ),
    Event(
        52,
        "resumed_object",
        words=("object", "address", "size"),
        since=2,
        delivered=False,
        doc="recorded only; delivered as stack_alloc: the STACK_ALLOC of this number, from 0, in the function",
    ),
    Event(
        53,
        "resumed_frame",
        words=("address",),
        since=2,
        delivered=False,
        doc="recorded only; the FRAME address of the top frame",
    ),
    Event(
        54,
        "resumed_return",
        words=("address",),
        since=2,
        delivered=False,
        doc="recorded only; control is back in the activation of this FRAME address: frames above it are popped",
    ),
    # -- lifetimes of what threads share beside memory: synchronisation objects, file descriptors ---
    Event(
        55,
        "resource_begin",
        "instruction",
        "address",
        words=("ticket", "address"),
        since=2,
        doc="a synchronisation object was initialised, a file descriptor (2^62 + its number) opened",
    ),
    Event(
        56,
        "resource_use",
        "instruction",
        "address",
        words=("address",),
        since=2,
        doc="it is about to be used; of a lock or barrier until the stream's unlock, mutex_released or barrier_leave",
    ),
    Event(
        57,
        "resource_end",
        "instruction",
        "address",
        words=("ticket", "address"),
        since=2,
        doc="it is about to be destroyed or closed",
    ),
    # -- OpenMP: what its runtime says of logical tasks (OMPT); teams and tasks count from 1, 0 is none known --------
    Event(
        60,
        "parallel_begin",
        "instruction",
        "team",
        "threads",
        words=("ticket", "team", "threads"),
        since=2,
        doc="the stream's task makes a team; threads is how many were asked for, 0 if that was left open",
    ),
    Event(61, "parallel_end", "", "team", words=("ticket", "team"), since=2, doc="and goes on when all of it is over"),
    Event(
        62,
        "implicit_begin",
        "index",
        "team",
        "task",
        words=("ticket", "index", "team", "task"),
        since=2,
        doc="the stream runs the team's implicit task of this index; an initial task is alone in a team of no creator",
    ),
    Event(
        63,
        "implicit_end",
        "",
        "",
        "task",
        words=("ticket", "task"),
        since=2,
        doc="often late: a worker says so when it wakes up again",
    ),
    Event(
        64,
        "task_create",
        "instruction",
        "flags",
        "task",
        words=("ticket", "flags", "task"),
        since=2,
        doc="the stream's task makes an explicit one",
    ),
    Event(
        65,
        "task_schedule",
        "status",
        "next",
        "task",
        words=("ticket", "status", "next", "task"),
        since=2,
        doc="the stream leaves a task and goes on with the next one (0: with the one that it is in)",
    ),
    Event(
        66,
        "task_dependence",
        "kind",
        "address",
        "task",
        words=("ticket", "kind", "address", "task"),
        since=2,
        doc="a new task depends on earlier siblings; or a step of a doacross loop, by a hash of its vector",
    ),
    Event(67, "sync_begin", "kind", "team", "task", words=("ticket", "kind", "team", "task"), since=2),
    Event(
        68,
        "sync_waited",
        "kind",
        "team",
        "task",
        words=("ticket", "kind", "team", "task"),
        since=2,
        doc="of a taskgroup: its tasks are over, and what follows combines what they reduced",
    ),
    Event(69, "sync_end", "kind", "team", "task", words=("ticket", "kind", "team", "task"), since=2),
    Event(
        70,
        "mutex_acquired",
        "kind",
        "address",
        words=("ticket", "kind", "address"),
        since=2,
        doc="a lock, a critical, ordered or atomic region",
    ),
    Event(71, "mutex_released", "kind", "address", words=("ticket", "kind", "address"), since=2),
    Event(
        72,
        "reduction_begin",
        "",
        "team",
        "task",
        words=("ticket", "team", "task"),
        since=2,
        doc="what a task of the team reduced is combined with that of others",
    ),
    Event(73, "reduction_end", "", "team", "task", words=("ticket", "team", "task"), since=2),
    Event(
        74,
        "work_begin",
        "kind",
        "count",
        "task",
        words=("kind", "count", "task"),
        since=2,
        doc="worksharing: a loop of so many iterations, sections, single, ...",
    ),
    Event(75, "work_end", "kind", "count", "task", words=("kind", "count", "task"), since=2),
    Event(
        76,
        "dispatch",
        "kind",
        "first",
        "count",
        words=("kind", "first", "count"),
        since=2,
        doc="the stream's task takes these iterations, or this section",
    ),
    Event(
        77,
        "task_memory",
        "",
        "address",
        "size",
        words=("ticket", "address", "size"),
        since=2,
        doc="the bytes are new: a task's arguments and private variables, or part of the stack that a runtime uses",
    ),
    Event(
        78,
        "own_memory",
        "",
        "address",
        "size",
        words=("address", "size"),
        since=2,
        doc="the thread's own copies: thread-local and threadprivate variables, those of reductions of tasks",
    ),
    Event(
        79, "openmp_thread", "type", words=("ticket", "type"), since=2, doc="the thread is known to OpenMP's runtime"
    ),
    # -- time --------------------------------------------------------------------------------------
    Event(
        90,
        "hand_over",
        "",
        "time",
        "processor",
        words=("time", "processor"),
        since=2,
        doc="the stream goes on in another buffer: nanoseconds since the start, and where it runs",
    ),
    # -- messages between processes: MPI ---------------------------------------------------------
    Event(
        110,
        "mpi_communicator",
        "rank",
        "communicator",
        "peers",
        words=("ticket", "communicator", "rank", "peers"),
        since=2,
        doc="met for the first time: its number, the same in all ranks; this process's rank; ranks to send to",
    ),
    Event(
        111,
        "mpi_envelope",
        "",
        "communicator",
        "envelope",
        words=("ticket", "communicator", "envelope"),
        since=2,
        doc="of the thread's next send, receive or collective: peer or root, a rank in MPI_COMM_WORLD, + tag << 32",
    ),
    Event(
        112, "mpi_send", "instruction", "address", "size", words=("ticket", "address", "size"), since=2, doc="begins"
    ),
    Event(
        113,
        "mpi_post",
        "instruction",
        "number",
        words=("ticket", "number"),
        since=2,
        doc="a receive begins; they count from 1",
    ),
    Event(
        114,
        "mpi_receive",
        "instruction",
        "number",
        "size",
        words=("ticket", "number", "size"),
        since=2,
        doc="the receive of that number is over",
    ),
    Event(
        115,
        "mpi_collective",
        "instruction",
        "operation",
        "size",
        words=("ticket", "operation", "size"),
        since=2,
        doc="begins; size is what this rank gives",
    ),
    # -- calls of chosen functions, with arguments and results ------------------------------------
    Event(
        95,
        "call_probe",
        "probe",
        words=("ticket", "probe"),
        since=2,
        doc="the function of this number, from 1; its prototype follows, as call_bytes of index 254",
    ),
    Event(96, "call_begin", "probe", words=("ticket", "probe"), since=2, doc="its arguments follow"),
    Event(97, "call_end", "probe", words=("ticket", "probe"), since=2, doc="output parameters and result stand before"),
    Event(
        98,
        "call_value",
        "index",
        "content",
        words=("index", "content"),
        since=2,
        doc="of an argument, from 0, or of the result (255): the value or the pointer",
    ),
    Event(
        99,
        "call_bytes",
        "index",
        "bytes",
        "whole",
        words=("index", "bytes", "whole"),
        since=2,
        doc="what an argument points to: so many bytes follow as call_data, of so many that there were",
    ),
    Event(100, "call_data", "", "first", "second", words=("first", "second"), since=2, doc="the next 16 bytes of it"),
)


BY_NAME: dict[str, Event] = {event.name: event for event in EVENTS}
BY_CODE: dict[int, Event] = {event.code: event for event in EVENTS}
CODE: dict[str, int] = {event.name: event.code for event in EVENTS}
"""Name of an event -> its code, as in the column `kind` of batches."""


# -- groups: the categories of PROMPT's Table 2, and parts of them ---------------------------------
def _named(*names: str) -> tuple[str, ...]:
    """The names, each of which the table has."""
    return tuple(BY_NAME[name].name for name in names)


ACCESS_EVENTS = _named("load", "store")
"""Accesses to memory by the program, or by a library for it."""

HEAP_EVENTS = _named("heap_alloc", "heap_free")
STACK_EVENTS = _named("stack_alloc", "stack_free")
OBJECT_EVENTS = (*HEAP_EVENTS, *STACK_EVENTS, *_named("global_init"))
"""Objects begin and end (PROMPT: allocation events); ``heap_realloc`` is delivered as these."""

FUNCTION_EVENTS = _named("function_entry", "function_exit")
LOOP_EVENTS = _named("loop_invocation", "loop_iteration", "loop_exit")
CONTEXT_EVENTS = (*FUNCTION_EVENTS, *LOOP_EVENTS)
"""The events that change the calling and loop context."""

RECORDED: frozenset[int] = frozenset(event.code for event in EVENTS if event.words or event.name == "dropped")
"""Codes of the events that may stand in a stream; the others are only derived."""

DELIVERED: tuple[Event, ...] = tuple(event for event in EVENTS if event.delivered)
"""The events that replay delivers; the others become several of these."""
