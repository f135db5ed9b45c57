"""Reads what a module declares by the names of its callbacks and their parameters, and checks that all of it exists."""

from __future__ import annotations

import inspect
from collections.abc import Sequence

from tracekit.formats.errors import TracekitError
from tracekit.formats.events import BY_NAME, DELIVERED, Event
from tracekit.modules import ranges
from tracekit.modules.contract import Analysis, BatchModule, Module, RecordModule
from tracekit.modules.services import SERVICES, TRANSLATED
from tracekit.near import nearest
from tracekit.translation import GROUPS_BY


class WrongModuleError(TracekitError, TypeError):
    """A module declares an event, a field or a service that does not exist."""


def declared(module: Analysis) -> dict[str, tuple[str, ...]]:
    """Event -> the names of the fields that the module requests, without services.

    Raises WrongModuleError for a name that does not exist.
    """
    _check_names(module)
    if isinstance(module, (BatchModule, RecordModule)):
        fields_of = {name: tuple(fields) for name, fields in module.events.items()}
    else:
        assert isinstance(module, Module)
        _check_callbacks(module)
        fields_of = {
            name: tuple(
                parameter for parameter in list(inspect.signature(function).parameters)[1:] if parameter not in SERVICES
            )
            for name, function in module.callbacks().items()
        }
    for name, fields in fields_of.items():
        if name not in _DELIVERED:
            doc = BY_NAME[name].doc if name in BY_NAME else f"there is no such event{_meant(name)}"
            raise WrongModuleError(f"{type(module).__name__}.{name} is never called: {doc}.")
        _check_fields(type(module).__name__, BY_NAME[name], fields)
    if isinstance(module, Module):
        _check_translated(module)
    return fields_of


def _check_translated(module: Module) -> None:
    for name, function in module.callbacks().items():
        fields = {field.name for field in BY_NAME[name].fields}
        wanted = (TRANSLATED | {"physical"}) & set(inspect.signature(function).parameters) - fields
        if wanted and "address" not in fields:
            raise WrongModuleError(
                f"{type(module).__name__}.{name} asks for {min(wanted)!r}; the event {name} has no address."
            )
    if module.groups_by not in GROUPS_BY:
        raise WrongModuleError(
            f"{type(module).__name__}.groups_by is {', '.join(GROUPS_BY[:-1])} or {GROUPS_BY[-1]}, not "
            f"{module.groups_by!r}."
        )


_DELIVERED = {event.name: event for event in DELIVERED}

_NEW_NAMES = {"join": "merge", "evidence": "merge_state", "decoupled": "shard_by", "costly": "compute_bound"}
"""Name in the contract of version 0.1 -> name now. (What is ``reduce`` now was called ``merge``, too.)"""


def _check_names(module: Analysis) -> None:
    """Refuse names of an older contract: they would be ignored, or taken for something else."""
    for parent in type(module).__mro__[: type(module).__mro__.index(Analysis)]:
        for old in _NEW_NAMES.keys() & vars(parent).keys():
            raise WrongModuleError(f"{parent.__name__}.{old} is called {_NEW_NAMES[old]} now: rename it.")
        if inspect.isfunction(vars(parent).get("merge")):
            raise WrongModuleError(
                f"{parent.__name__}.merge, which makes one of the workers' states, is called reduce now: rename it."
            )


def _check_callbacks(module: Module) -> None:
    """Refuse what was meant as a callback and is none."""
    for parent in type(module).__mro__[: type(module).__mro__.index(Module)]:
        for name, member in vars(parent).items():
            if name in BY_NAME.keys() | ranges.NAMES and inspect.isfunction(member):
                raise WrongModuleError(f"{parent.__name__}.{name} is a callback: it has to be a @staticmethod.")
            is_known = name in BY_NAME.keys() | ranges.NAMES or name.startswith("_")
            if isinstance(member, staticmethod) and not is_known and _meant(name):
                raise WrongModuleError(
                    f"{parent.__name__}.{name} is named for no event{_meant(name)} (the name of any "
                    "other static method begins with an underscore)"
                )
    for name, function in module.callbacks().items():
        if not inspect.signature(function).parameters:
            raise WrongModuleError(f"{type(module).__name__}.{name} takes no state; its first parameter is the state.")
    if not module.callbacks():
        raise WrongModuleError(
            f"{type(module).__name__} has no callback: no static method is named for an event "
            "(`tracekit modules --events`)."
        )
    if reason := ranges.wrong(module.callbacks(), module.range_callbacks()):
        raise WrongModuleError(f"{type(module).__name__}.{reason}.")


def _meant(name: str) -> str:
    near = nearest(name, _DELIVERED, 0.7)
    return f"; did you mean {' or '.join(near)}?" if near else ""


def _check_fields(module: str, event: Event, fields: Sequence[str]) -> None:
    known = [field.name for field in event.fields]
    wrong = [field for field in fields if field not in known]
    if wrong:
        raise WrongModuleError(
            f"{module}.{event.name} asks for {wrong[0]!r}; the event {event.name} has the fields "
            f"{', '.join(known) or '(none)'}, and any event the services {', '.join(SERVICES)}."
        )
