"""camp and advise in one pass: the analysis runs once, and both profiles are what they are alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.programs.running import FIXTURES, compile_program, record
from tracekit.analysis.passes import prepare
from tracekit.analyzers.advise import Advise
from tracekit.analyzers.camp import Camp
from tracekit.api import analyze, analyze_all
from tracekit.formats.reader import TraceReader
from tracekit.modules import registry
from tracekit.modules.callback_runner import AdoptingRunner
from tracekit.program.program import Program


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    program = tmp_path_factory.mktemp("shared") / "app"
    return record(compile_program([FIXTURES / "advise" / "contexts.c"], program, ["-g"], instrumented=True)).trace


def options(*names: str) -> dict[str, Any]:
    return {name: registry.load(name).Options() for name in names}


@pytest.mark.parametrize("names", [("camp", "advise"), ("advise", "camp"), ("camp", "lamp", "advise")])
def test_together_they_find_what_each_finds_alone(trace: Path, names: tuple[str, ...]) -> None:
    together = analyze_all(trace, options(*names), jobs=1)
    for profile in together:
        alone = analyze(trace, profile.module, jobs=1)
        assert profile.to_json() == alone.to_json()
        assert profile.facts == alone.facts
        assert repr(profile.evidence) == repr(alone.evidence)


class Other(Camp):
    """Does something else with loads."""

    def callbacks(self) -> Any:
        return {name: function for name, function in super().callbacks().items() if name != "load"}


def test_one_of_them_has_workers(trace: Path) -> None:
    with TraceReader(str(trace)) as reader:
        program = Program.from_images(reader.images())
        chosen = {kind: kind.Options() for kind in (Camp, Advise, Other)}
        _, runners = prepare(reader, program, chosen, 1)
        workers = {name: runner.workers for name, runner in runners.items()}
        assert list(workers.values()) == [1, 0, 1]
        adopting = [runner for runner in runners.values() if isinstance(runner, AdoptingRunner)]
        assert [runner.module.__class__ for runner in adopting] == [Advise]
        assert "takes what" in adopting[0].explained
