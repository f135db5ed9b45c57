"""Which files of tests come first, so that workers end together.

Most of a long file's time goes into kernels and the pass, compiled once for each user. So neighbours need different
ones: a worker that needs what another one is compiling waits for it. All other files are short, and fill the end.
"""

from __future__ import annotations

LONGEST_FIRST = (
    "programs/test_recorders.py",  # builds the pass
    "containers/test_maps.py",  # needs neither it nor a replay
    "races/test_programs.py",
    "programs/test_directives.py",
    "segments/test_segments_random.py",
    "programs/test_compiled_paths.py",
    "replay/test_ranges.py",
    "recorder/test_toolchain.py",  # builds the pass with other versions of clang
    "races/test_shares.py",
    "packaging/test_docs.py",
    "replay/test_compiled_paths.py",
    "programs/test_values.py",
    "translation/test_translation.py",
    "programs/test_advise.py",
    "races/test_lanes.py",
    "programs/test_programs.py",
    "analyzers/test_carried.py",
    "recorder/test_window_kinds.py",
    "replay/test_window.py",
    "recorder/test_pass_programs.py",
    "races/test_random.py",
    "programs/test_memory_errors.py",
    "races/test_lock_orders.py",
    "recorder/test_window_events.py",
    "replay/test_snapshots.py",
    "packaging/test_races_page.py",
    "segments/test_start_cache.py",
    "recorder/test_endings.py",
    "replay/test_snapshot_index.py",
    "programs/test_windows.py",
    "segments/test_flow.py",
    "programs/test_windows_unwinding.py",
    "segments/test_distribution.py",
    "recorder/test_windows.py",
    "segments/test_segments_of_traces.py",
    "programs/test_patch.py",
    "analyzers/test_leap.py",
    "programs/test_path_profiles.py",
    "many/test_cluster.py",
    "recorder/test_musl.py",
    "analyzers/test_whomp.py",
    "jit/test_callee_cache.py",
    "segments/test_objects.py",
    "many/test_analysis.py",
    "query/test_tables.py",
    "analyzers/test_object_join.py",
    "dependence/test_inter_thread.py",
    "segments/test_object_modules.py",
    "physical/test_physical.py",
)
"""Below tests/, by processor time (processor_time.py) with an empty cache, at least 24 s each beside other jobs.

Others come later."""


def rank(path: str) -> int:
    """A file's place among all, by its path below tests/."""
    return LONGEST_FIRST.index(path) if path in LONGEST_FIRST else len(LONGEST_FIRST)
