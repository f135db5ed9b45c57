"""The contract of modules: how they are found, what they may ask for, how options are made."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from tracekit.formats.errors import TracekitError
from tracekit.formats.events import CODE
from tracekit.module import BatchModule, Module, declared, option
from tracekit.modules import registry
from tracekit.modules.batch_runner import BatchRunner
from tracekit.modules.options import make_options


@dataclass(frozen=True)
class Options:
    limit: int = option(4, "A number.")
    exact: bool = option(False, "A truth value.")
    name: str = option("x", "A name.")
    colour: str = option("red", "A colour.", choices=("red", "green"))

    def __post_init__(self) -> None:
        if self.limit < 0:
            raise ValueError("limit is not negative.")


class Counting(BatchModule):
    events: ClassVar[Mapping[str, tuple[str, ...]]] = {"load": ("address",), "loop_exit": ("loop",)}
    Options = Options

    def __init__(self, program: Any, options: Any) -> None:
        self.seen: list[tuple[int, int]] = []

    def feed(self, batch: Any) -> None:
        self.seen += list(zip(batch.kind.tolist(), batch.address.tolist()))

    def result(self) -> dict[str, Any]:
        return {"events": len(self.seen)}


@dataclass
class Batch:
    stream: int
    kind: Any
    subject: Any
    address: Any
    size: Any


def batch(*names: str) -> Batch:
    count = len(names)
    kinds = np.array([CODE[name] for name in names], np.uint8)
    return Batch(3, kinds, np.zeros(count, np.uint32), np.arange(count, dtype=np.uint64), np.zeros(count, np.uint64))


def test_a_module_is_fed_what_it_declared_and_nothing_else() -> None:
    counting = Counting(None, Options())
    feeder = BatchRunner(counting, "counting")
    feeder.feed(batch("load", "store", "loop_exit", "load"), 0)
    feeder.feed(batch("store"), 0)
    feeder.feed(batch("load"), 0)
    assert counting.seen == [(CODE["load"], 0), (CODE["loop_exit"], 2), (CODE["load"], 3), (CODE["load"], 0)]
    assert feeder.columns == {"load": {"address"}, "loop_exit": {"subject"}}


def test_a_field_that_an_event_does_not_have_cannot_be_declared() -> None:
    class Wrong(Counting):
        events: ClassVar[Mapping[str, tuple[str, ...]]] = {"loop_exit": ("address",)}

    with pytest.raises(TypeError, match=r"Wrong.loop_exit asks for 'address'; .* has the fields loop, partial"):
        declared(Wrong(None, Options()))


def test_options_are_converted_to_the_type_of_their_default() -> None:
    assert make_options(Options, {"limit": "7", "exact": "yes", "name": "12"}) == Options(7, True, "12")


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"limits": "7"}, "no option 'limits'; the module's options are: limit, exact, name, colour"),
        ({"limit": "many"}, "limit is a number, not 'many'"),
        ({"exact": "perhaps"}, "exact is true or false"),
        ({"limit": "-1"}, "limit is not negative"),
        ({"colour": "blue"}, "colour is one of red, green, not 'blue'"),
    ],
)
def test_a_bad_option_is_a_sentence(values: dict[str, str], message: str) -> None:
    with pytest.raises(TracekitError, match=message):
        make_options(Options, values)


def test_ours_are_found_and_described_without_importing_them() -> None:
    program = (
        "import sys; from tracekit.modules import registry; print(*registry.names()); "
        "print(registry.describe('camp')); "
        "assert not {'numba', 'numpy', 'tracekit.analyzers.camp'} & set(sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    names, line = done.stdout.splitlines()
    assert {"camp", "lamp"} <= set(names.split())
    assert line.startswith("Context-aware memory profiling")


def test_loading_a_module_does_not_import_numba() -> None:
    program = (
        "import sys; from tracekit.modules import registry; registry.load('camp'); assert 'numba' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_an_unknown_module_is_told_the_names() -> None:
    with pytest.raises(TracekitError, match=r"no module 'cramp'. Did you mean camp\? The modules are: .*camp.*lamp"):
        registry.load("cramp")


@pytest.fixture
def third_party(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A package's modules, named by entry points: counting works, broken does not, camp is ours already."""
    (tmp_path / "third_party_counting.py").write_text(
        '"""Counts, as an example."""\nfrom tests.modules.test_contract import Counting\n\nMODULE = Counting\n'
    )
    (tmp_path / "third_party_broken.py").write_text("import a_package_that_nobody_has\n")
    entries = [
        EntryPoint("counting", "third_party_counting", registry.ENTRY_POINTS),
        EntryPoint("broken", "third_party_broken", registry.ENTRY_POINTS),
        EntryPoint("camp", "third_party_counting", registry.ENTRY_POINTS),
    ]
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(registry, "entry_points", lambda group: entries if group == registry.ENTRY_POINTS else [])
    registry._found.cache_clear()
    yield tmp_path
    registry._found.cache_clear()


def test_a_package_adds_modules_by_entry_points(third_party: Path) -> None:
    assert {"counting", "broken", "camp", "lamp"} <= set(registry.names())
    assert registry.describe("counting") == "Counts, as an example."
    assert registry.load("counting").__name__ == "Counting"
    assert registry.load("camp").__module__ == "tracekit.analyzers.camp"


def test_a_package_that_does_not_load_is_named(third_party: Path) -> None:
    assert registry.describe("broken") == ""
    with pytest.raises(TracekitError, match="'broken' of third_party_broken does not load: No module named"):
        registry.load("broken")


class Sums(Module):
    """Takes many loads at once."""

    def state(self) -> Any:
        return (np.zeros(1, np.int64),)

    @staticmethod
    def load(state: Any, address: int) -> None:
        state[0][0] += address

    @staticmethod
    def loads(state: Any, address: int, step: int, count: int, period: int) -> None:
        state[0][0] += count * address + count * (count - 1) // 2 * step

    def result(self, state: Any) -> dict[str, Any]:
        return {}


def _value(state: Any, value: int) -> None: ...


def _nothing(state: Any) -> None: ...


def _no_state() -> None: ...


@pytest.mark.parametrize(
    "members, message",
    [
        (
            {"loads": staticmethod(_value)},
            "Bad.loads asks for 'value'; there are address, context, count, instruction, levels, options,",
        ),
        ({"stores": staticmethod(_nothing)}, "Bad.stores stands for many calls of store, which there is not"),
        ({"loads": staticmethod(_no_state)}, "Bad.loads takes no state"),
        ({"loads": _nothing}, "Bad.loads is a callback: it has to be a @staticmethod"),
        (
            {"iterations": staticmethod(_nothing)},
            "Bad.iterations stands for many calls of loop_iteration, which there is",
        ),
        ({"unordered": staticmethod(_value)}, "Bad.unordered asks for 'value'; there are options, time"),
    ],
)
def test_mistakes_in_callbacks_for_many_accesses(members: dict[str, Any], message: str) -> None:
    assert declared(Sums(None, None)) == {"load": ("address",)}  # type: ignore[arg-type]
    bad = type("Bad", (Sums,), members)
    with pytest.raises(TracekitError, match=message):
        declared(bad(None, None))


def test_that_order_does_not_matter_is_said_for_nothing() -> None:
    members = {"unordered": staticmethod(_nothing), "range_callbacks": lambda self: {"unordered": _nothing}}
    with pytest.raises(TracekitError, match="unordered is never called: there are no loads and no stores"):
        declared(type("Bad", (Sums,), members)(None, None))
