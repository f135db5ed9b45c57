"""Services: parameters that a callback may have beside the fields of its event (docs/writing-modules.md)."""

from __future__ import annotations

SERVICES: dict[str, str] = {
    "options": "the module's numbers and truth values of its Options, as constants: an `if` of one costs nothing",
    "stream": "number of the thread's or signal handler's stream",
    "own_stream": "the same, also of an event that has a field `stream`: a thread's creation, its end",
    "time": "loads and stores of all streams before this event (in a window: those inside)",
    "context": "row of the present calling and loop context (self.contexts names it)",
    "levels": "the stream's open loops with their clocks, for distance_to and shared_levels of tracekit.module",
    "first": "1 in one of the callbacks for this event, 0 in the others: count where it is 1",
    "whole": "1 if this is the only callback for this event; 0 if other workers have it or parts of it, too",
    "start": "address of the load or store, also in a callback for a part of it that does not begin there",
    "mine": "1 if a load or store, or this part of one, is the worker's own; a callback that asks for it is called for "
    "the others', too",
    "worker": 'number of the worker that the callback runs in, of a module with shard_by = "work"; else 0',
    "workers": "how many workers there are of such a module; else 1",
    "inside": "1 inside the window that the analysis is restricted to: a load or store outside never arrives, but what "
    "keeps a state right (entries, loops, objects) does; 1 everywhere without a window",
    "group": "of an event with an address: what made the object there (self.groups names it); 0: unknown memory",
    "object": "number of that object in its group, from 0, in the order of creation",
    "offset": "bytes from the start of that object to the address; of unknown memory, the address",
    "physical": "of an event with an address: where that lay physically; -1 if its page frame is not known",
    "frames": "what is known of page frames, for physical_of of tracekit.module",
}
"""Name of the parameter -> what it is, as `tracekit modules --events` prints it."""

TRANSLATED = frozenset({"group", "object", "offset"})
"""Those for which live objects are kept; they say of an address what it is in."""

LOCATED = frozenset({"physical", "frames"})
"""Those for which page frames are kept."""

MORE_THAN_ACCESSES = TRANSLATED | LOCATED | {"context", "levels", "value"}
"""The services, and the field, of loads and stores that take more than their records."""
