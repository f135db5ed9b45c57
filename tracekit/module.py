"""The contract of an analysis module, and how modules are found.

A module is one file in ``analyzers/`` (or one that a package names in the entry-point group
``tracekit.modules``) with a subclass of :class:`Module` under the name ``MODULE``. It declares the events and
the fields that it wants, its options as a frozen dataclass, takes batches of events, and gives one JSON object.
"""

from __future__ import annotations

import ast
import dataclasses
import importlib
import importlib.util
from abc import ABC, abstractmethod
from collections.abc import Mapping
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from tracekit.formats.errors import TracekitError
from tracekit.formats.events import BY_NAME

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from tracekit.replay.program import Program

ENTRY_POINTS = "tracekit.modules"
"""The entry-point group for modules of other packages: name -> module file or ``file:Class``."""

FIELDS = ("subject", "address", "size")


class EventBatch(Protocol):
    """Consecutive events of one stream as columns of one length; the next batch may overwrite them."""

    @property
    def stream(self) -> int:
        """Number of the stream."""
    @property
    def kind(self) -> npt.NDArray[np.uint8]:
        """Code of each event."""
    @property
    def subject(self) -> npt.NDArray[np.uint32]:
        """Its instruction, function, loop or object."""
    @property
    def address(self) -> npt.NDArray[np.uint64]:
        """Its address."""
    @property
    def size(self) -> npt.NDArray[np.uint64]:
        """Its size, or what the event table says."""


class Module(ABC):
    """One analysis of one trace: made, fed every batch in order, then asked for its result."""

    events: ClassVar[Mapping[str, tuple[str, ...]]]
    """Name of an event -> the columns of it that the module reads (formats/events.py); no other event is fed."""

    Options: ClassVar[type[Any]]
    """A frozen dataclass: each field has a default, and ``metadata["help"]`` for the command line.

    Its ``__post_init__`` raises ValueError, with a sentence, for a value that makes no sense.
    """

    @abstractmethod
    def __init__(self, program: Program, options: Any) -> None:
        """Begin; `options` is an instance of :attr:`Options`."""

    @abstractmethod
    def feed(self, batch: EventBatch) -> None:
        """Take the declared events of one batch."""

    @abstractmethod
    def result(self) -> dict[str, Any]:
        """The profile: JSON values, keys and rows in an order that depends on the trace alone."""

    def facts(self) -> dict[str, int]:
        """Numbers that the text may show beside the result; they are not part of the profile."""
        return {}


# -- options ---------------------------------------------------------------------------------------


def make_options(module: type[Module], values: Mapping[str, Any]) -> Any:
    """Make the options of `module` from `values`; strings are converted to the type of the field.

    Raises TracekitError for an unknown name or a bad value.
    """
    fields = {field.name: field for field in dataclasses.fields(module.Options)}
    converted = {}
    for name, value in values.items():
        field = fields.get(name.replace("-", "_"))
        if field is None:
            known = ", ".join(fields) or "none"
            raise TracekitError(f"there is no option {name!r}; the module's options are: {known}.")
        converted[field.name] = _converted(field, value)
    try:
        return module.Options(**converted)
    except ValueError as error:
        raise TracekitError(str(error)) from None


def _converted(field: dataclasses.Field[Any], value: Any) -> Any:
    if not isinstance(value, str) or isinstance(field.default, str):
        return value
    if isinstance(field.default, bool):
        if value.lower() not in ("true", "false", "1", "0", "yes", "no"):
            raise TracekitError(f"{field.name} is true or false, not {value!r}.")
        return value.lower() in ("true", "1", "yes")
    type_of: type[Any] = type(field.default)
    try:
        return type_of(value)
    except ValueError:
        raise TracekitError(f"{field.name} is a number, not {value!r}.") from None


# -- feeding ---------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class _Selected:
    """The rows of a batch that a module declared."""

    stream: int
    kind: npt.NDArray[np.uint8]
    subject: npt.NDArray[np.uint32]
    address: npt.NDArray[np.uint64]
    size: npt.NDArray[np.uint64]


class Feeder:
    """Hands a module the events that it declared, and no others."""

    def __init__(self, module: Module) -> None:
        import numpy as np

        self.module = module
        self._declared = np.zeros(256, np.bool_)
        for name, fields in module.events.items():
            event = BY_NAME[name]
            used = [field for field in FIELDS if getattr(event, field)]
            assert set(fields) <= set(used), f"event {name} has the columns {used}, not {fields}"
            self._declared[event.code] = True

    def feed(self, batch: EventBatch) -> None:
        """Pass `batch` on, without the rows that the module did not declare."""
        wanted = self._declared[batch.kind]
        if wanted.all():
            self.module.feed(batch)
        elif wanted.any():
            self.module.feed(_Selected(batch.stream, batch.kind[wanted], batch.subject[wanted],
                                       batch.address[wanted], batch.size[wanted]))


# -- finding ---------------------------------------------------------------------------------------


@cache
def _found() -> dict[str, Path | EntryPoint]:
    """Name -> where its module is; nothing is imported."""
    found: dict[str, Path | EntryPoint] = {}
    for entry in entry_points(group=ENTRY_POINTS):
        found[entry.name] = entry
    specification = importlib.util.find_spec("tracekit.analyzers")
    assert specification is not None
    for folder in specification.submodule_search_locations or ():
        for path in Path(folder).glob("[a-z]*.py"):
            found[path.stem] = path  # a package cannot replace a module of ours
    return found


def names() -> list[str]:
    """The names of all modules, sorted."""
    return sorted(_found())


def describe(name: str) -> str:
    """The first sentence of the module's docstring, read without importing it."""
    where = _found()[name]
    path = where if isinstance(where, Path) else _source(where)
    try:
        text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) if path else None
    except (OSError, SyntaxError, ValueError):
        text = None
    return text.strip().splitlines()[0] if text else ""


def _source(entry: EntryPoint) -> Path | None:
    try:
        specification = importlib.util.find_spec(entry.module)
    except (ImportError, ValueError):
        return None
    return Path(specification.origin) if specification and specification.origin else None


def load(name: str) -> type[Module]:
    """Import a module. Raises TracekitError, with the names there are, if it does not exist or does not load."""
    where = _found().get(name)
    if where is None:
        raise TracekitError(f"There is no module {name!r}; the modules are: {', '.join(names())}.")
    if isinstance(where, Path):
        loaded = importlib.import_module(f"tracekit.analyzers.{name}")
    else:
        try:
            loaded = where.load()
        except Exception as error:  # whatever a third party's file does on import
            raise TracekitError(f"Module {name!r} of {where.value} does not load: {error}.") from error
    module = getattr(loaded, "MODULE", loaded)
    if not (isinstance(module, type) and issubclass(module, Module)):
        raise TracekitError(f"Module {name!r} defines no subclass of tracekit.module.Module as MODULE.")
    return module
