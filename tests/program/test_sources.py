"""Names of source files."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tracekit.program.sources import short_ends


def test_files_of_one_name_are_told_apart_by_their_folders() -> None:
    files = [
        "/lib/core/src/ptr/mod.rs",
        "/lib/core/src/mem/mod.rs",
        "/lib/alloc/src/mem/mod.rs",
        "src/main.rs",
        "",
        "mod.rs",
    ]
    assert short_ends(files) == {
        "/lib/core/src/ptr/mod.rs": "ptr/mod.rs",
        "/lib/core/src/mem/mod.rs": "core/src/mem/mod.rs",
        "/lib/alloc/src/mem/mod.rs": "alloc/src/mem/mod.rs",
        "src/main.rs": "main.rs",
        "": "",
        "mod.rs": "mod.rs",
    }


PATHS = st.lists(st.lists(st.sampled_from(["a", "b", "c"]), min_size=1, max_size=4).map("/".join), max_size=8)


@given(files=PATHS)
def test_no_shorter_end_would_do(files: list[str]) -> None:
    """The shortest of all ends that no other file has; the whole path if it is the end of another."""
    for file, end in short_ends(files).items():
        parts = file.split("/")
        ends = ["/".join(parts[-length:]) for length in range(1, len(parts) + 1)]
        others = [f"/{each}" for each in set(files) - {file}]
        assert end == next((each for each in ends if not any(other.endswith(f"/{each}") for other in others)), file)
