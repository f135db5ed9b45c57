"""Which files of tests come first, so that workers end together.

Most of a long file's time goes into kernels and the pass, compiled once for each user. So neighbours need different
ones: a worker that needs what another one is compiling waits for it. All other files are short, and fill the end.
"""

from __future__ import annotations

LONGEST_FIRST = (
    "programs/test_recorders.py",  # builds the pass
    "containers/test_maps.py",  # needs neither it nor a replay
    "segments/test_segments_random.py",
    "programs/test_compiled_paths.py",
    "recorder/test_toolchain.py",  # builds the pass with other versions of clang
    "programs/test_directives.py",
    "recorder/test_rust.py",  # compiles Rust's library
    "programs/test_task_graphs.py",
    "replay/test_ranges.py",
    "races/test_programs.py",
    "programs/test_advise.py",
    "packaging/test_docs.py",
    "programs/test_values.py",
    "replay/test_compiled_paths.py",
    "recorder/test_pass_programs.py",
    "translation/test_translation.py",
    "replay/test_window.py",
    "programs/test_programs.py",
    "analyzers/test_carried.py",
    "recorder/test_window_kinds.py",
    "replay/test_snapshots.py",
    "query/test_tables.py",
    "programs/test_unwinding.py",
    "analyzers/test_leap.py",
    "segments/test_distribution.py",
    "races/test_shares.py",
    "analyzers/test_whomp.py",
    "segments/test_objects.py",
    "programs/test_patch.py",
)
"""Below tests/, by processor time (processor_time.py) with an empty cache, at least 24 s each beside other jobs.

Others come later."""


def rank(path: str) -> int:
    """A file's place among all, by its path below tests/."""
    return LONGEST_FIRST.index(path) if path in LONGEST_FIRST else len(LONGEST_FIRST)
