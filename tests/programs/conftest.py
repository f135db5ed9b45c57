"""Programs are built once for a test session, on first use."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from tests.programs.running import FIXTURES, Recording, build_flags, compile_program, record

Build = Callable[..., Path]


@pytest.fixture(scope="session")
def build(tmp_path_factory: pytest.TempPathFactory) -> Build:
    """``build(name, level, instrumented=True, how="")``: a program or library of fixtures/, built with -O`level`.

    `how` is said to --record.
    """
    folder = tmp_path_factory.mktemp("programs")

    @cache
    def built(name: str, level: int, instrumented: bool = True, how: str = "") -> Path:
        source = FIXTURES / name
        output = folder / f"{source.stem}-O{level}-{how or ('recorded' if instrumented else 'native')}"
        flags = [f"-O{level}", *([f"--record={how}"] if how else []), *build_flags(source)]
        return compile_program([source], output, flags, instrumented=instrumented)

    return built


@pytest.fixture(scope="session")
def recording(build: Build) -> Callable[..., Recording]:
    """``recording(name, level, *arguments)``: one recorded run of a fixture."""

    @cache
    def recorded(name: str, level: int, *arguments: str) -> Recording:
        return record(build(name, level), arguments)

    return recorded
