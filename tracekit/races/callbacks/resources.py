"""What the race detector does where synchronisation objects and file descriptors begin, are used and end."""

from __future__ import annotations

import numpy as np

from tracekit.races.kernels import history, resources
from tracekit.races.kernels.descriptors import number_is_given_up, number_is_taken
from tracekit.races.kernels.lock_orders import settle
from tracekit.races.kernels.locks import note_call
from tracekit.races.kernels.order import running
from tracekit.races.kernels.state import BEGIN, DIRECT, END, State


class ResourceCallbacks:
    """Their uses have to lie between their beginnings and ends."""

    @staticmethod
    def resource_begin(
        state: State,
        instruction: int,
        address: int,
        stream: int,
        context: int,
        group: int,
        object: int,
        offset: int,
    ) -> None:
        """One is initialised or opened: whoever uses it has to come after that."""
        number_is_taken(state, stream, address)
        if not history.is_alone(state, stream):
            history.change(state, instruction, context, BEGIN, address, (address, group, object, offset))

    @staticmethod
    def resource_use(
        state: State,
        instruction: int,
        address: int,
        stream: int,
        context: int,
        group: int,
        object: int,
        offset: int,
    ) -> None:
        """It is about to be used; by the only thread, too, which may give it up when there are others."""
        if running(state, stream) != 0 and history.kind_of(state, instruction) & DIRECT:
            note_call(state, stream, history.kind_of(state, instruction), address)
            resources.use(state, instruction, context, address, (address, group, object, offset))
            settle(state, np.uint64(0), (address, group, object, offset))

    @staticmethod
    def resource_end(
        state: State,
        instruction: int,
        address: int,
        stream: int,
        context: int,
        group: int,
        object: int,
        offset: int,
    ) -> None:
        """It is about to be destroyed or closed: whoever uses it has to come before that."""
        if not history.is_alone(state, stream):
            history.change(state, instruction, context, END, address, (address, group, object, offset))
        number_is_given_up(state, instruction, context, stream, address)
