"""Copies of contexts and of streams as they are at one moment, from which another replay goes on."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tracekit.containers import arena
from tracekit.containers.hash_table import copied_table
from tracekit.contexts.kernels.streams import Stream
from tracekit.contexts.kernels.tree import Contexts
from tracekit.contexts.state import MOST_CONTEXTS, nothing_at_hand


def copied_contexts(contexts: Contexts) -> Contexts:
    """A copy that grows by itself; tables that never change are shared."""
    called, named = nothing_at_hand()
    called[:], named[:] = contexts.called, contexts.named
    return contexts._replace(
        tree=copied_table(contexts.tree, MOST_CONTEXTS),
        sites=copied_table(contexts.sites, MOST_CONTEXTS),
        nodes=contexts.nodes.copy(),
        called=called,
        named=named,
        recursing=contexts.recursing.copy(),
    )


def copied_streams(streams: Mapping[int, Stream], contexts: int) -> dict[int, Stream]:
    """Copies of the streams, in the same order; so many contexts are known."""
    return {number: _copied(stream, contexts) for number, stream in streams.items()}


def _copied(stream: Stream, contexts: int) -> Stream:
    open_levels = arena.reserve("i4", len(stream.open))
    open_levels[:contexts] = stream.open[:contexts]
    arrays = {name: np.array(array) for name, array in stream._asdict().items() if name != "open"}
    return Stream(open=open_levels, **arrays)
