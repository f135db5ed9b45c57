"""The two rules by which contexts are told apart in recursion: the option ``--contexts`` of the modules that do so."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tracekit.modules.options import option

DYNAMIC = "dynamic"
STATIC = "static"


def contexts_option() -> Any:
    """The field of an Options dataclass."""
    return option(
        DYNAMIC,
        "How contexts are told apart: `dynamic`, a call goes back to the context of its function if that is open; "
        "`static`, CAMP's rule: every call that may be recursive, by the static call graph, is one context.",
        choices=(DYNAMIC, STATIC),
    )


def is_static(options: Any) -> bool:
    """Whether these options of a module ask for CAMP's rule."""
    return bool(getattr(options, "contexts", DYNAMIC) == STATIC)


def rule_of(options: Mapping[str, Any]) -> str:
    """The rule of a profile whose report has these options; before there were two it was CAMP's."""
    return str(options.get("contexts", STATIC))
