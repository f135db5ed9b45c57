"""Random profiles of camp and accesses, and files of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from tracekit.profiles import files
from tracekit.profiles.profile import Profile

NAMES = st.sampled_from(["main", "f", "std::vector<int, A>::at(int)", "it's", 'a "b"', "größe", ""])
FILES = st.sampled_from(["app.c", "/usr/include/x.h", "../a b.c", "", "x;y.c"])
COUNTS = st.integers(0, 1 << 62) | st.integers(0, 9)
SMALL = st.integers(0, 1 << 40)

PLACES = st.fixed_dictionaries({"function": NAMES, "file": FILES, "line": SMALL, "column": st.integers(0, 3)})
INSTRUCTIONS = st.fixed_dictionaries(
    {
        "id": st.sampled_from(["a:1", "b:2"]),
        "kind": st.sampled_from(["load", "store"]),
        "function": NAMES,
        "file": FILES,
        "line": SMALL,
        "column": st.integers(0, 3),
        "inlined_at": st.lists(PLACES, max_size=2),
    }
)
LOOPS = st.fixed_dictionaries(
    {"function": NAMES, "file": FILES, "line": SMALL, "column": SMALL, "depth": st.integers(1, 3)}
)
CONTEXTS = st.fixed_dictionaries(
    {
        "id": st.none() | SMALL,
        "root": NAMES,
        "path": st.lists(st.sampled_from(["main:1:2", "loop f:3", "recursion f:4:5"]), max_size=3),
    }
)


@st.composite
def levels(draw: st.DrawFn) -> Any:
    inter = draw(st.booleans())
    return {
        "loop": draw(LOOPS | st.fixed_dictionaries({"recursion": NAMES})),
        "intra": draw(st.booleans()),
        "inter": inter,
        "min_distance": draw(COUNTS) if inter else None,
        "max_distance": draw(COUNTS) if inter else None,
    }


def dependences(contexts: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Rows whose ends both have contexts, or neither."""
    return st.fixed_dictionaries(DEPENDENCE | {"source_context": contexts, "destination_context": contexts})


DEPENDENCE: dict[str, st.SearchStrategy[Any]] = {
    "kind": st.sampled_from(["RAW", "WAR", "WAW"]),
    "source": INSTRUCTIONS,
    "destination": INSTRUCTIONS,
    "levels": st.lists(levels(), max_size=3),
    "count": COUNTS,
}
STEPS = st.just({"kind": "private", "object": {"kind": "global", "name": "x"}, "operator": None})
BLOCKERS = st.fixed_dictionaries({"reason": st.just("dependence"), "source": INSTRUCTIONS, "destination": INSTRUCTIONS})
LOOP_ROWS = st.fixed_dictionaries(
    {
        "loop": LOOPS,
        "context": st.none() | CONTEXTS,
        "invocations": COUNTS,
        "iterations": COUNTS,
        "accesses": SMALL,
        "carried": st.fixed_dictionaries({"raw": SMALL, "war": SMALL, "waw": SMALL}),
        "verdict": st.sampled_from(["doall", "doall-with", "pipeline", "sequential"]),
        "recipe": st.lists(STEPS, max_size=2),
        "blocked_by": st.lists(BLOCKERS, max_size=2),
    },
    optional={"recursive": st.just(True)},
)
ACCESS_ROWS = st.fixed_dictionaries(
    {"instruction": INSTRUCTIONS, "loads": SMALL, "stores": SMALL, "bytes": SMALL},
)
RESULTS = st.fixed_dictionaries(
    {
        "camp": st.fixed_dictionaries(
            {
                "dependences": st.lists(dependences(CONTEXTS) | dependences(st.none()), max_size=5),
                "loops": st.lists(LOOP_ROWS, max_size=4),
            }
        ),
        "accesses": st.fixed_dictionaries({"instructions": st.lists(ACCESS_ROWS, max_size=8)}),
    }
)
"""Module -> result."""


def written(path: Path, results: dict[str, Any]) -> Path:
    """A profile file with these results."""
    profiles = [
        Profile({"tracekit": "0", "module": name, "trace": "0", "options": {}, "result": result}, {}, True)
        for name, result in results.items()
    ]
    files.save(path, profiles)
    return path
