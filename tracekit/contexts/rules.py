"""The two rules by which contexts are told apart in recursion: the option ``--contexts`` of the modules that do so."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

DYNAMIC = "dynamic"
STATIC = "static"


def is_static(options: Any) -> bool:
    """Whether these options of a module ask for CAMP's rule, as those do that cannot say."""
    return bool(getattr(options, "contexts", STATIC) == STATIC)


def explicit(options: Mapping[str, Any], declared: type[Any]) -> dict[str, Any]:
    """Options of a profile, of a module that declares them; before there were two rules it was CAMP's."""
    if any(field.name == "contexts" for field in dataclasses.fields(declared)):
        return {**options, "contexts": options.get("contexts", STATIC)}
    return dict(options)


def rule_of(options: Mapping[str, Any]) -> str:
    """The rule of a profile with these (explicit) options; empty if it has no contexts."""
    return str(options["contexts"]) if "contexts" in options and options.get("context", True) else ""


def without_rule(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options of a profile without that of the rule."""
    return {name: value for name, value in options.items() if name != "contexts"}
