"""Image tables outside a trace: the IMAG frames of a trace, as they stand in it, as base64 text in profile files."""

from __future__ import annotations

import base64
import binascii
import zlib
from collections.abc import Sequence

from tracekit.formats import container
from tracekit.formats.errors import TracekitError
from tracekit.formats.image_frame import Image
from tracekit.formats.reader import TraceReader


def kept_images(reader: TraceReader) -> list[str]:
    """The images of a trace, each a frame (header and compressed payload) in base64."""
    return [
        base64.b64encode(frame.header() + reader.compressed(frame)).decode("ascii")
        for frame in container.frames_of(reader.frames, b"IMAG")
    ]


def images_of(kept: Sequence[str]) -> list[Image]:
    """The images that :func:`kept_images` kept. Raises TracekitError if they are damaged."""
    return [_image(text) for text in kept]


def _image(text: str) -> Image:
    try:
        data = base64.b64decode(text, validate=True)
    except (TypeError, ValueError, binascii.Error):
        raise _damaged() from None
    if len(data) < container.HEADER.size:
        raise _damaged()
    frame = container.parse_header(data[: container.HEADER.size], 0)
    compressed = data[container.HEADER.size :]
    if frame.type != b"IMAG" or len(compressed) != frame.compressed or zlib.crc32(compressed) != frame.payload_crc:
        raise _damaged()
    return Image.parse(container.decompress(compressed, frame))


def _damaged() -> TracekitError:
    return TracekitError("The profile is damaged: its image tables cannot be read.")
