"""A trace as Python sees it: its image tables as arrays and its events as batches of columns."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from tracekit.formats.errors import TracekitError
from tracekit.formats.events import CODE
from tracekit.formats.image import TABLES
from tracekit.formats.image_frame import Image
from tracekit.formats.reader import TraceReader
from tracekit.translation import GROUPS_BY

if TYPE_CHECKING:
    from tracekit.program.linker import Rows
    from tracekit.program.program import Program
    from tracekit.replay.selection import Batch
    from tracekit.replay.translated import ObjectColumns
    from tracekit.translation.groups import GroupTable


class Trace:
    """An open trace.

        with tracekit.open("trace.zst") as trace:
            for batch in trace.batches():  # CODE: tracekit.formats.events
                loads = batch.address[batch.kind == CODE["load"]]

    Raises TracekitError, when opened or later, for a file that is no trace or is damaged.
    """

    def __init__(self, path: str | Path) -> None:
        self.reader = TraceReader(path)
        self._objects: ObjectColumns | None = None

    @property
    def complete(self) -> bool:
        """False if the file ends early; what there is of it can be read."""
        return self.reader.complete

    @property
    def content_hash(self) -> str:
        """The hash that names the trace (hex)."""
        return self.reader.content_hash

    @property
    def metadata(self) -> dict[str, Any]:
        """What was known of the run when it started."""
        return self.reader.meta

    @property
    def images(self) -> list[Image]:
        """The executable and its shared libraries."""
        return self.reader.images()

    @cached_property
    def program(self) -> Program:
        """The image tables joined: the rows that events name."""
        from tracekit.program.program import Program

        return Program.from_images(self.images)

    @property
    def tables(self) -> Mapping[str, Rows]:
        """The program's tables by name (``formats.image.TABLES``, those of rows), every index global."""
        return {name: getattr(self.program, name) for name in TABLES if name not in ("unit", "strings", "folder")}

    def batches(
        self,
        events: Collection[str] | None = None,
        columns: Collection[str] | None = None,
        *,
        window: Mapping[str, Any] | None = None,
        stack: bool = False,
        by: str = "site",
    ) -> Iterator[Batch]:
        """The events, in batches of columns that the next batch overwrites: stream, kind, and the columns asked for.

        `events`, `columns`: names (``tracekit modules --events``), None for all, of the columns but ``value``, which is
        there only where it is named (replay/selection.py). What is not asked for costs nothing.
        `window`: as :func:`tracekit.analyze` takes it. Raises TracekitError for a name that is none.

        The columns ``group``, ``object`` and ``offset`` (int64), where they are named, say in place of an address what
        made the object there, its number in that group, and the place in it; with `stack` local variables are objects,
        too. The column ``physical`` (int64), where it is named, has physical addresses, -1 where they are not known
        (docs/windows.md, "Physical addresses"). Groups are told apart `by` "site", the instruction that allocates,
        "caller", of a wrapper of malloc the call of it, or "context", the instruction in its calling context.
        :attr:`groups` says what groups are.
        """
        from tracekit.replay import located
        from tracekit.replay.engine import Replay
        from tracekit.replay.translated import COLUMNS, NAMES, ObjectColumns
        from tracekit.replay.window import Restriction

        if by not in GROUPS_BY:
            raise TracekitError(f"Groups are told apart by {', '.join(GROUPS_BY[:-1])} or {GROUPS_BY[-1]}, not {by!r}.")
        restricted = Restriction(window, self.reader, self.program)
        objects = None
        if columns is not None and NAMES & set(columns):
            objects = self._objects = ObjectColumns(self.program, stack, by)
            columns = {*columns, *COLUMNS} - NAMES
        places = None
        if columns is not None and located.NAME in columns:
            places = located.PhysicalColumn(self.reader)
            columns = {*columns, *located.COLUMNS} - {located.NAME}
        try:
            names = CODE.keys() if events is None else events
            located_ones = set(names) if places is None else {*names, *located.EVENTS}
            seen = located_ones if objects is None else {*located_ones, *objects.events}
            replay = Replay(
                self.reader,
                self.program,
                events=seen | restricted.events,
                columns=columns if columns is None else {*columns, *restricted.columns},
            )
        except ValueError as error:
            raise TracekitError(f"{str(error).capitalize()}.") from None
        batches = restricted.batches(replay.batches(), seen)
        if objects is not None:
            batches = objects.batches(batches, located_ones)
        if places is not None:
            batches = places.batches(batches, names)
        return (batch for batch in batches if len(batch.kind))

    @property
    def groups(self) -> GroupTable:
        """What made the objects of the last :meth:`batches` that had ``group``, as far as it has come.

        Raises TracekitError if there was none.
        """
        if self._objects is None:
            raise TracekitError("No batches were asked for the column group.")
        return self._objects.groups

    def close(self) -> None:
        """Close the file."""
        self.reader.close()

    def __enter__(self) -> Trace:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()
