"""What the clauses of a directive have to say of a loop's variables, read from the source by clang's AST as JSON.

Nothing here knows what the pass or the verdicts found: it is a second opinion on the source alone. It looks at scalar
variables and structures; elements of arrays are the run's business.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

from tracekit.recorder.toolchain import find_clang

Node = dict[str, Any]
LOOPS = ("ForStmt", "WhileStmt", "DoStmt")
STEPS = ("++", "--")
ASSOCIATIVE = ("+", "*", "-", "&", "|", "^")


def parse(source: Path, flags: list[str]) -> Node:
    """The AST of a source; each node gets its `place` (line, column) and `file`: of a macro's use."""
    command = [find_clang().path, *flags, "-w", "-fsyntax-only", "-Xclang", "-ast-dump=json", str(source)]
    if source.suffix != ".c":
        command.insert(1, "--driver-mode=g++")
    done = subprocess.run(command, capture_output=True, check=True)
    tree: Node = json.loads(done.stdout)
    _Places().settle(tree)
    return tree


class _Places:
    """Clang leaves a line, and a file, out where it is that of the location written before."""

    def __init__(self) -> None:
        self.line, self.file = 0, ""

    def settle(self, node: Node) -> None:
        for key, value in list(node.items()):
            if key in ("loc", "range"):
                self._read(value)
            elif key == "inner":
                self._note_place(node)
                for child in value:
                    self.settle(child)
        self._note_place(node)

    def _read(self, location: Node) -> None:
        if "offset" in location:
            self.line = location.setdefault("line", self.line)
            self.file = location.setdefault("file", self.file)
        for key in ("spellingLoc", "expansionLoc", "begin", "end"):
            if key in location:
                self._read(location[key])

    @staticmethod
    def _note_place(node: Node) -> None:
        begin = node.get("range", {}).get("begin", {})
        begin = begin.get("expansionLoc", begin)
        node["place"], node["file"] = (begin.get("line", 0), begin.get("col", 0)), begin.get("file", "")


def children(node: Node) -> list[Node]:
    return [child for child in node.get("inner", ()) if child]


def everything(node: Node) -> Iterator[Node]:
    yield node
    for child in children(node):
        yield from everything(child)


def statements(node: Node) -> Iterator[Node]:
    """The expressions below a statement whose values nobody looks at."""
    kind = node.get("kind", "")
    parts = node.get("inner", [])
    if kind in ("CompoundStmt", "LabelStmt", "CaseStmt", "DefaultStmt"):
        inside = parts[-1:] if kind == "CaseStmt" else parts
    elif kind in ("IfStmt", "SwitchStmt", "WhileStmt"):
        inside = parts[1:]
    elif kind == "ForStmt":
        inside = [parts[0], *parts[3:]]
    elif kind == "DoStmt":
        inside = parts[:1]
    elif kind == "BinaryOperator" and node["opcode"] == ",":
        inside = parts
    else:
        yield node
        return
    for child in filter(None, inside):
        yield from statements(child)


def bare(node: Node) -> Node:
    """An expression without parentheses and conversions around it."""
    while node.get("kind") in ("ParenExpr", "ImplicitCastExpr", "CStyleCastExpr") and len(children(node)) == 1:
        node = children(node)[0]
    return node


def variable(node: Node) -> Node | None:
    """The variable that an lvalue is, or is a member of; None for elements and what a pointer points to."""
    node = bare(node)
    while node.get("kind") == "MemberExpr" and not node.get("isArrow"):
        node = bare(children(node)[0])
    declared: Node = node.get("referencedDecl", {})
    return (
        declared if node.get("kind") == "DeclRefExpr" and declared.get("kind") in ("VarDecl", "ParmVarDecl") else None
    )


def assigned(node: Node) -> Node | None:
    """The lvalue that an expression assigns, if it does."""
    kind, operator = node.get("kind"), node.get("opcode", "")
    if kind == "CompoundAssignOperator" or (kind == "BinaryOperator" and operator == "="):
        return children(node)[0]
    if kind == "UnaryOperator" and operator in STEPS:
        return children(node)[0]
    return None


def _spell_out(loop: Node) -> None:
    """Makes a `for` of what C++ says that a range-based one stands for."""
    *head, test, step, declared, body = loop["inner"]
    begin = {"kind": "CompoundStmt", "inner": [part for part in head if part]}
    loop |= {"kind": "ForStmt", "inner": [begin, {}, test, step, {"kind": "CompoundStmt", "inner": [declared, body]}]}


class Function:
    """A function with its loops by place."""

    def __init__(self, node: Node) -> None:
        self.body = next(child for child in children(node) if child.get("kind") == "CompoundStmt")
        for each in everything(self.body):
            if each.get("kind") == "CXXForRangeStmt":
                _spell_out(each)
        self.loops = {each["place"]: each for each in everything(self.body) if each.get("kind") == "ForStmt"}


