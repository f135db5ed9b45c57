"""Messages of MPI: who sends how much to whom, sends matched with receives, collective operations.

Each rank's trace has its own part; of the traces of all ranks (`tracekit analyze -m messages ranks/`) sends are matched
with receives exactly, since MPI keeps the order of messages.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from tracekit.messages.log import Events, Log
from tracekit.messages.matching import report
from tracekit.module import NODE, BatchModule, CannotMergeError, ContextNames, Display, EventBatch


class Messages(BatchModule):
    """A row for each two instructions between which messages went."""

    events: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "mpi_communicator": ("rank", "communicator", "peers"),
        "mpi_envelope": ("communicator", "envelope"),
        "mpi_send": ("instruction", "size"),
        "mpi_post": ("number",),
        "mpi_receive": ("instruction", "number", "size"),
        "mpi_collective": ("instruction", "operation", "size"),
    }

    def __init__(self, program: Any, options: Any) -> None:
        super().__init__(program, options)
        self._events = Events()
        self._whole: Log | None = None

    def feed(self, batch: EventBatch) -> None:
        """Take the events."""
        self._events.take(batch)

    def log(self) -> Log:
        """This rank's part."""
        if self._whole is None:
            self._whole = self._events.log(ContextNames(self.program, np.zeros(0, NODE)).instruction)
        return self._whole

    def result(self) -> dict[str, Any]:
        """What this rank alone tells."""
        return report([self.log()])

    def merge_state(self) -> dict[str, Any]:
        """Each message in its order."""
        return {"logs": [self.log().merge_state()]}

    @classmethod
    def merge(cls, profiles: Sequence[Mapping[str, Any]], program: Any) -> dict[str, Any]:
        """All ranks together: each is one profile."""
        logs = [Log.of(log) for profile in profiles for log in profile["evidence"]["logs"]]
        ranks = [log.rank for log in logs if log.rank is not None]
        if len(set(ranks)) < len(ranks):
            twice = min(rank for rank in ranks if ranks.count(rank) > 1)
            raise CannotMergeError(f"two of the traces are of rank {twice}: name those of one run")
        return {"result": report(logs), "evidence": {"logs": [log.merge_state() for log in logs]}}


DISPLAY = Display(
    text="tracekit.render.messages:messages_text",
    failed="tracekit.render.messages:is_wrong",
    heading="Messages",
    columns={
        "ranks": "source destination messages bytes",
        "messages": "send:instruction receive:instruction messages bytes",
        "unmatched": "kind source destination tag communicator instruction:instruction messages bytes",
        "collectives": "operation communicator instruction:instruction ranks calls bytes",
        "mismatches": "communicator number calls",
    },
)
MODULE = Messages
