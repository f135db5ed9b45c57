"""`tracekit info`: what a trace holds, from its headers and its end record; only a cut-off trace is decoded for it."""

from __future__ import annotations

import json
from typing import Any

import click

from tracekit.commands import options
from tracekit.commands.progress import progress_line
from tracekit.counted import counted
from tracekit.formats.chunk import THREAD
from tracekit.formats.container import frames_of
from tracekit.formats.reader import TraceReader
from tracekit.formats.remote import size_of
from tracekit.formats.snapshots import head_of, is_of

COUNTS = ("path_records", "blocks", "values_recorded", "loads", "stores", "accesses", "events", "raw_bytes")


@click.command("info")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option("--from", "start", metavar="X", help="Count the events of a part: behind X accesses, or 25% of them.")
@click.option("--to", "stop", metavar="Y", help="Count the events of a part: before Y accesses, or 25% of them.")
@click.argument("trace", type=click.Path())
def command(trace: str, as_json: bool, start: str | None, stop: str | None) -> None:
    """Say what TRACE holds: threads, accesses, sizes, images, metadata; or the events of a part of it.

    An atomic and a copy count as a load and a store each.
    """
    is_part = start is not None or stop is not None
    if is_part:
        options.window_of({"start": start, "stop": stop})
    with TraceReader(trace) as reader, progress_line():
        facts = describe_part(reader, start, stop) if is_part else describe(reader, size_of(trace))
    text = part_as_text if is_part else as_text
    click.echo(json.dumps(facts, indent=2, ensure_ascii=False) if as_json else text(facts))


def describe(reader: TraceReader, file_bytes: int) -> dict[str, Any]:
    """The facts of a trace, by the keys that `info --json` prints."""
    done = reader.done or {}
    totals = done.get("totals") or count(reader)
    accesses = totals["accesses"]
    return {
        "complete": reader.complete,
        "threads": threads(reader),
        **{name: totals["words" if name == "values_recorded" else name] for name in COUNTS},
        "file_bytes": file_bytes,
        "bits_per_access": 8 * file_bytes / accesses if accesses else None,
        "images": [
            {
                "name": image.name,
                "units": len(image.units),
                "functions": len(image.functions),
                "globals": len(image.globals),
                "paths": sum(len(unit.tables["paths"]) for unit in image.units),
            }
            for image in reader.images()
        ],
        "snapshots": snapshots(reader),
        **({"windows": windows(reader)} if reader.meta.get("windows") else {}),
        "metadata": {**reader.meta, **{name: value for name, value in done.items() if name != "totals"}},
    }


def describe_part(reader: TraceReader, start: str | None, stop: str | None) -> dict[str, Any]:
    """What there is between two positions, by the keys that `info --json` prints; `events`: how many of each name."""
    import numpy as np

    from tracekit.program.program import Program
    from tracekit.replay.event_range import batches_between
    from tracekit.replay.selection import by_name
    from tracekit.replay.window import Position

    first = Position.of("from", start) if start is not None else None
    last = Position.of("to", stop) if stop is not None else None
    counts, streams = np.zeros(256, np.int64), set()
    for batch in batches_between(reader, Program.from_images(reader.images()), first, last, ()):
        counts += np.bincount(batch.kind, minlength=256)
        streams.add(batch.stream)
    events = by_name(counts)
    loads, stores = events.get("load", 0), events.get("store", 0)
    return {
        **{name: at.shown for name, at in (("from", first), ("to", last)) if at is not None},
        "streams": sorted(streams),
        "accesses": loads + stores,
        "loads": loads,
        "stores": stores,
        "events": events,
    }


def threads(reader: TraceReader) -> int:
    """How many threads ran; a stream of signal handlers is none."""
    return sum(reader.chunk(reader.chunk_frames(stream)[0]).kind == THREAD for stream in reader.streams())


def snapshots(reader: TraceReader) -> int:
    """How many places of the trace a replay can begin at."""
    heads = [head_of(reader.payload(frame)) for frame in frames_of(reader.frames, b"SNAP")]
    own = [head for head in heads if head is not None and is_of(head, reader.content_hash)]
    return sum(bool(head["streams"][0]) for head in own)


def windows(reader: TraceReader) -> list[dict[str, Any]]:
    """The windows of a run that was recorded in windows only, by decoding it."""
    from tracekit.program.program import Program
    from tracekit.replay.recorded_windows import recorded_windows

    program = Program.from_images(reader.images())
    return [window.as_json() for window in recorded_windows(reader, program)]


def count(reader: TraceReader) -> dict[str, int]:
    """The totals of a trace without an end record, by decoding it."""
    from tracekit.program.program import Program
    from tracekit.replay.totals import count_records, totals

    program = Program.from_images(reader.images())
    return totals(program, count_records(reader, program))


def as_text(facts: dict[str, Any]) -> str:
    """The facts for a person."""
    bits = facts["bits_per_access"]
    lines = [
        ("complete", _completeness(facts)),
        ("threads", f"{facts['threads']}"),
        ("accesses", f"{facts['accesses']:,} ({counted(facts['loads'], 'load')}, {counted(facts['stores'], 'store')})"),
        ("path records", f"{facts['path_records']:,} of {counted(facts['blocks'], 'block')}"),
        ("values recorded", f"{facts['values_recorded']:,}"),
        ("events", f"{facts['events']:,}"),
        ("size", f"{facts['file_bytes']:,} bytes, from {facts['raw_bytes']:,} bytes of records"),
        ("bits per access", "-" if bits is None else f"{bits:.2f}"),
    ]
    if facts["snapshots"]:
        lines.append(("snapshots", f"{facts['snapshots']}"))
    for window in facts.get("windows", []):
        end = "the end" if window["end"] is None else f"{window['end']:.6f} s"
        held = f"{counted(window['accesses'], 'access')} of {counted(window['threads'], 'thread')}"
        lines.append((f"window {window['window']}", f"{window['begin']:.6f} s to {end}: {held}"))
    for image in facts["images"]:
        counts = ", ".join(counted(image[f"{noun}s"], noun) for noun in ("function", "path", "global", "unit"))
        lines.append(("image", f"{image['name']}: {counts}"))
    for name, value in facts["metadata"].items():
        if name == "cut":
            continue  # the first line says it
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        lines.append((name.replace("_", " "), text))
    width = max(len(name) for name, _ in lines)
    return "\n".join(f"{name:<{width}}  {value}" for name, value in lines)


def part_as_text(facts: dict[str, Any]) -> str:
    """What there is in a part, for a person."""
    lines = [
        ("streams", ", ".join(map(str, facts["streams"])) or "-"),
        ("accesses", f"{facts['accesses']:,} ({counted(facts['loads'], 'load')}, {counted(facts['stores'], 'store')})"),
        ("events", f"{sum(facts['events'].values()):,}"),
        *((f"  {name}", f"{count:,}") for name, count in facts["events"].items()),
    ]
    width = max(len(name) for name, _ in lines)
    return "\n".join(f"{name:<{width}}  {value}" for name, value in lines)


def _completeness(facts: dict[str, Any]) -> str:
    if not facts["complete"]:
        return "no: the file ends early"
    why = facts["metadata"].get("cut", "")
    return f"no: {why}" if why else "yes"