def functions(tree: Node, source: Path) -> list[Function]:
    """Those that a source defines, not its headers."""
    return [
        Function(node)
        for node in everything(tree)
        if node.get("kind") in ("FunctionDecl", "CXXMethodDecl")
        and node["file"] == str(source)
        and any(child.get("kind") == "CompoundStmt" for child in children(node))
    ]


class Clauses:
    """A directive's: clause -> names; and the operator of each reduced name."""

    def __init__(self, pragma: str) -> None:
        self.names: dict[str, set[str]] = {}
        self.operators: dict[str, str] = {}
        for clause, inside in re.findall(r"\b(\w+)\(([^)]*)\)", pragma):
            operator, _, names = inside.rpartition(":")
            listed = {name.strip() for name in names.split(",")}
            self.names.setdefault(clause, set()).update(listed)
            self.operators |= dict.fromkeys(listed, operator) if operator else {}

    @cached_property
    def every(self) -> set[str]:
        return set().union(*self.names.values())


class Checked:
    """A directive against a loop; `faults` are what is wrong with it, in words."""

    def __init__(self, function: Function, loop: Node, pragma: str) -> None:
        self.function, self.loop = function, loop
        self.clauses = Clauses(pragma)
        self.faults: list[str] = []
        self.inside = {each["id"] for each in everything(loop) if each.get("kind") in ("VarDecl", "ParmVarDecl")}
        self.counter = self._counter()
        self._check_nothing_is_missing()
        self._check_what_is_reduced()
        for clause in ("private", "lastprivate"):
            for name in self.clauses.names.get(clause, ()):
                self._check_flow(name, is_last=clause == "lastprivate")

    def _counter(self) -> str:
        """The id of the variable that the loop's step advances."""
        step = self.loop["inner"][3]
        found = next((variable(lvalue) for each in everything(step) if (lvalue := assigned(each)) is not None), None)
        return found["id"] if found else ""

    def _outside(self) -> dict[str, Node]:
        """Id -> each variable from outside that the loop assigns."""
        found = {}
        for each in everything(self.loop):
            lvalue = assigned(each)
            target = variable(lvalue) if lvalue is not None else None
            if target and target["id"] not in self.inside:
                found[target["id"]] = target
        return found

    def _check_nothing_is_missing(self) -> None:
        for key, target in self._outside().items():
            if key != self.counter and target["name"] not in self.clauses.every:
                self.faults.append(f"{target['name']} is assigned and has no clause")

    def _uses(self, name: str) -> set[str]:
        """The ids of the variables from outside that the loop calls by a name."""
        named = (each.get("referencedDecl", {}) for each in everything(self.loop))
        return {each["id"] for each in named if each.get("name") == name} - self.inside

    def _check_what_is_reduced(self) -> None:
        for name, operator in self.clauses.operators.items():
            if operator not in ASSOCIATIVE:
                continue  # minimum, maximum and logical ones have many forms
            uses = sum(each.get("referencedDecl", {}).get("id") in self._uses(name) for each in everything(self.loop))
            updates = sum(self._is_update(each, name, operator) for each in statements(self.loop["inner"][4]))
            if uses != updates:
                self.faults.append(f"{name} is reduced by {operator}, and used otherwise")

    def _is_update(self, node: Node, name: str, operator: str) -> int:
        """How many uses of `name` an update makes: one of `x += e` and `x++`, two of `x = x + e`; 0 if it is none.

        Two, too, of `x = t + e` where `t` is declared as `t = x`.
        """
        lvalue = assigned(node)
        target = self._named(lvalue) if lvalue is not None else ""
        if target != name:
            return 0
        opcode = node["opcode"]
        if node["kind"] == "UnaryOperator":
            return int(operator in "+-")
        if node["kind"] == "CompoundAssignOperator":
            return int(opcode == operator + "=" or (operator == "+" and opcode == "-="))
        right = bare(children(node)[1])
        accepted = (operator, "-") if operator == "+" else (operator,)
        while right.get("kind") == "BinaryOperator" and right["opcode"] in accepted:
            sides = [bare(child) for child in children(right)]
            if any(name in (self._named(side), self._begun_as.get(self._named(side))) for side in sides):
                return 2
            right = sides[0]
        return 0

    @cached_property
    def _begun_as(self) -> dict[str, str]:
        """Variables declared in the loop -> the variable that each begins as a copy of."""
        declared = [each for each in everything(self.loop) if each.get("kind") == "VarDecl" and children(each)]
        return {each["name"]: self._named(children(each)[0]) for each in declared}

    @staticmethod
    def _named(node: Node) -> str:
        """The variable that an lvalue is, or that it is an element of."""
        node = bare(node)
        while node.get("kind") == "ArraySubscriptExpr":
            node = bare(children(node)[0])
        found = variable(node)
        return str(found["name"]) if found else ""

    def _check_flow(self, name: str, *, is_last: bool) -> None:
        ids = self._uses(name)
        if len(ids) != 1:
            self.faults.append(f"{name} is no variable of the loop, or two")
            return
        (key,) = ids
        if key == self.counter or self._has_parts(key):
            return
        walk = Flow(key)
        left = walk.after(self.loop["inner"][4], walk.after(self.loop["inner"][2], False))
        if walk.found:
            self.faults.append(f"an iteration may read {name} before it assigns it")
        if is_last and left is False and self._is_read_later(key):
            self.faults.append(f"{name} is lastprivate, and not every iteration assigns it")
        if not is_last and self._is_read_later(key):
            self.faults.append(f"{name} is private, and what the loop leaves may be read")

    def _has_parts(self, key: str) -> bool:
        """Is a variable an array, or used member by member? Flow does not follow these."""
        for each in everything(self.loop):
            if each.get("kind") == "MemberExpr" and (whole := variable(each)) and whole["id"] == key:
                return True
            declared = each.get("referencedDecl", {})
            if declared.get("id") == key and "[" in declared["type"]["qualType"]:
                return True
        return False

    def _is_read_later(self, key: str) -> bool:
        """Does the function read what the loop left in a variable? Of variables of a file, only in this function."""
        walk = Flow(key, self.loop)
        walk.after(self.function.body, True)
        return walk.found


