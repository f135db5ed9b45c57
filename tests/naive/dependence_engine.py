"""camp and lamp without the trace: events in, a DependenceProfile out."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

from tracekit.analyzers.camp import Camp
from tracekit.analyzers.lamp import Lamp
from tracekit.contexts.state import MOST_NODES
from tracekit.dependence.kernels.final_stores import FinalStores
from tracekit.dependence.kernels.load_history import COLLECT_AT
from tracekit.dependence.profile import DependenceProfile
from tracekit.modules.callback_runner import CallbackRunner
from tracekit.program.program import Program
from tracekit.verdicts.module import DependenceModule


class DependenceEngine:
    """``context=True`` is CAMP, ``context=False`` LAMP; `rule`: of recursion; `most`: nodes, by the rule "dynamic";
    `threads`: the option; `final`: what the first pass found.
    """

    def __init__(
        self,
        program: Program,
        context: bool,
        workers: int = 1,
        rule: str = "static",
        most: int = MOST_NODES,
        threads: bool = False,
        final: FinalStores | None = None,
    ) -> None:
        module: type[DependenceModule] = Camp if context else Lamp
        chosen = {"threads": threads, **({"contexts": rule} if context else {})}
        self.module = module(program, module.Options(**chosen))
        if final is not None:
            self.module.found_first = {"final": final}
        self.collects = False
        """Whether the loads that nobody needs are collected again and again, not only when they are many."""
        self.runner = CallbackRunner(self.module, "camp" if context else "lamp", workers)
        for worker in self.runner._workers:
            assert worker.contexts is not None
            worker.contexts.nodes[1] = most

    @property
    def states(self) -> list[Any]:
        """The state of each worker."""
        return [worker.state for worker in self.runner._workers]

    def feed(self, batch: Any) -> None:
        for worker in range(self.runner.workers):
            if self.collects:
                self.states[worker].readers.control[COLLECT_AT] = 0
            self.runner.feed(batch, worker)

    def feed_columns(self, number: int, kind: Any, subject: Any, address: Any, size: Any) -> None:
        """Take events of stream `number`, given as columns (u1, u4, u8, u8) of one length."""
        self.feed(
            SimpleNamespace(
                stream=number, kind=kind, subject=subject, address=address.view(np.uint64), size=size.view(np.uint64)
            )
        )

    def result(self) -> DependenceProfile:
        """What was found until now; loops that are open count as if they ended here."""
        self.runner.finished()
        return self.module.profile
