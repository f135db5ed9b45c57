"""The state of one worker: what the callbacks of a module, and its services, have found in one share of the events."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

import numpy as np

from tracekit.containers.arena import Limited
from tracekit.containers.kernels.arena import LIMITED
from tracekit.contexts.kernels.streams import Stream
from tracekit.contexts.kernels.tree import Contexts
from tracekit.contexts.state import empty_stream, with_room
from tracekit.jit.caller import Caller
from tracekit.modules.address_services import given
from tracekit.modules.mixed import MixedFeeder
from tracekit.physical.kernels.frames import Frames
from tracekit.translation.kernels.translation import Translation


class Worker:
    """The state of one worker: the module's, and that of the services."""

    def __init__(
        self, state: Any, contexts: Contexts | None, translation: Translation | None, frames: Frames | None = None
    ) -> None:
        self.state = state
        self.translation = translation
        self.given = given(state, translation, frames)
        self.contexts = contexts
        self.levels: dict[int, Stream] = {}
        self.callers: dict[int, Caller] = {}
        """By stream, so that those of streams that take turns are told what changes, and no more."""
        self.mixed: MixedFeeder | None = None
        """Of batches with several streams."""
        self.clock = np.zeros(1, np.int64)
        self.arenas = list(_arenas((state, contexts, translation)))

    def arguments(self, stream: int, events: int) -> tuple[Any, Contexts | None, Stream | None, Any]:
        """State, contexts, levels and clock, as the module's kernel takes them for so many events of a stream."""
        levels = None
        if self.contexts is not None:
            known = self.levels.get(stream) or empty_stream(len(self.levels), len(self.contexts.tree.rows))
            self.levels[stream] = levels = with_room(known, events)
        return self.given, self.contexts, levels, self.clock

    def example(self) -> tuple[Any, Contexts | None, Stream | None, Any]:
        """Arguments of the same types, to compile the kernel for; no stream is begun for them."""
        levels = None
        if self.contexts is not None:
            levels = next(iter(self.levels.values()), None) or empty_stream(0, len(self.contexts.tree.rows))
        return self.given, self.contexts, levels, self.clock


def _arenas(state: Any) -> Iterator[Limited]:
    """Arenas, tables and shadow memories anywhere in a state."""
    if isinstance(state, tuple(LIMITED)):
        yield cast("Limited", state)
    elif isinstance(state, tuple):
        for part in state:
            yield from _arenas(part)
