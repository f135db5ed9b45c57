"""SPEC.md says what the Python tables say."""

from __future__ import annotations

import re

from tracekit.formats import container, image, spec


def test_rendered_parts_are_fresh() -> None:
    text = spec.SPEC.read_text()
    assert spec.render(text) == text, "run: python -m tracekit.formats.spec"


def test_every_table_is_described_field_by_field() -> None:
    text = spec.SPEC.read_text()
    described = {}
    for section in re.split(r"^#### ", text, flags=re.MULTILINE)[1:]:
        number, name = section.splitlines()[0].split()
        fields = re.findall(r"^\| (\w+) \| ([ui]\d) \|", section.split("\n### ")[0], flags=re.MULTILINE)
        described[int(number), name] = fields
    assert described == {(number, name): fields for number, (name, fields) in enumerate(image.TABLES.items())}


def test_versions_end_with_the_present_one() -> None:
    text = spec.SPEC.read_text()
    assert text.startswith(f"# The tracekit trace format, version {container.VERSION}\n")
    rows = re.findall(r"^\| (\d+) \| (\d+) \| \S.* \|$", text.split("\n## Versions")[1].split("\n## ")[0], re.MULTILINE)
    assert [int(version) for version, _ in rows] == list(range(1, container.VERSION + 1))
    assert int(rows[-1][1]) == container.OLDEST_READER
