"""Which files of tests come first, so that workers end together.

Most of a long file's time goes into kernels and the pass, compiled once for each user. So neighbours need different
ones: a worker that needs what another one is compiling waits for it. All other files are short, and fill the end.
"""

from __future__ import annotations

LONGEST_FIRST = (
    "programs/test_recorders.py",  # builds the pass
    "containers/test_maps.py",  # needs neither it nor a replay
    "packaging/test_packaging.py",
    "recorder/test_toolchain.py",  # builds the pass with other versions of clang
    "programs/test_programs.py",
    "analyzers/test_dependence.py",
    "analyzers/test_carried.py",
    "programs/test_values.py",
    "analyzers/test_object_join.py",
    "programs/test_merge_objects.py",
    "packaging/test_docs.py",
    "programs/test_paths.py",
    "replay/test_derive.py",
    "programs/test_advise.py",
    "programs/test_patch.py",
    "replay/test_window.py",
    "commands/test_analyze.py",
    "replay/test_runs.py",
    "analyzers/test_known_verdicts.py",
    "analyzers/test_privateer.py",
    "modules/test_runner.py",
    "recorder/test_pass_programs.py",
    "programs/test_unwinding.py",
    "commands/test_progress.py",
    "programs/test_known_answers.py",
    "commands/test_new_module.py",
    "packaging/test_external.py",
    "recorder/test_follow_fork.py",
    "analyzers/test_points_to.py",
    "recorder/test_runtime.py",
    "analyzers/test_object_lifetime.py",
    "programs/test_observer.py",
    "analyzers/test_access_modules.py",
)
"""Below tests/, by processor time (processor_time.py) with an empty cache, at least 15 s each; others come later."""


def rank(path: str) -> int:
    """A file's place among all, by its path below tests/."""
    return LONGEST_FIRST.index(path) if path in LONGEST_FIRST else len(LONGEST_FIRST)