class Flow:
    """Follows one variable through statements: is it assigned for certain, and is it read where it is not?

    A state is True (assigned), False (not, or stale), or None behind a jump. With `stale`, a loop, the variable counts
    as not assigned behind it.
    """

    def __init__(self, key: str, stale: Node | None = None) -> None:
        self.key = key
        self.stale = stale
        self.found = False

    def after(self, node: Node, state: bool | None) -> bool | None:
        """The state behind a statement or expression."""
        if not node or state is None:
            return state
        if node is self.stale:
            return False
        kind = node.get("kind", "")
        if kind in LOOPS:
            return self._loop(node, state)
        if kind == "IfStmt" or kind == "ConditionalOperator":
            return self._branches(node, state)
        if kind in ("BreakStmt", "ContinueStmt", "ReturnStmt", "GotoStmt"):
            self._all(node, state)
            return None
        if kind == "SwitchStmt":
            return state and self._all(node, state) is not False
        if kind == "BinaryOperator" and node["opcode"] in ("&&", "||"):
            left, right = children(node)
            state = self.after(left, state)
            self.after(right, state)
            return state
        return self._expression(node, state)

    def _expression(self, node: Node, state: bool | None) -> bool | None:
        lvalue = assigned(node)
        target = variable(lvalue) if lvalue is not None else None
        if target and target["id"] == self.key and lvalue is not None:
            whole = bare(lvalue)["kind"] == "DeclRefExpr"
            if len(children(node)) > 1:
                state = self.after(children(node)[1], state)
            if node["kind"] != "BinaryOperator" and state is False:
                self.found = True
            return True if whole else state
        if node.get("kind") == "DeclRefExpr" and node.get("referencedDecl", {}).get("id") == self.key and not state:
            self.found = True
        if node.get("kind") == "UnaryOperator" and node["opcode"] == "&":
            return True if (named := variable(children(node)[0])) and named["id"] == self.key else state
        return self._all(node, state)

    def _all(self, node: Node, state: bool | None) -> bool | None:
        for child in node.get("inner", ()):
            state = self.after(child, state)
        return state

    def _branches(self, node: Node, state: bool | None) -> bool | None:
        condition, *arms = children(node)
        state = self.after(condition, state)
        states = [self.after(arm, state) for arm in arms] + [state] * (2 - len(arms))
        known = [each for each in states if each is not None]
        return all(known) if known else None

    def _loop(self, node: Node, state: bool | None) -> bool | None:
        parts = node["inner"]
        if node["kind"] == "DoStmt":
            return self.after(parts[1], self._twice([parts[0]], state))
        if node["kind"] == "ForStmt":
            state = self.after(parts[0], state)
            state = self.after(parts[2], state)
            inside = [parts[4], parts[3], parts[2]]
        else:
            state = self.after(parts[0], state)
            inside = [parts[-1], parts[0]]
        left = self._twice(inside, state)
        return state and left is not False

    def _twice(self, parts: list[Node], state: bool | None) -> bool | None:
        """Behind a loop's parts, run as often as it takes for what an iteration leaves to reach the next one."""
        for _ in range(2):
            for part in parts:
                state = self.after(part, True if state is None else state)
        return state
