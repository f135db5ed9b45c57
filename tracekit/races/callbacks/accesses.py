"""What the race detector does at accesses, and where memory becomes new."""

from __future__ import annotations

from tracekit.races.kernels import history, shares
from tracekit.races.kernels.state import State


class AccessCallbacks:
    """Loads and stores, blocks that are freed; memory that is new."""

    @staticmethod
    def load(
        state: State,
        instruction: int,
        address: int,
        size: int,
        stream: int,
        context: int,
        group: int,
        object: int,
        offset: int,
    ) -> None:
        """A load."""
        if not history.is_alone(state, stream):
            history.load(state, instruction, context, address, size, (address, group, object, offset))

    @staticmethod
    def store(
        state: State,
        instruction: int,
        address: int,
        size: int,
        stream: int,
        context: int,
        group: int,
        object: int,
        offset: int,
    ) -> None:
        """A store."""
        if not history.is_alone(state, stream):
            history.store(state, instruction, context, address, size, (address, group, object, offset))

    @staticmethod
    def heap_free(
        state: State,
        instruction: int,
        address: int,
        size: int,
        stream: int,
        context: int,
        group: int,
        object: int,
        offset: int,
    ) -> None:
        """A block ends: whoever accesses it, or frees it again, has to come before."""
        if size > 0 and not history.is_alone(state, stream):
            history.free(state, instruction, context, address, size, (address, group, object, offset))

    @staticmethod
    def heap_alloc(state: State, address: int, size: int, stream: int) -> None:
        """A block is new."""
        history.forget(state, address, size)
        shares.note_block(state, stream, address)

    @staticmethod
    def stack_alloc(state: State, address: int, size: int, stream: int) -> None:
        """So is a local variable."""
        history.forget(state, address, size)
        shares.note_local(state, stream, address, size)

    @staticmethod
    def global_init(state: State, address: int, size: int) -> None:
        """And what an image brings."""
        history.forget(state, address, size)
