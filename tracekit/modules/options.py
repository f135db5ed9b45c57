"""The options of a module: a frozen dataclass, from strings of the command line or values of the API."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from tracekit.contexts.rules import DYNAMIC, STATIC
from tracekit.formats.errors import TracekitError
from tracekit.physical import PHYSICAL, VIRTUAL
from tracekit.translation import GROUPS_BY


def option(
    default: Any, help: str, metavar: str | None = None, choices: Sequence[str] = (), unsaid: bool = False
) -> Any:
    """A field of an Options dataclass, with what the command line says of it.

    `unsaid`: a profile does not name it while it has its default, as one of before there was the option.
    """
    metadata = {"help": help, "metavar": metavar, "choices": tuple(choices), "unsaid": unsaid}
    return dataclasses.field(default=default, metadata=metadata)


def said(options: Any) -> dict[str, Any]:
    """The options, by name, that a profile made with them names."""
    unsaid = {field.name: field.default for field in dataclasses.fields(options) if field.metadata.get("unsaid", False)}
    values = dataclasses.asdict(options)
    return {name: value for name, value in values.items() if name not in unsaid or value != unsaid[name]}


def contexts_option(default: str = DYNAMIC) -> Any:
    """The field `contexts` of an Options dataclass: the rule by which the module's contexts are told apart."""
    return option(
        default,
        "How contexts are told apart: `dynamic`, a call goes back to the context of its function if that is open; "
        "`static`, CAMP's rule: every call that may be recursive, by the static call graph, is one context.",
        choices=(DYNAMIC, STATIC),
    )


def groups_option(default: str = "site") -> Any:
    """The field `by` of an Options dataclass: :attr:`Module.groups_by`."""
    return option(
        default,
        "What objects are told apart by: `site`, the instruction that allocates; `caller`, of a wrapper of malloc or a "
        "container the call of it; `context`, the instruction in its calling context.",
        choices=GROUPS_BY,
    )


def addresses_option() -> Any:
    """The field `addresses` of a simulator's Options dataclass: which ones it simulates."""
    return option(
        VIRTUAL,
        "Whose lines are touched: of virtual addresses, or of physical ones, known of a trace of record --physical.",
        choices=(VIRTUAL, PHYSICAL),
        unsaid=True,
    )


def check_addresses(addresses: str, line: int) -> None:
    """Raises ValueError if lines of so many bytes cannot be those of the `addresses`."""
    if addresses != PHYSICAL:
        return
    from tracekit.physical.kernels.frames import PAGE

    if line > PAGE:
        raise ValueError(f"with physical addresses a line has at most {PAGE} bytes, as a page does.")


@dataclasses.dataclass(frozen=True)
class NoOptions:
    """A module without options."""


def make_options(options: type[Any], values: Mapping[str, Any]) -> Any:
    """Make an instance of the dataclass `options` from `values`; strings are converted to the type of the field.

    Raises TracekitError for an unknown name or a bad value.
    """
    fields = {field.name: field for field in dataclasses.fields(options)}
    converted = {}
    for name, value in values.items():
        field = fields.get(name.replace("-", "_"))
        if field is None:
            known = ", ".join(fields) or "none"
            raise TracekitError(f"there is no option {name!r}; the module's options are: {known}.")
        converted[field.name] = _converted(field, value)
    try:
        return options(**converted)
    except ValueError as error:
        raise TracekitError(str(error)) from None


def _converted(field: dataclasses.Field[Any], value: Any) -> Any:
    choices = field.metadata.get("choices")
    if choices and value not in choices:
        raise TracekitError(f"{field.name} is one of {', '.join(choices)}, not {value!r}.")
    if not isinstance(value, str) or isinstance(field.default, str):
        return value
    if isinstance(field.default, bool):
        if value.lower() not in ("true", "false", "1", "0", "yes", "no"):
            raise TracekitError(f"{field.name} is true or false, not {value!r}.")
        return value.lower() in ("true", "1", "yes")
    type_of: type[Any] = type(field.default)
    try:
        return type_of(value)
    except ValueError:
        raise TracekitError(f"{field.name} is a number, not {value!r}.") from None
