"""The committed C header is what the Python tables say, in the compiler's eyes too."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tracekit.formats import cheader, events, image
from tracekit.recorder.toolchain import find_clang


def test_committed_header_is_fresh() -> None:
    assert cheader.HEADER.read_text() == cheader.render(), "run: python -m tracekit.formats.cheader"


@pytest.mark.parametrize("language", ["c", "c++"])
def test_compiler_agrees_on_every_row(language: str, tmp_path: Path) -> None:
    compiler = find_clang().path
    check = "static_assert" if language == "c++" else "_Static_assert"
    lines = ["#include <stddef.h>", f'#include "{cheader.HEADER}"']
    for name, dtype in image.DTYPES.items():
        lines.append(f'{check}(sizeof(struct tk_row_{name}) == {dtype.itemsize}, "{name}");')
        assert dtype.fields is not None and dtype.names is not None
        for field in dtype.names:
            member, offset = cheader.field_name(field), dtype.fields[field][1]
            lines.append(f'{check}(offsetof(struct tk_row_{name}, {member}) == {offset}, "{name}.{field}");')
    lines.append(f'{check}(sizeof TK_UNIT_MAGIC == {len(image.UNIT_MAGIC)} + 1, "magic");')
    lines.append(f'{check}(sizeof(struct tk_unit) == 24 && sizeof(struct tk_unit_table) == 24, "directory");')
    lines.append(f'{check}(TK_EVENT_heap_realloc == {events.CODE["heap_realloc"]}, "event");')
    source = tmp_path / ("check.c" if language == "c" else "check.cc")
    source.write_text("\n".join(lines) + "\n")
    command = [compiler, "-x", language, "-Wall", "-Wextra", "-Werror", "-fsyntax-only", str(source)]
    subprocess.run(command, check=True)
