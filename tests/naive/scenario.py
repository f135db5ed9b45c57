"""A small made-up program together with what a replay of it found: what verdicts are judged from.

``tests/verdicts/scenario_tables.py`` has the same as the arrays that tracekit works on.
"""

from __future__ import annotations

from dataclasses import dataclass, field

Node = tuple[str, int]
"""A node of a dependence graph: ("op" | "phi" | "branch", its number)."""


@dataclass
class Op:
    kind: str  # "load", "store", "atomic", "copy", "call", "other"
    block: int
    pure: bool = False  # of a call
    allocates: bool = False
    same: bool = False  # of a store: of a value from outside all loops
    name: str = ""  # of the variable that a load or store is to
    by_pointer: bool = False  # it gets there through a pointer


@dataclass
class Block:
    function: int
    loop: int | None = None


Cause = tuple[str, int | None, bool]
"""What an exit depends on: ("load" | "call" | "phi" | "other" | "ends", number of the operation or phi, fixed).

"before" and "behind" are operations that tell how often the loop was left there.
"""


@dataclass
class Loop:
    function: int
    header: int
    parent: int | None = None
    exits_early: bool = False
    exits_on_data: bool = False
    exits: list[int] = field(default_factory=list)  # blocks
    phis: list[tuple[str, str, str]] = field(default_factory=list)  # (kind, operator, name)
    exit_causes: list[list[Cause]] | None = None  # of each exit; None: not known, exits_early and exits_on_data count
    phi_causes: dict[int, list[Cause]] = field(default_factory=dict)  # of recurrences, by their number
    in_source: bool = False  # the variables are those of the source


@dataclass
class Variable:
    """What the source says of a variable that a loop assigns."""

    loop: int
    name: str
    flags: frozenset[str] = frozenset()  # names of VariableFlag, in small letters
    line: int = 0  # of its declaration; 0: not known
    operator: str = ""  # by which the source's iterations accumulate in it, if they do nothing else to it


@dataclass
class Context:
    kind: str  # "root", "call", "loop", "recursion", "recursion loop", "recursive call", "recursive loop"
    parent: int | None = None
    loop: int | None = None
    call: int | None = None
    iterations: int = 2
    external: int | None = None


@dataclass
class Dependence:
    kind: str
    source: int
    source_context: int
    destination: int
    destination_context: int
    objects: tuple[int, ...] | None = ()  # None: more than are listed
    levels: list[tuple[int, bool, bool]] = field(default_factory=list)  # (context, intra, inter)


@dataclass
class Scenario:
    ops: list[Op] = field(default_factory=list)
    blocks: list[Block] = field(default_factory=list)
    loops: list[Loop] = field(default_factory=list)
    edges: list[tuple[str, Node, Node]] = field(default_factory=list)  # ("register" | "control", from, to)
    updates: list[tuple[int, int, str]] = field(default_factory=list)  # (load, store, operator)
    # (update, "member" | "decision" | "position", number of an operation or block, operator of a position)
    parts: list[tuple[int, str, int, str]] = field(default_factory=list)
    contexts: list[Context] = field(default_factory=list)
    dependences: list[Dependence] = field(default_factory=list)
    counts: dict[int, int] = field(default_factory=dict)  # how often operations ran
    exposed: set[tuple[int, int, int]] = field(default_factory=set)  # (load, context, level)
    objects: list[str] = field(default_factory=list)  # "global", "heap", "stack", "unknown"
    names: dict[int, tuple[str, int]] = field(
        default_factory=dict
    )  # of objects: name, and line of the declaration or 0
    variables: list[Variable] = field(default_factory=list)

    def phi_numbers(self, loop: int) -> list[int]:
        """Phis are numbered loop by loop."""
        before = sum(len(other.phis) for other in self.loops[:loop])
        return [before + place for place in range(len(self.loops[loop].phis))]

    def inside(self, block: int, loop: int) -> bool:
        at = self.blocks[block].loop
        return at is not None and self.nested(at, loop)

    def nested(self, inner: int | None, outer: int) -> bool:
        while inner is not None and inner != outer:
            inner = self.loops[inner].parent
        return inner is not None
