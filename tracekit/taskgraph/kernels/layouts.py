"""The layouts that the kernels of task graphs work on.

A *step* is an event that orders threads, and what its stream does from there to the next one. Steps are collected
stream by stream; in the order of their tickets they become nodes and edges.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tracekit.containers.kernels.arena import Arena
from tracekit.containers.kernels.hash_table import HashTable
from tracekit.paths.kernels import layouts as paths

STEP = np.dtype(
    [
        ("code", "u4"),  # of the event, 0 where a stream begins
        ("stream", "u4"),
        ("ticket", "u8"),
        ("subject", "u8"),  # the event's second word: an address, or a stream
        ("other", "u8"),  # its third: a count, or a kind
        ("third", "u8"),  # its fourth: a task
        ("context", "u4"),  # row of contexts, 0 if none is known
        ("reserved", "u4"),
        ("use", "i8"),  # first of a run of uses
        ("uses", "i8"),
        ("loads", "i8"),  # those that paths do not tell: of dynamic size, or made by library functions
        ("stores", "i8"),
        ("bytes", "i8"),
    ],
    align=True,
)

USE = np.dtype([("record", "u4"), ("reserved", "u4"), ("count", "i8")], align=True)
"""How often a step ran a path, by its record id."""

FRAME = np.dtype(
    [
        ("function", "u4"),  # NONE at the bottom of a signal handler's run
        ("pending", "u4"),  # the open call, or NONE
        ("tail", "u4"),  # 1 if it made a tail call, 2 if that cannot enter instrumented code
        ("context", "u4"),  # row of contexts, 0 as long as nobody asked
        ("root", "u4"),  # 1 if a task of OpenMP begins with it: whoever the thread was waiting in did not call it
        ("reserved", "u4"),
        ("address", "u8"),  # that names the activation
    ],
    align=True,
)
"""An activation."""

# Elements of Stream.scalars.
TOP, BROKEN = paths.TOP, paths.BROKEN  # as tracekit/paths/kernels/activations.py has them: 0 and 2
STEP_NOW = 1  # row of the present step
TOUCHED = 3  # records that the present step has run
NUMBER = 4  # of the stream
BEGINNING = 5  # 1 if a task of OpenMP has begun, and has not yet entered a function
SCALARS = 8
"""How many there are."""


class Stream(NamedTuple):
    """The stack of one stream, and what its present step has done."""

    frames: NDArray[Any]  # FRAME
    counts: NDArray[np.int64]  # by record id
    touched: NDArray[np.uint32]  # ids whose count is not 0
    scalars: NDArray[np.int64]


class Steps(NamedTuple):
    """What was collected."""

    steps: Arena  # STEP
    uses: Arena  # USE
    contexts: HashTable  # key: the context around in the upper half, 0 of a root; a call, or the root's function
    orders: NDArray[np.uint8]  # by event code: 1 if the event begins a step


# -- the graph -----------------------------------------------------------------------------------------

# Kinds of nodes.
TASK, CREATE, JOIN, BARRIER, SYNC = 0, 1, 2, 3, 4
NODE_KINDS = ("task", "create", "join", "barrier", "sync")
"""Their names."""

# Kinds of edges; those of nodes of the same name have the same number.
CONTINUE, LOCK, SIGNAL = 0, 4, 5
EDGE_KINDS = ("continue", "create", "join", "barrier", "lock", "signal")
"""Their names."""

NODE = np.dtype(
    [
        ("kind", "u4"),
        ("stream", "u4"),
        ("context", "u4"),  # of the event that the node is, or that it begins with
        ("created", "u4"),  # where its thread or task was created
        ("chain", "u4"),  # row of chains
        ("reserved", "u4"),
        ("step", "i8"),  # of a task: the step whose work it is
    ],
    align=True,
)

EDGE = np.dtype([("source", "u4"), ("destination", "u4"), ("kind", "u4")], align=True)

CHAIN = [
    ("last", "<i8"),  # its last node, 0 if it has none
    ("via", "<i8"),  # the kind of the edge that leads on from there
    ("created", "<u4"),  # as in NODE
    ("undeferred", "<u4"),  # of an explicit task: 1 if its creator waits for it
    ("started", "<u4"),
    ("rounds", "<u4"),  # barriers that it has left
    ("below", "<i8"),  # of an implicit task: what its stream was in before
    ("team", "<i8"),  # row of teams
    ("next", "<i8"),  # the next implicit task of its team
    ("parent", "<i8"),  # of an explicit task: who created it
    ("group", "<i8"),  # the taskgroup that it is in
    ("children", "<i8"),  # list of the last nodes of children that are over, since it waited for them
    ("needs", "<i8"),  # list of the chains that it depends on
    ("met", "<i8"),  # list of the nodes that its relaxed loads have met: a fence acquires them
    ("released", "<i8"),  # list of the node that its last release fence stands behind
]
"""What runs one thing after another: a stream, or a logical task of OpenMP."""

TEAM = [
    ("node", "<i8"),  # that made it, 0 of initial tasks
    ("created", "<u4"),
    ("reserved", "<u4"),
    ("first", "<i8"),  # list of the chains of its implicit tasks
    ("over", "<i8"),  # list of the last nodes of explicit tasks that are over, since the last barrier
]

DEPEND = [
    ("kind", "<i8"),
    ("present", "<i8"),  # list of chains that may run beside one another
    ("before", "<i8"),  # list of those that they depend on
]
"""What siblings depend on, by parent and address."""

OBJECT = [
    ("writer", "<i8"),  # the node after which a lock was last given up by one that held it alone, or a thing was done
    ("readers", "<i8"),  # list of the nodes after which readers gave it up since; of an atomic, what it releases
    ("first", "<i8"),  # list of posts that nobody has taken, in their order
    ("end", "<i8"),  # its last row
    ("count", "<i8"),  # arrivals that make a round of a barrier
    ("arrivals", "<i8"),
    ("rounds", "<i8"),  # those before the barrier was last initialised
    ("size", "<i8"),  # of an atomic: bytes that operations have in common
]
"""A lock, semaphore, barrier, by its address; an atomic by that of its first byte with the bit ATOMIC_KEY."""

GROUP = np.dtype([("over", "i8"), ("outer", "i8")])
"""A taskgroup: list of the last nodes of its tasks that are over; the group around it."""
TASK_KEY = 1 << 62
ATOMIC_KEY = 1 << 62
LINK = np.dtype([("node", "i8"), ("next", "i8")])
ROUND = [("arrived", "<i8"), ("node", "<i8")]


class Graph(NamedTuple):
    """The graph, and what is known while it is built."""

    nodes: Arena  # NODE
    edges: Arena  # EDGE
    chains: HashTable  # CHAIN by stream, or by number of a task with the bit TASK_KEY
    running: HashTable  # by stream: the chain that it is in, if that is not its own
    tasks: HashTable  # by number of a task: its chain
    teams: HashTable  # TEAM by number
    groups: Arena  # GROUP
    depends: HashTable  # DEPEND
    objects: HashTable  # OBJECT by address
    links: Arena  # LINK
    held: HashTable  # by object and chain: how often it holds a lock as a reader; of an atomic, the list it acquired
    rounds: HashTable  # ROUND by object and number
    entered: HashTable  # by object and chain: the round that it entered last
