"""The process that analyses one trace, or a segment of one: a task in, what it finds in a file, and lines of JSON out.

What it says, one JSON object a line: ``began`` (the trace's content hash, digests of the program's images) as soon as
the trace is open, ``at`` (the share of the records that is replayed) now and then, and at the end ``done`` or
``failed``; or ``starved``, if it found no memory.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import sys
import threading
from collections.abc import Mapping
from typing import Any, TextIO

from tracekit.environment import keep_blas_alone
from tracekit.formats.errors import TracekitError

PROGRAM = "import sys; sys.path[:] = sys.argv[1:]; from tracekit.many.worker import serve; serve()"
"""Finds what the parent finds, where the parent finds it: its arguments are the parent's ``sys.path``."""

EVERY = 0.5
"""Seconds from one word on how far it is to the next."""


def serve() -> None:
    """What the process does: read a task from standard input, do it, and end. It ends at once if its parent does."""
    keep_blas_alone()
    # Standard output is the parent's line; what a module prints goes to the terminal beside it.
    with os.fdopen(os.dup(1), "w", buffering=1) as out:
        os.dup2(2, 1)
        task = json.loads(sys.stdin.readline())
        for watch in (_end_with_parent, _tell):
            threading.Thread(target=watch, args=(out,), daemon=True).start()
        _say(out, _outcome(task, out))
        os._exit(0)  # a thread waits for standard input, and nothing is left to be done


def _outcome(task: Mapping[str, Any], out: TextIO) -> dict[str, Any]:
    from tracekit.containers.budget import OutOfMemoryError, advice

    try:
        return {"done": _segment(task) if "segment" in task else _analyzed(task, out)}
    except OutOfMemoryError as error:
        return {"starved": str(error)}
    except TracekitError as error:
        return {"failed": str(error)}
    except MemoryError:
        return {"starved": f"Ran out of memory.{advice()}"}


def _analyzed(task: Mapping[str, Any], out: TextIO) -> dict[str, Any]:
    from tracekit import api
    from tracekit.formats.reader import TraceReader
    from tracekit.profiles import files

    with TraceReader(task["trace"]) as trace:
        _say(out, {"began": {"hash": trace.content_hash, "build": [_digest(image) for image in trace.build or [()]]}})
    options = _options(task)
    explained: list[str] = []
    say = explained.append if task["explain"] else None
    profiles = api.analyze_all(task["trace"], options, task["threads"], say, task["window"])
    files.save(task["output"], profiles)
    return {
        "cautions": profiles[0].cautions,
        "accesses_inside": profiles[0].accesses_inside,
        "explained": explained,
    }


def _segment(task: Mapping[str, Any]) -> dict[str, Any]:
    """Analyse a segment; what it leaves goes into the file."""
    from tracekit.analysis.modules import modules_of
    from tracekit.formats.reader import TraceReader
    from tracekit.program.program import Program
    from tracekit.segments.work_item import WorkItem, analysed

    with TraceReader(task["trace"]) as trace:
        program = Program.from_images(trace.images())
        modules = modules_of(trace, program, _options(task))
        item = WorkItem.from_bytes(base64.b64decode(task["segment"]))
        with open(task["output"], "wb") as file:
            file.write(analysed(trace, program, modules, item))
    return {}


def _options(task: Mapping[str, Any]) -> dict[Any, Any]:
    """Of each module."""
    from tracekit.modules import registry
    from tracekit.modules.options import make_options

    return {name: make_options(registry.load(name).Options, values) for name, values in task["options"].items()}


def _digest(build: object) -> str:
    return hashlib.blake2b(repr(build).encode(), digest_size=16).hexdigest()


_saying = threading.Lock()


def _say(out: TextIO, what: Mapping[str, Any]) -> None:
    with _saying:
        out.write(json.dumps(what) + "\n")


def _end_with_parent(_: TextIO) -> None:
    """Standard input ends when the parent is gone, however it went."""
    while sys.stdin.readline():
        pass
    os._exit(1)


def _tell(out: TextIO) -> None:
    """Say now and then how far the replay is."""
    from tracekit import progress

    pause = threading.Event()
    try:
        while not pause.wait(EVERY):
            for step in progress.steps():
                if step.total:
                    _say(out, {"at": step.position() / step.total})
    except OSError:  # nobody listens
        os._exit(1)
