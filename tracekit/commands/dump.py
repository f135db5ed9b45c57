"""`tracekit dump`: the events of a trace as lines, in the order of replay."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from io import TextIOWrapper
from itertools import islice, repeat
from typing import TYPE_CHECKING, Any, TextIO

import click

from tracekit import progress
from tracekit.commands import options
from tracekit.commands.progress import progress_line
from tracekit.formats.errors import TracekitError
from tracekit.formats.events import BY_CODE, NONE

if TYPE_CHECKING:
    from tracekit.program.program import Program
    from tracekit.replay.trace import Trace
    from tracekit.replay.window import Window

Row = dict[str, Any]


@click.command("dump")
@options.output_format(("text", "jsonl"), "Lines for a person, or one JSON object a line.")
@click.option(
    "--function", metavar="F", help="Only events of instructions and loops of this function, and its entries and exits."
)
@click.option("--from", "start", metavar="X", help="Skip what lies before X accesses, or as much of them: 25%.")
@click.option("--to", "stop", metavar="Y", help="Stop after Y accesses, or 25% of them.")
@click.option("--limit", type=click.IntRange(min=0), metavar="N", help="Stop after N lines.")
@options.output
@click.argument("trace", type=click.Path())
def command(
    trace: str,
    form: str,
    function: str | None,
    start: str | None,
    stop: str | None,
    limit: int | None,
    output: str,
) -> None:
    """Print the events of TRACE, one a line."""
    from tracekit.replay.trace import Trace
    from tracekit.replay.window import Window

    try:
        window = Window.of({"from": start, "to": stop})
    except TracekitError as error:
        raise click.UsageError(str(error)) from None

    line = as_json if form == "jsonl" else as_text
    with Trace(trace) as opened, _written(output) as file, _shown_beside(file):
        written = 0
        with nullcontext() if limit is None else progress.step("writing lines", limit, lambda: written):
            for row in islice(rows(opened, function, window), limit):
                file.write(line(row) + "\n")
                written += 1


def _shown_beside(file: TextIO) -> AbstractContextManager[None]:
    """Progress; none where the lines of events themselves are seen."""
    return nullcontext() if file.isatty() else progress_line()


@contextmanager
def _written(output: str) -> Iterator[TextIO]:
    """The file to write to, which is there whole or not at all. Raises TracekitError if it cannot be written."""
    from tracekit.profiles.files import written_whole

    if output == "-":
        yield sys.stdout
        return
    with written_whole(output, "the events") as file:
        text = TextIOWrapper(file, encoding="utf-8")
        yield text
        text.detach()  # flushes


def rows(trace: Trace, function: str | None = None, window: Window | None = None) -> Iterator[Row]:
    """The events of a trace as dicts with the fields that each event has; of one function, if `function` is given.

    Of a `window` the positions count (`--from`, `--to`).
    """
    from tracekit.replay.event_range import batches_between

    namer = Namer(trace.program)
    functions = None if function is None else namer.functions_named(function)
    valued = trace.program.has_values
    wanted = ("subject", "address", "size", *(["value"] if valued else ()))
    start, stop = (window.start, window.stop) if window else (None, None)
    for batch in batches_between(trace.reader, trace.program, start, stop, wanted):
        columns = (batch.kind.tolist(), batch.subject.tolist(), batch.address.tolist(), batch.size.tolist())
        for code, subject, address, size, value in zip(*columns, batch.values() if valued else repeat(0)):
            if functions is None or namer.function_of(code, subject) in functions:
                yield namer.row(batch.stream, code, subject, address, size, value)


class Namer:
    """Puts names to the numbers of events, each subject looked up once."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.subjects: dict[tuple[str, int], Row] = {}

    def functions_named(self, name: str) -> set[int]:
        """The functions with this name (demangled, or as the linker knows them). Raises TracekitError if none."""
        from tracekit.program.lookup import functions_named

        return set(functions_named(self.program, name).nonzero()[0].tolist())

    def function_of(self, code: int, subject: int) -> int:
        """The function that an event belongs to, or NONE."""
        kind = BY_CODE[code].subject
        if subject == NONE:
            return NONE
        if kind == "function":
            return subject
        if kind == "loop":
            return int(self.program.loops["function"][subject])
        if kind == "instruction":
            return int(self.program.op_function[subject])
        return NONE

    def row(self, stream: int, code: int, subject: int, address: int, size: int, value: int) -> Row:
        """One event: its name, its stream and the fields that it has."""
        event = BY_CODE[code]
        row: Row = {"event": event.name, "stream": stream}
        if event.subject:
            row.update(self.subject(event.subject, subject))
        if event.address:
            row[event.address] = f"{address:#x}"
        if event.size == "call":
            row["call"] = None if size == NONE else self.subject("instruction", size)["instruction"]
        elif event.size:
            row[event.size] = size
        if event.value and subject != NONE and self.program.valued[subject]:
            row[event.value] = f"{value:#x}"
        return row

    def subject(self, kind: str, subject: int) -> Row:
        """What the subject column says, as fields; remembered."""
        key = (kind, subject)
        if key not in self.subjects:
            self.subjects[key] = self._subject(kind, subject)
        return self.subjects[key]

    def _subject(self, kind: str, subject: int) -> Row:
        program = self.program
        if kind == "function":
            return {"function": program.function_name(subject)}
        if kind == "loop":
            loop = program.loop(subject)
            return {"loop": subject, "at": place(loop), "depth": loop["depth"]}
        if kind == "object":
            row = program.globals[subject]
            return {"object": program.text(int(row["source_name"])) or program.text(int(row["name"]))}
        if kind != "instruction":
            return {kind: subject}
        if subject == NONE:
            return {"instruction": None, "at": None}
        instruction = program.instruction(subject)
        return {"instruction": instruction["id"], "at": place(instruction)}


def place(shown: Row) -> str:
    """function:line:column of an instruction or a loop; of an imported one without a line function:counter."""
    if not shown["line"] and shown["file"]:
        return f"{shown['function']}:{shown['file']}"
    return f"{shown['function']}:{shown['line']}:{shown['column']}"


def as_json(row: Row) -> str:
    """One event as a JSON object."""
    return json.dumps(row, ensure_ascii=False, separators=(",", ":"))


def as_text(row: Row) -> str:
    """One event as a line: stream, event, fields."""
    fields = " ".join(
        f"{name}={'-' if value is None else value}" for name, value in row.items() if name not in ("event", "stream")
    )
    return f"{row['stream']:>3} {row['event']:<16} {fields}".rstrip()
