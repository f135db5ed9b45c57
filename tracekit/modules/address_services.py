"""The services that stand for an address (objects, physical addresses): what generated kernels do to provide them.

For ``group``, ``object`` and ``offset`` the live objects (tracekit/translation) are kept beside the module's state. An
object is there before the callback for its beginning is called, and until after the one for its end. For ``physical``
and ``frames`` the page frames (tracekit/physical) are kept there, and the events that tell the time of their stream.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from tracekit.formats.events import BY_NAME
from tracekit.physical.kernels.frames import Frames
from tracekit.translation.kernels.translation import CHANGING_AFTER, CHANGING_BEFORE, OF_STACK, Translation


class TranslatedState(NamedTuple):
    """The state of a module whose callbacks ask for objects, as its kernel has it."""

    own: Any
    translation: Translation


class LocatedState(NamedTuple):
    """The state of a module whose callbacks ask for physical addresses, as its kernel has it."""

    own: Any
    frames: Frames


class TranslatedLocatedState(NamedTuple):
    """The state of a module whose callbacks ask for objects and physical addresses, as its kernel has it."""

    own: Any
    translation: Translation
    frames: Frames


def given(own: Any, translation: Translation | None, frames: Frames | None) -> Any:
    """The state that a kernel is given."""
    if translation is not None and frames is not None:
        return TranslatedLocatedState(own, translation, frames)
    if translation is not None:
        return TranslatedState(own, translation)
    return own if frames is None else LocatedState(own, frames)


IMPORTS = """from tracekit.contexts.kernels.allocation_site import allocation_site
from tracekit.translation.kernels.translation import (
    allocated,
    block_at,
    entered,
    freed,
    left,
    loaded,
    placed,
    unloaded,
)
"""

LOCATING_IMPORTS = """from tracekit.physical.kernels.frames import passed, physical_of
"""

TIMES: Mapping[str, str] = {"hand_over": "address", "window_begin": "size"}
"""Event that tells the time of its stream -> the column that has it."""

BEFORE: Mapping[str, str] = {
    "load": "loaded(state.translation, np.int64(subject[event]), np.int64(address[event]))",
    "heap_alloc": "allocated(state.translation, np.int64(subject[event]), {site}, {context}, np.int64(address[event]), "
    "np.int64(size[event]))",
    "stack_alloc": "entered(state.translation, np.int64(subject[event]), {context}, np.int64(address[event]), "
    "np.int64(size[event]))",
    "global_init": "placed(state.translation, np.int64(subject[event]), np.int64(address[event]), "
    "np.int64(size[event]))",
}
"""Event -> what is done before its callback is called."""
AFTER: Mapping[str, str] = {
    "heap_free": "freed(state.translation, np.int64(subject[event]), np.int64(address[event]), np.int64(size[event]))",
    "stack_free": "left(state.translation, np.int64(address[event]))",
    "image_unload": "unloaded(state.translation, np.int64(subject[event]))",
}
"""... and after."""
assert BEFORE.keys() == CHANGING_BEFORE and AFTER.keys() == CHANGING_AFTER

GIVEN: Mapping[str, str] = {"group": "np.int64(here.group)", "object": "np.int64(here.number)"}
"""What parameters are given, where ``here`` is the block of the event's address."""


def columns(stack_objects: bool) -> dict[str, set[str]]:
    """Event -> the columns of it that translation needs."""
    return {
        name: {column for column in ("subject", "address", "size") if getattr(BY_NAME[name], column)}
        - ({"size"} if name == "load" else set())
        for name in (*BEFORE, *AFTER)
        if stack_objects or name not in OF_STACK
    }


def before(name: str, groups_by: str, stack_objects: bool) -> Iterator[str]:
    """The line before the callback of an event in BEFORE."""
    if stack_objects or name not in OF_STACK:
        context = "np.int64(0)"
        if groups_by == "context":
            context = "np.int64(contexts.tree.rows[np.uint64(levels.control[CONTEXT])].printed)"
        site = "np.int64(subject[event])"
        if groups_by == "caller":
            site = f"allocation_site(state.translation.in_wrapper, {site}, levels)"
        yield BEFORE[name].format(site=site, context=context)


def after(name: str, stack_objects: bool) -> Iterator[str]:
    """The line after the callback of an event in AFTER."""
    if stack_objects or name not in OF_STACK:
        yield AFTER[name]
