"""Streams' levels as they are shipped to other processes: without the room that they have."""

from __future__ import annotations

from collections.abc import Mapping

from tracekit.containers import arena
from tracekit.contexts.kernels.streams import Stream
from tracekit.contexts.kernels.tree import Contexts
from tracekit.contexts.state import nodes_of


def trimmed(contexts: Contexts | None, levels: Mapping[int, Stream]) -> dict[int, Stream]:
    """Stream number -> its levels, without room for contexts that are not there yet (`contexts`: None if none are)."""
    known = 0 if contexts is None else len(nodes_of(contexts))
    return {number: stream._replace(open=stream.open[:known].copy()) for number, stream in levels.items()}


def with_room_for_all(contexts: Contexts | None, levels: Mapping[int, Stream]) -> dict[int, Stream]:
    """The streams of :func:`trimmed` with room for all contexts again, as kernels need them."""
    return {number: _with_room(stream, contexts) for number, stream in levels.items()}


def _with_room(stream: Stream, contexts: Contexts | None) -> Stream:
    room = arena.reserve("i4", len(stream.open) if contexts is None else len(contexts.tree.rows))
    room[: len(stream.open)] = stream.open
    return stream._replace(open=room)
