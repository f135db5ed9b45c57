"""Contexts of what tasks do, as the program's source has them.

A task runs wherever a thread has something to wait for, or at the bottom of a worker of the runtime. What it does is
shown below the place that made it instead, which is shown below what made its creator, up to a thread of the program:
then one place of the source is one place, whichever thread came to it from wherever.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tracekit.contexts.names import ContextNames
from tracekit.contexts.nodes import LOOPS
from tracekit.formats.events import NONE
from tracekit.races.kernels.state import LANE_ROLE, THREAD_ROLE, State

if TYPE_CHECKING:
    from tracekit.modules.contract import Module

Json = dict[str, Any]


class Step(NamedTuple):
    """A step of a context: what it is called, the function whose code has it (a root has none), and if it leaves it."""

    text: str
    function: int
    is_call: bool


class TaskContexts:
    """Names contexts by what made the task in which they were."""

    def __init__(self, module: Module, state: State) -> None:
        self.contexts, self.roles = module.contexts, state.roles.rows
        self.nodes = module.contexts.nodes
        self.names = ContextNames(module.program, self.nodes)
        self.made: dict[int, list[Step]] = {}
        """Role of tasks -> the steps from a thread's first function to the call that makes them."""

    def of_thread(self, number: int) -> Json:
        """A context as the thread had it."""
        return self.contexts.of_number(number)

    def of_task(self, number: int, base: int, role: int) -> Json:
        """A context in a task of this role, to which its thread came in the context `base`."""
        context = self.of_thread(number)
        steps = [step.text for step in self._shown(number, base, role)] if self._is_task(role) else []
        if not steps or steps == [context["root"], *context["path"]]:
            return context
        return {"id": None, "root": steps[0], "path": steps[1:]}

    def _is_task(self, role: int) -> bool:
        """Whether it has a context of its own: a lane's is its loop's."""
        return bool(self.roles["kind"][self._whole(role)] > THREAD_ROLE)

    def _whole(self, role: int) -> int:
        """The role of the task that a lane is part of."""
        while self.roles["kind"][role] == LANE_ROLE:
            role = int(self.roles["of"][role])
        return role

    def _shown(self, number: int, base: int, role: int) -> list[Step]:
        """The steps of a context; of a task without those that its thread had made before it came to it."""
        path = self._path(number)
        if self._is_task(role):
            steps = self._made(role)
            path = _inside(path, self._path(base))
        else:
            steps = []
        steps = folded([*steps, *map(self._step, path)])
        leaf = int(self.nodes["function"][int(self.contexts.rows(np.array([number]))[0])])
        return without_recursion(steps, leaf)

    def _made(self, role: int) -> list[Step]:
        """How the tasks of a role came to be; what a recursion of tasks makes is made as its first one was."""
        role = self._whole(role)
        waiting, at = [], role
        while at not in self.made and self._is_task(at):
            waiting.append(at)
            at = self._whole(int(self.roles["of"][at]))
        for at in reversed(waiting):
            row = self.roles[at]
            steps = self._shown(int(row["context"]), int(row["base"]), int(row["of"]))
            inside = self._path(int(row["context"]))
            function = int(self.nodes["function"][inside[-1]]) if inside else NONE
            self.made[at] = folded([*steps, Step(self.names.call_name(int(row["instruction"])), function, True)])
        return self.made[role]

    def _path(self, number: int) -> list[int]:
        """The nodes from the root on; none where no function was open."""
        node = int(self.contexts.rows(np.array([number]))[0]) if number > 0 else -1
        path = []
        while 0 <= node < len(self.nodes):
            path.append(node)
            node = int(self.nodes["parent"][node])
        return path[::-1]

    def _step(self, node: int) -> Step:
        context = self.names.context(node)
        row = self.nodes[node]
        if not context["path"]:
            return Step(context["root"], NONE, False)
        if row["kind"] in LOOPS:
            return Step(context["path"][-1], int(row["function"]), False)
        return Step(context["path"][-1], int(self.nodes["function"][row["parent"]]), True)


def _inside(path: list[int], base: list[int]) -> list[int]:
    """The nodes behind the one that entered the task, which is whatever call its thread stood in, or a root.

    Where recursion is folded a context may lie above the base: what they have in common is not the task's.
    """
    shorter = min(len(path), len(base))
    common = next((n for n in range(shorter) if path[n] != base[n]), shorter)
    return path[common + 1 :] if common == len(base) else path[common:]


def folded(steps: Iterable[Step]) -> list[Step]:
    """Without recursion: all that a function does when it is entered again from inside is done where it was first."""
    kept: list[Step] = []
    for step in steps:
        kept = [*without_recursion(kept, step.function), step]
    return kept


def without_recursion(steps: list[Step], function: int) -> list[Step]:
    """The steps to a function, up to where it was first entered, if these have left it."""
    left = next((n for n, step in enumerate(steps) if step.is_call and step.function == function != NONE), None)
    if left is None:
        return steps
    while left > 0 and steps[left - 1].function == function and not steps[left - 1].is_call:
        left -= 1
    return steps[:left]
