"""Programs are built once for a test session, on first use."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from tests.programs.running import FIXTURES, Recording, build_flags, compile_program, record

Build = Callable[..., Path]


@pytest.fixture(scope="session")
def build(tmp_path_factory: pytest.TempPathFactory) -> Build:
    """``build(name, level, instrumented=True, how="paths")``: a program or library of fixtures/, built with -O`level`.

    `how` is said to --record. All workers of pytest-xdist share what one of them has built, each under a name of its
    own: a recording lies beside its program.
    """
    base = tmp_path_factory.getbasetemp()
    shared = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "built-programs"
    shared.mkdir(exist_ok=True)
    folder = tmp_path_factory.mktemp("programs")

    @cache
    def built(name: str, level: int, instrumented: bool = True, how: str = "paths") -> Path:
        source = FIXTURES / name
        output = shared / f"{source.stem}-O{level}-{how if instrumented else 'native'}"
        flags = [f"-O{level}", *([f"--record={how}"] if instrumented and how != "paths" else []), *build_flags(source)]
        with open(f"{output}.lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not output.exists():
                compile_program([source], output, flags, instrumented=instrumented)
        own = folder / output.name
        if not own.exists():
            own.hardlink_to(output)
        return own

    return built


@pytest.fixture(scope="session")
def recording(build: Build) -> Callable[..., Recording]:
    """``recording(name, level, *arguments)``: one recorded run of a fixture."""

    @cache
    def recorded(name: str, level: int, *arguments: str) -> Recording:
        return record(build(name, level), arguments)

    return recorded
