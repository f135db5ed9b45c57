"""What authors of modules import: the contract, and what states, callbacks and results are made of.

Nothing below it is public (docs/python-api.md). Importing this imports NumPy, never Numba: callbacks are compiled when
a replay starts. Functions that callbacks may call are marked *callback* in the list of docs/python-api.md.
"""

from __future__ import annotations

from tracekit.containers import maps, shadow
from tracekit.containers.arena import arena, taken
from tracekit.containers.grouping import grouped
from tracekit.containers.hash_table import hash_table, used_rows
from tracekit.containers.kernels.arena import Arena, take
from tracekit.containers.kernels.clearing import clear
from tracekit.containers.kernels.hash_table import HashTable, row_of
from tracekit.containers.kernels.shadow import (
    Shadow,
    alike,
    changing,
    reading,
    reading_range,
    turn_to,
    writing,
    writing_range,
)
from tracekit.contexts.kernels.levels import distance_to, is_between, shared_levels
from tracekit.contexts.kernels.scopes import TICK, Scopes, close_call, close_loop, holder, next_iteration, open_scope
from tracekit.contexts.kernels.streams import FRAMES, LEVELS
from tracekit.contexts.names import ContextNames
from tracekit.contexts.nodes import NODE
from tracekit.contexts.scopes import RUN, Scope, ScopeNames, named_scopes, open_scopes
from tracekit.contexts.table import ContextTable
from tracekit.dependence.rows import instruction_key
from tracekit.formats.errors import TracekitError
from tracekit.formats.events import ACCESS_EVENTS, CODE, CONTEXT_EVENTS, NONE, OBJECT_EVENTS
from tracekit.modules.contract import (
    Analysis,
    BatchModule,
    CannotMergeError,
    Count,
    EventBatch,
    Module,
    NoOptions,
    Preset,
    RecordModule,
    inlined,
    kernel,
    option,
)
from tracekit.modules.declarations import declared
from tracekit.modules.display import Display
from tracekit.modules.intervals import MOST_INTERVALS, interval_bits, interval_count, left_in_interval
from tracekit.modules.merge_rows import add, greatest, join_rows, least
from tracekit.modules.options import addresses_option, check_addresses, contexts_option, groups_option
from tracekit.modules.ranges import ENDLESS
from tracekit.modules.services import SERVICES
from tracekit.physical import PHYSICAL
from tracekit.physical.kernels.frames import in_page, physical_of, place_of
from tracekit.program.program import Program
from tracekit.program.values import shown_value
from tracekit.translation.groups import GroupTable

__all__ = [
    "ACCESS_EVENTS",
    "CODE",
    "CONTEXT_EVENTS",
    "ENDLESS",
    "FRAMES",
    "LEVELS",
    "MOST_INTERVALS",
    "NODE",
    "NONE",
    "OBJECT_EVENTS",
    "PHYSICAL",
    "RUN",
    "SERVICES",
    "TICK",
    "Analysis",
    "Arena",
    "BatchModule",
    "CannotMergeError",
    "ContextNames",
    "ContextTable",
    "Count",
    "Display",
    "EventBatch",
    "GroupTable",
    "HashTable",
    "Module",
    "NoOptions",
    "Preset",
    "Program",
    "RecordModule",
    "Scope",
    "ScopeNames",
    "Scopes",
    "Shadow",
    "TracekitError",
    "add",
    "addresses_option",
    "alike",
    "arena",
    "changing",
    "check_addresses",
    "clear",
    "close_call",
    "close_loop",
    "contexts_option",
    "declared",
    "distance_to",
    "greatest",
    "grouped",
    "groups_option",
    "hash_table",
    "holder",
    "in_page",
    "inlined",
    "instruction_key",
    "interval_bits",
    "interval_count",
    "is_between",
    "join_rows",
    "kernel",
    "least",
    "left_in_interval",
    "maps",
    "named_scopes",
    "next_iteration",
    "open_scope",
    "open_scopes",
    "option",
    "physical_of",
    "place_of",
    "reading",
    "reading_range",
    "row_of",
    "shadow",
    "shared_levels",
    "shown_value",
    "take",
    "taken",
    "turn_to",
    "used_rows",
    "writing",
    "writing_range",
]
