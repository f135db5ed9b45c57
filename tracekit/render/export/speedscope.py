"""speedscope's file format (github.com/jlfwong/speedscope, file-format-schema.json): a profile for each number."""

from __future__ import annotations

import json
from typing import Any

from tracekit.render.export.stacks import samples_of, unit_of
from tracekit.version import __version__

SCHEMA = "https://www.speedscope.app/file-format-schema.json"


def write(report: dict[str, Any], table: str) -> bytes:
    """The file's bytes."""
    samples = samples_of(report, table)
    numbers: dict[tuple[str, str], int] = {}
    """Of frames, which are functions and loops: the line in them is one stack's."""
    frames: list[dict[str, Any]] = []
    for frame in (frame for sample in samples.rows for frame in sample.frames):
        if (frame.name, frame.file) not in numbers:
            numbers[frame.name, frame.file] = len(frames)
            frames.append({"name": frame.name, **({"file": frame.file} if frame.file else {})})
    stacks = [[numbers[frame.name, frame.file] for frame in sample.frames] for sample in samples.rows]
    profiles = [
        {
            "type": "sampled",
            "name": f"{metric} ({samples.name} of {report['module']})",
            "unit": "bytes" if unit_of(metric) == "bytes" else "none",
            "startValue": 0,
            "endValue": sum(sample.values[place] for sample in samples.rows),
            "samples": [stack for stack, sample in zip(stacks, samples.rows) if sample.values[place]],
            "weights": [sample.values[place] for sample in samples.rows if sample.values[place]],
        }
        for place, metric in enumerate(samples.metrics)
    ]
    content = {
        "$schema": SCHEMA,
        "exporter": f"tracekit@{__version__}",
        "name": f"{report['module']}, {samples.name}",
        "activeProfileIndex": 0,
        "shared": {"frames": frames},
        "profiles": profiles,
    }
    return json.dumps(content).encode() + b"\n"
