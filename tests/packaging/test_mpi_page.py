"""The session of docs/mpi.md shows what the page says."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.needs import needs
from tests.packaging.test_docs import BLOCK, ROOT, run_console, sessions, steady

PAGE = (ROOT / "docs/mpi.md").read_text()


@needs("openmpi")
def test_the_example(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "OMPI_MCA_rmaps_base_oversubscribe"):
        monkeypatch.setenv(name, "1")
    monkeypatch.setenv("OMPI_MCA_btl_base_warn_component_unused", "0")
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("mpicc", "mpirun"):  # of this implementation, whichever is the system's
        (programs / name).write_text(f'#!/bin/sh\nexec {name}.openmpi "$@"\n')
        (programs / name).chmod(0o755)
    for _, name, text in BLOCK.findall(PAGE):
        if name:
            (tmp_path / name).write_text(text)
    (session,) = sessions(PAGE)
    assert steady(run_console(tmp_path, session)) == steady(session)
