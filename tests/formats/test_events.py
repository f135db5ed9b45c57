"""The event table and its groups."""

from __future__ import annotations

from tracekit.formats import events
from tracekit.formats.events import BY_NAME, CONTEXT_EVENTS, HEAP_EVENTS, OBJECT_EVENTS


def test_what_the_table_knows_as_recorded_only_is_not_delivered() -> None:
    resumed = {"resumed_register", "resumed_loop", "resumed_object", "resumed_frame", "resumed_return"}
    kept_back = {"heap_realloc", "library_load", "library_store", *resumed}
    assert {event.name for event in events.EVENTS} - {event.name for event in events.DELIVERED} == kept_back
    assert all(BY_NAME[name].words for name in kept_back), "an event that is not delivered has to be recorded"


def test_the_groups_hold_all_events_of_their_kind() -> None:
    """A new event that fits into a group has to be put there."""
    delivered = [event.name for event in events.DELIVERED]
    context = ("function_", "loop_")
    assert set(CONTEXT_EVENTS) == {name for name in delivered if name.startswith(context)}
    memory = ("heap_", "stack_", "global_")
    assert set(OBJECT_EVENTS) == {name for name in delivered if name.startswith(memory)}
    assert set(HEAP_EVENTS) == {name for name in delivered if name.startswith("heap_")}
